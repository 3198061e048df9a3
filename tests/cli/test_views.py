"""`khms views`: only on the receiving branch, only our files, and no card silently missing."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_it_writes_what_differs_and_removes_what_is_stale(
    base: Base, run_khms: Run, add_card: Callable[..., Path], git: Callable[..., str]
) -> None:
    add_card(base, tags=["old"])
    assert json.loads(run_khms("views", "--json").stdout)["written"] == [
        "MEMORY.md",
        "memory/views/tags.md",
        "memory/views/recent.md",
        "memory/views/topics/old.md",
    ]
    add_card(base, tags=["new"])
    found = json.loads(run_khms("views", "--json").stdout)
    assert found["removed"] == ["memory/views/topics/old.md"]
    assert "memory/views/topics/new.md" in found["written"] and "MEMORY.md" not in found["written"]
    assert found["local"] == [f".khms/views/{name}.md" for name in ("condense", "graph", "scopes", "types")]
    assert all(base.path(path).is_file() for path in found["local"])
    assert "0 changed; 4 in .khms/views" in run_khms("views").stdout
    assert git(base, "log", "--oneline").count("\n") == 0


def test_only_on_the_branch_that_receives_approvals(
    base: Base, run_khms: Run, commit: Callable[..., str], git: Callable[..., str]
) -> None:
    base.config.write_text('[git]\nbranch = "main"\n', encoding="utf-8")
    commit(base)
    git(base, "switch", "--quiet", "--create", "topic")
    done = run_khms("views")
    assert done.returncode == 3 and "git switch main" in done.stderr
    assert not base.path("MEMORY.md").exists()


def test_a_card_that_cannot_be_read_is_named(base: Base, run_khms: Run, write: Callable[..., Path]) -> None:
    write(base, "memory/know/K-00009.md", "---\nid: [\n---\n")
    done = run_khms("views")
    assert done.returncode == 1 and "memory/know/K-00009.md" in done.stderr
    assert base.path("MEMORY.md").is_file()


def test_it_never_writes_through_a_link(base: Base, tmp_path: Path, run_khms: Run) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    base.path("memory/views").symlink_to(outside)
    done = run_khms("views")
    assert done.returncode == 3 and list(outside.iterdir()) == [], done


def test_a_graph_is_drawn_in_one_form(base: Base, run_khms: Run) -> None:
    for forms in (["--dot", "--json"], ["--dot", "--mermaid"], ["--json", "--mermaid"]):
        done = run_khms("graph", *forms)
        assert (done.returncode, done.stdout) == (2, "") and "name one of them" in done.stderr
    for form, begins in (("--dot", "digraph"), ("--mermaid", "flowchart"), ("--json", "{")):
        done = run_khms("graph", form)
        assert done.returncode == 0 and begins in done.stdout.splitlines()[0], form
