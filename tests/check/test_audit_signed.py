"""Signatures: who signed is told from the state before a record came in, never by the record's own change."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.check.receive import received, updates
from khms.errors import Refused
from khms.model.approval import Approval
from khms.model.ulid import new_ulid
from khms.pipeline import signers
from khms.store import signing
from khms.store.repo import Repo
from khms.store.signing import Key

Codes = Callable[..., list[tuple[str, str]]]
NEXT = "2026-03-07-nightly"


def _add(email: str, key: Path) -> Callable[[Any], signers.Changed]:
    text = Path(f"{key}.pub").read_text(encoding="utf-8")
    return lambda held: signers.add(held.base, held.repo, config.load(held.base.root), email, text)


def resigned(held: Any, path: str, key: Path, **changed: Any) -> str:
    """Takes the record away and files it anew, signed by another key (and changed before)."""
    record = held.record(path)
    held.base.path(path).unlink()
    fresh: Approval = replace(record, id=new_ulid(), **changed)
    return str(held.file(replace(fresh, signature=signing.sign(fresh.signed_bytes(), Key(str(key)), ask=False))))


def forms(held: Any, before: str) -> dict[str, Any]:
    """Every form of the audit over what was done since `before` and is not committed yet; commits it on the way."""
    found = {"uncommitted": held.whole(), "staged": held.staged()}
    held.commit()
    found |= {"whole": held.whole(), "range": held.between(before)}
    found["receive"] = received(Repo(held.base.root), updates(f"{before} {held.head()} refs/heads/main\n"))
    return found


def taken_back(held: Any, git: Any) -> None:
    """The last commit's work is in the work tree again, not committed."""
    git(held.base, "reset", "--quiet", "--soft", "HEAD~1")


def test_signed_approvals_pass(signed: Any, codes: Codes) -> None:
    before = signed.head()
    signed.propose(NEXT, "C1")
    path = signed.approve(NEXT)
    assert (signed.record(path).signature or "").startswith("-----BEGIN SSH SIGNATURE-----")
    whole, span = signed.whole(), signed.between(before)
    assert codes(whole) == codes(span) == []
    assert (whole.signed, whole.guarantee, span.signed, span.guarantee) == (2, "boundary", 1, "boundary")


def test_an_unsigned_one_fails(signed: Any, codes: Codes, git: Any) -> None:
    signed.propose(NEXT, "C1")
    before = signed.head()
    path = signed.approve(NEXT)
    taken_back(signed, git)
    signed.base.path(path).write_bytes(replace(signed.record(path), signature=None).file_bytes())
    for form, report in forms(signed, before).items():
        assert ("KA006", path.rpartition("/")[2]) in codes(report), form
        (one,) = [t for t in report.troubles if t.finding.code == "KA006"]
        assert "requires signatures" in one.finding.message and "khms signers list" in one.finding.mend


