"""A made-up history for measuring: every commit approves the candidates of a unit, each with its record.

It is told as a stream for `git fast-import`, which takes 2,000 commits of 10,000 cards in seconds.
"""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from khms.measure import synthetic
from khms.model.approval import Approval, Approved, candidate_sha256, card_sha256
from khms.model.ulid import new_ulid
from khms.store import signing
from khms.store.layout import CONFIG, INBOX, SIGNERS
from khms.store.signing import Key

REVIEWER = "Bench <bench@example.org>"
BEGAN = 1_750_000_000  # seconds since 1970; each commit is a minute later than the one before
Held = tuple[Approval, dict[str, str]]  # a record, and the other files of its commit


def approvals(cards: int, commits: int, seed: int = 1) -> Iterator[Held]:
    """The record of each commit, and the other files that it brings."""
    rng = random.Random(seed)
    number = 0
    for i in range(commits):
        unit = f"{INBOX}/unit-{i:05d}"
        files: dict[str, str] = {}
        entries = []
        for label in range(1, cards * (i + 1) // commits - number + 1):
            card_id = f"K-{number + label:05d}"
            card = synthetic.card_text(number + label, rng)
            candidate = card.replace(f"id: {card_id}", f"id: C{label}", 1)
            files[f"memory/know/{card_id}.md"] = card
            files[f"{unit}/C{label}.md"] = candidate
            data, held = card.encode(), candidate.encode()
            entries.append(Approved(card_id, f"C{label}", candidate_sha256(held), card_sha256(data)))
        number += len(entries)
        moment = BEGAN + 60 * i
        record = Approval(new_ulid(moment * 1000), unit, REVIEWER, _iso(moment), None, tuple(entries))
        yield record, files


def _iso(moment: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat()


def sealed(held: list[Held], key: Path) -> list[Held]:
    """The same with every record signed by the key in a file."""

    def seal(one: Held) -> Held:
        record, files = one
        return replace(record, signature=signing.sign(record.signed_bytes(), Key(str(key)), ask=False)), files

    with ThreadPoolExecutor() as pool:
        return list(pool.map(seal, held))


def stream(held: list[Held], signers: str = "", settings: str = "") -> Iterator[bytes]:
    """The history for `git fast-import`, on refs/heads/main: first the base with its signers, then each approval."""
    first = {CONFIG: settings, ".gitignore": ".khms/\n", **({SIGNERS: signers} if signers else {})}
    yield from _commit(BEGAN - 60, "make the base", first)
    for i, (record, files) in enumerate(held):
        path = f"memory/approvals/{record.id}.json"
        yield from _commit(BEGAN + 60 * i, f"Approve {record.unit}", {**files, path: record.file_bytes().decode()})
    yield b"done\n"


def _commit(moment: int, message: str, files: dict[str, str]) -> Iterator[bytes]:
    yield b"commit refs/heads/main\n"
    yield f"committer {REVIEWER} {moment} +0000\n".encode()
    yield _data(message.encode())
    for path, text in files.items():
        yield f"M 100644 inline {path}\n".encode() + _data(text.encode())
    yield b"\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
