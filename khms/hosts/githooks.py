"""The git hooks that guard a base: put in, taken out, looked at.

`pre-commit` of the repository that holds a base, `pre-receive` of one on a server. A hook that is there already keeps
every byte; what cannot be edited safely is refused, with what to do instead.
"""

import os
import shlex
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from khms.errors import Refused, Unavailable
from khms.hosts import hookscript
from khms.hosts.hookscript import Block, Unsafe
from khms.store import files, siting
from khms.store.repo import GitFailed, Repo

LARGEST = 1024 * 1024
_PRE_COMMIT = (b"-mpre_commit", b"pre-commit hook-impl")  # in the script that `pre-commit install` writes


@dataclass(frozen=True, slots=True)
class Hook:
    """Where a hook goes. `path` is the file behind any link; `base` the folder that it checks, from the work tree's top
    on (none on a server). A `shared` one lies in the work tree, is committed, and so names no interpreter of this
    machine; a `called` one is started by another script, so that it need not be executable; `git` is the
    repository that a server's hook is for."""

    name: str
    path: Path
    base: str = ""
    shared: bool = False
    called: bool = False
    git: Path | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was done to the hook's file, and what else its owner should know."""

    changed: bool
    path: Path
    note: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """How things stand; each problem is one line that a person can act on."""

    installed: bool
    name: str
    path: Path
    command: str = ""
    problems: tuple[str, ...] = ()


def of_base(repo: Repo) -> Hook:
    """The pre-commit hook of the repository that holds the base `repo.root`. Raises Refused where git takes it from
    outside of that repository."""
    name, folder = "pre-commit", repo.hooks
    called = folder.name == "_" and folder.parent.name == ".husky"
    if called:  # Husky writes this folder anew at each install; its scripts call those one folder up
        folder = folder.parent
    path = folder / name
    if not called and _is_of_pre_commit(path) and (folder / f"{name}.legacy").exists():
        path, called = folder / f"{name}.legacy", True
    top, common = repo.top.resolve(), repo.common.resolve()
    homes = [top, common] + ([common.parent] if common.name == ".git" else [])
    real = _inside(path, homes)
    is_tree = common not in real.parents and repo.folder.resolve() not in real.parents
    shared = is_tree and not siting.ignores(repo, str(real))
    return Hook(name, real, repo.prefix.rstrip("/") or ".", shared, called)


def of_server(place: Path) -> Hook:
    """The pre-receive hook of the repository at `place`, bare or not."""
    name = "pre-receive"
    git = next((held for held in (place / ".git", place) if held.exists()), place)
    try:
        said = Repo(place).run(f"--git-dir={git}", "rev-parse", "--absolute-git-dir", "--git-path", "hooks", config=())
    except (GitFailed, Unavailable) as error:
        hint = "name the repository's folder on this server, such as /srv/git/project.git"
        raise Unavailable("this is no git repository", where=str(place), hint=hint) from error
    folder, hooks = (Path(os.path.normpath(place / os.fsdecode(line))) for line in said.splitlines())
    return Hook(name, _inside(hooks / name, [folder.resolve()]), git=folder)