@pytest.mark.parametrize("who", ["eve", "bob"])
def test_a_strangers_signature_fails(who: str, signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    """Eve's key is nobody's; Bob's is a signer's, but not that of the reviewer whom the record names."""
    assert _add("bob@example.org", keys["bob"])(signed).signed
    signed.propose(NEXT, "C1")
    before = signed.head()
    path = signed.approve(NEXT)
    taken_back(signed, git)
    name = resigned(signed, path, keys[who]).rpartition("/")[2]
    said = {"eve": "a key that memory/signers did not have", "bob": "the key is that of bob@example.org"}[who]
    for form, report in forms(signed, before).items():
        assert codes(report) == [("KA007", name)], form
        assert said in report.troubles[0].finding.message, form


def test_a_tampered_record_fails(signed: Any, codes: Codes, git: Any) -> None:
    signed.propose(NEXT, "C1")
    before = signed.head()
    path = signed.approve(NEXT)
    taken_back(signed, git)
    record = signed.record(path)
    signed.base.path(path).write_bytes(replace(record, at="2026-03-07T10:00:00+00:00").file_bytes())
    for form, report in forms(signed, before).items():
        assert codes(report) == [("KA007", path.rpartition("/")[2])], form
        assert "changed after it was signed" in report.troubles[0].finding.message


def test_a_signer_who_comes_in_with_the_record_does_not_count(signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    signed.propose(NEXT, "C1")
    before = signed.head()
    path = signed.approve(NEXT)
    taken_back(signed, git)
    name = resigned(signed, path, keys["eve"], reviewer="Eve <eve@example.org>").rpartition("/")[2]
    file = signed.base.path("memory/signers")
    public = Path(f"{keys['eve']}.pub").read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8") + f"eve@example.org {public}", encoding="utf-8")
    for form, report in forms(signed, before).items():
        assert codes(report) == [("KA007", name), ("KA008", "signers")], form
        assert "added by the same change" in report.troubles[0].finding.message
        assert "khms signers add" in report.troubles[0].finding.mend
        assert "khms signers add|remove" in report.troubles[1].finding.mend


def test_a_signed_rotation_in_the_same_commit_counts_from_the_next_one_on(
    signed: Any, keys: Any, codes: Codes, git: Any
) -> None:
    """Ada lets Bob in, rightly; what Bob approved in the same change does not count, what he approves later does."""
    signed.propose(NEXT, "C1")
    before = signed.head()
    assert _add("bob@example.org", keys["bob"])(signed).signed
    as_bob(git, signed, keys)
    name = signed.approve(NEXT).rpartition("/")[2]
    assert codes(signed.whole()) == []  # two commits
    assert codes(signed.between(before)) == [("KA007", name)]  # one change: the start alone says who counts
    assert codes(signed.between(before + "~0", "HEAD~1")) == codes(signed.between("HEAD~1")) == []
    git(signed.base, "reset", "--quiet", "--soft", before)
    signed.commit("squashed")
    assert codes(signed.whole()) == [("KA007", name)]


def as_bob(git: Any, held: Any, keys: Any) -> None:
    for name, value in {"user.name": "Bob", "user.email": "bob@example.org", "user.signingkey": keys["bob"]}.items():
        git(held.base, "config", name, str(value))


def test_switching_the_requirement_off_by_hand_is_found(signed: Any, codes: Codes) -> None:
    before = signed.head()
    text = signed.base.config.read_text(encoding="utf-8")
    assert "require_signed = true" in text
    signed.base.config.write_text(text.replace("= true", "= false"), encoding="utf-8")
    for form, report in forms(signed, before).items():
        assert codes(report) == [("KA008", "khms.toml")], form
        assert "khms signers require on|off" in report.troubles[0].finding.mend


def test_other_settings_may_change(signed: Any, codes: Codes) -> None:
    before = signed.head()
    text = signed.base.config.read_text(encoding="utf-8")
    signed.base.config.write_text(text + "\n[recall]\nlimit = 7\n", encoding="utf-8")
    assert all(codes(report) == [] for report in forms(signed, before).values())


def test_what_was_signed_stays_valid_when_its_signer_leaves(signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    signed.propose(NEXT, "C1")
    signed.approve(NEXT)
    _add("bob@example.org", keys["bob"])(signed)
    as_bob(git, signed, keys)
    gone = signers.remove(signed.base, signed.repo, config.load(signed.base.root), "ada@example.org")
    assert gone.signed and codes(signed.whole()) == []
    assert signed.whole().signed == 4


def test_an_old_branch_does_not_bring_old_rules_along(
    signed: Any, codes: Codes, git: Any, add_card: Callable[..., Path]
) -> None:
    """A branch from before signatures were required brings an unsigned approval: judged when it comes in."""
    tip = signed.head()
    git(signed.base, "switch", "--quiet", "-c", "old", "HEAD~2")
    signed.propose(NEXT, "C1")
    name = signed.approve(NEXT).rpartition("/")[2]
    assert codes(signed.whole()) == []
    git(signed.base, "switch", "--quiet", "main")
    git(signed.base, "merge", "--quiet", "--no-edit", "old")
    assert codes(signed.whole()) == codes(signed.between(tip)) == [("KA006", name)]


def test_a_merge_that_brings_the_old_signers_back(signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    """Git lists nothing for a merge that takes one side's file; here it is the side from before Bob left."""
    _add("bob@example.org", keys["bob"])(signed)
    git(signed.base, "branch", "old")
    signers.remove(signed.base, signed.repo, config.load(signed.base.root), "bob@example.org")
    tip = signed.head()
    git(signed.base, "switch", "--quiet", "old")
    signed.commit("aside")
    git(signed.base, "switch", "--quiet", "main")
    git(signed.base, "merge", "--quiet", "--no-commit", "--no-ff", "old")
    git(signed.base, "checkout", "old", "--", "memory/signers")
    signed.commit("merge")
    assert codes(signed.whole()) == codes(signed.between(tip)) == [("KA008", "signers")]


def test_a_colleagues_rotation_comes_in_by_a_merge_of_ones_own(signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    """Bob came in and approved on the other side, in two steps that are both right: a pull that merges is clean."""
    git(signed.base, "switch", "--quiet", "-c", "theirs")
    _add_here("bob@example.org", keys["bob"], signed)
    signed.propose(NEXT, "C1")
    as_bob(git, signed, keys)
    signed.approve(NEXT)
    git(signed.base, "switch", "--quiet", "main")
    signed.commit("mine")
    git(signed.base, "merge", "--quiet", "--no-edit", "theirs")
    assert codes(signed.whole()) == []


def _add_here(email: str, key: Path, held: Any) -> None:
    text = Path(f"{key}.pub").read_text(encoding="utf-8")
    assert signers.add(held.base, held.repo, config.load(held.base.root), email, text, here=True).signed


def test_a_signer_by_hand_in_a_base_that_has_none_is_taken_at_their_word(
    reviewed: Any, keys: Any, codes: Codes
) -> None:
    public = Path(f"{keys['ada']}.pub").read_text(encoding="utf-8")
    before = reviewed.head()
    reviewed.base.path("memory/signers").write_text(f"ada@example.org {public}", encoding="utf-8")
    assert all(codes(report) == [] for report in forms(reviewed, before).values())


def test_the_ci_job_may_sign_for_whoever_approved(signed: Any, keys: Any, codes: Codes, git: Any) -> None:
    _add("ci", keys["bob"])(signed)
    git(signed.base, "config", "user.signingkey", str(keys["bob"]))
    before = signed.head()
    signed.propose(NEXT, "C1")
    signed.approve(NEXT)
    assert codes(signed.between(before)) == [] and signed.between(before).signed == 1


def test_the_last_signer_does_not_leave_while_signatures_are_required(signed: Any) -> None:
    with pytest.raises(Refused, match="last signer"):
        signers.remove(signed.base, signed.repo, config.load(signed.base.root), "ada@example.org")


def test_what_was_verified_is_remembered_and_never_taken_from_elsewhere(
    signed: Any, codes: Codes, git: Any, monkeypatch: Any
) -> None:
    """The second audit asks ssh-keygen nothing; one whose secret differs believes nothing of it."""
    signed.propose(NEXT, "C1")
    signed.approve(NEXT)
    asked: list[object] = []
    real = signing._run
    monkeypatch.setattr(signing, "_run", lambda *args, **how: asked.append(args) or real(*args, **how))
    assert signed.whole().signed == 2 and len(asked) == 2
    place = signed.base.root / ".git/khms/verified"
    assert place.exists() and git(signed.base, "status", "--porcelain") == ""
    asked.clear()
    assert signed.whole().signed == 2 and asked == []
    (config.user_data() / "cleared.key").unlink()
    assert signed.whole().signed == 2 and len(asked) == 2
