"""Writing such a folder, all of it or nothing, and telling khms's files in it from those of others.

`.khms-plugin.json` at its top says what the folder is for and holds the hash of each file that khms wrote there. A file
that differs from its hash was changed by somebody, and one without a hash is somebody's: both are refused.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from khms.errors import Refused, Unavailable
from khms.hosts.plugins import contents
from khms.store import files

RECORD = ".khms-plugin.json"
SCHEMA = "khms.plugin/1"
_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Written:
    """`changed` are the files, by their path in `folder`, that were written or taken away; `kinds` what it is for."""

    folder: Path
    kinds: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Record:
    kinds: tuple[str, ...]
    hashes: dict[str, str]


def write(kind: str, folder: Path) -> Written:
    """Makes the folder one for `kind` too; a second time changes nothing. A killed run is completed by the next.

    Raises Refused, and changes nothing, where a file of somebody else stands in the way, or where the folder holds
    other things and nothing of khms."""
    record = _record(folder)
    known = record.kinds if record else ()
    kinds = tuple(each for each in contents.KINDS if each == kind or each in known)
    wanted = contents.files(kinds)
    hashes = record.hashes if record else {}
    _checked(folder, wanted, record)
    held = {path: _read(folder, path) for path in {*wanted, *hashes}}
    for path, data in sorted(held.items()):
        if data is None or (path in wanted and _plain(data) == wanted[path]):
            continue
        if hashes.get(path) != _sha256(data):
            hint = "move it away, or name another folder"
            raise Refused("this file is not as khms wrote it", where=str(folder / path), hint=hint)
    changed = []
    for path, data in wanted.items():
        before = held[path]
        if before is None or _plain(before) != data:
            files.write_atomic(folder / path, data)
            changed.append(path)
    for path in sorted(hashes.keys() - wanted.keys()):
        if held[path] is not None:
            files.unlink(folder / path)
            files.remove_empty((folder / path).parent, folder)
            changed.append(path)
    new = _Record(kinds, {path: _sha256(data) for path, data in sorted(wanted.items())})
    if new != record:
        value = {"schema": SCHEMA, "kinds": list(new.kinds), "files": new.hashes}
        files.write_atomic(folder / RECORD, (json.dumps(value, indent=2) + "\n").encode())
    return Written(folder, kinds, tuple(changed))


def _checked(folder: Path, wanted: dict[str, bytes], record: _Record | None) -> None:
    """What must hold of the folder before any of its files is looked at."""
    if folder.exists() and not folder.is_dir():
        raise Refused("this is a file", where=str(folder), hint="name a folder")
    if record is not None or not folder.exists():
        return
    tops = {path.partition("/")[0] for path in wanted}
    with _clear(folder):
        others = sorted(
            each.name
            for each in folder.iterdir()
            if each.name not in (*tops, ".git") and not each.name.startswith(files.TEMPORARY)
        )
    if others:
        hint = "name a folder that is not there yet, or an empty one"
        raise Refused(f"this folder holds something else: {others[0]}", where=str(folder), hint=hint)


def _record(folder: Path) -> _Record | None:
    data = _read(folder, RECORD)
    if data is None:
        return None
    try:
        value = files.parse_json(data.decode("utf-8"))
        if value["schema"] != SCHEMA:
            raise ValueError(value["schema"])
        kinds = tuple(each for each in value["kinds"] if each in contents.KINDS)
        return _Record(kinds, {str(path): str(held) for path, held in value["files"].items() if _is_below(str(path))})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        hint = "remove this file and what khms wrote here, then run the command again"
        raise Refused("cannot tell what khms wrote here", where=str(folder / RECORD), hint=hint) from error


def _is_below(path: str) -> bool:
    """Whether a path that a record names stays in its folder by its words; the record comes along with a folder that
    anybody may have made."""
    return not path.startswith("/") and not {"", ".", "..", ".git"} & set(path.split("/")) and "\\" not in path


def _read(folder: Path, path: str) -> bytes | None:
    """The file's bytes, None where there is none; raises Refused for what is no file, or leads out of the folder."""
    place = folder / path
    with _clear(place):
        if place.is_symlink() or files.inside(folder, place) != folder.resolve() / path:
            raise Refused("a link stands where khms would write", where=str(place), hint="move it away")
        if not place.exists():
            return None
        if not place.is_file() or place.stat().st_size > _LARGEST:
            raise Refused("something else stands where khms would write", where=str(place), hint="move it away")
        return place.read_bytes()


class _clear:
    """Turns the operating system's refusal into one clear error that names the path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            hint = "give yourself access to it, or name another folder"
            raise Unavailable(f"cannot read: {error.strerror}", where=str(self.path), hint=hint) from error


def _plain(data: bytes) -> bytes:
    """The bytes with the line ends that khms writes: git can change them in a clone."""
    return data.replace(b"\r\n", b"\n")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(_plain(data)).hexdigest()
