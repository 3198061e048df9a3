"""`add_candidate(base, "C1", unit="2026-03-05-nightly", body="…", **keys) -> Path`: a candidate that approval would
take, unless told otherwise; its quote stands in the `base` fixture's journal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.store import markdown
from khms.store.layout import Base

LINE = "frames failed because a ground was loose"


@pytest.fixture
def add_candidate() -> Callable[..., Path]:
    def add(base: Base, label: str = "C1", *, unit: str = "2026-03-05-nightly", body: str = "", **keys: Any) -> Path:
        meta: dict[str, Any] = {
            "id": label,
            "type": "problem-solution",
            "level": "observation",
            "status": "active",
            "title": f"Loose ground, as {label} says",
            "tags": ["sensors"],
            "scope": "universal",
            "evidence": "reported",
            "source": f'journal/2026-03-04.md line 3: "{LINE}"',
            "date": "2026-03-04",
            "links": {
                "derived_from": [],
                "supports": [],
                "contradicts": [],
                "supersedes": None,
                "refuted_by": [],
            },
            "mark": "M-0123456789ab",
            "confidence": "0.5",
            "nearest": [],
            "relation": {"kind": "new"},
            "quotes": [{"source": "journal", "sha256": "", "text": LINE, "grade": "EXACT", "context": LINE}],
            "flags": [],
        } | keys
        meta = {key: value for key, value in meta.items() if value != "absent"}
        folder = base.inbox / unit
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "unit.json").write_text(json.dumps({"schema": "khms.unit/1", "run": "0" * 26}), encoding="utf-8")
        path = folder / f"{label}.md"
        path.write_text(markdown.render(meta, body or f"FIX: the ground, says {label}\n"), encoding="utf-8")
        return path

    return add
