"""How far each transcript has been read: one small file of this machine. Losing it costs a second reading of the last
days, whose MARKs the receipts know."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.store import files, local
from khms.store.layout import Base

SCHEMA = "khms.cursors/1"
NAME = "cursors.json"


@dataclass(frozen=True, slots=True)
class Cursor:
    """`position` is the reader's own word for a place; `modified` the file's time when all of it was read, 0 where some
    of it was left. `own` marks a session that is khms's own call, which is never read again."""

    position: str = ""
    modified: float = 0.0
    own: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"position": self.position, "modified": self.modified, **({"own": True} if self.own else {})}


def load(base: Base) -> dict[str, Cursor]:
    """Every cursor by its source's key; one that makes no sense is none."""
    try:
        value = files.read_json(base.state / NAME)
        rows = value["sources"].items() if value["schema"] == SCHEMA else ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    found = {}
    for key, row in rows:
        try:
            found[str(key)] = cursor_from(row)
        except (KeyError, TypeError, ValueError):
            continue
    return found


def cursor_from(row: Mapping[str, Any]) -> Cursor:
    return Cursor(str(row["position"]), float(row["modified"]), bool(row.get("own", False)))


def advance(base: Base, moved: Mapping[str, Cursor]) -> None:
    """Puts the cursors where `moved` says and leaves all others."""
    if not moved:
        return
    rows = {key: cursor.as_json() for key, cursor in sorted({**load(base), **moved}.items())}
    value = {"schema": SCHEMA, "sources": rows}
    local.make(base)
    # in ASCII: the name of a transcript need not be text in any encoding
    files.write_atomic(base.state / NAME, (json.dumps(value, indent=1) + "\n").encode("ascii"), 0o600)
