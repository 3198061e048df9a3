"""The guards of a shared base at work: the real hooks of the real command, real commits, real pushes.

Every forgery here is one that git itself would take without a word.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

BIN = Path(sys.executable).parent
Git = Callable[..., str]
Done = "subprocess.CompletedProcess[str]"


def call(where: Path, *command: str | Path, code: int | None = 0) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([*map(str, command)], cwd=where, capture_output=True, encoding="utf-8", check=False)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done


def khms(base: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return call(base, BIN / "khms", "--root", base, *words)


def made(root: Path) -> Base:
    """A base at `root` with two approved cards and one candidate that waits."""
    khms(root, "mark", "solved", "seedlings wilted: the tray stood on the radiator, 31 C at the roots")
    khms(root, "mark", "decision", "water before eight in the morning, because the tray dries out by ten")
    khms(root, "mark", "decision", "turn the pots by a quarter every sunday")
    khms(root, "nightly")
    (unit,) = (root / "memory/inbox").iterdir()
    khms(root, "approve", unit.name, "C1", "C2", "--unjudged")
    return Base(root.resolve())


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same base as a repository of its own and inside of a project's; made once, copied by each test."""
    return {"folder": tmp_path_factory.mktemp("finished")}


@pytest.fixture(params=["alone", "inside"])
def place(request: pytest.FixtureRequest, finished: dict[str, Path], tmp_path: Path) -> tuple[Path, Base]:
    """(the work tree's top, the base): a base that is its repository's root, and one in `.memory/` of a project."""
    kind = request.param
    source = finished["folder"] / kind
    if not source.exists():
        call(finished["folder"], "git", "init", "--quiet", source)
        if kind == "inside":
            (source / "code.py").write_text("print()\n", encoding="utf-8")
            call(source, "git", "add", "--all")
            call(source, "git", "commit", "--quiet", "-m", "code")
        call(source, BIN / "khms", "init")
        made(source / ".memory" if kind == "inside" else source)
    top = tmp_path / "clone"
    call(tmp_path, "cp", "-r", source, top)
    return top, Base(top / ".memory" if kind == "inside" else top)


def card_of(base: Base, number: int = 1) -> Path:
    return base.know / f"K-{number:05d}.md"


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def slipped_in(base: Base) -> None:
    text = card_of(base).read_text(encoding="utf-8").replace("K-00001", "K-00003").replace("radiator", "window sill")
    card_of(base, 3).write_text(text, encoding="utf-8")


def changed_byte(base: Base) -> None:
    change(card_of(base), "31 C at the roots", "41 C at the roots")


def used_again(base: Base) -> None:
    text = card_of(base).read_text(encoding="utf-8").replace("radiator", "window sill")
    archive = base.archive / "K-00001.md"
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_text(text.replace("status: active", "status: superseded"), encoding="utf-8")


