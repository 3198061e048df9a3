"""`khms nightly`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from khms.cli.output import clean, one_line, print_json, table
from khms.cli.progress import progress
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.pipeline.night import Result
    from khms.pipeline.weekly.week import Result as Week

EVERY = 10.0  # seconds between two lines about the progress, where there is no terminal for a bar
SHOWN = 10  # most places of secrets that are listed

WORDS = {"new": "new", "attach": "attached", "correct": "corrections", "already-carded": "already carded",
         "not-carded": "not carded"}  # fmt: skip


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what each stage would be handed; write nothing.")
@click.option("--since", metavar="DATE", help="Only journal days from this one on, such as 2026-03-04.")
@click.option("--only-mark", metavar="M-…", help="Only this MARK.")
@click.option("--max-cards", type=int, metavar="N", help="Publish at most N candidates; the rest is deferred.")
@click.option("--deadline", metavar="TIME", help="Ask nothing more after this time, such as 90m or 2h.")
@click.option("--budget-usd", type=float, metavar="USD", help="Ask nothing more once this much is spent.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def nightly(
    ctx: click.Context,
    dry_run: bool,
    since: str | None,
    only_mark: str | None,
    max_cards: int | None,
    deadline: str | None,
    budget_usd: float | None,
    as_json: bool,
) -> None:
    """Turn open MARKs of the journal into candidates, in one unit of the inbox.

    Who does it is nightly.proposer: rules (no model), or an agent: claude, codex, gemini, openai, command. An agent
    also looks for MARKs in this base's sessions. A bound that is reached ends the asking; what is decided is kept.

    A run that was killed is gone on with: type the command again. Nothing becomes knowledge before you approve it.

    \b
    khms nightly
    khms nightly --dry-run --since 2026-03-01
    khms config set nightly.proposer claude
    khms nightly --deadline 90m --budget-usd 2.50
    """
    from khms.hooks import sessions
    from khms.pipeline import nightly as pipeline
    from khms.pipeline.confinement import demand_trust

    session: Session = ctx.obj
    demand_trust(session.base, session.config)
    with _progress(session, dry_run) as told:
        found = pipeline.nightly(
            session.base,
            session.repo,
            session.config,
            since=since,
            only_mark=only_mark,
            max_cards=max_cards,
            deadline=deadline,
            budget_usd=budget_usd,
            dry_run=dry_run,
            progress=told,
            left_alone=sessions.is_off,
        )
    _warn(session, found)
    if not shown(session, found, dry_run=dry_run, as_json=as_json):
        _told(session, found)
    # that a rehearsal asks no agent, and so decides nothing, is no failure of it
    ctx.exit(0 if found.ok and (not found.open or found.spending.stopped_by or dry_run) else 1)


def _warn(session: Session, found: Result) -> None:
    """Says where a secret stands. It is on the disk by now, perhaps in git: hiding the line would mend nothing."""
    if not found.secrets:
        return
    session.note("khms: what looks like a secret stands in the journal; these MARKs were shown to no proposer:")
    for path, line, mark in found.secrets[:SHOWN]:
        session.note(f"  {one_line(path)}:{line}  {one_line(mark)}")
    if len(found.secrets) > SHOWN:
        session.note(f"  and {len(found.secrets) - SHOWN} more (--json lists them)")
    session.note("  if it is one: rotate it, for this disk and perhaps git have held it;")
    session.note("  then take it out of the line, which the next khms nightly reads anew")


def shown(session: Session, found: Result | Week, *, dry_run: bool, as_json: bool) -> bool:
    """Prints what any run's result has: its notes, then the JSON or each stage of a rehearsal under a heading of its
    own. False where it is still to be told in words."""
    for note in (found.recovered, *found.notes, *map(str, found.problems)):
        if note:
            session.note(f"khms: {one_line(note)}")
    if as_json:
        stages = [{"stage": stage, "text": text} for stage, text in found.stages]
        print_json(found.as_json() | ({"stages": stages} if dry_run else {}))
    elif dry_run:
        for stage, text in found.stages:
            print(f"==== {one_line(stage)} ({len(text)} characters)")
            print(clean(text) if sys.stdout.isatty() else text)  # as it is, but for what a terminal would obey
    return as_json or dry_run


def _told(session: Session, found: Result) -> None:
    spent = found.spending
    if spent.stopped_by:
        session.say(f"stopped by {spent.stopped_by}: {one_line(spent.why)}; {_waiting(found.open)} for the next run")
    if spent.calls:
        priced = (
            f"{spent.cost_usd:.2f} dollars" if spent.unpriced < spent.calls else "a cost that its host does not tell"
        )
        session.say(f"{spent.calls} call{'' if spent.calls == 1 else 's'} for {priced}")
    if not found.decided and not found.open:
        session.say("no open MARKs")
        return
    if found.resumed:
        session.say(f"went on with run {found.run}")
    rows = [[words, str(found.verdicts[verdict])] for verdict, words in WORDS.items() if found.verdicts.get(verdict)]
    rows += [["still open", str(found.open)]] if found.open else []
    table(["MARKs", ""], rows)
    if not found.unit:
        session.say("no candidate came of them; the receipts say why" if found.decided else "no candidate came of them")
        return
    from khms.store.inbox import unit_path

    counts = [f"{count} {fate}" for fate, count in found.candidates.items() if count or fate == "published"]
    where = f" on branch {found.branch}" if found.branch else ""
    session.say(f"\n{unit_path(found.unit)}{where}: {', '.join(counts)}")
    session.say(f"next: khms inbox show {found.unit}")


def _waiting(count: int) -> str:
    return "1 MARK waits" if count == 1 else f"{count} MARKs wait"


def _lines(note: Callable[[str], None], clock: Callable[[], float]) -> Callable[[int, int], None]:
    """What tells the progress in a line, when EVERY seconds have gone by since the start or the last one."""
    last = clock()

    def told(done: int, total: int) -> None:
        nonlocal last
        if clock() - last >= EVERY:
            last = clock()
            note(f"khms: {done} of {total} MARKs")

    return told


@contextlib.contextmanager
def _progress(session: Session, dry_run: bool) -> Iterator[Callable[[int, int], None] | None]:
    """On standard error, where a person wants to know: a bar on a terminal, else a line now and then."""
    if session.quiet or dry_run:
        yield None
        return
    if not sys.stderr.isatty():
        yield _lines(session.note, time.monotonic)
        return
    with progress("MARKs") as told:
        yield told
