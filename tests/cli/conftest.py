"""What the tests of the command line share beside tests/conftest.py.

put_candidate   put_candidate(base, "C1", unit="…", body="…", relation={…}, key=None) -> Path; a candidate that
                passes every check unless told otherwise: a quote of the journal that the `base` fixture holds
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.store import markdown
from khms.store.layout import Base

UNIT = "2026-03-05-nightly"
LINE = "frames failed because a ground was loose"


@pytest.fixture
def put_candidate() -> Callable[..., Path]:
    def put(base: Base, label: str = "C1", *, unit: str = UNIT, body: str = "", **keys: Any) -> Path:
        meta: dict[str, Any] = {
            "id": label,
            "type": "problem-solution",
            "level": "observation",
            "status": "active",
            "title": f"The claim of {label}",
            "tags": [],
            "scope": "universal",
            "evidence": "reported",
            "source": "journal/2026-03-04.md line 3",
            "date": "2026-03-04",
            "links": {"supersedes": None},
            "mark": None,
            "relation": {"kind": "new"},
            "quotes": [{"source": "journal", "text": LINE, "grade": "EXACT"}],
            "flags": [],
        }
        path = base.inbox / unit / f"{label}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        meta = {key: value for key, value in {**meta, **keys}.items() if value != "absent"}
        text = markdown.render(meta, body or f"FIX: what {label} says, to tighten the ground\n")
        path.write_text(text, encoding="utf-8")
        return path

    return put