def _headless(git: Path | None) -> str:
    """What is wrong with the branch that a server's HEAD names: it says which one receives approvals."""
    if git is None:
        return ""
    repo, here = Repo(git), f"--git-dir={git}"
    head = repo.text(here, "symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).removeprefix("refs/heads/")
    form = "--format=%(refname:lstrip=2)"
    branches = repo.text(here, "for-each-ref", form, "refs/heads").splitlines()
    if not head or head in branches:
        return ""
    say = f"git --git-dir={shlex.quote(str(git))} symbolic-ref HEAD refs/heads/"
    if not branches:
        return f"HEAD names {head}, so that branch receives approvals; where it shall be another: {say}NAME"
    shown = ", ".join(branches[:3])
    likely = next((name for name in ("main", "master") if name in branches), branches[0])
    return f"HEAD names {head}, which is not there ({shown}), so nothing says which branch receives: {say}{likely}"


def install(hook: Hook) -> Report:
    """Puts khms's lines in; a second time changes nothing. What cannot be edited safely is refused untouched."""
    script = _read(hook.path)
    try:
        found = hookscript.find(script) if script is not None else None
        bases = tuple(dict.fromkeys((*(found.bases if found else ()), *((hook.base,) if hook.base else ()))))
        block = hookscript.lines(hook.name, bases, "" if hook.shared else _python())
        if script is None:
            wanted = hookscript.alone(block)
        else:
            wanted = hookscript.put(script, block)
            _demand_executable(hook, found)
    except Unsafe as error:
        raise _refusal(hook, error) from error
    if wanted == script:
        return Report(False, hook.path, "already installed", tuple(_remarks(hook, script)))
    _write(hook.path, wanted)
    note = "made" if script is None else "khms's lines were brought up to date" if found else "khms's lines were put in"
    return Report(True, hook.path, note, tuple(_remarks(hook, wanted)))


def uninstall(hook: Hook) -> Report:
    """Takes khms's lines for this base out. What stands around them stays as it is, byte for byte."""
    script = _read(hook.path)
    try:
        found = hookscript.find(script) if script is not None else None
    except Unsafe as error:
        raise _refusal(hook, error) from error
    if script is None or found is None:
        return Report(False, hook.path, "nothing of khms was in it" if script is not None else "there is no such hook")
    others = tuple(base for base in found.bases if base != hook.base)
    if hook.base and others and len(others) < len(found.bases):
        _write(hook.path, hookscript.put(script, hookscript.lines(hook.name, others, found.python)))
        return Report(True, hook.path, f"this base was taken out; it goes on checking {', '.join(others)}")
    left = hookscript.without(script, found)
    _writable(hook.path)
    if left is None:
        files.unlink(hook.path)
        return Report(True, hook.path, "removed: khms had made it")
    _write(hook.path, left)
    return Report(True, hook.path, "khms's lines were taken out")


def status(hook: Hook) -> Status:
    """What is installed and what keeps it from working."""
    try:
        script = _read(hook.path)
        found = hookscript.find(script) if script is not None else None
    except (Refused, Unavailable) as error:
        return Status(False, hook.name, hook.path, "", (str(error).replace("\n", "; "),))
    except Unsafe as error:
        return Status(False, hook.name, hook.path, "", (f"{hook.path}: {error.message}: {error.mend}",))
    installed = found is not None and (not hook.base or hook.base in found.bases)
    command = (found.python or "khms") if found else ""
    return Status(installed, hook.name, hook.path, command, tuple(_problems(hook, found)) if found else ())


def _problems(hook: Hook, found: Block) -> Iterator[str]:
    told = _headless(hook.git)
    if "not there" in told:
        yield told
    if hook.base and hook.base not in found.bases:
        yield f"{hook.path} checks {', '.join(found.bases) or 'nothing'}, not this base: khms hook install git"
    if not hook.called and not os.access(hook.path, os.X_OK):
        yield f"{hook.path} is not executable, so git passes it by: chmod +x {hook.path}"
    again = "install again"
    if found.python and not os.access(found.python, os.X_OK):
        yield f"the interpreter is missing: {found.python}: {again}"
    if found.text.strip(b"\n") != hookscript.lines(hook.name, found.bases, found.python).strip(b"\n"):
        yield f"khms's lines in {hook.path} are not as this khms writes them: {again}"
    elif found.python and Path(found.python).parent != Path(sys.executable).parent:
        yield f"{hook.path} runs another Python than the one you run now: {found.python}"


def _remarks(hook: Hook, script: bytes) -> Iterator[str]:
    if told := _headless(hook.git):
        yield told
    if hook.shared:
        yield (
            "this file is part of the repository, so it takes khms from PATH: commit it, and everyone who commits to"
            " the base needs khms"
        )
    if any(mark in script for mark in _PRE_COMMIT):
        yield (
            "`pre-commit install` writes this file anew; the hooks khms-lint and khms-audit in .pre-commit-config.yaml"
            " stay"
        )


def _python() -> str:
    if not sys.executable:
        raise Unavailable("this Python does not know its own path", hint="run khms by the full path of its Python")
    return sys.executable


def _inside(path: Path, homes: list[Path]) -> Path:
    """The file behind `path`, if it lies in one of `homes`: a hook elsewhere may be that of other repositories too."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11 tells a loop of links by a RuntimeError
        raise Refused("the hook is a link that leads nowhere", where=str(path), hint="remove the link") from error
    if not any(home in real.parents for home in homes):
        raise Refused(
            "git takes this hook from outside of the repository, where others may use it too",
            where=str(path) if real == path else f"{path} -> {real}",
            hint=f"call khms from it yourself, with the lines of: khms hook install git --print {path.name}",
        )
    return real


def _is_of_pre_commit(path: Path) -> bool:
    try:
        script = files.read(path)
    except OSError:
        return False
    return any(mark in script for mark in _PRE_COMMIT)


def _read(path: Path) -> bytes | None:
    """The hook's bytes, None where there is none."""
    try:
        script = files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        hint = "give yourself access to it, or move away what stands there"
        raise Unavailable(f"cannot read: {error.strerror or error}", where=str(path), hint=hint) from error
    if len(script) > LARGEST:
        raise Refused("the hook is too large for a script", where=str(path), hint="see whether it is the right file")
    return script


def _demand_executable(hook: Hook, found: Block | None) -> None:
    """A script that its owner switched off must not come to life with khms's lines."""
    if found is None and not hook.called and not os.access(hook.path, os.X_OK):
        raise Unsafe("the hook is not executable, so git passes it by", "chmod +x it if it is meant, else remove it")


def _refusal(hook: Hook, error: Unsafe) -> Refused:
    hint = f"{error.mend}: khms hook install git --print {hook.name}" if "lines are" in error.mend else error.mend
    return Refused(f"{error.message}; nothing was changed", where=str(hook.path), hint=hint)


def _writable(path: Path) -> None:
    """A hook that is marked read-only stays so, though a rename could replace it."""
    if path.exists() and (not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK)):
        raise Unavailable(
            "the hook is read-only", where=str(path), hint="make it writable, or change it where it is made"
        )


def _write(path: Path, script: bytes) -> None:
    _writable(path)
    files.write_atomic(path, script, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o777)
