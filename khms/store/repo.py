"""The only place that runs git. GitPython's command layer starts the processes; khms uses plumbing only.

Every call runs without prompts, editor or pager, in English, within a time limit, and without any program that the
repository's own configuration names (fsmonitor, hooks, external diff). The one exception is `run_hook`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from khms.errors import KhmsError, Refused, Unavailable
from khms.store import programs
from khms.store.files import tick

if TYPE_CHECKING:
    from git.cmd import Git

# No program of the repository's own, and none of its settings by which git passes over a file that changed.
_SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false"),
    *("core.trustctime=true", "core.checkStat=default", "core.ignoreStat=false", "core.untrackedCache=false"),
)
SAFE = tuple(word for setting in _SETTINGS for word in ("-c", setting))
DURABLE = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync")
SECONDS = 120
ZERO = "0" * 40
WRITING = frozenset(
    {"init", "hash-object", "update-index", "read-tree", "write-tree", "commit-tree", "update-ref", "hook"}
    | {"fetch", "push"}
)


class GitFailed(KhmsError):
    """git answered with an error; `status` is its exit code."""

    exit_code = 4

    def __init__(self, message: str, status: int, *, hint: str = "", where: str = "") -> None:
        super().__init__(message, hint=hint, where=where)
        self.status = status


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """GitPython lays this over the process's environment; names set to a git context of a caller's are emptied by
    `_clean`, so that a hook's GIT_DIR or GIT_INDEX_FILE never leads a command of ours elsewhere."""
    return {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GCM_INTERACTIVE": "never",
        "SSH_ASKPASS": "true",
        "LC_ALL": "C",
        **extra,
    }


