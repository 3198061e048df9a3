"""How answers look: tables for people, one JSON document for programs, nothing that a terminal would obey."""

import sys
from collections.abc import Sequence

TYPE_CHECKING = False  # `typing` costs as much as the rest of `mark`'s own work
if TYPE_CHECKING:
    from rich.console import Console

NARROWEST = 16  # cells that a column of prose needs to be read
_DEFAULT = 80  # columns of a terminal that does not tell
_ENDING = "。、，．！？：；）］｝」』】》〉…々ー"
_WIDE = (  # Unicode's wide blocks: one character, two cells
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U00020000-\U0003fffd"
)


def clean(text: str) -> str:
    """`text` without terminal escapes and without what draws nothing or turns the reading order around; line breaks and
    tabs stay, halves of characters are shown by their code."""
    if text.isprintable():  # the interpreter's own word for: none of these
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    code = ord(char)
    if char in "\n\t" or char.isprintable():
        return char
    if 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04x}"
    return "" if _invisible(code) else "�" if code < 0xA0 else char


def _invisible(code: int) -> bool:
    """Marks of direction, blanks of no width, tags: a reader cannot see that they are there."""
    return (
        0x200B <= code <= 0x200F
        or 0x202A <= code <= 0x202E
        or 0x2060 <= code <= 0x206F
        or 0xE0000 <= code <= 0xE007F
        or code in (0xAD, 0x061C, 0x180E, 0xFEFF)
    )


def one_line(text: str) -> str:
    """`text` cleaned and on one line, for a place that has only one: line breaks and tabs become blanks."""
    return " ".join(clean(line).strip() for line in text.splitlines()).replace("\t", " ")


def print_json(value: object) -> None:
    """One document. What is not printable, or not known to the stream's encoding, is written as its code: the value is
    the same, and a terminal obeys nothing."""
    import json

    text = json.dumps(value, ensure_ascii=not _unicode(), indent=2)
    if not text.replace("\n", "").isprintable():
        text = "".join(char if char == "\n" or char.isprintable() else json.dumps(char)[1:-1] for char in text)
    print(text)


def _unicode() -> bool:
    return sys.stdout.encoding.lower().startswith("utf")


def console(*, error: bool = False) -> "Console":
    """A rich console: colour and width from the terminal, plain 100 columns in a pipe; NO_COLOR is honoured."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 100, highlight=False, markup=False, emoji=False)


def fold(text: str, indent: int = 0, width: int | None = None) -> str:
    """One cleaned line for a person, with a hanging indent: cut at blanks to the terminal's width, whole in a pipe. A
    word (a path, an id) is never cut; a script without blanks is, between its characters."""
    if width is None:
        if not sys.stdout.isatty():
            return text
        width = terminal_width()
    from rich.cells import cell_len

    lead = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], lead
    for word in text[len(lead) :].split(" "):
        glue = " " if line != lead else ""
        for part in _parts(word):
            longer = line + glue + part
            if cell_len(longer) > width and line.strip():
                lines.append(line.rstrip())
                line = lead = " " * min(indent, width // 2)
                longer = line + part
            line, glue = longer, ""
    return "\n".join([*lines, line.rstrip()])


def folded(text: str) -> str:
    """`text` with each line that a terminal would break cut at a blank, its rest below its own beginning. What fits, or
    is coloured, stays as it is."""
    width = terminal_width()
    if len(text) * 2 <= width or "\x1b" in text:
        return text
    lines = text.split("\n")
    return "\n".join(fold(line, len(line) - len(line.lstrip()) + 2, width) for line in lines)


def _parts(word: str) -> list[str]:
    """Where a word may be cut: between wide characters, but not before the sign that ends a clause."""
    if word.isascii():
        return [word]
    import re

    return re.findall(f"[{_WIDE}][{_ENDING}]*|[^{_WIDE}]+", word) or [word]


def block(text: str, prefix: str) -> list[str]:
    """The lines of a cleaned text, each folded to the terminal's width with `prefix` before every row of it."""
    width = terminal_width() - len(prefix) if sys.stdout.isatty() else None
    lines = (line.expandtabs(4).rstrip() for line in text.split("\n"))
    rows = (row for line in lines for row in fold(line, len(line) - len(line.lstrip()), width).split("\n"))
    return [f"{prefix}{row}".rstrip() for row in rows]


def terminal_width() -> int:
    """Columns of the terminal; a stream that stands for another process's terminal knows its own."""
    if own := getattr(sys.stdout, "columns", 0) or getattr(sys.stderr, "columns", 0):
        return int(own)
    import shutil

    return shutil.get_terminal_size((_DEFAULT, 24)).columns


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that fits the terminal; in a pipe, full lines with two blanks between columns. Only prose is folded:
    where a column's cells have no blanks (ids, dates, counts), or too little room is left, no cell is cut."""
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        for row in [headings, *cells]:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    _grid(headings, cells, terminal_width())


def _grid(headings: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    needed = [max(map(cell_len, column)) for column in zip(headings, *cells, strict=True)]
    prose = [any(" " in row[i] for row in cells) for i in range(len(headings))]
    least = [min(need, NARROWEST) if folds else need for need, folds in zip(needed, prose, strict=True)]
    if sum(least) + 3 * (len(least) - 1) > width:
        _stacked(headings, cells, width)
        return
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading, small, folds in zip(headings, least, prose, strict=True):
        grid.add_column(heading, overflow="fold", no_wrap=not folds, min_width=small)
    for row in cells:
        grid.add_row(*map(Text, row))
    console().print(grid)


def _stacked(headings: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> None:
    """Each row as a paragraph: its first cell, then the others, each under its heading."""
    margin = 4 + max(map(len, headings))
    for row in cells:
        print(row[0])
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            if cell:
                print(fold(f"  {heading:<{margin - 4}}  {cell}", margin, width))
