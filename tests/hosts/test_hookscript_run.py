"""khms's lines at work: run by real git, with a stand-in for khms that notes what it is asked and answers as told."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.hosts import hookscript

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Asked:
    """The stand-in: `said` are the command lines that it got (without those that only look whether khms is there),
    `received` what `audit --receive` read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "it's a python"
        self.program.write_text(
            '#!/bin/sh\nhere=$(dirname "$0")\n'
            'case "$*" in *-c*) [ ! -e "$here/gone" ]; exit ;; esac\n'
            'echo "$PWD $* index=${GIT_INDEX_FILE+set}" >> "$here/said"\n'
            'case "$*" in *--receive*) cat >> "$here/received" ;; esac\n'
            'case "$*" in *"$(cat "$here/refuse" 2>/dev/null || echo never)"*) echo "KA001 no"; exit 1 ;; esac\n',
            encoding="utf-8",
        )
        self.program.chmod(0o755)

    def lines(self, name: str, *bases: str) -> bytes:
        return hookscript.lines(name, bases, str(self.program))

    def refuse(self, word: str) -> None:
        (self.folder / "refuse").write_text(word, encoding="utf-8")

    def take(self, name: str = "said") -> list[str]:
        path = self.folder / name
        found = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    folder = tmp_path / "stand in"
    folder.mkdir()
    return Asked(folder)


@pytest.fixture
def project(tmp_path: Path, git: Callable[..., str]) -> Path:
    root = tmp_path / "project"
    git(tmp_path, "init", "--quiet", str(root))
    (root / ".memory").mkdir()
    return root


def hook(root: Path, name: str, script: bytes, folder: str = ".git/hooks") -> None:
    path = root / folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(script)
    path.chmod(0o755)


def put(root: Path, path: str, text: str = "x\n") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def commit(root: Path, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = ["git", "commit", "-m", "x", *args]
    environment = {**os.environ, **env}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, encoding="utf-8", check=False)


def test_only_what_touches_the_base_starts_khms(project: Path, asked: Asked, git: Callable[..., str]) -> None:
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".memory")))
    put(project, "code.py")
    git(project, "add", "--all")
    assert commit(project).returncode == 0 and asked.take() == [], "a first commit beside the base"
    put(project, ".memory/journal/day.md")
    git(project, "add", "--all")
    assert commit(project).returncode == 0
    lint, audit = asked.take()
    assert lint.startswith(f"{project} -P -m khms --quiet --root .memory lint --staged")
    assert audit.startswith(f"{project} -P -m khms --quiet --root .memory audit --staged")
    put(project, ".memory/journal/day.md", "changed, but not staged\n")
    put(project, "code.py", "print()\n")
    git(project, "add", "code.py")
    assert commit(project).returncode == 0 and asked.take() == []
    assert commit(project, "--all").returncode == 0 and all("index=set" in line for line in asked.take())
    git(project, "rm", "--quiet", ".memory/journal/day.md")
    assert commit(project).returncode == 0 and len(asked.take()) == 2, "a file that goes counts too"


@pytest.mark.parametrize("path", ["khms.toml", "src/KHMS.toml", "a/memory/know/K-00001.md", "src/.memory"])
def test_a_second_base_elsewhere_is_asked_about(
    project: Path, asked: Asked, git: Callable[..., str], path: str
) -> None:
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    assert commit(project).returncode == 0
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".memory")))
    put(project, path)
    git(project, "add", "--all")
    asked.refuse("audit")
    assert commit(project, GIT_LITERAL_PATHSPECS="1").returncode == 1 and len(asked.take()) == 2


def test_a_first_commit_of_a_base(project: Path, asked: Asked, git: Callable[..., str]) -> None:
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".")))
    put(project, "khms.toml")
    git(project, "add", "--all")
    asked.refuse("audit")
    done = commit(project)
    assert done.returncode == 1 and "KA001 no" in done.stderr
    assert len(asked.take()) == 2
    assert done.stderr.splitlines()[-1].endswith("to commit all the same: git commit --no-verify")
    assert commit(project, "--no-verify").returncode == 0 and asked.take() == []


