"""`khms init` in every situation: where the base goes, what is committed, whose files stay; a kill is harmless."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.errors import Refused
from khms.store import siting
from khms.store.layout import Base, is_base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Git = Callable[..., str]
OURS = [".gitignore", "AGENTS.md", "MEMORY.md", "khms.toml", "memory/tags.yaml"]
OURS += ["memory/views/recent.md", "memory/views/tags.md"]


def committed(git: Git, root: Path) -> list[str]:
    return git(root, "ls-tree", "-r", "--name-only", "HEAD").splitlines()


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """A repository with other content, a staged file and an edit that nobody staged."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("x = 1\n", encoding="utf-8")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    (root / "staged").write_text("staged\n", encoding="utf-8")
    git(root, "add", "staged")
    (root / "src" / "main.py").write_text("x = 2\n", encoding="utf-8")
    return root


def test_an_empty_folder_becomes_a_base(tmp_path: Path, run_khms: Run, git: Git) -> None:
    root = tmp_path / "kb"
    root.mkdir()
    done = run_khms("init", cwd=root)
    assert done.returncode == 0, done.stderr
    assert committed(git, root) == OURS
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "log", "--format=%an <%ae>") == "Ada Tester <ada@example.org>"
    assert (root / ".khms/.gitignore").read_text(encoding="utf-8") == "*\n"
    assert (root / "khms.toml").read_text(encoding="utf-8").startswith("#:schema ")
    assert str(root) in (Path(os.environ["KHMS_DATA_HOME"]) / "trust.json").read_text(encoding="utf-8")


def test_a_folder_that_is_not_there_is_made(tmp_path: Path, run_khms: Run, git: Git) -> None:
    assert run_khms("init", "a/b c", cwd=tmp_path).returncode == 0
    assert committed(git, tmp_path / "a" / "b c") == OURS


def test_init_again_changes_nothing_and_says_so(tmp_path: Path, run_khms: Run, git: Git) -> None:
    run_khms("init", "kb", cwd=tmp_path)
    before, head = hashes(tmp_path / "kb"), git(tmp_path / "kb", "rev-parse", "HEAD")
    for cwd, args in ((tmp_path, ("kb",)), (tmp_path / "kb", ()), (tmp_path / "kb/memory", ())):
        done = run_khms("init", *args, cwd=cwd)
        assert (done.returncode, "nothing to do" in done.stdout) == (0, True), done
    assert hashes(tmp_path / "kb") == before
    assert git(tmp_path / "kb", "rev-parse", "HEAD") == head


def test_the_generated_files_are_up_to_date_from_the_start(tmp_path: Path, run_khms: Run, git: Git) -> None:
    run_khms("init", "kb", cwd=tmp_path)
    assert "0 changed" in run_khms("views", cwd=tmp_path / "kb").stdout


def test_content_without_git_needs_a_word(tmp_path: Path, run_khms: Run) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("a\n", encoding="utf-8")
    done = run_khms("init", "notes", cwd=tmp_path)
    assert done.returncode == 3 and "--adopt" in done.stderr
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["a.md"]


def test_a_repository_with_content_gets_a_folder(project: Path, run_khms: Run, git: Git) -> None:
    done = run_khms("init", cwd=project)
    assert done.returncode == 0, done.stderr
    assert git(project, "show", "--name-only", "--format=", "HEAD").splitlines() == [f".memory/{p}" for p in OURS]
    assert git(project, "status", "--porcelain").splitlines() == ["M src/main.py", "A  staged"]
    assert run_khms("init", cwd=project / "src").stdout.startswith("nothing to do")


def test_an_edit_in_the_same_moment_as_its_staging_stays_seen(project: Path, run_khms: Run, git: Git) -> None:
    """git tells such an edit by the time of its index, which a rewritten index must not lose."""
    git(project, "config", "core.trustctime", "false")
    file, moment = project / "src/main.py", (10**18, 10**18)
    file.write_text("x = 3\n", encoding="utf-8")
    os.utime(file, ns=moment)
    git(project, "add", "src/main.py")
    os.utime(project / ".git/index", ns=moment)
    file.write_text("x = 4\n", encoding="utf-8")
    os.utime(file, ns=moment)
    assert run_khms("init", cwd=project).returncode == 0
    assert git(project, "status", "--porcelain", "src/main.py") == "MM src/main.py"


def test_from_a_sub_folder_the_base_is_at_the_top(project: Path, run_khms: Run) -> None:
    done = run_khms("init", cwd=project / "src")
    assert done.returncode == 0 and is_base(project / ".memory") and "khms init" in done.stdout
    assert not (project / "src" / ".memory").exists()


