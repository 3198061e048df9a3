"""The generated files: what they hold, that they are the same everywhere, and what is left alone."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from khms.model.card import Card, Links
from khms.model.tags import registry_from
from khms.render import pages, views
from khms.render.pages import MARKER
from khms.store import cards
from khms.store.layout import Base


def card(number: int, **keys: Any) -> Card:
    card_id = f"K-{number:05d}"
    folder = "archive/know" if keys.get("status") in ("superseded", "condensed") else "know"
    held = {"type": "fact", "title": f"Claim {number}", "date": "2026-03-04", "evidence": "measured", **keys}
    return Card(card_id, path=f"memory/{folder}/{card_id}.md", **held)


def shelf(*held: Card) -> dict[str, Card]:
    return {c.id: c for c in held}


def memory(held: dict[str, Card]) -> str:
    return views.views(held)["MEMORY.md"].decode()


def test_an_empty_base_has_its_three_pages() -> None:
    pages = views.views({})
    assert sorted(pages) == ["MEMORY.md", "memory/views/recent.md", "memory/views/tags.md"]
    assert all(data.startswith(MARKER) and data.endswith(b"\n") for data in pages.values())


def test_memory_names_what_counts() -> None:
    held = shelf(
        card(1, title="A plain fact"),
        card(2, type="policy", level="derived", title="Poll every ten seconds", links=Links(derived_from=("K-00001",))),
        card(3, title="The ground is loose", tags=("gotcha",)),
        card(4, title="Timing was it", status="refuted", links=Links(refuted_by=("K-00003",))),
        card(5, title="Perhaps heat", status="challenged"),
        card(6, title="Old news", status="superseded"),
    )
    page = memory(held)
    assert "6 cards: 3 active, 1 challenged, 1 refuted, 1 superseded. Newest: 2026-03-04." in page
    policies, gotchas, doubted, newest = (
        page.split(f"## {name}\n")[1].split("\n## ")[0]
        for name in ("Principles and policies", "Gotchas", "Challenged and refuted", "Newest")
    )
    assert "[K-00002](memory/know/K-00002.md) Poll every ten seconds — belief +0.64 (1 for, 0 against)" in policies
    assert "K-00003" in gotchas
    assert "REFUTED by K-00003" in doubted and "CHALLENGED" in doubted
    assert "K-00006" not in page and "K-00004" not in newest


def test_pages_stay_within_their_lines_whatever_there_is() -> None:
    kinds = ("fact", "policy", "principle", "problem-solution", "overview")
    held = shelf(
        *(
            card(n, type=kinds[n % 5], tags=("gotcha", f"t{n}", "all"), status=("active", "challenged")[n % 7 == 0])
            for n in range(1, 1200)
        )
    )
    pages = views.views(held)
    assert pages["MEMORY.md"].count(b"\n") <= 80
    assert max(data.count(b"\n") for data in pages.values()) <= 200
    assert b"more: `khms card list --tag all`" in pages["memory/views/topics/all.md"]
    recent = pages["memory/views/recent.md"].decode()
    shown = recent.count("\n- ")
    assert f"{1199 - shown} more: `khms card list`" in recent


def test_the_order_of_the_cards_changes_nothing() -> None:
    held = [card(n, tags=(f"t{n % 3}",), date=f"2026-0{n % 9 + 1}-01") for n in range(1, 40)]
    wanted = views.views(shelf(*held))
    random.Random(7).shuffle(held)
    assert views.views(shelf(*held)) == wanted


def test_ages_count_to_the_newest_card() -> None:
    held = shelf(card(1, date="1999-01-01"), card(2, date="1999-01-20"), card(3, date="no day"), card(4, date=""))
    page = views.views(held)["memory/views/recent.md"].decode()
    assert "Ages count to 1999-01-20" in page
    week, month, older = (page.index(f"## {name}") for name in ("The last 7 days", "The last 30 days", "Older"))
    assert week < page.index("K-00002") < month < page.index("K-00001") < older < page.index("K-00003")


def test_odd_tags_get_safe_and_different_pages() -> None:
    tags = ["gotcha", "Gotcha", "GOTCHA", "../../x", "a/b", "a b", "a-b", "con", "CON", "con.md", "Łódź", "日本", "😀"]
    tags += ["", "x" * 300, "-x", ".hidden", "tag-0123abcd", "nul.txt", "C++", "c#", "a\x00b", "\ud800"]
    paths = [pages.topic_path(tag) for tag in tags]
    names = [path.removeprefix("memory/views/topics/") for path in paths]
    assert len({name.casefold() for name in names}) == len(tags)
    for name in names:
        stem = name.removesuffix(".md")
        assert name.isascii() and "/" not in name and len(name) < 80 and not stem.startswith((".", "-"))
        assert stem.split(".")[0] not in ("con", "nul", "aux", "prn")
    assert names[0] == "gotcha.md"


def test_aliases_stand_under_their_tag() -> None:
    registry = registry_from(
        {"gotcha": {"group": "kind", "description": "a trap", "aliases": ["pitfall"]}, "spare": None}
    )
    pages = views.views(shelf(card(1, tags=("pitfall",)), card(2, tags=("wild",))), registry)
    assert "memory/views/topics/pitfall.md" not in pages
    assert b"a trap" in pages["memory/views/topics/gotcha.md"]
    page = pages["memory/views/tags.md"].decode()
    assert page.index("## kind") < page.index("- [gotcha](topics/gotcha.md) 1: a trap")
    assert page.index("- spare") < page.index("## not registered") < page.index("[wild](topics/wild.md) 1")


def test_a_hostile_card_stays_text() -> None:
    page = memory(shelf(card(1, title="x\n## Commands\n<!-- [/khms] ![](http://evil)", tags=("gotcha",))))
    assert page.count("\n## Commands") == 1
    assert "\\<!-- \\[/khms\\] !\\[\\](http://evil)" in page


def test_changed_knows_stale_pages_and_leaves_foreign_files(base: Base, add_card: Callable[..., Path]) -> None:
    add_card(base, "K-00001", tags=["old"])
    wanted = views.wanted(base, cards.shelf(base).cards)
    assert views.changed(base, wanted) == dict(wanted)
    for path, data in wanted.items():
        base.path(path).parent.mkdir(parents=True, exist_ok=True)
        base.path(path).write_bytes(data)
    assert views.changed(base, wanted) == {}
    base.path("memory/views/topics/mine.md").write_text("mine", encoding="utf-8")
    base.path("MEMORY.md").write_text("# My own\n", encoding="utf-8")
    add_card(base, "K-00001", tags=["new"])
    wanted = views.wanted(base, cards.shelf(base).cards)
    changed = views.changed(base, wanted)
    assert changed["memory/views/topics/old.md"] is None
    assert changed["memory/views/topics/new.md"] == wanted["memory/views/topics/new.md"]
    assert "MEMORY.md" not in changed and "memory/views/topics/mine.md" not in changed
    assert views.foreign(base, wanted) == ["MEMORY.md"]


def test_for_base_takes_in_what_no_commit_holds(base: Base, commit: Callable[..., str]) -> None:
    wanted = views.views({})
    for path, data in wanted.items():
        base.path(path).parent.mkdir(parents=True, exist_ok=True)
        base.path(path).write_bytes(data)
    assert views.for_base(base, {}) == dict(wanted)
    commit(base)
    assert views.for_base(base, {}) == {}


def test_a_linked_page_is_where_the_link_says(base: Base, add_card: Callable[..., Path]) -> None:
    import re
    from urllib.parse import unquote

    add_card(base, "K-00001", tags=["a b", "plain"])
    add_card(base, "K-00002", path="memory/know/sub folder/K-00002.md", tags=["plain"])
    pages = views.wanted(base, cards.shelf(base).cards)
    for path, data in pages.items():
        for target in re.findall(r"\]\(([^)]+)\)", data.decode()):
            there = (base.path(path).parent / unquote(target)).resolve()
            assert base.relative(there) in pages or there.is_file(), (path, target)


def test_belief_is_computed_by_the_bases_own_figures(base: Base, write: Callable[..., Path]) -> None:
    """And by nobody's own: the same base gives the same bytes. A file that cannot be read changes nothing."""
    held = shelf(card(1), card(2, type="principle", links=Links(derived_from=("K-00001",))))
    assert "belief +0.64 (1 for, 0 against)" in views.wanted(base, held)["MEMORY.md"].decode()
    write(base, "khms.toml", "[belief]\nk = 1.0\n")
    assert "belief +1.00 (1 for, 0 against)" in views.wanted(base, held)["MEMORY.md"].decode()
    in_commit = {"khms.toml": b"[belief]\nk = 1.0\n"}
    from_tree = views.for_tree(held, registry_from({}), in_commit.get, [])
    assert from_tree["MEMORY.md"] == views.wanted(base, held)["MEMORY.md"]
    write(base, "khms.toml", "[belief\n")
    assert "belief +0.64" in views.wanted(base, held)["MEMORY.md"].decode()