@pytest.mark.parametrize(
    "theirs", [b"#!/bin/sh -eu\necho theirs >&2\nexec true\n", b"#!/bin/sh\necho theirs >&2\nexit 0\n"]
)
@pytest.mark.parametrize("word", ["lint", "audit"])
def test_each_of_the_two_refuses_and_both_are_asked(
    project: Path, asked: Asked, git: Callable[..., str], word: str, theirs: bytes
) -> None:
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    hook(project, "pre-commit", hookscript.put(theirs, asked.lines("pre-commit", ".memory")))
    asked.refuse(word)
    done = commit(project)
    assert done.returncode == 1 and "theirs" not in done.stderr and len(asked.take()) == 2
    asked.refuse("nothing")
    done = commit(project)
    assert done.returncode == 0 and "theirs" in done.stderr, "and then the hook's own lines run"


def test_their_own_refusal_still_counts(project: Path, asked: Asked, git: Callable[..., str]) -> None:
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    hook(project, "pre-commit", hookscript.put(b"#!/bin/sh\nexit 3\n", asked.lines("pre-commit", ".memory")))
    assert commit(project).returncode == 1 and len(asked.take()) == 2


def test_khmss_own_commit_is_not_checked_again(project: Path, asked: Asked, git: Callable[..., str]) -> None:
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".memory")))
    assert commit(project, KHMS_IN_GIT_HOOK="1").returncode == 0 and asked.take() == []


def test_two_bases_one_with_an_odd_name(project: Path, asked: Asked, git: Callable[..., str]) -> None:
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".memory", "odd *name")))
    put(project, ".memory/khms.toml")
    put(project, "odd *name/khms.toml")
    git(project, "add", "--all")
    assert commit(project).returncode == 0 and len(asked.take()) == 4
    git(project, "rm", "-r", "--quiet", ".memory")
    assert commit(project).returncode == 0 and len(asked.take()) == 2, "a base that is taken away whole"
    put(project, "odd other name", "no base of ours, though a pattern would match it\n")
    git(project, "add", "--all")
    assert commit(project).returncode == 0 and asked.take() == []
    put(project, "odd *name/khms.toml", "changed\n")
    git(project, "add", "--all")
    asked.refuse("audit")
    assert commit(project).returncode == 1 and len(asked.take()) == 2, "the second is asked where the first rests"


def test_in_a_linked_work_tree_it_is_that_trees_base(
    project: Path, asked: Asked, git: Callable[..., str], tmp_path: Path
) -> None:
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".memory")))
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    commit(project)
    asked.take()
    tree = tmp_path / "tree"
    git(project, "worktree", "add", "--quiet", str(tree))
    put(tree, ".memory/khms.toml", "changed\n")
    git(tree, "add", "--all")
    done = commit(tree / ".memory")
    assert done.returncode == 0 and [line.split(" -P")[0] for line in asked.take()] == [str(tree)] * 2


@pytest.mark.parametrize("gone", ["khms", "python"])
def test_without_khms_nothing_is_committed_and_one_line_says_how_to_go_on(
    project: Path, asked: Asked, git: Callable[..., str], gone: str
) -> None:
    hook(project, "pre-commit", hookscript.alone(asked.lines("pre-commit", ".memory")))
    put(project, "code.py")
    git(project, "add", "--all")
    if gone == "khms":
        (asked.folder / "gone").touch()
    else:
        asked.program.unlink()
    assert commit(project).returncode == 0, "what is beside the base goes on"
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    done = commit(project)
    (told,) = done.stderr.splitlines()
    assert done.returncode == 1 and told.startswith("khms: nothing was checked, khms is gone from here")
    assert "khms hook install git" in told and "git commit --no-verify" in told and ".git/hooks/pre-commit" in told


def test_a_tracked_hook_takes_khms_from_the_path(project: Path, asked: Asked, git: Callable[..., str]) -> None:
    hook(project, "pre-commit", hookscript.alone(hookscript.lines("pre-commit", (".memory",), "")))
    put(project, ".memory/khms.toml")
    git(project, "add", "--all")
    (asked.folder / "khms").symlink_to(asked.program)
    path = f"{asked.folder}{os.pathsep}/usr/bin{os.pathsep}/bin"
    assert commit(project, PATH=path).returncode == 0
    assert asked.take()[0].startswith(f"{project} --quiet --root .memory lint --staged")
    put(project, ".memory/khms.toml", "more\n")
    git(project, "add", "--all")
    done = commit(project, PATH="/usr/bin:/bin")
    assert done.returncode == 1 and "khms is gone from here" in done.stderr


