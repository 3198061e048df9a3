"""Which file is a document is decided by its path alone."""

import pytest

from khms.config import load
from khms.index import sources
from khms.index.sources import Place, Rules
from khms.store.layout import Base

PLAIN = Rules()
NOTES = Rules(notes=True)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("memory/know/K-00001.md", Place("card", "K-00001")),
        ("memory/know/sub/K-00001.md", Place("card", "K-00001")),
        ("memory/archive/know/K-00002.md", Place("card", "K-00002")),
        ("memory/lessons/L-01.md", Place("lesson", "L-01")),
        ("memory/inbox/2026-03-05-nightly/C1.md", Place("inbox", "2026-03-05-nightly/C1")),
        ("memory/inbox/2026-03-05-nightly/deferred/C2.md", Place("inbox", "2026-03-05-nightly/deferred/C2")),
        ("memory/inbox/2026-03-05.md", Place("inbox", "2026-03-05")),
        ("memory/inbox/2026-03-05-nightly/REPORT.md", None),
        ("memory/inbox/2026-03-05-nightly/unit.json", None),
        ("journal/2026-03-05.md", Place("journal", "journal/2026-03-05")),
        ("journal/2026-03-05.ab12.md", Place("journal", "journal/2026-03-05.ab12")),
        ("memory/know/🐘.md", Place("card", "🐘")),
        ("memory/views/tags.md", None),
        ("memory/know/K-00001.txt", None),
        ("README.md", None),
        (".khms/index/x.md", None),
    ],
)
def test_places_in_a_base(path: str, place: Place | None) -> None:
    assert sources.place(PLAIN, path) == place


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", Place("note", "README")),
        ("deep/er/Note.MD", Place("note", "deep/er/Note")),
        ("journal/thoughts.md", Place("note", "journal/thoughts")),
        ("journal/2026-03-05.md", Place("journal", "journal/2026-03-05")),
        ("memory/know/K-00001.md", Place("card", "K-00001")),
        ("memory/views/recent.md", None),
        ("deep/.git/x.md", None),
    ],
)
def test_places_where_every_note_counts(path: str, place: Place | None) -> None:
    assert sources.place(NOTES, path) == place


def test_an_included_folder_gives_its_name() -> None:
    rules = Rules(include=(("docs", "manual"), ("shelf", "../shelf")))
    assert sources.place(rules, "manual/a/b.md") == Place("note", "docs/a/b")
    assert sources.place(rules, "../shelf/c.md") == Place("note", "shelf/c")
    assert sources.place(rules, "other/c.md") is None
    assert sources.folders(rules)[-1] == "manual"
    assert sources.outside(rules) == ["../shelf"]


def test_the_configuration_names_included_folders(base: Base) -> None:
    base.config.write_text(
        f'[index]\nlanguage = "german"\ninclude = {{ near = "near", far = "{base.root.parent / "far"}" }}\n',
        encoding="utf-8",
    )
    rules = sources.rules(base, load(base.root))
    assert rules.language == "german"
    assert rules.include == (("far", "../far"), ("near", "near"))
