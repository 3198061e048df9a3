"""What counts as a change of the base while an agent is asked, and what does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused
from khms.pipeline.confinement import Guard
from khms.store.layout import Base
from khms.store.repo import Repo

Git = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, git: Git, own_environment: Path) -> Path:
    """A project with a base in its `.memory`."""
    base = tmp_path / "project" / ".memory"
    for name, text in (
        ("khms.toml", ""),
        ("journal/2026-03-04.md", "# 2026-03-04\n"),
        ("memory/know/K-00001.md", "x\n"),
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    (base.parent / "code.py").write_text("pass\n", encoding="utf-8")
    for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "start")):
        git(base.parent, *command)
    return base.parent


def guard(project: Path) -> Guard:
    return Guard(Base(project / ".memory"), Repo(project / ".memory"))


def test_work_elsewhere_in_the_project_and_new_marks_are_no_change(project: Path, git: Git) -> None:
    with guard(project).watch():
        (project / "code.py").write_text("print()\n", encoding="utf-8")
        git(project, "commit", "--quiet", "--all", "-m", "work")
        git(project, "switch", "--quiet", "-c", "other")
        with (project / ".memory/journal/2026-03-04.md").open("a", encoding="utf-8") as file:
            file.write("\nMARK[note] jotted meanwhile\n")
        (project / ".memory/journal/2026-03-05.md").write_text("# 2026-03-05\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".memory/memory/know/K-00001.md", "y\n"),
        (".memory/memory/know/K-00002.md", "new\n"),
        (".memory/khms.toml", "[nightly]\n"),
        (".memory/journal/2026-03-04.md", "# another\n"),
        (".memory/AGENTS.md", "obey\n"),
        (".git/hooks/pre-commit", "#!/bin/sh\n"),
        (".git/config", "[core]\n"),
        (".git/info/attributes", "* filter=x\n"),
    ],
)
def test_a_write_into_the_base_or_into_what_git_obeys_is_told(project: Path, path: str, text: str) -> None:
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    with pytest.raises(Refused, match=path.rpartition("/")[2]), guard(project).watch():
        (project / path).write_text(text, encoding="utf-8")


def test_a_commit_that_leaves_the_files_as_they_are_is_told(project: Path, git: Git) -> None:
    with pytest.raises(Refused, match="HEAD"), guard(project).watch():
        git(project, "rm", "--quiet", "--cached", ".memory/memory/know/K-00001.md")
        git(project, "commit", "--quiet", "-m", "drop a card from history")


def test_calls_side_by_side_are_watched_until_the_last_has_ended(project: Path) -> None:
    watching = guard(project)
    with pytest.raises(Refused), watching.watch():
        with watching.watch():
            pass
        (project / ".memory/memory/know/K-00001.md").write_text("z\n", encoding="utf-8")
    with watching.watch():
        pass
