"""What killed commands leave behind: temporary files and folders of processes that are gone."""

import os
from collections.abc import Iterator
from pathlib import Path

from khms.store import files

FOLDERS = ("memory", "journal", "tools", ".khms")


def leftovers(root: Path) -> list[Path]:
    """Below the base's own folders only: an adopted folder may be vast, and its other files are not ours."""
    return [path for path in _temporary(root) if not _alive(path)]


def _temporary(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob(files.TEMPORARY + "*"))
    for name in FOLDERS:
        yield from sorted((root / name).rglob(files.TEMPORARY + "*"))


def _alive(path: Path) -> bool:
    number = path.name.removeprefix(files.TEMPORARY).partition("-")[0]
    if not number.isdigit() or os.name == "nt":
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
