"""What a reviewer decided so far and nothing has been made of yet: one small file a candidate in `.khms/state/review/`.

A file's name holds the candidate's label and the hash of its bytes, so a candidate that was edited has none, and two
sessions side by side never write over each other's.
"""

import json
import re
from pathlib import Path
from typing import Any

from khms.model.digest import sha256_hex
from khms.store import files, local
from khms.store.layout import Base


def kept(base: Base, unit: str, label: str, candidate: str) -> dict[str, Any] | None:
    """What is kept of the candidate with that label and hash in the unit at that path; None where nothing is, or
    where what is there cannot be read (it stays as it is until the next decision)."""
    try:
        value = files.read_json(_file(base, unit, label, candidate))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def keep(base: Base, unit: str, label: str, candidate: str, value: dict[str, Any]) -> None:
    """Keeps it durably; raises Unavailable where the base cannot be written."""
    local.make(base)
    data = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    files.write_atomic(_file(base, unit, label, candidate), data.encode("utf-8"))


def forget(base: Base, unit: str, label: str) -> None:
    """Removes what is kept of a candidate, whatever its bytes were."""
    for file in _folder(base, unit).glob(f"{_name(label)}=*.json"):
        files.unlink(file)
    files.remove_empty(_folder(base, unit), base.state)


def _folder(base: Base, unit: str) -> Path:
    return base.state / "review" / _name(unit.rpartition("/")[2])


def _file(base: Base, unit: str, label: str, candidate: str) -> Path:
    return _folder(base, unit) / f"{_name(label)}={candidate[:16]}.json"


def _name(text: str) -> str:
    """`text` as a part of a file name. Labels come from files and headings of older tools and may hold anything."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}", text)
    return text if plain else sha256_hex(text.encode("utf-8", "surrogateescape"))[:16]
