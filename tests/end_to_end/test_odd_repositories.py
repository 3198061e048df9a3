"""The loop in repositories that are not one plain clone: each has a defined answer, and nobody's work is touched."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Git = Callable[..., str]
Write = Callable[..., Path]
WORDS = "the barometer drifts because its vent was taped over"


@pytest.fixture
def plain(tmp_path: Path, run_khms: Run) -> Path:
    """A base of its own, as `khms init` makes it."""
    done = run_khms("init", "kb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "kb"


@pytest.fixture
def loop(run_khms: Run) -> Callable[..., str]:
    """Runs mark, nightly, approve, recall and lint in a folder; returns the id of the card that came of it."""

    def run(where: Path, words: str = WORDS, *approve: str) -> str:
        def khms(*args: str) -> str:
            done = run_khms(*args, cwd=where)
            assert done.returncode == 0, f"khms {' '.join(args)}: {done.stdout}{done.stderr}"
            return done.stdout

        khms("mark", "solved", words)
        unit = Path(json.loads(khms("nightly", "--json"))["unit"]).name
        (card,) = json.loads(khms("approve", unit, "--all", "--unjudged", "--json", *approve))["cards"]
        hits = json.loads(khms("recall", "--json", words))["hits"]
        assert hits[0]["id"] == card["id"]
        khms("lint")
        return str(card["id"])

    return run


def clean(git: Git, where: Path) -> bool:
    return git(where, "status", "--porcelain") == "" and git(where, "fsck", "--strict", "--no-dangling") == ""


# where the repository is


def test_a_linked_work_tree(plain: Path, tmp_path: Path, git: Git, loop: Callable[..., str]) -> None:
    git(plain, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    card = loop(tmp_path / "tree", WORDS, "--here")
    assert clean(git, tmp_path / "tree") and clean(git, plain)
    assert card in git(plain, "log", "-1", "--format=%B", "other")
    assert card not in git(plain, "log", "-1", "--format=%B", "main")
    assert loop(plain, "another matter of the thermometer in the shed") == card  # its branch has not seen the other


def test_a_work_tree_of_a_bare_repository(plain: Path, tmp_path: Path, git: Git, loop: Callable[..., str]) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", "kb", "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "--quiet", str(tmp_path / "tree"), "main")
    git(plain, "switch", "--quiet", "--detach")  # an approval goes to origin, which takes no branch that is checked out
    loop(tmp_path / "tree")
    assert clean(git, tmp_path / "tree")


def test_a_submodule(plain: Path, tmp_path: Path, git: Git, loop: Callable[..., str]) -> None:
    outer = tmp_path / "outer"
    git(tmp_path, "init", "--quiet", "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(plain), "kb")
    git(outer, "commit", "--quiet", "-m", "take the base in")
    git(outer / "kb", "switch", "--quiet", "main")
    git(plain, "switch", "--quiet", "--detach")  # as above
    loop(outer / "kb")
    assert clean(git, outer / "kb")
    assert git(outer, "status", "--porcelain") == "M kb"  # a new commit of the base, for the outer one to record


def test_a_base_in_a_folder_of_a_project(
    tmp_path: Path, git: Git, write: Write, run_khms: Run, loop: Callable[..., str]
) -> None:
    project = tmp_path / "project"
    git(tmp_path, "init", "--quiet", "project")
    write(project, "main.py", "print(1)\n")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "-m", "start")
    assert run_khms("init", cwd=project).returncode == 0
    write(project, "main.py", "print(2)\n")
    write(project, "staged.py", "print(3)\n")
    git(project, "add", "staged.py")
    (project / "deep/er").mkdir(parents=True)
    loop(project / "deep/er")
    assert git(project, "status", "--porcelain") == "M main.py\nA  staged.py"
    changed = git(project, "log", "--format=", "--name-only", "-2").split()
    assert changed and all(name.startswith(".memory/") for name in changed)


def test_a_path_through_a_link(plain: Path, tmp_path: Path, git: Git, loop: Callable[..., str]) -> None:
    (tmp_path / "link").symlink_to(plain, target_is_directory=True)
    loop(tmp_path / "link")
    assert clean(git, plain)


def test_a_separate_git_folder(tmp_path: Path, git: Git, plain: Path, loop: Callable[..., str]) -> None:
    git(plain, "init", "--quiet", "--separate-git-dir", str(tmp_path / "elsewhere.git"))
    loop(plain)
    assert clean(git, plain)


def test_a_bare_repository(plain: Path, tmp_path: Path, git: Git, run_khms: Run) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", "kb", "bare.git")
    for args in (("nightly",), ("approve", "x", "--all"), ("lint", "--staged"), ("status",)):
        done = run_khms("--root", "bare.git", *args, cwd=tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (4, False), (args, done.stderr)


# what git is in the middle of


@pytest.fixture
def proposed(plain: Path, run_khms: Run) -> str:
    """The name of a unit with one pending candidate."""
    assert run_khms("mark", "solved", WORDS, cwd=plain).returncode == 0
    done = run_khms("nightly", "--json", cwd=plain)
    return Path(json.loads(done.stdout)["unit"]).name


def whole(where: Path) -> dict[str, bytes]:
    """Every file of the work tree and what of git's folder a command could move."""
    names = [p for p in where.rglob("*") if p.is_file() and ".khms" not in p.parts]
    kept = {"HEAD", "index", "ORIG_HEAD", "packed-refs"}
    return {
        str(p.relative_to(where)): p.read_bytes()
        for p in names
        if ".git" not in p.relative_to(where).parts or p.name in kept or "refs" in p.parts
    }


