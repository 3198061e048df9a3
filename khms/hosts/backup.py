"""What a host's settings file was before khms touched it, and what khms made of it.

Two files in the user's data folder, named by a hash of the settings file's path: `<hash>.before` with its bytes
and `<hash>.json` with the record. Settings can hold keys, so the folder is the user's alone.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from khms.config import user_data
from khms.errors import KhmsError, Unavailable
from khms.hosts import userfile
from khms.store import files

SCHEMA = "khms.host-settings/1"


@dataclass(frozen=True, slots=True)
class Record:
    """`before` and `installed` are hashes of the file's bytes; no `before` means that there was no file."""

    host: str
    path: str
    command: str
    before: str
    installed: str
    made: tuple[str, ...]  # containers that the entries needed: "hooks", "hooks.SessionStart"
    folders: tuple[str, ...]  # folders made for the file, the innermost first


def place(path: Path) -> Path:
    """Where the bytes of the settings file `path` are kept."""
    name = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return user_data() / "hosts" / f"{name}.before"


def held(path: Path) -> Path | None:
    """The place, where something is kept there."""
    kept = place(path)
    return kept if kept.is_file() else None


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def replace(
    path: Path, before: bytes | None, after: bytes, earlier: Record | None, *,
    host: str, command: str, made: tuple[str, ...] = (), key: Path | None = None,
) -> None:  # fmt: skip
    """Writes `after` to the settings file `path`, once there is a record of what it was `before`; under `key`, where
    that is not the path. `earlier` is the record that stood there: it tells the folders made for the file."""
    key = key or path
    missing = tuple(str(parent) for parent in path.parents if not parent.exists())
    folders = earlier.folders if earlier and path.exists() else missing
    hashed = "" if before is None else sha256(before)
    save(key, Record(host, str(path), command, hashed, sha256(after), made, folders), before)
    try:
        userfile.write(path, after)
    except KhmsError:
        if earlier is None:
            forget(key)
        raise


def save(path: Path, record: Record, before: bytes | None) -> None:
    """The bytes first: a record always names bytes that are there."""
    kept = place(path)
    files.make_folder(kept.parent, 0o700)
    if before is None:
        files.unlink(kept)
    else:
        files.write_atomic(kept, before, 0o600)
    text = json.dumps({"schema": SCHEMA, **asdict(record)}, indent=2, ensure_ascii=True) + "\n"
    files.write_atomic(kept.with_suffix(".json"), text.encode("ascii"))


def load(path: Path) -> Record | None:
    """The record for the settings file `path`; None where there is none that can be relied on."""
    kept = place(path).with_suffix(".json")
    try:
        found = json.loads(kept.read_bytes())
        fields = {name: found[name] for name in ("host", "path", "command", "before", "installed")}
        if not all(isinstance(value, str) for value in fields.values()):
            return None
        return Record(**fields, made=_texts(found["made"]), folders=_texts(found["folders"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable("cannot read the record of an installation", where=str(kept), hint=str(error)) from error
    except (ValueError, KeyError, TypeError):
        return None


def before(path: Path, record: Record) -> bytes | None:
    """The bytes from before the installation; None where they are gone or not those of the record."""
    try:
        data = place(path).read_bytes()
    except OSError:
        return None
    return data if sha256(data) == record.before else None


def forget(path: Path) -> None:
    kept = place(path)
    files.unlink(kept.with_suffix(".json"))
    files.unlink(kept)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("not a list of texts")
    return tuple(value)
