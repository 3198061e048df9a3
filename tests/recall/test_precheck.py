"""What is said before a risky action."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms import config
from khms.errors import Refused, Unavailable
from khms.index import sync
from khms.recall.precheck import Known, precheck
from khms.store.layout import Base

Add = Callable[..., Path]


@pytest.fixture
def warned(base: Base, add_card: Add) -> Base:
    """Cards of the tags git and migration, of every kind that counts and of some that do not."""
    add_card(base, "K-00001", type="policy", level="derived", title="Never force-push main", tags=["git"])
    add_card(base, "K-00002", title="The hook wants a name", tags=["git", "gotcha"], date="2026-01-01")
    add_card(base, "K-00003", title="Rebase keeps the dates", tags=["Git"], status="challenged")
    add_card(
        base,
        "K-00004",
        title="Reset is harmless",
        tags=["git", "migration"],
        status="refuted",
        links={"refuted_by": ["K-00005"]},
    )
    add_card(base, "K-00005", title="A hard reset lost work", tags=["git"])
    add_card(base, "K-00006", type="policy", level="derived", title="Old rule", tags=["git"], status="superseded")
    add_card(base, "K-00007", title="Valves stick", tags=["valves", "gotcha"])
    add_card(base, "K-00008", title="Newest trap", tags=["git", "gotcha"], date="2026-02-01")
    sync.refresh(base, vectors="later")
    return base


def ask(base: Base, **how: object) -> Known:
    return precheck(base, config.load(base.root), **how)  # type: ignore[arg-type]


def ids(known: Known) -> list[str]:
    return [hit.id for hit in known]


def test_policies_gotchas_and_dead_ends_of_a_tag(warned: Base) -> None:
    known = ask(warned, tags=["git"], limit=20)
    assert ids(known) == ["K-00001", "K-00008", "K-00002", "K-00003", "K-00004"]
    assert [hit.flags for hit in known] == [("policy",), ("gotcha",), ("gotcha",), ("CHALLENGED",), ("REFUTED",)]
    assert [(link.rel, link.id, link.title) for link in known.hits[-1].correctors] == [
        ("refuted_by", "K-00005", "A hard reset lost work")
    ]
    assert known.total == 5 and known.classes == ()
    assert ids(ask(warned, tags=["GIT"], limit=1)) == ["K-00001"] and ask(warned, tags=["git"], limit=1).total == 5


def test_several_tags_are_alternatives_and_what_has_more_of_them_comes_first(warned: Base) -> None:
    assert ids(ask(warned, tags=["migration", "git", "valves"], limit=20))[0] == "K-00004"
    assert len(ask(warned, tags=["migration", "git", "valves"], limit=20)) == 6
    assert ids(ask(warned, tags=["nowhere"])) == []


def test_a_command_is_told_by_its_class(warned: Base) -> None:
    known = ask(warned, command="cd src && git -C . push --force", limit=20)
    assert known.classes == ("git",) and "git" in known.tags and ids(known)[0] == "K-00001"
    nearer = ask(warned, command="git rebase main", limit=20)
    assert "K-00003" in ids(nearer)[:2], "the title that speaks of it comes before others"
    assert ids(ask(warned, command="git status")) == [] and ask(warned, command="git status").tags == ()


def test_a_command_of_no_class_opens_no_index(base: Base) -> None:
    assert ids(ask(base, command="ls -la")) == []
    with pytest.raises(Unavailable, match="no index yet"):
        ask(base, command="rm -rf x")


def test_a_base_adds_and_replaces_classes(warned: Base) -> None:
    (warned.root / "khms.toml").write_text(
        '[precheck.classes]\nvalves = { patterns = ["valvectl open"], tags = ["valves"] }\n'
        'git = { patterns = ["git gc"], tags = ["git"] }\n',
        encoding="utf-8",
    )
    assert ids(ask(warned, command="valvectl --now open 3")) == ["K-00007"]
    assert ask(warned, command="git push -f").classes == () and ask(warned, command="git gc").classes == ("git",)
    assert ask(warned, command="rm -rf x").classes == ("delete",)
    (warned.root / "khms.toml").write_text('[precheck.classes]\nvalves = ["x"]\n', encoding="utf-8")
    with pytest.raises(Refused, match="valves"):
        ask(warned, command="ls")


def test_an_unreviewed_candidate_says_nothing(base: Base, write: Callable[..., Path]) -> None:
    write(base, "memory/inbox/u/C1.md", "---\nid: C1\ntype: policy\nstatus: active\ntitle: z\ntags: [git]\n---\nz\n")
    sync.refresh(base, vectors="later")
    assert ids(ask(base, tags=["git"])) == []


def test_it_imports_nothing_heavy(warned: Base) -> None:
    code = f"""
import sys
from pathlib import Path
from khms.config import Config
from khms.recall.precheck import precheck
from khms.store.layout import Base
known = precheck(Base(Path({str(warned.root)!r})), Config([]), command="git push -f")
assert len(known) == 5
heavy = {{"dataclasses", "typing", "inspect", "yaml", "numpy", "click", "git", "subprocess", "frontmatter"}}
print(*(heavy & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys; sys.path += " + repr(sys.path) + "\n" + code],
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_command(warned: Base, run_khms: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    done = run_khms("precheck", "git", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert "K-00001  Never force-push main  [policy]" in done.stdout and "3 more: khms precheck -n 5 git" in done.stdout
    found = json.loads(run_khms("precheck", "--command", "git reset --hard", "--json").stdout)
    assert found["schema"] == "khms.precheck/1" and found["classes"] == ["git"] and found["total"] == 5
    refuted = next(hit for hit in found["hits"] if hit["id"] == "K-00004")
    assert refuted["correctors"][0]["id"] == "K-00005"
    for args, said in (
        (("precheck", "nowhere"), "nothing on record under: nowhere"),
        (("precheck", "-c", "ls"), "no risky class"),
    ):
        done = run_khms(*args)
        assert done.returncode == 1 and said in done.stdout, done
    assert run_khms("precheck").returncode == 2
    done = run_khms("precheck", "valve", "git-hook")
    assert done.returncode == 1 and "tag:valve; did you mean tag:valves?" in done.stderr
    assert "tag:git-hook; did you mean tag:git?" in done.stderr


def test_an_alias_is_its_tag(
    warned: Base, write: Callable[..., Path], run_khms: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    write(warned, "memory/tags.yaml", "git: {group: g, description: d, aliases: [vcs]}\n")
    found = json.loads(run_khms("precheck", "vcs", "--json").stdout)
    assert found["total"] == 5 and found["tags"] == ["vcs", "git"]
