"""`khms mark` with all its options, and `khms journal`."""

import os
import sys
from typing import TYPE_CHECKING

import click

from khms.cli import jot
from khms.cli.output import clean, print_json
from khms.cli.session import Session
from khms.errors import No, Usage
from khms.hosts.environment import session as running
from khms.store.jotting import LONGEST, write

if TYPE_CHECKING:
    from khms.model.mark import Mark


@click.command()
@click.argument("kind")
@click.argument("text", nargs=-1, required=True)
@click.option("--session", "session_id", metavar="ID", help="The agent session it comes from; else the environment's.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def mark(session: Session, kind: str, text: tuple[str, ...], session_id: str | None, as_json: bool) -> None:
    """Jot one line into today's journal. KIND is one word; TEXT as - is read from standard input.

    Usual kinds are decision, req, failed and solved. What looks like a secret is taken out before anything is written.

    \b
    khms mark decision "cache the price list for one hour: the vendor throttles"
    git log -1 --format=%B | khms mark solved -
    khms mark failed -- "--offline does not work with a proxy"
    """
    said = _stdin() if text == ("-",) else " ".join(text)
    done = write(session.base, kind, said, running(os.environ) if session_id is None else session_id)
    if not as_json:
        jot.tell(done)
        return
    path = session.base.relative(done.path)
    print_json({"schema": "khms.mark/1", **_as_json(done.mark), "path": path, "redacted": done.redacted})


def _stdin() -> str:
    said = sys.stdin.buffer.read(4 * LONGEST + 4).decode("utf-8", "replace")
    if not said.strip():
        raise Usage("there is no text on standard input", hint='khms mark decision "what was decided and why"')
    return said


def _as_json(mark: "Mark") -> dict[str, object]:
    return {"id": mark.id, "kind": mark.kind, "text": mark.text, "session": mark.session, "line": mark.line}


@click.group()
def journal() -> None:
    """Show the journal."""


@journal.command("show")
@click.argument("date", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document: the MARKs with their ids.")
@click.pass_obj
def journal_show(session: Session, date: str | None, as_json: bool) -> None:
    """Show the journal of DATE (YYYY-MM-DD), else the newest day.

    \b
    khms journal show
    khms journal show 2026-11-30 --json
    """
    from khms.store.journal import days

    if date is not None and not _is_date(date):
        raise Usage(f"{clean(date)!r} is no date", hint="write it as 2026-11-30")
    found = days(session.base)
    names = [day.path.rpartition("/")[2][:10] for day in found]
    wanted = date or max(filter(_is_date, names), default="")
    shown = [day for day, name in zip(found, names, strict=True) if name == wanted]
    if as_json:
        rows = [{"path": day.path, "marks": [_as_json(mark) for mark in day.marks]} for day in shown]
        print_json({"schema": "khms.journal/1", "date": wanted or None, "days": rows})
    elif shown:
        for day in shown:
            session.note(day.path)
            print(clean(day.text).rstrip("\n"))
    if not shown:
        hint = 'write the first line: khms mark decision "what was decided and why"' if not found else ""
        raise No(f"there is no journal of {date}" if date else "the journal is empty", hint=hint)


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
