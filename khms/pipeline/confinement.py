"""Whether an agent may be asked, and whether the base is still what it was before: an agent proposes, and writes
nothing.

Looked at are the names, sizes, times and inodes of everything in the base but git's own objects and this machine's
`.khms`, where khms itself writes, what git runs or obeys, and what HEAD holds of the base: commits elsewhere in the
project are its people at work. So are branches, but for those of khms, which decide MARKs. Of `.khms` it is what a
later run would take for words of a session. The journal may grow meanwhile, for MARKs are jotted at any hour; a line of
it that changes may not.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from khms import config as configuration
from khms.config import Config
from khms.errors import Refused
from khms.store import trust
from khms.store.layout import JOURNAL, Base
from khms.store.repo import Repo

Stamp = tuple[int, int, int, int]  # size, mtime in ns, inode, mode
_PASSED = (".khms", ".git", "__pycache__")
# What git runs, obeys or takes history from; not its index, which an editor's `git status` writes at any moment.
_OBEYED = (
    *("config", "config.worktree", "commondir", "shallow", "objects/info/alternates"),
    *("info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout"),
)
SHOWN = 5


def demand_trust(base: Base, config: Config) -> None:
    """Raises Refused where an agent would be asked as the base's own configuration wants it and nobody trusted that: a
    base that was found by walking up came with a repository, perhaps a stranger's, and its programs, addresses and
    outside paths with it. To type the name of a command is no word about them."""
    if config["nightly.proposer"] == "rules":
        return
    own = configuration.needing_trust(configuration.read(base.config))
    named = sorted(name for name in own if name.startswith("nightly."))
    why = trust.why_not(base) if named else ""
    if why:
        raise Refused(
            f"this base's own configuration sets {', '.join(named)}, and {why}",
            where=str(base.config),
            hint=f"look at it, then: khms trust {base.root}",
        )


@dataclass(frozen=True, slots=True)
class Picture:
    files: Mapping[str, Stamp]
    heads: Mapping[str, bytes]
    journal: Mapping[str, bytes]


@dataclass
class Guard:
    """Compares the base around calls. Calls can run side by side, so the picture is taken when the first begins and
    looked at again whenever one ends."""

    base: Base
    repo: Repo | None = None
    _lock: Lock = field(default_factory=Lock)
    _before: Picture | None = None
    _running: int = 0

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Raises Refused at the end where anything changed while the body ran."""
        with self._lock:
            if not self._running:
                self._before = picture(self.base, self.repo)
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                before = self._before
        assert before is not None
        changed = differences(before, picture(self.base, self.repo))
        if changed:
            more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
            raise Refused(
                f"the base changed while the agent was asked: {', '.join(changed[:SHOWN])}{more}",
                where=str(self.base.root),
                hint="look at it (git status, git diff); if it is yours, run the command again: no decision is lost",
            )


def picture(base: Base, repo: Repo | None = None) -> Picture:
    """The base as it lies there now, and in its repository."""
    found: dict[str, Stamp] = {}
    _walk(str(base.root), "", found)
    for path in (base.state / "cursors.json", *base.carry.glob("*/gathered.json"), *base.carry.glob("found/*")):
        _stamp(path, base.relative(path), found)
    heads: dict[str, bytes] = {}
    if repo is not None:
        git = repo.common
        _stamp(repo.top / ".git", "(git) .git", found)  # a file in a linked work tree: it names git's folder
        tree = repo.text("rev-parse", "--verify", "--quiet", "HEAD:./", ok=(0, 1, 128))
        heads["(git) what HEAD holds of the base"] = tree.encode()
        _walk(str(git / "hooks"), "(git) hooks/", found)
        _walk(str(git / "refs" / "replace"), "(git) refs/replace/", found)
        for path in (git / "refs" / "heads" / "khms", *sorted((git / "refs" / "remotes").glob("*/khms"))):
            _walk(str(path), f"(git) {path.relative_to(git).as_posix()}/", found)
        for shown, folder in {"(git)": git, "(this work tree's git)": repo.folder}.items():
            for name in _OBEYED:
                with contextlib.suppress(OSError):
                    heads[f"{shown} {name}"] = (folder / name).read_bytes()
        with contextlib.suppress(OSError):
            packed = (git / "packed-refs").read_bytes().splitlines()
            held = [line for line in packed if b"/khms/" in line or b"/replace/" in line]
            heads["(git) packed-refs"] = b"\n".join(held)
    lines = {}
    for name in found:
        if name.startswith(f"{JOURNAL}/"):
            with contextlib.suppress(OSError):
                lines[name] = (base.root / name).read_bytes()
    return Picture(found, heads, lines)


def _walk(folder: str, prefix: str, found: dict[str, Stamp]) -> None:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name in _PASSED:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                _walk(entry.path, f"{prefix}{entry.name}/", found)
            else:
                at = entry.stat(follow_symlinks=False)
                found[prefix + entry.name] = (at.st_size, at.st_mtime_ns, at.st_ino, at.st_mode)
        except OSError:
            found[prefix + entry.name] = (0, 0, 0, 0)


def _stamp(path: Path, name: str, found: dict[str, Stamp]) -> None:
    with contextlib.suppress(OSError):
        at = path.lstat()
        if not stat.S_ISDIR(at.st_mode):
            found[name] = (at.st_size, at.st_mtime_ns, at.st_ino, at.st_mode)


def differences(before: Picture, after: Picture) -> list[str]:
    """What is no longer as it was, by name."""
    changed = []
    for name in sorted({*before.files, *after.files}):
        if before.files.get(name) == after.files.get(name) or _grew(name, before, after):
            continue
        changed.append(name)
    heads = sorted({*before.heads, *after.heads})
    return changed + [name for name in heads if before.heads.get(name) != after.heads.get(name)]


def _grew(name: str, before: Picture, after: Picture) -> bool:
    """Whether this is a journal file that only got longer, or is new."""
    return name in after.journal and after.journal[name].startswith(before.journal.get(name, b""))
