"""How answers look: tables for people, one JSON document for programs, nothing that a terminal would obey."""

import sys
from collections.abc import Sequence

TYPE_CHECKING = False  # `typing` costs as much as the rest of `mark`'s own work
if TYPE_CHECKING:
    from rich.console import Console


def clean(text: str) -> str:
    """`text` without control characters and terminal escapes; line breaks and tabs stay."""
    return "".join(
        char if char in "\n\t" or (ord(char) >= 32 and not 0x7F <= ord(char) < 0xA0) else "�" for char in text
    )


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2))


def console(*, error: bool = False) -> "Console":
    """A rich console: colour and width from the terminal, plain 100 columns in a pipe; NO_COLOR is honoured."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 100, highlight=False, markup=False, emoji=False)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that fits the terminal; in a pipe, full lines with two blanks between columns."""
    if not sys.stdout.isatty():
        widths = [max(len(clean(str(row[i]))) for row in [headings, *rows]) for i in range(len(headings))]
        for row in [headings, *rows]:
            print("  ".join(clean(str(cell)).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(clean(str(cell))) for cell in row))
    console().print(grid)
