"""Which bases this user lets hooks use: `trust.json` in the user's data folder, outside every base.

A base that is merely found by walking up from a folder came with a repository, perhaps a stranger's. It is trusted once
its owner said so here, and only as long as those of its settings that need trust (programs, addresses, models, outside
paths) are the ones that were there then. Reading needs neither git nor a heavy import: hooks do it at every event.
"""

import json
import time
from pathlib import Path

from khms import config as configuration
from khms.errors import Unavailable
from khms.model.digest import sha256_hex
from khms.store import files, lock
from khms.store.layout import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.store.repo import Repo

NAME = "trust.json"
UNKNOWN = "it is not trusted yet"
CHANGED = "its settings that need trust have changed"
_MEND = "mend it, or remove it and trust your bases again"


def place() -> Path:
    return configuration.user_data() / NAME


def config_sha256(base: Base) -> str:
    """The hash of those settings of the base that need trust, as canonical JSON; raises Refused where its khms.toml
    cannot be read."""
    held = configuration.needing_trust(configuration.read(base.config))
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256_hex(text.encode("utf-8", "surrogatepass"))


def why_not(base: Base) -> str:
    """Why hooks may not use a base that was found by walking up; empty where they may. A base that the user named is
    the user's own word. Raises Refused where the base's khms.toml cannot be read."""
    if base.named:
        return ""
    entry = next((item for item in _entries() if item["path"] == _real(base)), None)
    if entry is None:
        return UNKNOWN
    return "" if entry["config_sha256"] == config_sha256(base) else CHANGED


def root_commit(repo: "Repo") -> str:
    """The smallest of the repository's first commits, empty before there is one."""
    found = repo.text("rev-list", "--max-parents=0", "HEAD", "--", ok=(0, 128)).split()
    return min(found, default="")


def record(base: Base, repo: "Repo") -> None:
    """Trusts the base as it is now; replaces an earlier entry for its path."""
    entry = {
        "path": _real(base),
        "root_commit": root_commit(repo),
        "config_sha256": config_sha256(base),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    _change(base, entry)


def forget(base: Base) -> bool:
    """Takes the trust back; says whether there was any."""
    return _change(base, None)


def entry(base: Base) -> dict[str, str] | None:
    """What was recorded for the base's path, for commands that show it or check the root commit too."""
    return next((item for item in _entries() if item["path"] == _real(base)), None)


def entries() -> list[dict[str, str]]:
    """Everything that was recorded, for commands that show it."""
    return _entries()


def _change(base: Base, new: dict[str, str] | None) -> bool:
    path = place()
    files.make_folder(path.parent, 0o700)
    with lock.hold(path.with_suffix(".lock"), "trust", wait=5.0):
        held = _entries()
        kept = [item for item in held if item["path"] != _real(base)]
        if new is None and len(kept) == len(held):
            return False
        text = json.dumps([*kept, *([new] if new else [])], indent=2, ensure_ascii=True) + "\n"
        if path.exists():
            path.chmod(0o600)
        files.write_atomic(path, text.encode("ascii"), mode=0o600)
        return True


def _real(base: Base) -> str:
    return str(base.root.resolve())


def _entries() -> list[dict[str, str]]:
    """What stands in the file. Raises Unavailable for one that cannot be read: what is unreadable is not empty."""
    path = place()
    try:
        value = files.read_json(path)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        message = f"the list of trusted bases cannot be read: {error}"
        raise Unavailable(message, where=str(path), hint=_MEND) from error
    keys = ("path", "root_commit", "config_sha256", "at")
    whole = isinstance(value, list) and all(
        isinstance(item, dict) and all(isinstance(item.get(key), str) for key in keys) for item in value
    )
    if not whole:
        raise Unavailable("the list of trusted bases is damaged", where=str(path), hint=_MEND)
    return list(value)