def forged_record(base: Base) -> None:
    """A card and a record for it that names a candidate nobody ever proposed."""
    from khms.model.approval import card_sha256

    slipped_in(base)
    (record,) = base.approvals.iterdir()
    value = json.loads(record.read_bytes())
    forged = "01" + "Z" * 24
    sha = card_sha256(card_of(base, 3).read_bytes())
    card = {"id": "K-00003", "label": "C9", "candidate_sha256": "0" * 64, "card_sha256": sha, "was": []}
    value |= {"id": forged, "cards": [card], "transitions": [], "waivers": [], "signature": None}
    (base.approvals / f"{forged}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def unrecorded(base: Base) -> None:
    change(card_of(base), "status: active", "status: challenged")


def record_changed(base: Base) -> None:
    (record,) = base.approvals.iterdir()
    change(record, "Ada Tester", "Eve Tester")


def record_removed(base: Base) -> None:
    (record,) = base.approvals.iterdir()
    record.unlink()


def card_removed(base: Base) -> None:
    card_of(base).unlink()


def conflict(base: Base) -> None:
    (day,) = base.journal.iterdir()
    with day.open("a", encoding="utf-8") as file:
        file.write("<<<<<<< ours\nMARK[decision] this\n=======\nMARK[decision] that\n>>>>>>> theirs\n")


FORGERIES: dict[str, tuple[Callable[[Base], None], str]] = {
    "a card slipped in": (slipped_in, "KA001"),
    "a byte changed": (changed_byte, "KA002"),
    "an id used again": (used_again, "KA003"),
    "a status without a record": (unrecorded, "KA004"),
    "a record changed": (record_changed, "KA005"),
    "a record removed": (record_removed, "KA005"),
    "a forged record": (forged_record, "KA009"),
    "an approved card removed": (card_removed, "KA009"),
}
FORGED = pytest.mark.parametrize(("forge", "code"), FORGERIES.values(), ids=FORGERIES)
INSIDE = pytest.mark.parametrize("place", ["inside"], indirect=True)  # with a prefix: there is more to go wrong


def candidate(base: Base) -> Path:
    (unit,) = base.inbox.iterdir()
    return unit / "C3.md"


def commit(top: Path, *words: str, code: int | None = None) -> "subprocess.CompletedProcess[str]":
    call(top, "git", "add", "--all")
    return call(top, "git", "commit", "-m", "x", *words, code=code)


def tip(where: Path, name: str = "HEAD") -> str:
    return call(where, "git", "rev-parse", name).stdout.strip()


@pytest.fixture
def guarded(place: tuple[Path, Base]) -> tuple[Path, Base]:
    top, base = place
    khms(base.root, "hook", "install", "git")
    return top, base


@FORGED
@INSIDE
def test_a_commit_is_refused(guarded: tuple[Path, Base], forge: Callable[[Base], None], code: str) -> None:
    top, base = guarded
    before = tip(top)
    forge(base)
    done = commit(top)
    assert done.returncode == 1 and tip(top) == before
    assert code in done.stderr, done.stderr
    assert done.stderr.splitlines()[-1].endswith("to commit all the same: git commit --no-verify")
    assert "Traceback" not in done.stderr
    told = done.stderr.splitlines()
    (first,) = [i for i, line in enumerate(told) if code in line][:1]
    assert told[first + 1].strip(), "what mends it stands below"
    assert commit(top, "--no-verify").returncode == 0 and tip(top) != before


def test_a_conflict_marker_is_refused(guarded: tuple[Path, Base]) -> None:
    top, base = guarded
    before = tip(top)
    conflict(base)
    done = commit(top)
    assert done.returncode == 1 and "KH015" in done.stderr and tip(top) == before


def test_ordinary_work_passes(guarded: tuple[Path, Base]) -> None:
    top, base = guarded
    (day,) = base.journal.iterdir()
    with day.open("a", encoding="utf-8") as file:
        file.write("\nThe radiator is off since noon.\n")
    assert commit(top, code=0).returncode == 0
    change(candidate(base), "turn the pots", "Turn the pots")
    assert commit(top, code=0).returncode == 0
    (top / "code.py").write_text("print(1)\n", encoding="utf-8")
    assert commit(top, code=0).returncode == 0
    khms(base.root, "mark", "failed", "the cheap tray cracked in the frost")
    khms(base.root, "nightly")
    assert len(list(base.inbox.iterdir())) == 2 and call(top, "git", "status", "--porcelain").stdout == ""


def test_khmss_own_approvals_pass(guarded: tuple[Path, Base]) -> None:
    top, base = guarded
    khms(base.root, "approve", candidate(base).parent.name, "C3", "--unjudged")
    assert card_of(base, 3).exists() and call(top, "git", "status", "--porcelain").stdout == ""
    khms(base.root, "card", "status", "K-00003", "refuted", "--by", "K-00002", "--why", "it fell over")
    assert call(top, "git", "status", "--porcelain").stdout == ""


def test_an_approval_that_is_undone_before_it_was_shared(guarded: tuple[Path, Base]) -> None:
    """A soft reset and a commit by hand of the very same bytes is no forgery: card and record come in together."""
    top, base = guarded
    khms(base.root, "approve", candidate(base).parent.name, "C3", "--unjudged")
    call(top, "git", "reset", "--quiet", "--soft", "HEAD^")
    assert commit(top, code=0).returncode == 0


def test_the_commands_that_name_files_and_all(guarded: tuple[Path, Base]) -> None:
    top, base = guarded
    before = tip(top)
    changed_byte(base)
    card = card_of(base).relative_to(top)
    for words in (["--all"], [str(card)]):
        done = call(top, "git", "commit", "-m", "x", *words, code=None)
        assert done.returncode == 1 and "KA002" in done.stderr and tip(top) == before
    call(top, "git", "checkout", "--quiet", "--", card)
    (top / "note.txt").write_text("x\n", encoding="utf-8")
    call(top, "git", "add", "note.txt")
    changed_byte(base)
    assert call(top, "git", "commit", "-m", "x", code=None).returncode == 0, "what is not staged is not the commit's"


def test_a_linked_work_tree(guarded: tuple[Path, Base], tmp_path: Path) -> None:
    top, base = guarded
    tree = tmp_path / "tree"
    call(top, "git", "worktree", "add", "--quiet", tree)
    other = Base(tree / base.root.relative_to(top))
    slipped_in(other)
    done = commit(tree)
    assert done.returncode == 1 and "KA001" in done.stderr
    card_of(other, 3).unlink()
    change(candidate(other), "turn the pots", "Turn the pots")
    assert commit(tree, code=0).returncode == 0


@pytest.fixture
def server(place: tuple[Path, Base], tmp_path: Path) -> Path:
    """A bare repository that `origin` of the clone names, with the hook."""
    top, base = place
    bare = tmp_path / "srv.git"
    call(tmp_path, "git", "clone", "--quiet", "--bare", top, bare)
    call(top, "git", "remote", "add", "origin", bare)
    call(top, "git", "fetch", "--quiet", "origin")
    khms(base.root, "hook", "install", "git", "--server", str(bare))
    return bare


def push(top: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return call(top, "git", "push", "origin", *words, code=None)


@FORGED
@INSIDE
def test_a_push_is_refused(place: tuple[Path, Base], server: Path, forge: Callable[[Base], None], code: str) -> None:
    top, base = place
    before = tip(server, "main")
    forge(base)
    commit(top, "--no-verify", code=0)
    done = push(top, "main")
    assert done.returncode != 0 and code in done.stderr and tip(server, "main") == before, done.stderr
    assert "Traceback" not in done.stderr and "nothing of it was taken" in done.stderr
    assert call(server, "git", "fsck", "--full").returncode == 0


def test_a_push_of_good_approvals_passes(place: tuple[Path, Base], server: Path) -> None:
    top, base = place
    khms(base.root, "approve", candidate(base).parent.name, "C3", "--unjudged")
    khms(base.root, "card", "status", "K-00003", "refuted", "--by", "K-00002", "--why", "it fell over")
    (top / "code.py").write_text("print(2)\n", encoding="utf-8")
    commit(top, "--no-verify", code=0)
    done = push(top, "main")
    assert done.returncode == 0, done.stderr
    assert tip(server, "main") == tip(top)


def test_of_two_branches_in_one_push_none_is_taken_where_one_is_forged(place: tuple[Path, Base], server: Path) -> None:
    top, base = place
    call(top, "git", "switch", "--quiet", "--create", "fine")
    change(candidate(base), "turn the pots", "Turn the pots")
    commit(top, code=0)
    call(top, "git", "switch", "--quiet", "--create", "forged", "main")
    slipped_in(base)
    commit(top, "--no-verify", code=0)
    done = push(top, "fine", "forged")
    assert done.returncode != 0 and "KA001" in done.stderr
    assert call(server, "git", "for-each-ref", "--format=%(refname)").stdout.split() == ["refs/heads/main"]
    assert push(top, "fine").returncode == 0 and tip(server, "fine") == tip(top, "fine")


def test_a_branch_may_go_and_a_tag_may_come(place: tuple[Path, Base], server: Path) -> None:
    top, _ = place
    call(top, "git", "branch", "topic")
    call(top, "git", "tag", "-a", "-m", "a tag", "v1")
    assert push(top, "topic", "v1").returncode == 0
    done = push(top, "--delete", "topic")
    assert done.returncode == 0, done.stderr
    assert call(server, "git", "for-each-ref", "--format=%(refname)").stdout.split() == [
        "refs/heads/main",
        "refs/tags/v1",
    ]


def test_a_rewritten_branch(place: tuple[Path, Base], server: Path) -> None:
    """A forced push may rewrite what lies beside the cards, and may not take an approval back."""
    top, base = place
    call(top, "git", "switch", "--quiet", "--create", "topic")
    change(candidate(base), "turn the pots", "Turn the pots")
    commit(top, code=0)
    assert push(top, "topic").returncode == 0
    change(candidate(base), "Turn the pots", "Rotate the pots")
    commit(top, "--amend", code=0)
    done = push(top, "--force", "topic")
    assert done.returncode == 0, done.stderr
    before = tip(server, "main")
    call(top, "git", "switch", "--quiet", "main")
    call(top, "git", "reset", "--quiet", "--hard", "HEAD^")
    assert not card_of(base).exists()
    done = push(top, "--force", "main")
    assert done.returncode != 0 and "KA005" in done.stderr and tip(server, "main") == before


def test_a_forgery_that_a_later_commit_hides(place: tuple[Path, Base], server: Path) -> None:
    """The tip alone is clean; a record that was changed and put back again was changed all the same."""
    top, base = place
    before = tip(server, "main")
    (record,) = base.approvals.iterdir()
    whole = record.read_bytes()
    record_changed(base)
    commit(top, "--no-verify", code=0)
    record.write_bytes(whole)
    commit(top, "--no-verify", code=0)
    done = push(top, "main")
    assert done.returncode != 0 and "KA005" in done.stderr and tip(server, "main") == before


def test_without_python_the_server_takes_nothing(place: tuple[Path, Base], server: Path) -> None:
    top, base = place
    hook = server / "hooks/pre-receive"
    hook.write_text(hook.read_text(encoding="utf-8").replace(str(BIN), "/gone"), encoding="utf-8")
    change(candidate(base), "turn the pots", "Turn the pots")
    commit(top, code=0)
    before = tip(server, "main")
    done = push(top, "main")
    assert done.returncode != 0 and "khms is gone from this server" in done.stderr and tip(server, "main") == before
    assert os.access(hook, os.X_OK)
