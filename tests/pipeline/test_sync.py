"""Sync against every kind of remote: what each answers, and that nothing changed where it says so."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import load
from khms.errors import Busy, KhmsError, Refused, Unavailable
from khms.pipeline.approve import Result, Wish, approve
from khms.pipeline.sync import Synced, sync
from khms.render import views
from khms.store import cards
from khms.store.layout import Base
from khms.store.remote import Declined, Offline
from khms.store.repo import Repo

Make = Callable[..., Path]
Git = Callable[..., str]


def share(base: Base, **more: object) -> Synced:
    return sync(base, Repo(base.root), load(base.root), views.for_tree, **more)  # type: ignore[arg-type]


def let_in(base: Base, unit: str, **wish: object) -> Result:
    settings = Wish(everything=True, **wish)  # type: ignore[arg-type]
    return approve(base, Repo(base.root), load(base.root), unit, settings, views.for_base)


@pytest.fixture
def remote(base: Base, tmp_path: Path, add_card: Make, commit: Git, cloned: Callable[..., list[Base]]) -> Path:
    add_card(base, "K-00001")
    commit(base)
    cloned(base)
    return tmp_path / "remote.git"


@pytest.fixture
def clone(base: Base, remote: Path, cloned: Callable[..., list[Base]]) -> Callable[[str], Base]:
    return lambda name: cloned(base, name)[0]


@pytest.fixture
def approved(add_candidate: Make, commit: Git) -> Callable[[Base], str]:
    """Approves one candidate in a clone, unpublished; returns its card's id."""

    def make(base: Base) -> str:
        add_candidate(base, unit=f"u.{base.root.name}", body=f"FIX: needle-{base.root.name}\n")
        commit(base)
        return let_in(base, f"u.{base.root.name}").cards[0][1]

    return make


def refuses(base: Base, git: Git, kind: type[Exception], words: str) -> Exception:
    before = git(base, "rev-parse", "HEAD"), git(base, "status", "--porcelain")
    with pytest.raises(kind, match=words) as caught:
        share(base)
    assert (git(base, "rev-parse", "HEAD"), git(base, "status", "--porcelain")) == before
    return caught.value


def test_nothing_to_do_behind_ahead(clone: Callable[[str], Base], approved: Callable[[Base], str], git: Git) -> None:
    ada, bob = clone("ada"), clone("bob")
    assert (share(ada).pulled, share(ada).pushed) == (0, 0)
    approved(ada)
    assert share(ada).pushed == 2
    done = share(bob)
    assert (done.pulled, done.pushed) == (2, 0) and git(bob, "status", "--porcelain") == ""
    assert (bob.know / "K-00002.md").exists()


def test_an_empty_remote_takes_all_and_an_empty_clone_too(base: Base, git: Git, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "fresh.git")
    git(base, "remote", "add", "origin", str(tmp_path / "fresh.git"))
    git(tmp_path, "clone", "--quiet", "fresh.git", "early")
    assert share(base).pushed == 1
    early = Base((tmp_path / "early").resolve(), named=True)
    assert share(early).pulled == 1 and (early.root / "khms.toml").exists()
    assert git(early, "status", "--porcelain") == ""


def test_what_stops_it_and_with_which_exit_code(
    clone: Callable[[str], Base], base: Base, git: Git, remote: Path, tmp_path: Path
) -> None:
    assert refuses(base, git, Unavailable, "no remote").exit_code == 4  # type: ignore[attr-defined]
    ada = clone("ada")
    git(ada, "switch", "--quiet", "-c", "side")
    assert refuses(ada, git, Refused, "main is what is shared, and HEAD is on side").exit_code == 3  # type: ignore[attr-defined]
    git(ada, "switch", "--quiet", "--detach")
    refuses(ada, git, Refused, r"no branch \(detached\)")
    git(ada, "switch", "--quiet", "main")
    (ada.root / ".git/MERGE_HEAD").write_text(git(ada, "rev-parse", "HEAD"), encoding="utf-8")
    refuses(ada, git, Refused, "a merge is in progress")
    (ada.root / ".git/MERGE_HEAD").unlink()
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{remote}", "shallow")
    assert refuses(Base(tmp_path / "shallow", named=True), git, Unavailable, "shallow").exit_code == 4  # type: ignore[attr-defined]
    shutil.move(remote, tmp_path / "away.git")
    offline = refuses(ada, git, Offline, "origin cannot be reached")
    assert offline.exit_code == 4 and "khms sync" in offline.hint  # type: ignore[attr-defined]


