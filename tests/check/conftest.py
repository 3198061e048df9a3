import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.check import audit, audit_change
from khms.check.audit import Report as Audit
from khms.check.lint import Report, lint
from khms.errors import Refused
from khms.model.approval import Approval, Approved, Transition, Waiver, approval_from, card_sha256
from khms.model.finding import Finding
from khms.pipeline import signers
from khms.pipeline.approve import approve as let_in
from khms.pipeline.ruling import Wish
from khms.store import history
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


NUMBERS = ("nought", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Reviewed:
    """A base in which all came in through the review, and how to ask an audit about it. `told` of an audit are its
    findings as (code, file name)."""

    def __init__(self, base: Base, git: Callable[..., str], put_candidate: Callable[..., Path]) -> None:
        self.base, self.git, self.put = base, git, put_candidate

    @property
    def repo(self) -> Repo:
        return Repo(self.base.root)

    def head(self) -> str:
        return self.git(self.base, "rev-parse", "HEAD")

    def commit(self, message: str = "a commit") -> str:
        self.git(self.base, "add", "--all")
        self.git(self.base, "commit", "--quiet", "--allow-empty", "-m", message)
        return self.head()

    def propose(self, unit: str, *labels: str, **keys: Any) -> None:
        links = {"contradicts": [], "supersedes": None, "refuted_by": []}
        words = " ".join(NUMBERS[int(char)] for char in unit if char.isdigit())
        for label in labels:
            body = f"FIX: what {label} says is {words}\n"
            self.put(self.base, label, unit=unit, body=body, **{"links": links, "mark": "absent", **keys})
        self.commit(f"propose {unit}")

    def approve(self, unit: str, *labels: str) -> str:
        """Approves candidates (all without labels) and returns the record's path."""
        wish = Wish(labels=labels, everything=not labels)
        done = let_in(self.base, self.repo, config.load(self.base.root), unit, wish, lambda base, cards: {})
        assert done.commit
        return f"memory/approvals/{done.record}.json"

    def record(self, path: str) -> Approval:
        return approval_from(json.loads(self.base.path(path).read_text(encoding="utf-8")), path)

    def file(self, record: Approval) -> str:
        """Writes a record by hand, as a forger would."""
        path = f"memory/approvals/{record.id}.json"
        self.base.path(path).write_bytes(record.file_bytes())
        return path

    def whole(self) -> Audit:
        return audit.whole(self.base, self.repo)

    def between(self, a: str, b: str = "HEAD") -> Audit:
        return audit_change.between(self.repo, self.repo.prefix, *history.resolved(self.repo, a, b))

    def staged(self) -> Audit:
        self.git(self.base, "add", "--all")
        return audit_change.staged(self.base, self.repo)


def told(report: Audit) -> list[tuple[str, str]]:
    return [(one.finding.code, one.finding.path.rpartition("/")[2]) for one in report.troubles]


@pytest.fixture
def reviewed(base: Base, git: Callable[..., str], put_candidate: Callable[..., Path]) -> Reviewed:
    """K-00001 to K-00004, of two approvals: K-00003 contradicts K-00001, K-00004 took the place of K-00002."""
    held = Reviewed(base, git, put_candidate)
    held.propose("2026-03-05-nightly", "C1", "C2")
    held.approve("2026-03-05-nightly")
    held.propose("2026-03-06-nightly", "C1", relation={"kind": "contradicts", "target": "K-00001", "because": "seen"})
    held.propose("2026-03-06-nightly", "C2", relation={"kind": "supersedes", "target": "K-00002", "because": "seen"})
    held.approve("2026-03-06-nightly")
    return held


@pytest.fixture
def codes() -> Callable[[Audit], list[tuple[str, str]]]:
    return told


@pytest.fixture
def reviewed_class(put_candidate: Callable[..., Path]) -> Callable[[Base, Callable[..., str]], Reviewed]:
    return lambda base, git: Reviewed(base, git, put_candidate)


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / name for name in ("ada", "bob", "eve")}
    for name, path in found.items():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    return found


@pytest.fixture
def signed(reviewed: Reviewed, keys: dict[str, Path], git: Callable[..., str]) -> Reviewed:
    """The reviewed base, with Ada as its signer and signatures required."""
    git(reviewed.base, "config", "--global", "user.signingkey", str(keys["ada"]))
    public = Path(f"{keys['ada']}.pub").read_text(encoding="utf-8")
    settings = config.load(reviewed.base.root)
    assert signers.add(reviewed.base, reviewed.repo, settings, "ada@example.org", public).commit
    assert signers.require(reviewed.base, reviewed.repo, config.load(reviewed.base.root), True).commit
    return reviewed
