"""What a record says of itself is true: the bytes are the ones that khms writes, transitions start from what was, and a
redaction only takes words out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from khms.check.audited import filed
from khms.check.changes import only_struck
from khms.model.approval import Approval, Transition, Waiver, card_sha256
from khms.model.ulid import new_ulid

Codes = Callable[..., list[tuple[str, str]]]
RECORD = Approval(
    new_ulid(), "", "Ada <a@b.org>", "", None, (), (Transition("K-00001", "status", "active", "refuted", "é"),)
)


def twice(text: str) -> str:
    return text.replace('"cards": []', '"cards": [{}],\n  "cards": []')


def unknown(text: str) -> str:
    return text.replace('"unit"', '"note": "hello",\n  "unit"')


def escaped(text: str) -> str:
    return text.replace("K-00001", "\\u004b\\u002d00001")


def spaced(text: str) -> str:
    return text.replace('"cards": []', '"cards": [ ]')


def marked(text: str) -> str:
    return "\ufeff" + text


def huge(text: str) -> str:
    return text.replace('"unit"', f'"n": {"9" * 5000},\n  "unit"')


def number(text: str) -> str:
    return text.replace('"old": "active"', '"old": 5')


def other(text: str) -> str:
    return text.replace("khms.approval/1", "khms.approval/2")


def lone(text: str) -> str:
    return text.replace("é", "\\ud800")


@pytest.mark.parametrize(
    "form", [twice, unknown, escaped, spaced, marked, huge, number, other, lone], ids=lambda form: str(form.__name__)
)
def test_a_record_has_one_form(form: Callable[[str], str]) -> None:
    path = f"memory/approvals/{RECORD.id}.json"
    text = RECORD.file_bytes().decode()
    assert form(text) != text and filed(path, text.encode()).record == RECORD
    held = filed(path, form(text).encode())
    assert held.record is None and held.fault


@pytest.mark.parametrize("form", [escaped, twice, unknown], ids=lambda form: str(form.__name__))
def test_another_form_is_found_where_it_comes_in(form: Callable[[str], str], reviewed: Any, codes: Codes) -> None:
    before = reviewed.head()
    path = reviewed.base.know / "K-00001.md"
    path.write_text(path.read_text(encoding="utf-8").replace("status: challenged", "status: refuted"), encoding="utf-8")
    change = Transition("K-00001", "status", "challenged", "refuted", "é")
    record = replace(RECORD, id=new_ulid(), transitions=(change,))
    name = reviewed.file(record)
    file = reviewed.base.path(name)
    file.write_text(form(file.read_text(encoding="utf-8")), encoding="utf-8")
    assert json.loads(file.read_text(encoding="utf-8"))["transitions"][0]["id"] == "K-00001"
    found = {"uncommitted": reviewed.whole(), "staged": reviewed.staged()}
    reviewed.commit()
    found |= {"whole": reviewed.whole(), "range": reviewed.between(before)}
    for how, report in found.items():
        assert ("KA009", name.rpartition("/")[2]) in codes(report), how
        assert any("the ones that khms writes" in t.finding.message for t in report.troubles), how


def test_what_khms_writes_passes() -> None:
    odd = replace(RECORD, waivers=(Waiver("quotes", "C1", 'a\u2028b\x1b\x7f "\\ \n\t é 😀'),), base=new_ulid())
    assert filed(f"memory/approvals/{odd.id}.json", odd.file_bytes()).record == odd


def recorded(held: Any, *changes: Transition) -> str:
    record = Approval(new_ulid(), "", "Ada Tester <ada@example.org>", "", held.head(), (), changes)
    return str(held.file(record)).rpartition("/")[2]


def forms(held: Any) -> dict[str, Any]:
    before = held.head()
    found = {"uncommitted": held.whole(), "staged": held.staged()}
    held.commit()
    return found | {"whole": held.whole(), "range": held.between(before)}


def rewrite(held: Any, old: str, new: str, card: str = "K-00001") -> tuple[str, str]:
    path = held.base.know / f"{card}.md"
    was = card_sha256(path.read_bytes())
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return was, card_sha256(path.read_bytes())


def test_a_status_starts_from_one_that_the_card_had(reviewed: Any, codes: Codes) -> None:
    rewrite(reviewed, "status: active", "status: challenged", "K-00003")
    name = recorded(reviewed, Transition("K-00003", "status", "nonsense", "challenged", "so"))
    for how, report in forms(reviewed).items():
        assert codes(report) == [("KA004", name)], how
        assert "status was 'nonsense', and it was 'active'" in report.troubles[0].finding.message


def test_two_branches_may_start_from_the_same_status(reviewed: Any, codes: Codes) -> None:
    rewrite(reviewed, "status: active", "status: refuted", "K-00003")
    recorded(reviewed, Transition("K-00003", "status", "active", "challenged", "here"))
    recorded(reviewed, Transition("K-00003", "status", "active", "refuted", "there"))
    assert codes(reviewed.whole()) == []


@pytest.mark.parametrize(
    ("new", "false_old", "said"),
    [
        ("pour ice water over it", True, "card_sha256 was 'x'"),
        ("pour ice water over it", False, "there is no [redacted]"),
        ("pour ice water over it [redacted]", False, "in more than what became [redacted]"),
    ],
)
def test_a_redaction_only_takes_words_out(new: str, false_old: bool, said: str, reviewed: Any, codes: Codes) -> None:
    was, now = rewrite(reviewed, "what C1 says", new)
    name = recorded(reviewed, Transition("K-00001", "card_sha256", "x" if false_old else was, now, "a name"))
    for how, report in forms(reviewed).items():
        assert codes(report) == [("KA004", name)], how
        assert said in report.troubles[0].finding.message and "khms redact K-00001" in report.troubles[0].finding.mend


def test_a_redaction_passes_and_so_does_one_after_it(reviewed: Any, codes: Codes) -> None:
    was, then = rewrite(reviewed, "C1 says", "[redacted]")
    recorded(reviewed, Transition("K-00001", "card_sha256", was, then, "a name"))
    assert all(codes(report) == [] for report in forms(reviewed).values())
    then, now = rewrite(reviewed, "FIX: what [redacted]", "FIX: [redacted] [redacted]")
    recorded(reviewed, Transition("K-00001", "card_sha256", then, now, "another"))
    assert all(codes(report) == [] for report in forms(reviewed).values())


OLD = "---\nid: K-00001\ntitle: \"the key\n  s3cret of Ada\"\ntags: [s3cret, b]\nstatus: active\n---\ns3cret is 'x'\n"


@pytest.mark.parametrize(
    ("new", "good"),
    [
        (OLD.replace("s3cret", "[redacted]"), True),
        (
            OLD.replace('"the key\n  s3cret of Ada"', "the key [redacted] of Ada").replace(
                "[s3cret, b]", '["[redacted]", b]'
            ),
            True,
        ),
        (OLD.replace("s3cret is", "[redacted]").replace("status: active", "status: refuted"), True),
        (OLD.replace('"the key\n  s3cret of Ada"', "[redacted] of Eve"), False),
        (OLD.replace("s3cret", "[redacted]").replace("'x'", "'y'"), False),
        (OLD.replace("[s3cret, b]", '["[redacted]", b]  # do it anyway'), False),
        (OLD.replace("s3cret", "[redacted]") + "more\n", False),
        (OLD, True),
    ],
)
def test_what_only_takes_out(new: str, good: bool) -> None:
    assert only_struck(OLD.encode(), new.encode()) == good
