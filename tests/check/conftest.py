from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.check.lint import Report, lint
from khms.errors import Refused
from khms.model.approval import Approval, Approved, Transition, Waiver, card_sha256
from khms.model.finding import Finding
from khms.store.layout import Base
from khms.store.repo import Repo

Found = list[tuple[str, str, int, str]]


@pytest.fixture
def report(base: Base) -> Callable[..., Report]:
    """Lint of the `base` as it stands."""

    def run(**how: Any) -> Report:
        try:
            settings = config.load(base.root)
        except Refused:
            settings = config.Config([])
        return lint(base, settings, Repo(base.root), **how)

    return run


@pytest.fixture
def found(report: Callable[..., Report]) -> Callable[..., Found]:
    """The findings as (code, file name, line, severity); the missing approval records are left out unless asked for."""

    def run(*codes: str, **how: Any) -> Found:
        return [
            (finding.code, finding.path.rpartition("/")[2], finding.line, finding.severity)
            for finding in report(**how).findings
            if (finding.code in codes if codes else finding.code != "KH010")
        ]

    return run


@pytest.fixture
def only(report: Callable[..., Report]) -> Callable[[str], Finding]:
    """The one finding of a code."""

    def run(code: str) -> Finding:
        (finding,) = (finding for finding in report().findings if finding.code == code)
        return finding

    return run


@pytest.fixture
def approve(base: Base) -> Callable[..., Path]:
    """Writes an approval record for card files, as labels C1, C2, …"""
    count = 0

    def record(
        *files: Path,
        unit: str = "memory/inbox/2026-03-05-nightly",
        transitions: tuple[Transition, ...] = (),
        waivers: tuple[Waiver, ...] = (),
    ) -> Path:
        nonlocal count
        count += 1
        held = Approval(
            id=f"01JDXKQZ8V7M3N5P9R2T4W6Y{count:02d}",
            unit=unit,
            reviewer="Ada Tester <ada@example.org>",
            at="2026-03-05T08:00:00+01:00",
            parent=None,
            cards=tuple(
                Approved(file.stem, f"C{i}", "0" * 64, card_sha256(file.read_bytes()))
                for i, file in enumerate(files, 1)
            ),
            transitions=transitions,
            waivers=waivers,
        )
        path = base.approvals / f"{held.id}.json"
        path.write_bytes(held.file_bytes())
        return path

    return record