def _clean() -> None:
    """A git hook starts us with GIT_DIR, GIT_INDEX_FILE and the like set: they would lead every command astray."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        os.environ.pop(name, None)


@dataclass(frozen=True)
class Repo:
    """The repository that holds `root`. `root` may be a sub-folder of the work tree: paths given to and taken from git
    are relative to the work tree's top, `prefix` is what stands before the base's own paths. `context` are variables
    that every git command gets: what git itself set up for a hook that it runs (see `receiving`)."""

    root: Path
    context: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _git(self) -> "Git":
        try:
            from git.cmd import Git
        except ImportError as error:  # GitPython's answer, the first time, where no git program is found
            raise _no_git() from error
        _clean()
        return Git(self.root)

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        config: Sequence[str] = SAFE,
        ok: Iterable[int] = (0,),
        pass_fds: Sequence[int] = (),
        seconds: float = SECONDS,
    ) -> bytes:
        """Runs one git command in the base's folder and returns its standard output; raises GitFailed with git's own
        words where the exit code is not among `ok`."""
        status, out, err = self._execute(
            ("git", *config, *args), stdin=stdin, env=env or {}, pass_fds=pass_fds, seconds=seconds
        )
        if status not in tuple(ok):
            raise GitFailed(_reason(err) or f"git {args[0]} failed", status, where=str(self.root))
        return out

    def ask(
        self, *args: str, env: Mapping[str, str], config: Sequence[str], seconds: float = SECONDS
    ) -> tuple[int, bytes, bytes]:
        """As `run`, for a command of which every answer counts: (exit code, standard output, standard error)."""
        return self._execute(("git", *config, *args), stdin=None, env=env, pass_fds=(), seconds=seconds)

    def status(self, *args: str) -> int:
        """The exit code alone of a git command that answers by it."""
        return self._execute(("git", *SAFE, *args), stdin=None, env={}, pass_fds=(), seconds=SECONDS)[0]

    def text(self, *args: str, ok: Iterable[int] = (0,)) -> str:
        return self.run(*args, ok=ok).decode("utf-8", "surrogateescape").strip()

    def _execute(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None,
        env: Mapping[str, str],
        pass_fds: Sequence[int],
        seconds: float,
    ) -> tuple[int, bytes, bytes]:
        import tempfile

        git = self._git
        from git.exc import GitCommandNotFound

        with tempfile.TemporaryFile() as file:
            file.write(stdin or b"")
            file.seek(0)
            try:
                status, out, err = git.execute(
                    list(command),
                    istream=file,
                    with_extended_output=True,
                    with_exceptions=False,
                    as_process=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                    env=_environment({**self._disarmed, **dict(self.context), **env}),
                    kill_after_timeout=seconds if os.name != "nt" else None,
                    **({"pass_fds": tuple(pass_fds)} if pass_fds else {}),
                )
            except GitCommandNotFound as error:
                raise _no_git() from error
            except (FileNotFoundError, NotADirectoryError) as error:
                raise Unavailable("the base's folder is gone", where=str(self.root)) from error
        if not WRITING.isdisjoint(command):
            tick()
        return int(status), _bytes(out), _bytes(err)

    @cached_property
    def _disarmed(self) -> dict[str, str]:
        """Variables that keep git from running the filters and merge drivers that the repository's own configuration
        names: `git status` runs a filter on every file whose time differs. Those of the user's configuration stay."""
        if not programs.suspect(self.root):
            return {}
        listed = self._git.execute(
            ["git", *programs.LISTED],
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            env=_environment({}),
        )
        return programs.disarmed(_bytes(listed))

    @cached_property
    def _places(self) -> tuple[str, ...]:
        """What git says of where it is, in one call: the work tree, this work tree's git folder, the shared one, what
        stands before the base's paths, the hooks. Raises Unavailable outside a repository or in a bare one, and where
        the repository's configuration puts the work tree where the base is not."""
        asked = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix", "--git-path", "hooks")
        try:
            out = self.run("rev-parse", *asked, config=("-c", "core.fsmonitor=false"))
        except GitFailed as error:
            raise self._homeless(error) from error
        places = tuple(os.fsdecode(line) for line in out.removesuffix(b"\n").split(b"\n"))
        if os.path.realpath(f"{places[0]}/{places[3]}") != os.path.realpath(self.root):
            raise Unavailable(
                "the repository's own configuration puts its work tree elsewhere",
                where=places[0],
                hint="look at it: git config --show-origin core.worktree",
            )
        return places

    def _homeless(self, error: GitFailed) -> Unavailable:
        where = str(self.root)
        if "work tree" in error.message:
            return Unavailable(
                "this repository is bare: it has no files to work on", where=where, hint="work in a clone of it"
            )
        if "dubious ownership" in error.message:
            return Unavailable(
                "this repository belongs to another user, so git refuses it",
                where=where,
                hint=f"if you trust it: git config --global --add safe.directory {self.root}",
            )
        return Unavailable("this folder is in no git repository", where=where, hint="make a base: khms init")

    def _place(self, number: int) -> Path:
        """One of git's answers as a path; relative ones are relative to the base's folder."""
        return Path(os.path.normpath(self.root / self._places[number]))

    @cached_property
    def top(self) -> Path:
        """The work tree's root; raises Unavailable outside a repository or in a bare one."""
        return self._place(0)

    @cached_property
    def folder(self) -> Path:
        """This work tree's git folder; that of the repository where there is no work tree."""
        return self._folders[0]

    @cached_property
    def common(self) -> Path:
        """The git folder that all work trees of the repository share."""
        return self._folders[1]

    @cached_property
    def _folders(self) -> tuple[Path, Path]:
        try:
            return self._place(1), self._place(2)
        except Unavailable:
            asked = ("--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir")
            inside, *out = self.text("rev-parse", *asked, ok=(0, 128)).split("\n")
            if inside != "false" or len(out) != 2:
                raise
            return Path(out[0]), Path(os.path.normpath(self.root / out[1]))

    @cached_property
    def prefix(self) -> str:
        """What stands before the base's paths in the repository: empty or `folder/`."""
        return self._places[3]

    def head(self) -> str | None:
        """HEAD's commit, None on an unborn branch."""
        return self.text("rev-parse", "--verify", "--quiet", "HEAD^{commit}", ok=(0, 1)) or None

    def branch(self) -> str:
        """The current branch's name, empty on a detached HEAD."""
        return self.text("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))

    def root_commit(self) -> str:
        """The smallest of the commits without a parent that HEAD descends from; empty on an unborn branch."""
        return min(self.text("rev-list", "--max-parents=0", "HEAD", ok=(0, 128)).split() or [""])

    @cached_property
    def _person(self) -> dict[str, str]:
        """The last `user.name` and `user.email` that git's configuration says."""
        out = self.run("config", "-z", "--get-regexp", r"^user\.(name|email)$", ok=(0, 1))
        rows = out.decode("utf-8", "replace").split("\0")
        return {key.lower(): value.strip() for key, _, value in (row.partition("\n") for row in rows) if key}

    def identity(self) -> str:
        """`Name <email>` as git would record it; raises Unavailable with the two commands that set it."""
        name = os.environ.get("GIT_AUTHOR_NAME") or self._person.get("user.name")
        email = os.environ.get("GIT_AUTHOR_EMAIL") or self._person.get("user.email")
        if not name or not email:
            raise Unavailable(
                "git does not know who you are, and an approval needs a name",
                where=str(self.root),
                hint='git config --global user.name "Your Name"  and  git config --global user.email you@example.org',
            )
        return f"{name} <{email}>"

    def operation(self) -> str:
        """What git is in the middle of (`a rebase`, `a merge`, …), or empty."""
        marks = {
            "rebase-merge": "a rebase",
            "rebase-apply": "a rebase",
            "MERGE_HEAD": "a merge",
            "CHERRY_PICK_HEAD": "a cherry-pick",
            "REVERT_HEAD": "a revert",
            "BISECT_LOG": "a bisection",
        }
        return next((what for name, what in marks.items() if (self.folder / name).exists()), "")

    def has_remote(self) -> bool:
        return bool(self.text("remote"))

    def blob(self, commit: str, path: str) -> bytes | None:
        """The bytes of a base path in `commit`, None where it is not there."""
        try:
            return self.run("cat-file", "blob", f"{commit}:{self.prefix}{path}")
        except GitFailed:
            return None

    def objects(self, names: Sequence[str], env: Mapping[str, str] | None = None) -> list[tuple[str, bytes]]:
        """(kind, bytes) of each object, in order, by one git process; an empty kind stands for one that is not there.
        A name is an id, or what git takes for one, without a line break."""
        if not names:
            return []
        out = self.run("cat-file", "--batch", stdin=b"".join(os.fsencode(name) + b"\n" for name in names), env=env)
        found = []
        at = 0
        for _ in names:
            end = out.index(b"\n", at)
            words = out[at:end].rsplit(b" ", 2)
            at = end + 1
            if len(words) < 3 or not words[2].isdigit():  # `NAME missing`, `NAME ambiguous`
                found.append(("", b""))
                continue
            size = int(words[2])
            found.append((words[1].decode(), out[at : at + size]))
            at += size + 1
        return found

    def files(self, commit: str, folder: str) -> list[str]:
        """The base paths of all files below `folder` in `commit`."""
        out = self.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", self.prefix + folder + "/")
        cut = len(self.prefix)
        return [os.fsdecode(name)[cut:] for name in out.split(b"\0") if name]

    def dirty(self, *folders: str) -> list[str]:
        """The base paths below `folders` that differ from HEAD or are new, git-ignored ones left out."""
        out = self.run("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *folders)
        cut = len(self.prefix)
        return [os.fsdecode(entry[3:])[cut:] for entry in out.split(b"\0") if entry]

    def demand_whole(self, *folders: str) -> None:
        """Raises Refused where a sparse checkout leaves files below `folders` out of the work tree: what is there then
        would be taken for all there is, and an id given or a MARK decided a second time."""
        if not (self.folder / "info" / "sparse-checkout").exists():
            return
        rows = self.run("ls-files", "-t", "-z", "--", *folders).split(b"\0")
        hidden = [os.fsdecode(row[2:]) for row in rows if row.startswith(b"S ")]
        hidden = [name for name in hidden if not os.path.lexists(self.root / name)]
        if hidden:
            raise Refused(
                f"a sparse checkout leaves {len(hidden)} of the base's files out",
                where=f"{hidden[0]}{' and others' if len(hidden) > 1 else ''}",
                hint=f"git sparse-checkout add {self.prefix}memory {self.prefix}journal (or disable it)",
            )

    @property
    def hooks(self) -> Path:
        """The folder where git looks for hooks: `core.hooksPath`, else the one that all work trees share."""
        return self._place(4)

    def has_hook(self, name: str) -> bool:
        """Whether the user has a hook of this name where git looks for it."""
        return (self.hooks / name).exists()

    def run_hook(self, name: str, *args: str, index: Path, pass_fds: Sequence[int] = ()) -> None:
        """Runs the user's own commit hook `name` against `index`; raises Refused with its words where it says no."""
        env = {"GIT_INDEX_FILE": str(index), "KHMS_HOOKS_OFF": "1", "KHMS_IN_GIT_HOOK": "1"}
        command = ["git", "-c", "core.fsmonitor=false", "hook", "run", "--ignore-missing", name]
        if args:
            command += ["--", *args]
        status, out, err = self._execute(command, stdin=None, env=env, pass_fds=pass_fds, seconds=SECONDS)
        if status:
            said = (err + out).decode("utf-8", "replace").strip()
            raise Refused(
                f"your {name} hook refused the commit; nothing was changed",
                where="\n".join(said.splitlines()[-12:]),
                hint="mend what the hook names, then run the command again",
            )


QUARANTINE = ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")


def receiving(folder: Path, env: Mapping[str, str] = os.environ) -> Repo:
    """The repository that a server's hook runs for, `folder` being the hook's current one. What git set up for the push
    stays in force: the new objects lie in quarantine, and only these variables lead there."""
    own = folder / env.get("GIT_DIR", ".")
    kept = {name: env[name] for name in QUARANTINE if env.get(name)}
    kept["GIT_DIR"] = os.path.realpath(own)
    for name in ("GIT_OBJECT_DIRECTORY", "GIT_QUARANTINE_PATH"):
        if name in kept:
            kept[name] = os.path.normpath(folder / kept[name])
    return Repo(Path(kept["GIT_DIR"]), tuple(kept.items()))


def _no_git() -> Unavailable:
    return Unavailable("git was not found", hint="install git 2.36 or newer and put it on PATH")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogateescape") if value else b""


def _reason(err: bytes) -> str:
    """git's last words, on one line."""
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    chosen = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    return chosen[0].removeprefix("fatal: ").removeprefix("error: ") if chosen else ""


def initialise(folder: Path) -> Repo:
    """Makes a git repository in `folder`."""
    Repo(folder).run("init", "--quiet", config=())
    return Repo(folder)
