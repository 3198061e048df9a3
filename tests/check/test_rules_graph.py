"""The edges and the records: order (KH007), status (KH009), the approved bytes (KH010)."""

from pathlib import Path

import pytest

from khms.model.approval import Transition, card_sha256

DERIVED = {"type": "principle", "level": "derived", "evidence": None, "source": None, "body": "HOLDS: it is so\n"}


def line_of(path: Path, start: str) -> int:
    rows = path.read_text(encoding="utf-8").split("\n")
    return next(i for i, row in enumerate(rows, 1) if row.startswith(start))


# KH007


def test_replacing_says_why(base, add_card, found) -> None:
    add_card(base, "K-00001", status="superseded")
    links = {"supersedes": "K-00001"}
    path = add_card(base, "K-00002", links=links, body="SUPERSEDES K-00001 BECAUSE:\nSUPERSEDES K-00009 BECAUSE: x\n")
    assert found("KH007") == [("KH007", "K-00002.md", line_of(path, "  supersedes"), "error")]
    add_card(base, "K-00002", links=links, body="Words.\nSUPERSEDES K-00001 BECAUSE: measured again\nMore.\n")
    assert found("KH007") == []


def test_a_circle_is_told_once(base, add_card, report) -> None:
    for number, target in ((1, 2), (2, 3), (3, 1), (4, 1), (5, 4)):
        add_card(base, f"K-{number:05d}", **DERIVED, links={"derived_from": [f"K-{target:05d}"]})
    found = [finding for finding in report().findings if finding.code == "KH007"]
    assert [finding.path for finding in found] == ["memory/know/K-00001.md"]
    assert found[0].message.endswith("K-00001 → K-00002 → K-00003 → K-00001")


def test_a_card_that_follows_from_itself(base, add_card, only) -> None:
    add_card(base, **DERIVED, links={"derived_from": ["K-00001"]})
    assert only("KH007").message.endswith("K-00001 → K-00001")


def test_a_circle_of_supersedes(base, add_card, found) -> None:
    for number, target in ((1, 2), (2, 1)):
        body = f"SUPERSEDES K-{target:05d} BECAUSE: newer\n"
        add_card(base, f"K-{number:05d}", status="superseded", links={"supersedes": f"K-{target:05d}"}, body=body)
    assert [name for _, name, _, _ in found("KH007")] == ["K-00001.md"]


def test_a_long_chain_is_no_circle_and_no_recursion(base, add_card, found) -> None:
    add_card(base, "K-00001")
    for number in range(2, 1500):
        add_card(base, f"K-{number:05d}", **DERIVED, links={"derived_from": [f"K-{number - 1:05d}"]})
    assert found() == []


# KH009


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"status": "refuted"}, "names what refuted it"),
        ({"status": "active", "links": {"refuted_by": ["K-00002"]}}, "though refuted"),
        ({"status": "condensed", "path": "memory/know/K-00001.md"}, "belongs in memory/archive"),
        ({"status": "active", "path": "memory/archive/know/K-00001.md"}, "lies in the archive"),
        ({"status": "superseded"}, "no card supersedes it"),
        ({"links": {"supersedes": "K-00002"}, "body": "SUPERSEDES K-00002 BECAUSE: x\n"}, "whose status is active"),
    ],
)
def test_the_status_is_what_the_edges_say(base, add_card, approve, only, keys, words) -> None:
    add_card(base, "K-00002")
    path = add_card(base, "K-00001", **keys)
    finding = only("KH009")
    assert words in finding.message and finding.severity == "warning"
    approve(path)
    assert only("KH009").severity == "error"


def test_statuses_that_fit(base, add_card, found) -> None:
    add_card(base, "K-00001", status="refuted", links={"refuted_by": ["K-00003"]})
    add_card(base, "K-00002", status="superseded")
    add_card(base, "K-00003", links={"supersedes": "K-00002"}, body="SUPERSEDES K-00002 BECAUSE: x\n")
    add_card(base, "K-00004", status="challenged", links={"contradicts": ["K-00003"]})
    add_card(base, "K-00005", status="condensed")
    assert found() == []


# KH010


def test_a_changed_byte_is_not_what_was_approved(base, add_card, approve, only) -> None:
    path = add_card(base)
    approve(path)
    path.write_bytes(path.read_bytes().replace(b"The body", b"the body"))
    finding = only("KH010")
    assert finding.severity == "error" and "not what was approved" in finding.message


def test_what_a_transition_may_change_is_no_other_card(base, add_card, approve, found) -> None:
    path = add_card(base)
    approve(path)
    add_card(base, status="challenged", links={"contradicts": ["K-00002"], "refuted_by": []})
    add_card(base, "K-00002")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert found("KH010") == [("KH010", "K-00002.md", 0, "warning")]


def test_a_recorded_change_of_the_hash_counts(base, add_card, approve, found) -> None:
    path = add_card(base)
    approve(path)
    old = card_sha256(path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"The body", b"[redacted]"))
    new = card_sha256(path.read_bytes())
    approve(transitions=(Transition("K-00001", "card_sha256", old, new, "a name stood there"),))
    assert found("KH010") == []


def test_an_approved_card_that_is_gone(base, add_card, approve, found) -> None:
    path = add_card(base)
    record = approve(path)
    path.unlink()
    assert found("KH010") == [("KH010", record.name, 0, "error")]