def test_a_named_sub_folder_gets_its_own(project: Path, run_khms: Run) -> None:
    assert run_khms("init", "src", cwd=project).returncode == 0
    assert is_base(project / "src" / ".memory") and not (project / ".memory").exists()


def test_no_base_inside_a_base(tmp_path: Path, run_khms: Run) -> None:
    run_khms("init", "kb", cwd=tmp_path)
    done = run_khms("init", "kb/journal", cwd=tmp_path)
    assert done.returncode == 3 and "inside a base" in done.stderr


def test_a_repository_without_a_commit_or_content(tmp_path: Path, run_khms: Run, git: Git) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "--quiet")
    assert run_khms("init", cwd=root).returncode == 0
    assert committed(git, root) == OURS


def test_an_unborn_branch_with_staged_content(tmp_path: Path, run_khms: Run, git: Git) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "mine").write_text("mine\n", encoding="utf-8")
    git(root, "add", "mine")
    assert run_khms("init", cwd=root).returncode == 0
    assert committed(git, root) == [f".memory/{path}" for path in OURS]
    assert git(root, "status", "--porcelain") == "A  mine"


def test_a_linked_work_tree(project: Path, tmp_path: Path, run_khms: Run, git: Git) -> None:
    git(project, "worktree", "add", "--quiet", str(tmp_path / "wt"), "-b", "other")
    assert run_khms("init", cwd=tmp_path / "wt").returncode == 0
    assert git(tmp_path / "wt", "log", "-1", "--format=%D").startswith("HEAD -> other")
    assert not (project / ".memory").exists() and is_base(tmp_path / "wt/.memory")


def test_separate_stands_beside_the_project(project: Path, tmp_path: Path, run_khms: Run, git: Git) -> None:
    done = run_khms("init", "--separate", cwd=project / "src")
    root = tmp_path / "project-memory"
    assert done.returncode == 0 and str(root) in done.stdout and "KHMS_ROOT" in done.stdout
    assert committed(git, root) == OURS and not (project / ".memory").exists()
    git(project, "worktree", "add", "--quiet", str(tmp_path / "wt"), "-b", "other")
    assert "nothing to do" in run_khms("init", "--separate", cwd=tmp_path / "wt").stdout


def test_separate_where_the_place_beside_belongs_to_another(project: Path, run_khms: Run, git: Git) -> None:
    inner = project / "vendor" / "lib"
    inner.mkdir(parents=True)
    git(inner, "init", "--quiet")
    done = run_khms("init", "--separate", cwd=inner)
    root = Path(os.environ["KHMS_DATA_HOME"]) / "bases" / "lib-memory"
    assert done.returncode == 0 and is_base(root) and "another repository" in done.stdout


def test_separate_never_takes_a_folder_that_is_in_use(project: Path, tmp_path: Path, run_khms: Run) -> None:
    (tmp_path / "project-memory").mkdir()
    (tmp_path / "project-memory/mine").write_text("mine", encoding="utf-8")
    assert run_khms("init", "--separate", cwd=project).returncode == 3


@pytest.mark.parametrize("with_git", [False, True])
def test_adopt_leaves_every_note_as_it_is(
    tmp_path: Path, run_khms: Run, git: Git, shared: Callable[[str], Path], with_git: bool
) -> None:
    root = tmp_path / "notes"
    shutil.copytree(shared("real/notes"), root, copy_function=shutil.copyfile)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    if with_git:
        git(root, "init", "--quiet")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", "my notes")
    before = hashes(root)
    done = run_khms("init", "--adopt", cwd=root)
    assert done.returncode == 0, done.stderr
    after = hashes(root)
    assert {path: after[path] for path in before} == before
    assert git(root, "show", "--name-only", "--format=", "HEAD").splitlines() == OURS
    assert "notes = true" in (root / "khms.toml").read_text(encoding="utf-8")
    asked = run_khms("recall", "a bare writing prompt does not determine its contribution", "--json", cwd=root)
    assert "a-bare-writing-prompt-does-not-determine-its-intended-contribution" in asked.stdout
    assert "nothing to do" in run_khms("init", "--adopt", cwd=root).stdout


def test_adopt_indexes_what_git_does_not_ignore_and_names_what_it_cannot_read(tmp_path: Path, run_khms: Run) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "good.md").write_text("# Marmalade\n\nTwo lemons to the pound.\n", encoding="utf-8")
    (root / "ignored.md").write_text("# Secret marmalade\n", encoding="utf-8")
    (root / ".gitignore").write_text("ignored.md\n", encoding="utf-8")
    (root / "broken.md").write_text("---\ntitle: a\ntitle: b\n---\nx\n", encoding="utf-8")
    (root / "bytes.md").write_bytes(b"\xff\xfe\x00broken")
    done = run_khms("init", "--adopt", cwd=root)
    assert done.returncode == 0
    assert "broken.md" in done.stderr and "bytes.md" in done.stderr and "good.md" not in done.stderr
    found = run_khms("recall", "marmalade", cwd=root)
    assert "good.md" in found.stdout and "ignored.md" not in found.stdout


