"""Whose word counts, for which base, at what time, by which settings: what lies beside the signature itself."""

import datetime
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.check import court
from khms.check.audited import trust_from
from khms.errors import Refused
from khms.model.approval import Approval, Transition
from khms.model.ulid import new_ulid
from khms.pipeline import signers
from khms.store import signing
from khms.store.signing import Key

Codes = Callable[..., list[tuple[str, str]]]
NEXT = "2026-03-07-nightly"
ADA = "Ada Tester <ada@example.org>"


def forms(held: Any, before: str) -> dict[str, Any]:
    found = {"uncommitted": held.whole(), "staged": held.staged()}
    held.commit()
    return found | {"whole": held.whole(), "range": held.between(before)}


def base_id(held: Any) -> str:
    return str(tomllib.loads(held.base.config.read_text(encoding="utf-8"))["base"]["id"])


def file(held: Any, key: Path | None, *changes: Transition, **more: Any) -> str:
    """Files a record by hand, signed by a key; returns its name."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    keys = {"id": new_ulid(), "unit": "", "reviewer": ADA, "at": now, "parent": None, "base": base_id(held)} | more
    record = Approval(transitions=changes, **keys)
    if key:
        record = replace(record, signature=signing.sign(record.signed_bytes(), Key(str(key)), ask=False))
    return str(held.file(record)).rpartition("/")[2]


def edit(held: Any, path: str, old: str, new: str) -> None:
    text = held.base.path(path).read_text(encoding="utf-8")
    assert old in text
    held.base.path(path).write_text(text.replace(old, new), encoding="utf-8")


def off(held: Any) -> Transition:
    edit(held, "khms.toml", "require_signed = true", "require_signed = false")
    return Transition("khms.toml", "review", '{"require_signed":true}', '{"require_signed":false}', "off")


def test_the_first_signer_gives_the_base_an_id_that_each_record_carries(signed: Any, codes: Codes) -> None:
    signed.propose(NEXT, "C1")
    before = signed.head()
    record = signed.record(signed.approve(NEXT))
    assert record.base == base_id(signed) and record.as_json()["base"] == record.base
    assert codes(signed.whole()) == codes(signed.between(before)) == []
    first = [signed.record(f"memory/approvals/{p.name}") for p in sorted(signed.base.approvals.glob("*.json"))]
    assert [bool(one.base) for one in first] == [False, False, True, True, True]
    assert ("khms.toml", "base") in {(t.id, t.field) for t in first[2].transitions}


@pytest.mark.parametrize("other", ["", new_ulid()], ids=["none", "another"])
def test_a_signed_record_of_another_base_counts_for_nothing(other: str, signed: Any, keys: Any, codes: Codes) -> None:
    """Ada switched the requirement off in a base of her own; Eve copies that record, which needs no key."""
    before = signed.head()
    name = file(signed, keys["ada"], off(signed), base=other)
    for form, report in forms(signed, before).items():
        assert codes(report) == [("KA008", "khms.toml"), ("KA007", name)], form
        said = report.troubles[1].finding
        assert f"this is base {base_id(signed)}" in said.message and "approved in it" in said.mend


def test_the_same_record_made_for_this_base_counts(signed: Any, keys: Any, codes: Codes) -> None:
    before = signed.head()
    file(signed, keys["ada"], off(signed))
    assert all(codes(report) == [] for report in forms(signed, before).values())


def test_the_id_is_changed_by_nobody_but_a_signer(signed: Any, keys: Any, codes: Codes) -> None:
    before, other, own = signed.head(), new_ulid(), base_id(signed)
    edit(signed, "khms.toml", own, other)
    name = file(
        signed, keys["eve"], Transition("khms.toml", "base", own, other, "mine"), reviewer="Eve <eve@example.org>"
    )
    for form, report in forms(signed, before).items():
        assert codes(report) == [("KA008", "khms.toml"), ("KA007", name)], form
        assert f"base.id changed to {other}" in report.troubles[0].finding.message


def test_a_base_without_an_id_is_as_before_and_gets_one_with_its_next_signer(
    signed: Any, keys: Any, codes: Codes, git: Any
) -> None:
    own = base_id(signed)
    edit(signed, "khms.toml", own, "")
    file(signed, keys["ada"], Transition("khms.toml", "base", own, None, "as older ones are"), base=own)
    before = signed.commit()
    signed.propose(NEXT, "C1")
    assert signed.record(signed.approve(NEXT)).base == "" and codes(signed.between(before)) == []
    public = Path(f"{keys['bob']}.pub").read_text(encoding="utf-8")
    signers.add(signed.base, signed.repo, config.load(signed.base.root), "bob@example.org", public)
    assert base_id(signed) not in ("", own) and codes(signed.whole()) == codes(signed.between(before)) == []


UNREADABLE = ("review = 5\n", "[review]\nrequire_signed = 'no'\n", "[review\n", "[recall]\nlimit = 'x'\n",
              "[git]\ntries = 0x" + "f" * 9000 + "\n", "[base]\nid = 'mine'\n")  # fmt: skip


@pytest.mark.parametrize("text", UNREADABLE)
@pytest.mark.parametrize("held", ["reviewed", "signed"])
def test_settings_that_cannot_be_read_are_told_and_can_be_mended(
    text: str, held: str, request: pytest.FixtureRequest, codes: Codes
) -> None:
    held_base: Any = request.getfixturevalue(held)
    before, right = held_base.head(), held_base.base.config.read_bytes()
    held_base.base.config.write_text(text, encoding="utf-8")
    for form, report in forms(held_base, before).items():
        assert codes(report) == [("KA008", "khms.toml")], form
        assert "cannot be read" in report.troubles[0].finding.message, form
    broken = held_base.head()
    held_base.base.path("notes.md").write_text("other work goes on\n", encoding="utf-8")
    held_base.commit()
    assert codes(held_base.between(broken)) == []
    held_base.base.config.write_bytes(right)
    for form, report in forms(held_base, broken).items():
        assert codes(report) == [], form


def test_behind_settings_that_cannot_be_read_the_requirement_stays(signed: Any, codes: Codes) -> None:
    own = signed.base.config.read_text(encoding="utf-8")
    signed.base.config.write_text("review = 5\n", encoding="utf-8")
    broken = signed.commit()
    signed.base.config.write_text(own.replace("= true", "= false"), encoding="utf-8")
    for form, report in forms(signed, broken).items():
        assert ("KA008", "khms.toml") in codes(report), form
        assert "without a record that a signer signed" in report.troubles[0].finding.message


def marked(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def returned(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("change", [marked, returned])
def test_any_byte_of_the_signers_needs_a_signers_word(
    change: Callable[[bytes], bytes], signed: Any, codes: Codes
) -> None:
    before, path = signed.head(), signed.base.path("memory/signers")
    path.write_bytes(change(path.read_bytes()))
    for form, report in forms(signed, before).items():
        if form == "uncommitted" and change is returned:
            continue  # git may check files out like that
        assert codes(report) == [("KA008", "signers")], form
    with pytest.raises(Refused, match="which ssh reads as part of a name"):
        signers.remove(signed.base, signed.repo, config.load(signed.base.root), "ada@example.org")


def let_end(held: Any, keys: Any, git: Any) -> None:
    """Bob comes in, approves, and then his key ends, by Ada's signed record."""
    public = Path(f"{keys['bob']}.pub").read_text(encoding="utf-8")
    signers.add(held.base, held.repo, config.load(held.base.root), "bob@example.org", public)
    name = 'namespaces="khms-approval"'
    old = held.base.path("memory/signers").read_bytes()
    edit(held, "memory/signers", f"bob@example.org {name}", f'bob@example.org {name},valid-before="20260101"')
    new = held.base.path("memory/signers").read_bytes()
    hashes = [trust_from(data, None).signers_sha256 for data in (old, new)]
    file(held, keys["ada"], Transition("memory/signers", "sha256", hashes[0], hashes[1], "he left"))
    held.commit()


