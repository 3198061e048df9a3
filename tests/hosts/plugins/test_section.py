"""khms's section in AGENTS.md: it comes, is renewed in its place and goes, and no other byte moves."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.errors import KhmsError, Refused, Unavailable
from khms.hosts.plugins import contents, section

Run = Callable[..., "subprocess.CompletedProcess[str]"]
pieces = st.lists(
    st.sampled_from(["a", "\n", "\r\n", "\r", " ", "# Title", "ä", "<!-- x -->", "\x0b", "---"]), max_size=12
)
text = st.builds(lambda mark, parts: (mark + "".join(parts)).encode(), st.sampled_from(["", "\ufeff"]), pieces)


@given(text)
def test_what_was_put_in_comes_out_without_a_trace(data: bytes) -> None:
    once = section.put(data, b"one\ntwo\n")
    assert once.startswith(data) and once.count(section.BEGIN) == once.count(section.END) == 1
    assert section.put(once, b"one\ntwo\n") == once
    assert section.take(once) == data


@given(text, text)
def test_a_section_is_renewed_where_it_stands(before: bytes, after: bytes) -> None:
    put = section.put(before, b"old\n") + b"\n" + after.removeprefix(b"\xef\xbb\xbf")
    head, _, rest = put.partition(section.BEGIN)
    _, _, tail = rest.partition(section.END)
    new = section.put(put, b"new\nlonger\n")
    assert new.startswith(head + section.BEGIN) and new.endswith(section.END + tail)
    assert b"longer" in new and b"old" not in new


def test_line_ends_are_those_of_the_file() -> None:
    new = section.put(b"# Ours\r\n", b"one\ntwo\n")
    assert new.count(b"\n") == new.count(b"\r\n") == 6 and section.take(new) == b"# Ours\r\n"


@pytest.fixture
def project(tmp_path: Path, git: Callable[..., str]) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


BROKEN = (
    (section.BEGIN + b"\n", 1),
    (b"text\n" + section.END + b"\n", 2),
    (section.END + b"\n" + section.BEGIN + b"\n", 1),
    (section.BEGIN + b"\n" + section.END + b"\n" + section.BEGIN + b"\n" + section.END + b"\n", 3),
    (b"\xef\xbb\xbf" + section.BEGIN + b"\n" + section.END + b"\n" + section.END, 3),
    (b"fine\n\xff\xfe\n", 2),
)


@pytest.mark.parametrize(("data", "line"), BROKEN)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(project: Path, data: bytes, line: int) -> None:
    file = project / "AGENTS.md"
    file.write_bytes(data)
    for call in (section.install, section.uninstall, section.status):
        with pytest.raises(Refused) as error:
            call(project)
        assert error.value.where == f"{file}:{line}" and error.value.hint
    assert file.read_bytes() == data


def test_a_link_is_followed_inside_the_project_only(project: Path, tmp_path: Path) -> None:
    (project / "CLAUDE.md").write_text("ours\n", encoding="utf-8")
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    assert section.install(project).done == "written"
    assert (project / "AGENTS.md").is_symlink() and section.BEGIN in (project / "CLAUDE.md").read_bytes()
    assert section.uninstall(project).done == "taken out"
    assert (project / "CLAUDE.md").read_text(encoding="utf-8") == "ours\n"

    (project / "AGENTS.md").unlink()
    (tmp_path / "elsewhere.md").write_text("theirs\n", encoding="utf-8")
    (project / "AGENTS.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(KhmsError):
        section.install(project)
    assert (tmp_path / "elsewhere.md").read_text(encoding="utf-8") == "theirs\n"


def test_a_read_only_file_stays_as_it_is(project: Path) -> None:
    file = project / "AGENTS.md"
    file.write_text("ours\n", encoding="utf-8")
    file.chmod(0o444)
    with pytest.raises(Unavailable):
        section.install(project)
    assert file.read_text(encoding="utf-8") == "ours\n"
    file.chmod(0o640)
    section.install(project)
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_base_that_says_it_itself_gets_no_section(tmp_path: Path, run_khms: Run) -> None:
    where = tmp_path / "notes"
    assert run_khms("init", where, "--agents-md", cwd=tmp_path).returncode == 0
    said = (where / "AGENTS.md").read_bytes()
    assert section.BEGIN not in said and section.status(where).done == "own"
    done = run_khms("hook", "install", "agents-md", cwd=where)
    assert done.returncode == 0 and "all of it already" in done.stdout
    assert (where / "AGENTS.md").read_bytes() == said


def test_from_init_to_uninstall_in_a_project(project: Path, run_khms: Run, git: Callable[..., str]) -> None:
    file = project / "AGENTS.md"
    file.write_text("# House rules\n\nBe kind.", encoding="utf-8")
    (project / "src").mkdir()
    (project / "main.c").write_text("int main;\n", encoding="utf-8")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "-m", "a project")

    done = run_khms("init", "--agents-md", cwd=project)
    assert done.returncode == 0, done.stderr
    assert (project / ".memory/khms.toml").is_file()
    first = file.read_bytes()
    assert first.startswith(b"# House rules\n\nBe kind.\n\n<!-- begin khms") and contents.section().strip() in first
    assert git(project, "status", "--porcelain") == "M AGENTS.md", "it is the person's to commit"

    for again in (("init", "--agents-md"), ("hook", "install", "agents-md")):
        for where in (project, project / "src", project / ".memory"):
            if again[0] == "init" and where != project:
                continue
            done = run_khms(*again, cwd=where)
            assert done.returncode == 0 and "unchanged" in done.stdout, done.stdout + done.stderr
            assert file.read_bytes() == first

    file.write_bytes(first.replace(b"REFUTED is", b"of an older khms") + b"\nAfter.\n")
    found = json.loads(run_khms("hook", "status", "agents-md", "--json", cwd=project).stdout)["guards"][0]
    assert found["installed"] and "install again" in found["problems"][0]
    assert run_khms("hook", "install", "agents-md", cwd=project).returncode == 0
    assert file.read_bytes() == first + b"\nAfter.\n"

    file.write_bytes(first)
    assert run_khms("hook", "uninstall", "agents-md", cwd=project).returncode == 0
    assert file.read_text(encoding="utf-8") == "# House rules\n\nBe kind."
    done = run_khms("hook", "uninstall", "agents-md", cwd=project)
    assert done.returncode == 0 and "no section" in done.stdout


def test_a_file_made_for_it_goes_with_it(project: Path, run_khms: Run) -> None:
    assert run_khms("hook", "install", "agents-md", cwd=project).returncode == 0
    assert (project / "AGENTS.md").is_file()
    assert run_khms("hook", "uninstall", "agents-md", cwd=project).returncode == 0
    assert not (project / "AGENTS.md").exists()


def test_claude_is_named_where_it_would_not_read_the_section(project: Path, run_khms: Run) -> None:
    (project / "CLAUDE.md").write_text("Only this.\n", encoding="utf-8")
    done = run_khms("hook", "install", "agents-md", cwd=project)
    assert done.returncode == 0 and "@AGENTS.md" in done.stderr
    (project / "CLAUDE.md").write_text("@AGENTS.md\n", encoding="utf-8")
    assert "@AGENTS.md" not in run_khms("hook", "install", "agents-md", cwd=project).stderr
    (project / "CLAUDE.md").unlink()
    os.link(project / "AGENTS.md", project / "CLAUDE.md")
    assert "@AGENTS.md" not in run_khms("hook", "install", "agents-md", cwd=project).stderr
