"""`khms lint` as a person, a program and a hook call it."""

import json
import os
import sys
from pathlib import Path

KHMS = Path(sys.executable).parent / "khms"


def test_findings_stand_under_their_file_and_an_error_exits_1(base, add_card, run_khms) -> None:
    add_card(base, "K-00001", level="obs")
    add_card(base, "K-00002")
    done = run_khms("lint")
    assert done.returncode == 1 and done.stderr == ""
    lines = done.stdout.splitlines()
    at = lines.index("memory/know/K-00001.md")
    assert any("4  error   KH001  `level` must be observation" in line for line in lines[at:])
    assert lines[-1].endswith("checked: 1 error, 2 warnings")


def test_warnings_alone_exit_0(base, add_card, run_khms) -> None:
    add_card(base)
    done = run_khms("lint")
    assert done.returncode == 0 and "1 warning" in done.stdout


def test_nothing_wrong(base, run_khms) -> None:
    done = run_khms("lint")
    assert (done.returncode, done.stdout) == (0, "3 files checked: nothing wrong\n")


def test_json_is_one_document(base, add_card, run_khms) -> None:
    add_card(base, level="obs")
    done = run_khms("lint", "--json")
    value = json.loads(done.stdout)
    assert done.returncode == 1
    assert (value["schema"], value["checked"]) == ("khms.lint/1", 4)
    assert all(
        list(finding) == ["code", "severity", "path", "line", "message", "mend"] for finding in value["findings"]
    )
    assert {(f["code"], f["severity"], f["path"]) for f in value["findings"]} == {
        ("KH001", "error", "memory/know/K-00001.md"),
        ("KH010", "warning", "memory/know/K-00001.md"),
    }


def test_a_warning_that_many_files_share_is_shown_once(base, add_card, run_khms) -> None:
    for number in range(1, 8):
        add_card(base, f"K-{number:05d}")
    done = run_khms("lint")
    assert done.stdout.count("KH010") == 1 and "7 files: memory/know/K-00001.md" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("checked: 7 warnings")


def test_paths_count_from_here_or_from_the_base(base, add_card, run_khms) -> None:
    add_card(base, level="obs")
    for cwd, path in (
        (base.root, "memory/know/K-00001.md"),
        (base.root / "memory", "know"),
        (base.root / "memory", "memory/know/K-00001.md"),
        (base.root.parent, base.root / "memory/know/K-00001.md"),
    ):
        done = run_khms("--root", base.root, "lint", path, cwd=cwd)
        assert done.returncode == 1 and "1 file checked" in done.stdout


def test_paths_that_are_not_there_or_not_in_the_base(base, write, run_khms) -> None:
    outside = write(base.root.parent, "outside.md", "x")
    (base.root / "door").symlink_to("..")
    for path in ("none.md", outside, "../outside.md", "door/outside.md"):
        done = run_khms("lint", path)
        assert done.returncode == 3 and done.stderr.startswith("khms: "), path
    done = run_khms("lint", "door")
    assert done.returncode == 1 and "KH015" in done.stdout


def test_a_broken_configuration_is_a_finding(base, add_card, write, run_khms) -> None:
    write(base, "khms.toml", "[lint]\nmax_byte = 3\n")
    add_card(base, level="obs")
    done = run_khms("lint")
    assert done.returncode == 1 and done.stderr == ""
    assert "did you mean lint.max_bytes?" in done.stdout and "K-00001.md" in done.stdout


def test_control_characters_do_not_reach_the_terminal(base, write, run_khms) -> None:
    write(base, "memory/know/K-00001\x1b[31m.md", "---\nid: \x1b[31mred\n---\n")
    done = run_khms("lint")
    assert done.returncode == 1 and "\x1b" not in done.stdout


def test_a_base_that_is_no_repository(base, add_card, git, run_khms) -> None:
    add_card(base, level="obs")
    (base.root / ".git").rename(base.root.parent / "moved")
    assert run_khms("lint").returncode == 1
    assert run_khms("lint", "--staged").returncode == 4


def test_no_base(tmp_path, run_khms) -> None:
    done = run_khms("lint", cwd=tmp_path)
    assert done.returncode == 4 and "khms init" in done.stderr


def test_the_generated_files_of_the_receiving_branch(base, add_card, git, commit, run_khms) -> None:
    add_card(base)
    assert run_khms("views").returncode == 0
    commit(base)
    assert "KH016" not in run_khms("lint").stdout
    memory = base.root / "MEMORY.md"
    memory.write_text(memory.read_text(encoding="utf-8") + "by hand\n", encoding="utf-8")
    done = run_khms("lint")
    assert done.returncode == 0 and "KH016" in done.stdout and "khms views" in done.stdout
    (base.root / "khms.toml").write_text('[git]\nbranch = "trunk"\n', encoding="utf-8")
    assert "KH016" not in run_khms("lint").stdout


def test_as_a_hook_of_git_it_sees_what_would_be_committed(base, add_card, git) -> None:
    """Also for `git commit FILE`, which shows its hook an index of its own."""
    import subprocess

    hook = base.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec '{KHMS}' lint --staged\n", encoding="utf-8")
    hook.chmod(0o755)
    fine = add_card(base, "K-00001")
    git(base, "add", "--all")
    git(base, "commit", "--quiet", "-m", "a sound card")
    bad = add_card(base, "K-00002", level="obs")
    fine.write_text(fine.read_text(encoding="utf-8") + "more\n", encoding="utf-8")

    def commit(*args: str) -> "subprocess.CompletedProcess[str]":
        command = ["git", "commit", "--quiet", "-m", "x", *args]
        return subprocess.run(command, cwd=base.root, capture_output=True, encoding="utf-8", env=os.environ.copy())

    git(base, "add", "--all")
    assert commit().returncode != 0 and commit("--all").returncode != 0
    assert commit("memory/know/K-00002.md").returncode != 0
    assert commit("memory/know/K-00001.md").returncode == 0
    assert bad.exists() and git(base, "log", "--format=%s").split("\n")[0] == "x"
