"""`khms weekly`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from khms.cli.output import table
from khms.cli.progress import progress
from khms.cli.propose import shown
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.pipeline.weekly.week import Result

WORDS = {
    "supersessions": "cards that replace others",
    "contradictions": "cards against each other",
    "principles": "shapes of observations",
    "condensations": "cards that a pattern carries",
}


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what each stage would be handed; write nothing, ask nobody.")
@click.option("--max-cards", type=int, metavar="N", help="Offer at most N; the rest comes with the next run.")
@click.option("--deadline", metavar="TIME", help="Ask no agent after this time, such as 90m or 2h.")
@click.option("--budget-usd", type=float, metavar="USD", help="Ask no agent once this much was spent.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def weekly(
    ctx: click.Context,
    dry_run: bool,
    max_cards: int | None,
    deadline: str | None,
    budget_usd: float | None,
    as_json: bool,
) -> None:
    """Propose what the cards say together, in one unit of the inbox: principles, contradictions side by side, cards
    that replace others, cards that a pattern carries.

    A run that was killed is gone on with: type the command again. Nothing changes before you approve it.

    \b
    khms weekly
    khms weekly --dry-run
    khms weekly --max-cards 5 --budget-usd 0.50
    """
    from khms.pipeline.confinement import demand_trust
    from khms.pipeline.weekly import run

    session: Session = ctx.obj
    demand_trust(session.base, session.config)
    with progress("steps", quiet=session.quiet or dry_run) as told:
        found = run.weekly(
            session.base,
            session.repo,
            session.config,
            max_cards=max_cards,
            deadline=deadline,
            budget_usd=budget_usd,
            dry_run=dry_run,
            progress=told,
        )
    if not shown(session, found, dry_run=dry_run, as_json=as_json):
        _told(session, found)
    ctx.exit(0 if found.ok else 1)


def _told(session: Session, found: Result) -> None:
    if found.resumed:
        session.say(f"went on with run {found.run}")
    if found.cost.stopped_by:
        session.say(f"stopped asking by {found.cost.stopped_by} after {found.cost.calls} calls")
    if not found.unit:
        session.say("nothing new to propose")
        return
    from khms.store.inbox import unit_path

    rows = [
        [words, str(found.offers.get(step, 0)), str(found.told.get(step, 0))]
        for step, words in WORDS.items()
        if found.offers.get(step) or found.told.get(step)
    ]
    table(["", "offered", "reported"], rows)
    where = f" on branch {found.branch}" if found.branch else ""
    late = f", {found.late} wait for the next run" if found.late else ""
    session.say(f"\n{unit_path(found.unit)}{where}: {sum(found.candidates.values())} to decide{late}")
    session.say(f"next: khms inbox show {found.unit}" if sum(found.candidates.values()) else "next: read its REPORT.md")
