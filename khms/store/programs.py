"""The programs that a repository's own configuration would have git run, and how git is kept from it.

A repository can come from anywhere (an archive, a shared disk), its `.git/config` with it; attributes tracked in it
decide which files a filter is run on. The user's own configuration is the user's word and stays in force.
"""

from pathlib import Path

from khms.store import gitdir

# What an entry is set to. A merge driver that fails leaves a conflict; one without a command would end git.
HARMLESS = {"clean": "", "smudge": "", "process": "", "required": "false", "driver": "false"}
# The git command that lists the entries, NUL between scope and name.
LISTED = ("config", "-z", "--includes", "--show-scope", "--name-only", "--get-regexp", r"^(filter|merge)\.")
_SIGNS = ("[filter", "[merge ", "[include")


def suspect(root: Path) -> bool:
    """Whether the repository's own configuration may name a filter or merge driver; told without a process."""
    git = gitdir.find(root)
    return git is not None and any(_signs(file) for file in (git.common / "config", git.folder / "config.worktree"))


def _signs(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False
    return any(sign in text for sign in _SIGNS)


def disarmed(listed: bytes) -> dict[str, str]:
    """GIT_CONFIG_COUNT and its variables, which set each filter and merge driver of the repository's own scope to
    something harmless. `listed` is what LISTED answers."""
    fields = listed.split(b"\0")
    own = [name for scope, name in zip(fields[::2], fields[1::2], strict=False) if scope in (b"local", b"worktree")]
    names = dict.fromkeys(name.decode("utf-8", "surrogateescape") for name in own)
    entries = {name: HARMLESS[key] for name in names if (key := name.rpartition(".")[2]) in HARMLESS}
    found = {"GIT_CONFIG_COUNT": str(len(entries))}
    for at, (name, value) in enumerate(entries.items()):
        found |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return found
