"""The rules over values: what the records add up to, and the quick reading of a card."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.check import audited
from khms.check.audited import Filed, Standing, Trust, filed, review_table, stood, trust_from
from khms.check.auditing import Seen, books, judge_appended
from khms.check.seals import Arrival, Seals, Step
from khms.model.approval import Approval, Transition
from khms.model.ulid import new_ulid
from khms.store.layout import Base

K = "K-00001"


def recorded(*changes: tuple[str, object, object], at: int = 0) -> Filed:
    record = Approval(new_ulid(at), "", "Ada <a@b.org>", "", None, (), tuple(Transition(K, *c, "why") for c in changes))
    return Filed(f"memory/approvals/{record.id}.json", record)


def standing(*held: Filed) -> Standing:
    return books(held).standing(K)


def test_a_card_begins_active_and_its_last_status_counts() -> None:
    assert standing() == Standing()
    later = recorded(("status", "challenged", "refuted"), at=2)
    assert standing(later, recorded(("status", "active", "challenged"), at=1)).status == "refuted"


def test_two_branches_that_each_added_an_edge_both_count() -> None:
    one = recorded(("links.contradicts", ["K-2"], ["K-2", "K-3"]), at=2)
    two = recorded(("links.contradicts", ["K-2"], ["K-2", "K-4"]), at=3)
    first = recorded(("links.contradicts", [], ["K-2"]), at=1)
    assert standing(two, one, first).contradicts == {"K-2", "K-3", "K-4"}
    gone = recorded(("links.contradicts", ["K-2", "K-3"], ["K-3"]), at=4)
    assert standing(two, one, first, gone).contradicts == {"K-3", "K-4"}


def test_odd_values_in_transitions_change_nothing() -> None:
    odd = recorded(("status", None, ["x"]), ("links.refuted_by", "K-2", {"K-3": 1}), ("links.contradicts", [], [1]))
    assert standing(odd) == Standing()


def test_records_are_only_ever_added() -> None:
    seen = [
        Seen("c1", "a", "1"),
        Seen("c2", "b", "2"),
        Seen("c3", "b", "3"),
        Seen("c4", "b", "2"),
        Seen("c5", "c", "5"),
    ]
    found = {t.finding.path: t for t in judge_appended(seen, {"a": "1", "b": "2", "c": "6", "new": "9"})}
    assert set(found) == {"b", "c"} and found["b"].commit == "c3" and "put back" in found["b"].finding.message
    assert "changed after it came in" in found["c"].finding.message


def seals(valid: dict[bytes, set[str]]) -> Seals:
    return Seals(lambda record, signers: record.id in valid.get(signers, ()), lambda record, signers: [])


def trust(line: str, review: str = '{"require_signed":true}') -> Trust:
    return Trust(f"{line} ssh-ed25519 AAAA".encode(), review, True)


def signed(*changes: Transition) -> Filed:
    record = Approval(new_ulid(), "", "Ada <a@b.org>", "", None, (), changes, (), "a signature")
    return Filed(f"memory/approvals/{record.id}.json", record)


def test_a_chain_of_changes_counts_only_if_each_link_is_signed() -> None:
    a, b, c = trust("a"), trust("b"), trust("c")
    first = signed(Transition("memory/signers", "sha256", a.signers_sha256, b.signers_sha256, "x"))
    second = signed(Transition("memory/signers", "sha256", b.signers_sha256, c.signers_sha256, "x"))
    ids = {held.record.id for held in (first, second) if held.record}
    both = Step(a, (Arrival("1", (first, second), c),))
    assert list(seals({a.signers: ids}).judge(both)) == []
    assert [t.finding.code for t in seals({a.signers: set()}).judge(both)] == ["KA007", "KA007", "KA008"]
    missing = Step(a, (Arrival("1", (second,), c),))
    assert [t.finding.code for t in seals({a.signers: ids}).judge(missing)] == ["KA008"]


def test_a_merge_counts_step_by_step_and_begins_with_the_branchs_own_signers() -> None:
    a, b = trust("a"), trust("b")
    change = signed(Transition("memory/signers", "sha256", a.signers_sha256, b.signers_sha256, "x"))
    later = signed()
    assert change.record and later.record
    valid = {a.signers: {change.record.id}, b.signers: {later.record.id}}
    good = Step(a, (Arrival("1", (change,), b), Arrival("2", (later,), b), Arrival("m", (), b)))
    assert list(seals(valid).judge(good)) == []
    unsaid = Step(a, (Arrival("1", (), b), Arrival("2", (later,), b), Arrival("m", (), b)))
    assert [t.finding.code for t in seals(valid).judge(unsaid)] == ["KA007", "KA008"]


def test_without_signers_anyone_may_begin() -> None:
    assert list(seals({}).judge(Step(Trust(), (Arrival("1", (recorded(),), trust("a")),)))) == []


def test_the_review_table_is_canonical() -> None:
    one = review_table(b"[review]\nrequire_signed = true # yes\nallow_agents=false\n")
    assert one == review_table(b"\xef\xbb\xbf[review]\r\nallow_agents = false\r\nrequire_signed=true\r\n")
    assert trust_from(None, b"[review]\nrequire_signed = true\n").required
    assert not trust_from(None, None).required and not trust_from(b"# nobody\n", b"").signed
    assert trust_from(None, b"\xff").required and trust_from(None, b"[review").required


def test_what_is_no_record() -> None:
    for data in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"id": 5}'):
        assert filed("memory/approvals/x.json", data).record is None


ODD = (
    "---\nid: K-00001\nstatus: active\nstatus: refuted\nlinks:\n  contradicts: []\n---\nx\n",
    '---\nid: K-00001\nstatus: active\n"status": refuted\nlinks:\n  contradicts: []\n---\nx\n',
    '---\nid: K-00001\ntitle: "a\nstatus: refuted\nb: c"\nlinks:\n  contradicts: []\n---\nx\n',
    '---\nid: K-00001\ntitle: "a\\"\nstatus: refuted\nb: c"\nlinks:\n  contradicts: []\n---\nx\n',
    "---\nid: K-00001\ntitle: [a,\nstatus: refuted\nlinks:\n  contradicts: []\n---\nx\n",
    "---\nid: K-00001\ntitle: |\nstatus: refuted\nlinks:\n  contradicts: []\n---\nx\n",
    "---\nid: K-00001\nstatus: refuted # why\nlinks:\n  contradicts: [K-00002] # x\n---\nx\n",
    "---\nid: K-00001\nstatus: refuted\n  more\nlinks:\n  contradicts:\n    - K-00002\n---\nx\n",
    "---\nid: K-00001\nstatus: null\nlinks:\n  contradicts: K-00002\n  refuted_by: null\n---\nx\n",
    "---\nid: K-00001\nstatus: yes\nlinks: {contradicts: [K-00002]}\n---\nx\n",
    "---\nid: K-00001\nstatus: active\nlinks:\n  contradicts: [K-00002, K-00002]\n  contradicts: []\n---\nx\n",
    "---\nid: K-00001\nstatus: active\nlinks:\n  contradicts: [K-2, K-3]\n  supersedes: K-4\n---\nstatus: x\n",
    "---\nid: K-00001\nstatus: active\nlinks:\n  contradicts: []\nlinks:\n  contradicts: [K-00002]\n---\nx\n",
    "---\nid: K-00001\nstatus: ~\nlinks:\n---\nx\n",
    "no frontmatter\n",
)


@pytest.mark.parametrize("text", ODD)
def test_the_quick_reading_says_what_the_full_one_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = stood("memory/know/K-00001.md", text.encode())
    monkeypatch.setattr(audited, "_quick", lambda path, data: None)
    full = stood("memory/know/K-00001.md", text.encode())
    assert (quick.id, quick.sha256, quick.standing) == (full.id, full.sha256, full.standing)
    assert quick.lines.get("status") == full.lines.get("status")


def test_usual_cards_are_read_quickly(base: Base, add_card: Callable[..., Path]) -> None:
    data = add_card(base, K).read_bytes().replace(b'"', b"")
    assert audited._quick("memory/know/K-00001.md", data)