def test_an_unborn_branch(tmp_path: Path, git: Git, write: Write, loop: Callable[..., str]) -> None:
    fresh = tmp_path / "fresh"
    write(fresh, "khms.toml", "")
    write(fresh, ".gitignore", ".khms/\n")
    git(fresh, "init", "--quiet")
    assert loop(fresh) == "K-00001"
    assert git(fresh, "status", "--porcelain") == "?? .gitignore\n?? khms.toml"


def test_a_detached_head(plain: Path, proposed: str, git: Git, run_khms: Run) -> None:
    git(plain, "switch", "--quiet", "--detach")
    before = whole(plain)
    done = run_khms("approve", proposed, "--all", "--unjudged", cwd=plain)
    assert done.returncode == 3 and "git switch main" in done.stderr
    assert whole(plain) == before
    done = run_khms("approve", proposed, "--all", "--unjudged", "--here", cwd=plain)
    assert done.returncode == 0 and clean(git, plain)
    assert git(plain, "log", "-1", "--format=%s", "main") != git(plain, "log", "-1", "--format=%s", "HEAD")


def test_a_rebase_that_stopped(plain: Path, proposed: str, git: Git, write: Write, run_khms: Run) -> None:
    git(plain, "switch", "--quiet", "-c", "other", "HEAD~1")
    write(plain, "note.txt", "one\n")
    git(plain, "add", "note.txt")
    git(plain, "commit", "--quiet", "-m", "one")
    git(plain, "switch", "--quiet", "main")
    write(plain, "note.txt", "two\n")
    git(plain, "add", "note.txt")
    git(plain, "commit", "--quiet", "-m", "two")
    subprocess.run(["git", "rebase", "other"], cwd=plain, capture_output=True, check=False)
    before = whole(plain)
    for args in (
        ("approve", proposed, "--all", "--unjudged"),
        ("reject", proposed, "C1", "--why", "no"),
        ("defer", proposed, "C1"),
        ("nightly",),
        ("card", "new", "fact", "--title", "t", "--here"),
    ):
        done = run_khms(*args, cwd=plain)
        assert done.returncode in (2, 3) and "Traceback" not in done.stderr, (args, done.stderr)
        assert whole(plain) == before, args
    assert run_khms("recall", "barometer", cwd=plain).returncode in (0, 1)
    assert run_khms("mark", "note", "in the middle of a rebase", cwd=plain).returncode == 0


def test_a_lock_that_git_left_behind(plain: Path, proposed: str, run_khms: Run) -> None:
    (plain / ".git/index.lock").write_bytes(b"")
    before = whole(plain)
    done = run_khms("approve", proposed, "--all", "--unjudged", cwd=plain)
    assert done.returncode == 75 and str(plain / ".git/index.lock") in done.stderr
    assert whole(plain) == before
    (plain / ".git/index.lock").unlink()
    assert run_khms("approve", proposed, "--all", "--unjudged", cwd=plain).returncode == 0


def test_nobody_to_approve(plain: Path, proposed: str, run_khms: Run, own_environment: Path) -> None:
    (own_environment / ".gitconfig").unlink()
    before = whole(plain)
    done = run_khms("approve", proposed, "--all", "--unjudged", cwd=plain)
    assert done.returncode == 4 and done.stderr.count("git config --global user.") == 2
    assert whole(plain) == before


