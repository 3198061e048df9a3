"""The window: open MARKs, what was read, and that one bad file hides no other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused, Usage
from khms.model.receipt import Receipt
from khms.pipeline import sources
from khms.pipeline.sources import Window, clean, collect
from khms.store.layout import Base
from khms.store.receipts import Ledger

Write = Callable[..., Path]
NONE = Ledger(())


def receipt(mark: str, stage: str = "propose") -> Receipt:
    return Receipt(mark, stage, "new", "01", "memory/inbox/u", "C1", "", "2026-03-05T00:00:00+00:00")


def test_a_mark_is_open_until_a_propose_receipt_names_it(base: Base, write: Write) -> None:
    write(base, "journal/2026-03-05.md", "# 2026-03-05\n\nMARK[note] the second day\n")
    found = collect(base, NONE, Window())
    assert [mark.path for mark in found.open] == ["journal/2026-03-04.md", "journal/2026-03-05.md"]
    first, second = (mark.id for mark in found.open)
    later = collect(base, Ledger((receipt(first), receipt(second, "review"))), Window())
    assert [mark.id for mark in later.open] == [second]
    assert later.settled == 1


def test_since_reads_days_from_that_one_on_and_no_undated_file(base: Base, write: Write) -> None:
    for name in ("2026-03-05.md", "2026-03-06.ab12.md", "notes.md"):
        write(base, f"journal/{name}", f"MARK[note] from {name}\n")
    found = collect(base, NONE, Window(since="2026-03-05"))
    assert sorted(found.pages) == ["journal/2026-03-05.md", "journal/2026-03-06.ab12.md"]
    assert len(collect(base, NONE, Window()).open) == 4


@pytest.mark.parametrize("since", ["yesterday", "2026-02-30", "2026-3-4", "20260304", ""])
def test_a_day_that_is_none_is_refused(since: str) -> None:
    with pytest.raises(Usage):
        sources.window(since, None)


def test_one_mark_alone_and_one_that_is_not_there(base: Base) -> None:
    (mark,) = collect(base, NONE, Window()).open
    assert collect(base, NONE, sources.window(None, mark.id)).open == (mark,)
    with pytest.raises(Refused, match="M-000000000000"):
        collect(base, NONE, Window(only_mark="M-000000000000"))
    with pytest.raises(Usage):
        sources.window(None, "C1")


def test_a_bad_file_is_named_and_hides_no_other(base: Base, write: Write, tmp_path: Path) -> None:
    write(base, "journal/2026-03-05.md", "MARK[note] read all the same\n")
    write(base, "journal/2026-03-06.md", b"MARK[note] a byte \xff that is no text\n")
    write(base, "journal/2026-03-07.md", b"")
    write(base, "journal/2026-03-08.md", "# 2026-03-08\n\nprose\n")
    write(tmp_path, "outside.md", "MARK[note] from outside\n")
    (base.journal / "2026-03-09.md").symlink_to(tmp_path / "outside.md")
    (base.journal / "2026-03-10.md").mkdir()
    found = collect(base, NONE, Window())
    assert [mark.text for mark in found.open] == [
        "frames failed because a ground was loose",
        "read all the same",
        "a byte � that is no text",
    ]
    assert [(p.path, p.severity) for p in found.problems] == [
        ("journal/2026-03-06.md", "warning"),
        ("journal/2026-03-09.md", "error"),
        ("journal/2026-03-10.md", "error"),
    ]
    assert found.empty == ("journal/2026-03-07.md", "journal/2026-03-08.md")


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"\xef\xbb\xbfMARK[note] after a mark of byte order\r\nand on\r\n", ["after a mark of byte order and on"]),
        (b"```\nMARK[note] in a fence\n```\nMARK[note] behind it\n", ["behind it"]),
        (b"MARK[note] before\n\n```\nMARK[note] in an open fence\n", ["before", "in an open fence"]),
        ("MARK[note] 🐘 café\n".encode(), ["🐘 café"]),
        (b"MARK[note]\n", []),
        (b"text MARK[note] in a line\n", []),
    ],
)
def test_the_forms_of_a_journal(base: Base, write: Write, data: bytes, texts: list[str]) -> None:
    write(base, "journal/2026-03-04.md", data)
    found = collect(base, NONE, Window())
    assert [mark.text for mark in found.open] == texts
    for mark in found.open:
        assert clean(" ".join(sources.words(found.page(mark), mark).split())) == mark.text


def test_words_are_the_files_own_and_whole_has_the_mark_before_them(base: Base, write: Write) -> None:
    write(base, "journal/2026-03-04.md", "- MARK[decision]: cache  it\n  for an hour (sess 8f21)\n\nMARK[note] x\n")
    found = collect(base, NONE, Window())
    first, second = found.open
    assert sources.words(found.page(first), first) == "cache  it\n  for an hour"
    assert sources.whole(found.page(first), first) == "MARK[decision]: cache  it\n  for an hour"
    assert sources.whole(found.page(second), second) == "MARK[note] x"
    assert sources.around(found.page(second), 4, 4, 1) == [(3, ""), (4, "MARK[note] x"), (5, "")]


def test_cleaning_takes_hidden_characters_and_leaves_what_scripts_and_emoji_are_made_of() -> None:
    assert clean("a\x00b\x1b[0m\u202ec\u2028d\ufeff\ud800") == "a b [0m c d  "
    kept = "👨\u200d👩 क्\u200dष é\u0301\nnext"
    assert clean(kept) == kept
