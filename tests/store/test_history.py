"""Git's history as values: what is listed, what is not hidden, where it works."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused, Unavailable
from khms.store import history
from khms.store.history import Change, Tree
from khms.store.layout import Base
from khms.store.repo import Repo, receiving

Git = Callable[..., str]
Write = Callable[..., Path]
Commit = Callable[..., str]


def paths(changes: object) -> list[str]:
    return [change.path for change in changes]  # type: ignore[attr-defined]


def test_every_commit_is_listed_parents_first(base: Base, write: Write, commit: Commit, git: Git) -> None:
    first = git(base, "rev-parse", "HEAD")
    write(base, "memory/know/a name, ü\n2.md", "one\n")
    second = commit(base)
    log = history.log(Repo(base.root), "", second)
    assert [held.id for held in log.commits] == [first, second]
    assert log.commits[0].parents == () and "khms.toml" in paths(log.commits[0].changes)
    (change,) = log.commits[1].changes
    assert change.path == "memory/know/a name, ü\n2.md" and change.old is None
    assert history.blobs(Repo(base.root), [change.new or ""]) == {change.new: b"one\n"}


def test_a_path_that_looks_like_output(base: Base, write: Write, commit: Commit) -> None:
    name = "memory/\x01:100644 A"
    write(base, name, "x")
    tip = commit(base)
    assert paths(history.log(Repo(base.root), "", tip).commits[-1].changes) == [name]


def test_a_merge_lists_what_it_did_itself(base: Base, write: Write, commit: Commit, git: Git) -> None:
    git(base, "switch", "--quiet", "-c", "side")
    write(base, "a.md", "side\n")
    commit(base)
    git(base, "switch", "--quiet", "main")
    write(base, "b.md", "main\n")
    ours = commit(base)
    git(base, "merge", "--quiet", "--no-commit", "--no-ff", "side")
    write(base, "a.md", "neither\n")
    tip = commit(base)
    log = history.log(Repo(base.root), "", tip)
    assert paths(log.commits[-1].changes) == ["a.md"] and log.commits[-1].changes[0].old is None
    assert [held.id for held in log.mainline()][-2:] == [ours, tip]
    line, brought = log.arrivals()[-1]
    assert line.id == tip and [paths(held.changes) for held in brought] == [["a.md"], ["a.md"]]
    assert [held.id for held in history.log(Repo(base.root), "", tip, ours).commits][-1] == tip


def test_a_tree_a_staging_area_and_what_differs(base: Base, write: Write, commit: Commit, git: Git) -> None:
    write(base, "memory/know/K-1.md", "one\n")
    old = commit(base)
    write(base, "memory/know/K-1.md", "two\n")
    write(base, "memory/know/K-2.md", "new\n")
    git(base, "add", "--all")
    repo = Repo(base.root)
    assert Tree(repo, "", old).read("memory/know/K-1.md", "nothing") == {"memory/know/K-1.md": b"one\n"}
    assert Tree(repo, "").read("memory/know/K-1.md") == {"memory/know/K-1.md": b"two\n"}
    staged = history.staged(repo, repo.prefix)
    assert paths(staged) == ["memory/know/K-1.md", "memory/know/K-2.md"]
    new = commit(base)
    assert history.between(repo, "", old, new) == staged
    assert history.between(repo, "memory/know/", new, old)[1] == Change("K-2.md", staged[1].new, None, history.GONE)
    assert paths(history.between(repo, "", history.empty_tree(repo), new))[-1] == "memory/know/K-2.md"
    found = history.at(repo, [f"{old}:memory/know/K-1.md", f"{old}:memory/know/K-2.md"])
    assert found == {f"{old}:memory/know/K-1.md": staged[0].old}


def test_below_a_prefix(base: Base, write: Write, commit: Commit, git: Git) -> None:
    write(base, "sub dir/base/memory/know/K-1.md", "one\n")
    write(base, "sub dir/base2/memory/know/K-2.md", "two\n")
    tip = commit(base)
    for repo in (Repo(base.root), Repo(base.root / "sub dir/base")):
        assert paths(history.log(repo, "sub dir/base/", tip).commits[-1].changes) == ["memory/know/K-1.md"]
        assert list(Tree(repo, "sub dir/base/", tip).listing("memory/know")) == ["memory/know/K-1.md"]
        assert list(Tree(repo, "sub dir/base/", tip).listing()) == ["memory/know/K-1.md"]
        assert paths(history.between(repo, "sub dir/base/", tip + "~1", tip)) == ["memory/know/K-1.md"]
    inner = Repo(base.root / "sub dir/base")
    assert list(Tree(inner, inner.prefix).listing("memory/know")) == ["memory/know/K-1.md"]
    assert history.own_bases(Repo(base.root), tip) == ["", "sub dir/base/", "sub dir/base2/"]


def test_a_bare_repository_and_its_quarantine(base: Base, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(base.root), "bare.git")
    bare = tmp_path / "bare.git"
    repo = Repo(bare)
    assert repo.folder == bare and repo.common == bare
    with pytest.raises(Unavailable, match="bare"):
        repo.top  # noqa: B018
    tip = git(base, "rev-parse", "HEAD")
    assert "khms.toml" in Tree(repo, "", tip).listing()
    quarantine = tmp_path / "incoming"
    quarantine.mkdir()
    env = {
        "GIT_DIR": ".",
        "GIT_OBJECT_DIRECTORY": str(quarantine),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(bare / "objects"),
    }
    held = receiving(bare, env)
    blob = held.run("hash-object", "-w", "--stdin", stdin=b"pushed\n").decode().strip()
    assert (quarantine / blob[:2] / blob[2:]).exists(), "git wrote where the hook's variables lead"
    assert history.blobs(held, [blob]) == {blob: b"pushed\n"} and history.blobs(repo, [blob]) == {}
    assert "GIT_OBJECT_DIRECTORY" not in os.environ


def test_shallow_is_refused_and_missing_names_are_named(base: Base, tmp_path: Path, git: Git, commit: Commit) -> None:
    commit(base)
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{base.root}", "shallow")
    with pytest.raises(Unavailable) as caught:
        history.demand_deep(Repo(tmp_path / "shallow"))
    assert caught.value.exit_code == 4
    history.demand_deep(Repo(base.root))
    for name in ("nothing", "--help", "HEAD:khms.toml"):
        with pytest.raises(Refused, match="there is no commit"):
            history.resolved(Repo(base.root), name)
    assert history.is_zero("0" * 40) and history.is_zero("0" * 64) and not history.is_zero("1" * 40)