@pytest.mark.parametrize("backdated", ["at", "both"])
def test_a_key_that_has_ended_brings_nothing_in_whatever_time_it_says(
    backdated: str, signed: Any, keys: Any, codes: Codes, git: Any
) -> None:
    let_end(signed, keys, git)
    before = signed.head()
    made = int(datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC).timestamp() * 1000)
    more = {"id": new_ulid(made)} if backdated == "both" else {}
    name = file(signed, keys["bob"], reviewer="Bob <bob@example.org>", at="2025-06-01T00:00:00+00:00", **more)
    found = forms(signed, before)
    later = found.pop("whole")
    for form, report in found.items():
        assert codes(report) == [("KA007", name)], form
        assert "what comes in now has to hold now" in report.troubles[0].finding.message, form
    assert codes(later) == ([("KA007", name)] if backdated == "at" else [])


def test_what_came_in_before_its_key_ended_stays_good(signed: Any, keys: Any, codes: Codes, monkeypatch: Any) -> None:
    """Years later, and under the very file that ends the key."""
    made = datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC)
    record = Approval(new_ulid(int(made.timestamp() * 1000)), "", "Bob <bob@example.org>", made.isoformat(), None)
    record = replace(record, signature=signing.sign(record.signed_bytes(), Key(str(keys["bob"])), ask=False))
    public = Path(f"{keys['bob']}.pub").read_text(encoding="utf-8")
    ended = f'bob@example.org valid-before="20260101" {public}'.encode()
    assert court.Court(signing.Verifier()).verify(record, ended)
    assert not court.Court(signing.Verifier(), {record.id}).verify(record, ended)
    assert court.Court(signing.Verifier(), {record.id}).verify(record, f"bob@example.org {public}".encode())


def test_the_times_at_which_a_signature_has_to_hold() -> None:
    made = datetime.datetime(2025, 6, 1, 12, tzinfo=datetime.UTC)
    record = Approval(new_ulid(int(made.timestamp() * 1000)), "", ADA, "2025-06-01T18:00:00+05:00", None)
    assert court.times(record) == [record.at]
    for at in ("2025-05-30T11:00:00+00:00", "2025-06-03", "nonsense", "9999-12-31T23:59:59-10:00"):
        assert court.times(replace(record, at=at)) == [at, made.isoformat()]
    assert len(court.times(replace(record, id="7ZZZZZZZZZ" + "0" * 16))) == 2


def test_a_signer_of_the_same_push_is_told_to_come_in_first(signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    signed.propose(NEXT, "C1")
    before = signed.head()
    public = Path(f"{keys['bob']}.pub").read_text(encoding="utf-8")
    signers.add(signed.base, signed.repo, config.load(signed.base.root), "bob@example.org", public)
    added = signed.head()
    for name, value in {"user.name": "Bob", "user.email": "bob@example.org", "user.signingkey": keys["bob"]}.items():
        git(signed.base, "config", name, str(value))
    signed.approve(NEXT)
    (one,) = signed.between(before).troubles
    assert one.finding.code == "KA007" and "added by the same change" in one.finding.message
    assert "push (or merge) the commit that adds the signer first" in one.finding.mend
    assert codes(signed.between(before, added)) == codes(signed.between(added)) == [], "one after the other"