def test_files_of_others_stay(tmp_path: Path, run_khms: Run, git: Git) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    git(root, "init", "--quiet")
    theirs = {"AGENTS.md": "# Mine\n", "MEMORY.md": "# Also mine\n", ".gitignore": "*.log", "a.md": "a\n"}
    for name, text in theirs.items():
        (root / name).write_text(text, encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "mine")
    done = run_khms("init", "--adopt", cwd=root)
    assert done.returncode == 0
    assert "AGENTS.md: yours" in done.stderr and "MEMORY.md: yours" in done.stderr
    assert (root / "AGENTS.md").read_text(encoding="utf-8") == "# Mine\n"
    assert (root / "MEMORY.md").read_text(encoding="utf-8") == "# Also mine\n"
    assert (root / ".gitignore").read_text(encoding="utf-8") == "*.log\n.khms/\n"
    assert git(root, "status", "--porcelain") == ""
    views = run_khms("views", cwd=root)
    assert views.returncode == 0 and "MEMORY.md is not ours" in views.stderr


def test_a_gitignore_with_changes_is_not_committed(tmp_path: Path, run_khms: Run, git: Git) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
    assert run_khms("init", "--adopt", cwd=root).returncode == 0
    assert ".gitignore" not in committed(git, root)
    assert (root / ".gitignore").read_text(encoding="utf-8") == "*.log\n.khms/\n"


def test_a_base_that_its_repository_would_ignore_is_refused(project: Path, run_khms: Run) -> None:
    (project / ".gitignore").write_text(".*\n", encoding="utf-8")
    done = run_khms("init", cwd=project)
    assert done.returncode == 3 and "ignores" in done.stderr and not (project / ".memory").exists()


def test_an_ignored_empty_folder_gets_a_repository_of_its_own(project: Path, run_khms: Run, git: Git) -> None:
    (project / ".gitignore").write_text("kb/\n", encoding="utf-8")
    assert run_khms("init", "kb", cwd=project).returncode == 0
    assert Path(git(project / "kb", "rev-parse", "--show-toplevel")) == project / "kb"


def test_an_older_base_gets_its_settings_file_only(
    tmp_path: Path, run_khms: Run, git: Git, add_card: Callable[..., Path]
) -> None:
    root = tmp_path / "old"
    root.mkdir()
    git(root, "init", "--quiet")
    add_card(Base(root), "K-00007")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "old")
    assert run_khms("card", "list", cwd=root).stdout.count("K-00007") == 2
    assert run_khms("init", cwd=root).returncode == 0
    assert git(root, "show", "--name-only", "--format=", "HEAD") == "khms.toml"
    assert "nothing to do" in run_khms("init", cwd=root).stdout


def test_an_older_base_without_git_is_committed_whole(
    tmp_path: Path, run_khms: Run, git: Git, add_card: Callable[..., Path]
) -> None:
    root = tmp_path / "old"
    root.mkdir()
    add_card(Base(root), "K-00007")
    (root / "README.txt").write_text("mine\n", encoding="utf-8")
    assert run_khms("init", cwd=root).returncode == 3
    assert run_khms("init", "--adopt", cwd=root).returncode == 0
    assert committed(git, root) == ["khms.toml", "memory/know/K-00007.md"]


def test_global_is_the_default_base(tmp_path: Path, run_khms: Run) -> None:
    done = run_khms("init", "--global", cwd=tmp_path)
    root = Path(os.environ["KHMS_DATA_HOME"]) / "base"
    settings = Path(os.environ["KHMS_CONFIG_HOME"]) / "config.toml"
    assert done.returncode == 0 and is_base(root)
    assert settings.read_text(encoding="utf-8") == f'[base]\ndefault = "{root}"\n'
    assert str(root) in run_khms("status", cwd=tmp_path).stdout
    settings.write_text(f'# mine\n[recall]\nlimit = 3\n[base]\ndefault = "{root}"\n', encoding="utf-8")
    other = tmp_path / "other"
    assert f"was {root}" in run_khms("init", "--global", "other", cwd=tmp_path).stdout
    assert settings.read_text(encoding="utf-8") == f'# mine\n[recall]\nlimit = 3\n[base]\ndefault = "{other}"\n'


def test_without_a_name_nothing_is_written(tmp_path: Path, run_khms: Run) -> None:
    done = run_khms("init", "kb", cwd=tmp_path, env={"HOME": str(tmp_path / "nobody")})
    assert done.returncode == 4 and "git config --global user.name" in done.stderr
    assert not (tmp_path / "kb").exists()


