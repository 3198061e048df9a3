"""What looks like a secret anywhere in history is found where it came in, and only what history holds."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Unavailable
from khms.measure import secrets
from khms.store import past
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
Git = Callable[..., str]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
KEY = "AKIA" + "Q3EGRTY7XPLM2WVN"
TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


def test_a_clean_history(base: Base, run_khms: Run) -> None:
    done = run_khms("doctor", "--secrets")
    assert (done.returncode, "nothing looks like a secret" in done.stdout) == (0, True)


def test_a_secret_that_was_taken_out_is_found_where_it_came_in(base: Base, write: Make, commit: Git) -> None:
    write(base, "journal/2026-03-05.md", f"first\nkey {KEY}\n")
    came = commit(base, "it comes in")
    write(base, "journal/2026-03-05.md", f"first\nkey {KEY}\nand more\n")
    commit(base, "it stays")
    write(base, "journal/2026-03-05.md", "first\n")
    commit(base, "it goes")
    found = secrets.scan(Repo(base.root)).leaks
    assert {(leak.path, leak.line, leak.id, leak.here) for leak in found} == {
        ("journal/2026-03-05.md", 2, "aws-key", False)
    }
    assert came in {leak.commit for leak in found} and len(found) == 2  # each content of the file
    assert all(KEY not in leak.snippet for leak in found)


def test_one_on_another_branch_in_a_merge_a_tag_and_a_message(base: Base, write: Make, commit: Git, git: Git) -> None:
    git(base, "checkout", "-q", "-b", "side")
    write(base, "side.txt", f"{KEY}\n")
    commit(base, "side")
    git(base, "checkout", "-q", "main")
    commit(base, f"a message with {TOKEN}")
    git(base, "tag", "-a", "v1", "-m", f"tagged {TOKEN}x")
    git(base, "merge", "-q", "--no-commit", "--no-ff", "side")
    write(base, "merged.txt", f"only here {KEY[:-1]}Q\n")
    commit(base, "merged")
    found = {(leak.path, leak.id) for leak in secrets.scan(Repo(base.root)).leaks}
    assert found == {("side.txt", "aws-key"), ("merged.txt", "aws-key"), ("", "github-token")}
    assert sum(leak.path == "" for leak in secrets.scan(Repo(base.root)).leaks) == 2


def test_a_signature_is_no_secret(base: Base, write: Make, git: Git, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    git(
        base,
        "-c",
        "gpg.format=ssh",
        "-c",
        f"user.signingkey={key}",
        "commit",
        "-q",
        "-S",
        "--allow-empty",
        "-m",
        "signed",
    )
    git(base, "-c", "gpg.format=ssh", "-c", f"user.signingkey={key}", "tag", "-s", "v1", "-m", "signed")
    assert secrets.scan(Repo(base.root)).leaks == ()


def test_a_base_in_a_folder_looks_at_its_own_files(tmp_path: Path, write: Make, git: Git, commit: Git) -> None:
    write(tmp_path / "project", "src/app.py", f"KEY = '{KEY}'\n")
    write(tmp_path / "project", ".memory/khms.toml", "")
    write(tmp_path / "project", ".memory/journal/2026-03-04.md", f"{KEY}\n")
    git(tmp_path / "project", "init", "-q")
    commit(tmp_path / "project")
    (leak,) = secrets.scan(Repo((tmp_path / "project/.memory").resolve())).leaks
    assert leak.path == "journal/2026-03-04.md"


def test_contents_come_in_portions_and_each_once(
    base: Base, write: Make, commit: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        write(base, f"notes/{number}.md", f"note {number}\n" * 50)
        write(base, f"notes/copy-{number}.md", f"note {number}\n" * 50)
    commit(base)
    monkeypatch.setattr(past, "PORTION", 900)
    repo = Repo(base.root)
    listed = past.listed(repo)
    got = list(past.contents(repo, listed))
    assert [one.id for one, _ in got] == [one.id for one in listed]
    assert sum(data.startswith(b"note ") for _, data in got) == 7
    assert all(len(data) == one.size for one, data in got)


def test_what_is_too_large_is_named(base: Base, write: Make, commit: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    write(base, "large.txt", "word " * 1000)
    commit(base)
    monkeypatch.setattr(past, "LARGEST", 2000)
    monkeypatch.setattr(secrets, "LARGEST", 2000)
    assert secrets.scan(Repo(base.root)).large == ("large.txt",)


def test_a_history_cut_short_is_not_called_clean(base: Base, git: Git, commit: Git, tmp_path: Path) -> None:
    commit(base)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{base.root}", "short")
    with pytest.raises(Unavailable, match="cut short"):
        secrets.scan(Repo((tmp_path / "short").resolve()))


def test_the_command_says_where_and_exits_with_1(base: Base, write: Make, commit: Git, run_khms: Run) -> None:
    write(base, "leak.txt", f"x\n{KEY}\n")
    commit(base)
    done = run_khms("doctor", "--secrets")
    assert done.returncode == 1 and "leak.txt:2: aws-key" in done.stdout and KEY not in done.stdout
    said = json.loads(run_khms("doctor", "--secrets", "--json").stdout)
    assert said["schema"] == "khms.secrets/1"
    assert [(f["path"], f["line"], f["here"]) for f in said["findings"]] == [("leak.txt", 2, True)]
    assert run_khms("doctor", "--secrets", "--repair").returncode == 2