def test_a_servers_own_words_are_passed_on(
    clone: Callable[[str], Base], approved: Callable[[Base], str], git: Git, remote: Path
) -> None:
    ada = clone("ada")
    approved(ada)
    hook = remote / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'KA006: sign your approvals' >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    refused = refuses(ada, git, Declined, "pre-receive hook declined")
    assert "KA006: sign your approvals" in refused.where and refused.exit_code == 3  # type: ignore[attr-defined]


def test_a_race_is_run_again_and_at_last_given_up(
    clone: Callable[[str], Base],
    approved: Callable[[Base], str],
    git: Git,
    remote: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody pushes in the moment between fetch and push: once, then each time."""
    from khms.store.remote import Upstream

    ada, eve = clone("ada"), clone("eve")
    approved(ada)
    really, times = Upstream.push, [1]

    def late(self: Upstream, new: str, expected: str | None) -> None:
        if times[0]:
            times[0] -= 1
            git(eve, "pull", "--quiet", "--rebase")
            git(eve, "commit", "--quiet", "--allow-empty", "-m", "eve was faster")
            git(eve, "push", "--quiet")
        really(self, new, expected)

    monkeypatch.setattr(Upstream, "push", late)
    done = share(ada)
    assert done.tries == 2 and git(ada, "rev-parse", "HEAD") == git(remote, "rev-parse", "main")
    assert len(cards.approvals(ada)) == 1
    git(ada, "commit", "--quiet", "--allow-empty", "-m", "more")
    monkeypatch.setattr("khms.pipeline.sync.LONGEST", 0.0)
    times[0] = 99
    assert refuses(ada, git, Busy, "kept moving: 20 pushes").exit_code == 75  # type: ignore[attr-defined]


def test_a_rewritten_branch_is_not_followed(
    clone: Callable[[str], Base], approved: Callable[[Base], str], git: Git, remote: Path
) -> None:
    ada, bob = clone("ada"), clone("bob")
    approved(ada)
    share(ada)
    share(bob)
    git(remote, "update-ref", "refs/heads/main", git(remote, "rev-parse", "main~1"))
    for _ in range(2):  # also the second time
        refuses(bob, git, Refused, "was rewritten on origin")


def test_a_repositorys_own_programs_never_run(
    clone: Callable[[str], Base], approved: Callable[[Base], str], git: Git, tmp_path: Path
) -> None:
    ada = clone("ada")
    approved(ada)
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\ntouch {tmp_path}/sprung\nexec "$@"\n', encoding="utf-8")
    trap.chmod(0o755)
    for name in ("pre-push", "reference-transaction", "post-merge", "post-checkout"):
        hook = ada.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{trap}\n", encoding="utf-8")
        hook.chmod(0o755)
    found = Base(ada.root)  # found by walking up, never trusted
    for name in ("remote.origin.uploadpack", "remote.origin.receivepack", "core.sshCommand", "credential.helper"):
        git(ada, "config", name, str(trap))
        with pytest.raises(Refused, match="own configuration decides") as caught:
            share(found)
        assert name.lower() in caught.value.message
        git(ada, "config", "--unset", name)
    git(ada, "config", "protocol.ext.allow", "always")
    url = git(ada, "config", "remote.origin.url")
    git(ada, "config", "remote.origin.url", f"ext::{trap} %S {url}")
    with pytest.raises(Offline, match="not allowed"):
        share(ada)
    git(ada, "config", "remote.origin.url", url)
    share(ada)
    assert not (tmp_path / "sprung").exists()


def test_an_uncommitted_candidate_that_names_a_renumbered_card_stops_it(
    clone: Callable[[str], Base], approved: Callable[[Base], str], add_candidate: Make, git: Git
) -> None:
    ada, bob = clone("ada"), clone("bob")
    approved(ada)
    mine = approved(bob)
    share(ada)
    add_candidate(bob, unit="u2.bob", relation={"kind": "supports", "target": mine, "because": "x"})
    refuses(bob, git, Refused, "not committed name cards that get other ids")


def test_a_mark_that_both_decided_becomes_one_card(
    clone: Callable[[str], Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob, cyd = clone("ada"), clone("bob"), clone("cyd")
    for base in (ada, bob, cyd):
        name = base.root.name
        add_candidate(base, "C1", unit=f"u.{name}", body="FIX: the very line\n", mark="M-0000000000aa")
        add_candidate(base, "C2", unit=f"u.{name}", body=f"FIX: needle-{name}, see [[C1]]\n")
        commit(base)
    let_in(ada, "u.ada")
    let_in(bob, "u.bob")
    let_in(cyd, "u.cyd")
    share(ada)
    done = share(bob)
    assert [(left.label, left.verdict, left.instead) for left in done.left] == [("C1", "same-mark", "K-00002")]
    assert (bob.inbox / "u.bob/dropped/C1.md").exists()
    assert "see [[K-00002]]" in (bob.know / f"{done.ids['K-00003']}.md").read_text(encoding="utf-8")


def test_of_two_proposals_the_earlier_counts_unless_a_reviewer_touched_the_later(
    clone: Callable[[str], Base], git: Git, write: Callable[..., Path]
) -> None:
    """Both clones' nightly decided the same three MARKs of plain days; the earlier run counts, whoever pushed first."""
    from khms.pipeline.nightly import nightly

    ada, bob = clone("ada"), clone("bob")
    write(ada, "journal/2026-03-06.md", "# 2026-03-06\n\nMARK[req] one thing\n\nMARK[req] another matter\n")
    git(ada, "add", "journal")
    git(ada, "commit", "--quiet", "-m", "a day")
    share(ada)
    share(bob)
    for base in (ada, bob):
        nightly(base, Repo(base.root), load(base.root))
    units = {base.root.name: next(path for path in base.inbox.iterdir()) for base in (ada, bob)}
    for name, at in (("ada", "2026-03-07T02:00:00+00:00"), ("bob", "2026-03-07T01:00:00+00:00")):
        base = {"ada": ada, "bob": bob}[name]
        file = next(base.receipts.glob("*.jsonl"))
        rows = [json.loads(line) | {"at": at} for line in file.read_text("utf-8").splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        git(base, "commit", "--quiet", "-am", "the hour")
    touched = units["ada"] / "C2.md"
    touched.write_text(touched.read_text("utf-8") + "\nA reviewer was here.\n", encoding="utf-8")
    git(ada, "commit", "--quiet", "-am", "an edit")
    share(ada)
    done = share(bob)
    gone = {left.label for left in done.left}
    assert gone == {"C1", "C3"} and {left.unit.rpartition("/")[2] for left in done.left} == {units["ada"].name}
    assert sorted(path.name for path in units["bob"].glob("C*.md")) == ["C1.md", "C2.md", "C3.md"]
    hers = bob.inbox / units["ada"].name
    assert [path.name for path in hers.glob("C*.md")] == ["C2.md"]
    assert sorted(path.name for path in (hers / "dropped").iterdir()) == ["C1.md", "C3.md"]
    share(ada)
    assert git(ada, "rev-parse", "HEAD") == git(bob, "rev-parse", "HEAD")


def test_where_signing_needs_a_person_nothing_changes(
    clone: Callable[[str], Base], approved: Callable[[Base], str], git: Git, commit: Git, tmp_path: Path
) -> None:
    ada, bob = clone("ada"), clone("bob")
    lines = []
    for name in ("ada", "bob"):
        key = tmp_path / f"{name}.key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        lines.append(f"{name}@example.org {key.with_suffix('.key.pub').read_text('utf-8')}")
        git(tmp_path / name, "config", "user.signingkey", str(key))
    (ada.root / "memory/signers").write_text("".join(lines), encoding="utf-8")
    (ada.root / "khms.toml").write_text("[review]\nrequire_signed = true\n", encoding="utf-8")
    commit(ada)
    share(ada)
    share(bob)
    approved(ada)
    approved(bob)
    share(ada)
    key = tmp_path / "bob.key"
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "a passphrase", "-P", "", "-f", str(key)], check=True)
    refuses(bob, git, KhmsError, "sign|passphrase|key")
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "a passphrase", "-N", "", "-f", str(key)], check=True)
    assert share(bob).ids == {"K-00002": "K-00003"}
    assert all(record.signature for record in cards.approvals(bob))