def test_without_git_nothing_is_written(tmp_path: Path, run_khms: Run) -> None:
    done = run_khms("init", "kb", cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert done.returncode == 4 and "git was not found" in done.stderr
    assert not (tmp_path / "kb").exists()


def test_bare_detached_and_half_merged(project: Path, tmp_path: Path, run_khms: Run, git: Git) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    assert run_khms("init", "bare.git", cwd=tmp_path).returncode == 4
    git(project, "switch", "--quiet", "--detach")
    done = run_khms("init", cwd=project)
    assert done.returncode == 3 and "git switch" in done.stderr
    git(project, "switch", "--quiet", "main")
    (project / ".git/MERGE_HEAD").write_text(git(project, "rev-parse", "HEAD"), encoding="utf-8")
    assert "a merge" in run_khms("init", cwd=project).stderr
    assert not (project / ".memory").exists()


def test_a_file_in_the_way(tmp_path: Path, run_khms: Run) -> None:
    (tmp_path / "kb").write_text("x", encoding="utf-8")
    assert run_khms("init", "kb", cwd=tmp_path).returncode == 3


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    root = tmp_path / "kb"
    root.mkdir()
    root.chmod(0o555)
    command = [sys.executable, "-m", "khms", "init"]
    if os.geteuid() == 0:  # root may write anywhere, unless it gives that up
        if shutil.which("setpriv") is None:
            pytest.skip("runs as root, and setpriv is not there to give up its rights")
        command = ["setpriv", "--bounding-set", "-dac_override", *command]
    done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)
    root.chmod(0o755)
    assert done.returncode == 4 and str(root) in done.stderr, done
    assert list(root.iterdir()) == []


def test_a_failure_takes_back_what_was_made(tmp_path: Path, run_khms: Run) -> None:
    """The name is known to git, the committer's is not: the commit fails after the repository was made."""
    env = {"HOME": str(tmp_path / "nobody"), "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
    env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"] = "1", "user.useConfigOnly", "true"
    done = run_khms("init", "deep/kb", cwd=tmp_path, env=env)
    assert done.returncode == 4, done
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize(
    ("inside", "first", "step"),
    [
        (False, 2, 7),
        (True, 5, 7),
        pytest.param(False, 1, 1, marks=pytest.mark.slow),
        pytest.param(True, 1, 1, marks=pytest.mark.slow),
    ],
)
def test_a_kill_anywhere_is_completed_by_the_next_run(
    kill: ModuleType, git: Git, inside: bool, first: int, step: int
) -> None:
    def prepare(folder: Path) -> None:
        if inside:
            git(folder, "init", "--quiet")
            (folder / "mine").write_text("mine\n", encoding="utf-8")
            git(folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "x", "--allow-empty")
            git(folder, "add", "mine")

    def check(folder: Path) -> None:
        prefix = ".memory/" if inside else ""
        assert committed(git, folder) == [prefix + path for path in OURS]
        assert git(folder, "status", "--porcelain") == ("A  mine" if inside else "")
        assert not [path for path in folder.rglob(".khms-tmp-*") if ".khms" not in path.parts]
        assert not (folder / ".git/index.lock").exists()
        git(folder, "fsck", "--strict")

    assert kill.kill_points(prepare, ["init"], check, first=first, step=step) > 5


def test_one_base_finishes_what_a_kill_left_of_another(project: Path, run_khms: Run, git: Git) -> None:
    """A repository keeps one intent for all bases in it."""
    for name in ("src", "."):
        assert run_khms("init", name, cwd=project).returncode == 0
    other, here = project / "src/.memory", project / ".memory"
    card = (
        "card",
        "new",
        "fact",
        "--title",
        "t",
        "--body",
        "-",
        "--evidence",
        "observed",
        "--source",
        "https://example.org",
    )
    finished = 0
    for at in range(20, 60, 3):
        before = git(project, "rev-parse", "HEAD")
        done = run_khms(*card, cwd=other, env={"KHMS_KILL_AT": str(at)}, input="words\n")
        assert run_khms("views", cwd=here).returncode == 0
        assert git(project, "status", "--porcelain").splitlines() == ["M src/main.py", "A  staged"]
        finished += git(project, "rev-parse", "HEAD") != before and done.returncode != 0
        assert not (here / "memory/inbox").exists()
    assert finished


def test_the_plan_reads_only(tmp_path: Path) -> None:
    plan = siting.plan(tmp_path / "new", named=True)
    assert (plan.kind, plan.fresh, plan.root) == ("new", True, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(Refused, match="a file stands"):
        siting.plan(tmp_path / "file", named=True)