def test_a_folder_named_khms_is_not_run(project: Path, git: Callable[..., str]) -> None:
    """Python's -m takes a package from the current folder first; a repository must not bring its own khms."""
    import sys

    put(project, "khms/__init__.py", "raise SystemExit('theirs')\n")
    put(project, "khms/__main__.py", "open('was-run', 'w')\n")
    put(project, ".memory/khms.toml", "")
    git(project, "add", "--all")
    hook(project, "pre-commit", hookscript.alone(hookscript.lines("pre-commit", (".memory",), sys.executable)))
    done = commit(project)
    assert "theirs" not in done.stderr and "gone" not in done.stderr and not (project / "was-run").exists()


@pytest.fixture
def server(tmp_path: Path, project: Path, git: Callable[..., str]) -> Path:
    bare = tmp_path / "srv.git"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    put(project, "file")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--no-verify", "-m", "one")
    git(project, "branch", "other")
    git(project, "remote", "add", "origin", str(bare))
    return bare


def push(project: Path, *refs: str) -> "subprocess.CompletedProcess[str]":
    command = ["git", "push", "origin", *refs]
    return subprocess.run(command, cwd=project, capture_output=True, encoding="utf-8", check=False)


def test_both_khms_and_the_hooks_own_lines_read_the_refs(
    project: Path, server: Path, asked: Asked, git: Callable[..., str]
) -> None:
    theirs = b'#!/bin/sh\nwhile read old new ref; do echo "$old $new $ref" >> theirs; done\nexit 0\n'
    hook(server, "pre-receive", hookscript.put(theirs, asked.lines("pre-receive")), "hooks")
    done = push(project, "main", "other")
    assert done.returncode == 0, done.stderr
    (said,) = asked.take()
    assert said.startswith(f"{server} -P -m khms --quiet audit --receive")
    tip = git(project, "rev-parse", "main")
    rows = [f"{'0' * 40} {tip} refs/heads/{name}" for name in ("main", "other")]
    assert asked.take("received") == rows
    assert (server / "theirs").read_text(encoding="utf-8").splitlines() == rows


def test_many_refs_and_the_hooks_own_refusal(
    project: Path, server: Path, asked: Asked, git: Callable[..., str]
) -> None:
    """More than a pipe holds, and a name that a shell would take for a command."""
    tip = git(project, "rev-parse", "HEAD")
    names = [f"refs/heads/a-rather-long-name/of-a-branch/$(touch${{IFS}}pwned)`x`/{i:04}" for i in range(1200)]
    updates = "".join(f"create {name} {tip}\n" for name in names)
    subprocess.run(["git", "update-ref", "--stdin"], cwd=project, input=updates, encoding="utf-8", check=True)
    theirs = b"#!/bin/sh\ncount=$(wc -l)\necho got $count >&2\nexit 1\n"
    hook(server, "pre-receive", hookscript.put(theirs, asked.lines("pre-receive")), "hooks")
    done = push(project, "--all")
    assert done.returncode != 0 and "got 1202" in done.stderr and len(asked.take("received")) == 1202
    assert git(server, "for-each-ref") == "" and not list(server.parent.rglob("pwned"))


def test_a_refused_push_changes_nothing_and_without_khms_none_is_taken(
    project: Path, server: Path, asked: Asked, git: Callable[..., str]
) -> None:
    hook(server, "pre-receive", hookscript.alone(asked.lines("pre-receive")), "hooks")
    asked.refuse("audit")
    done = push(project, "main")
    assert done.returncode != 0 and "KA001 no" in done.stderr and "nothing of it was taken" in done.stderr
    assert git(server, "for-each-ref") == ""
    asked.refuse("nothing")
    (asked.folder / "gone").touch()
    done = push(project, "main")
    assert done.returncode != 0 and "khms is gone from this server" in done.stderr
    assert git(server, "for-each-ref") == ""


def test_no_variable_of_the_one_who_pushes_switches_the_server_off(
    project: Path, server: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(server, "pre-receive", hookscript.alone(asked.lines("pre-receive")), "hooks")
    asked.refuse("audit")
    for name in ("KHMS_IN_GIT_HOOK", "KHMS_HOOKS_OFF"):
        monkeypatch.setenv(name, "1")
    assert push(project, "main").returncode != 0 and len(asked.take()) == 1