def test_a_persons_own_file_where_ours_would_be_is_carried(
    clone: Callable[[str], Base], approved: Callable[[Base], str], git: Git, commit: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clone("ada"), clone("bob")
    approved(ada)
    git(ada, "rm", "--quiet", "MEMORY.md")
    git(ada, "commit", "--quiet", "-m", "no such file")
    write(bob, "MEMORY.md", "# my own notes\n")
    commit(bob)
    share(ada)
    share(bob)
    assert (bob.root / "MEMORY.md").read_text("utf-8") == "# my own notes\n"
    assert git(bob, "status", "--porcelain") == ""


def test_a_second_card_of_a_mark_needs_the_reviewers_word_and_a_replay_keeps_it(
    clone: Callable[[str], Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clone("ada"), clone("bob")
    for unit, words in (("u.bob", "one thing"), ("u2.bob", "quite another matter")):
        add_candidate(bob, "C1", unit=unit, body=f"FIX: the line says {words}\n", mark="M-0000000000aa")
    commit(bob)
    let_in(bob, "u.bob")
    with pytest.raises(Refused) as caught:
        let_in(bob, "u2.bob")
    assert "became K-00002 (memory/inbox/u.bob C1) already" in caught.value.where and "--also" in caught.value.where
    assert let_in(bob, "u2.bob", also=True).cards[0][1] == "K-00003"
    assert [(w.check, w.label) for w in cards.approvals(bob)[-1].waivers] == [("same-mark", "C1")]
    add_candidate(ada, "C1", unit="u.ada", body="FIX: what ada says of it\n", mark="M-0000000000aa")
    commit(ada)
    let_in(ada, "u.ada")
    share(ada)
    done = share(bob)
    assert [(left.unit, left.verdict) for left in done.left] == [("memory/inbox/u.bob", "same-mark")]
    (second,) = [record for record in cards.approvals(bob) if record.unit == "memory/inbox/u2.bob"]
    assert second.cards[0].id == "K-00003" and second.waivers[0].check == "same-mark"


def test_nightly_knows_what_was_fetched_and_not_yet_taken_in(
    clone: Callable[[str], Base], git: Git, commit: Git
) -> None:
    from khms.pipeline.nightly import nightly

    ada, bob = clone("ada"), clone("bob")
    done = nightly(ada, Repo(ada.root), load(ada.root))
    assert done.verdicts == {"new": 1}
    share(ada)
    git(bob, "fetch", "--quiet")
    head = git(bob, "rev-parse", "HEAD")
    assert nightly(bob, Repo(bob.root), load(bob.root)).decided == 0
    assert git(bob, "rev-parse", "HEAD") == head