def test_signing_that_asks(plain: Path, proposed: str, git: Git, run_khms: Run, tmp_path: Path) -> None:
    """`commit.gpgsign` with a program that would wait for a passphrase: the commit is made without it."""
    asks = tmp_path / "asks"
    asks.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nsleep 600\n", encoding="utf-8")
    asks.chmod(0o755)
    git(plain, "config", "commit.gpgsign", "true")
    git(plain, "config", "gpg.program", str(asks))
    assert run_khms("approve", proposed, "--all", "--unjudged", cwd=plain, timeout=30).returncode == 0
    assert not (tmp_path / "asked").exists()


def hook(where: Path, name: str, text: str) -> Path:
    file = where / ".git/hooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_a_hook_of_the_user_that_refuses(plain: Path, proposed: str, run_khms: Run, tmp_path: Path) -> None:
    for name in ("pre-commit", "commit-msg"):
        file = hook(plain, name, f"echo x >> {tmp_path}/calls; echo not on a Monday >&2; exit 1")
        before = whole(plain)
        done = run_khms("approve", proposed, "--all", "--unjudged", cwd=plain)
        assert done.returncode == 3 and "not on a Monday" in done.stderr
        assert whole(plain) == before
        file.unlink()
    assert (tmp_path / "calls").read_text(encoding="utf-8") == "x\nx\n"
    assert run_khms("approve", proposed, "--all", "--unjudged", cwd=plain).returncode == 0


def test_a_hook_that_calls_khms_again(plain: Path, proposed: str, run_khms: Run, tmp_path: Path) -> None:
    program = shutil.which("khms") or "khms"
    hook(plain, "pre-commit", f"'{program}' lint --staged && '{program}' status >/dev/null")
    done = run_khms("approve", proposed, "--all", "--unjudged", cwd=plain, timeout=60)
    assert done.returncode == 0, done.stderr


# what part of the repository is there


def test_a_shallow_clone(plain: Path, proposed: str, tmp_path: Path, git: Git, run_khms: Run) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{plain}", "shallow")
    shallow = tmp_path / "shallow"
    done = run_khms("audit", cwd=shallow)
    assert done.returncode == 4 and "git fetch --unshallow" in done.stderr
    done = run_khms("approve", proposed, "--all", "--unjudged", cwd=shallow)
    assert done.returncode == 0, done.stderr
    assert git(shallow, "status", "--porcelain") == ""


def test_a_sparse_checkout_with_the_cards_left_out(
    plain: Path, proposed: str, git: Git, run_khms: Run, loop: Callable[..., str]
) -> None:
    assert run_khms("approve", proposed, "--all", "--unjudged", cwd=plain).returncode == 0
    run_khms("mark", "solved", "the anemometer jams when ice forms on its cups", cwd=plain)
    unit = Path(json.loads(run_khms("nightly", "--json", cwd=plain).stdout)["unit"]).name
    git(plain, "sparse-checkout", "set", "--cone", "journal", "memory/inbox", "memory/receipts")
    assert not (plain / "memory/know/K-00001.md").exists()
    before = whole(plain)
    done = run_khms("approve", unit, "--all", "--unjudged", cwd=plain)
    assert done.returncode == 3 and "sparse" in done.stderr and "git sparse-checkout" in done.stderr
    assert whole(plain) == before
    assert run_khms("lint", cwd=plain).returncode == 3
    assert run_khms("audit", cwd=plain).returncode == 0  # it reads git's objects
    git(plain, "sparse-checkout", "disable")
    assert run_khms("approve", unit, "--all", "--unjudged", cwd=plain).returncode == 0


def test_a_sparse_checkout_that_leaves_the_rest_of_a_project_out(
    tmp_path: Path, git: Git, write: Write, run_khms: Run, loop: Callable[..., str]
) -> None:
    project = tmp_path / "project"
    git(tmp_path, "init", "--quiet", "project")
    write(project, "src/main.py", "print(1)\n")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "-m", "start")
    assert run_khms("init", cwd=project).returncode == 0
    git(project, "sparse-checkout", "set", "--cone", ".memory")
    loop(project)
    assert clean(git, project)
    assert git(project, "cat-file", "-p", "HEAD:src/main.py") == "print(1)"


def test_names_that_differ_by_case_only(plain: Path, git: Git, run_khms: Run) -> None:
    """Both may stand on a disk that tells them apart; a clone on one that does not would lose one of them."""
    (plain / "journal").mkdir(exist_ok=True)
    (plain / "journal/Notes.md").write_text("# one\n", encoding="utf-8")
    (plain / "journal/notes.md").write_text("# two\n", encoding="utf-8")
    if len({p.name for p in (plain / "journal").glob("[Nn]otes.md")}) < 2:
        pytest.skip("this disk does not tell upper from lower case")
    git(plain, "add", "journal")
    done = run_khms("lint", "--json", cwd=plain)
    told = [f for f in json.loads(done.stdout)["findings"] if "case" in f["message"]]
    assert [f["path"] for f in told] == ["journal/notes.md"] and "journal/Notes.md" in told[0]["message"]


# a repository whose own configuration is hostile


@pytest.fixture
def trap(tmp_path: Path) -> Callable[[str], str]:
    """A program that leaves a mark when it runs."""
    (tmp_path / "sprung").mkdir()

    def make(name: str) -> str:
        file = tmp_path / f"trap-{name}"
        file.write_text(f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/sprung/{name}'\ncat\nexit 0\n", encoding="utf-8")
        file.chmod(0o755)
        return str(file)

    return make


HOSTILE = {
    "core.fsmonitor": "fsmonitor",
    "core.pager": "pager",
    "core.editor": "editor",
    "core.askPass": "askpass",
    "core.sshCommand": "ssh",
    "core.gitProxy": "proxy",
    "core.alternateRefsCommand": "alternates",
    "credential.helper": "credential",
    "diff.external": "diff",
    "diff.evil.textconv": "textconv",
    "diff.evil.command": "diffcommand",
    "filter.evil.clean": "clean",
    "filter.evil.smudge": "smudge",
    "filter.evil.process": "process",
    "merge.evil.driver": "driver",
    "gpg.program": "gpg",
    "gpg.ssh.program": "gpgssh",
    "gpg.ssh.defaultKeyCommand": "sshkey",
    "sequence.editor": "sequence",
    "uploadpack.packObjectsHook": "pack",
    "trailer.evil.command": "trailer",
    "log.showSignature": "",
    "alias.status": "!alias",
    "alias.rev-parse": "!alias",
}


def test_a_hostile_configuration_runs_nothing(
    plain: Path, git: Git, write: Write, run_khms: Run, trap: Callable[[str], str], tmp_path: Path
) -> None:
    write(plain, ".gitattributes", "*.md filter=evil diff=evil merge=evil\n*.json filter=evil\n")
    git(plain, "add", ".gitattributes")
    git(plain, "commit", "--quiet", "-m", "attributes")
    for key, name in HOSTILE.items():
        value = "!" + trap(name[1:]) if name.startswith("!") else trap(name) if name else "true"
        git(plain, "config", key, value)
    git(plain, "config", "filter.evil.required", "true")
    git(plain, "config", "commit.gpgsign", "true")
    assert run_khms("mark", "solved", WORDS, cwd=plain).returncode == 0
    done = run_khms("nightly", "--json", cwd=plain)
    assert done.returncode == 0, done.stderr
    unit = Path(json.loads(done.stdout)["unit"]).name
    for args in (
        ("inbox", "show"),
        ("approve", unit, "--all", "--unjudged"),
        ("recall", "barometer"),
        ("lint",),
        ("lint", "--staged"),
        ("status",),
        ("doctor",),
        ("audit",),
        ("show", "K-00001"),
        ("card", "status", "K-00001", "condensed", "--by", "K-00001", "--why", "x"),
        ("views",),
        ("index", "--rebuild"),
    ):
        done = run_khms(*args, cwd=plain)
        assert done.returncode in (0, 1, 2, 3), (args, done.stderr)
        sprung = sorted(p.name for p in (tmp_path / "sprung").iterdir())
        assert sprung == [], (args, sprung)


def test_a_work_tree_that_the_configuration_moves(plain: Path, git: Git, run_khms: Run, tmp_path: Path) -> None:
    """core.worktree may point anywhere: nothing is written there."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "memory").mkdir()
    run_khms("mark", "solved", WORDS, cwd=plain)
    git(plain, "config", "core.worktree", str(victim))
    for args in (("nightly",), ("lint", "--staged"), ("audit",)):
        done = run_khms(*args, cwd=plain)
        assert done.returncode == 4 and "work tree" in done.stderr, (args, done.returncode, done.stderr)
    assert "core.worktree" in run_khms("status", cwd=plain).stdout
    assert [p.name for p in victim.rglob("*")] == ["memory"]


def test_a_variable_of_git_leads_nowhere(
    plain: Path, git: Git, tmp_path: Path, loop: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    loop(plain)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    assert clean(git, plain)
    assert not (tmp_path / "other/memory").exists()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", f"{Path(os.sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # type: ignore[attr-defined]
    yield
