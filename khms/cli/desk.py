"""`khms review`: the candidates of a unit one by one, at a terminal or from a pipe; then one confirmation."""

import sys

import click

from khms.cli.output import fold, one_line
from khms.cli.session import Session
from khms.errors import KhmsError


@click.command()
@click.argument("unit", required=False)
@click.option("--plain", is_flag=True, help="No colours and no single keys: answers are read line by line.")
@click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
@click.pass_context
def review(ctx: click.Context, unit: str | None, plain: bool, here: bool) -> None:
    """Go through what awaits review, flagged candidates first: each with its quotes, its nearest cards and what the
    checks say. What you decide is kept at once; nothing happens before you confirm it at the end.

    Without UNIT: the oldest unit with something pending, then the next.

    \b
    khms review
    khms review 2026-11-30-nightly
    printf 'approve\\ndrop was never measured\\nyes\\n' | khms review --plain
    """
    from khms.cli.desk_keys import Keys, Lines
    from khms.cli.desk_shown import Screen
    from khms.cli.sitting import Sitting
    from khms.pipeline.docket import Docket, waiting_units

    session: Session = ctx.obj
    plain = plain or not (sys.stdin.isatty() and sys.stdout.isatty())
    here = _demand_reviewer(session, here)
    colour = session.colour and not plain
    asked = Lines() if plain else Keys()
    seen: set[str] = set()
    status = 0
    while True:
        name = unit or next((name for name in waiting_units(session.base) if name not in seen), None)
        if name is None:
            if not seen:
                session.say("nothing awaits review")
            break
        seen.add(name)
        docket = Docket(session.base, session.repo, session.config, name, here)
        sitting = Sitting(session, docket, asked, Screen(colour))
        sitting.hold()
        status = sitting.status
        if unit or sitting.stopped:
            break
    ctx.exit(status)


def _demand_reviewer(session: Session, here: bool) -> bool:
    """Refuses, before a reviewer spends their time, whoever may not approve here; mends what a killed command left, and
    says what would keep an approval from being made now. Returns whether to approve on the branch at hand."""
    from khms.cli.approval import agree_on_branch
    from khms.pipeline import authority
    from khms.store import commit

    authority.reviewer(session.repo, session.config)
    here = here or agree_on_branch(session, here)
    authority.demand_branch(session.repo, session.config, here=here)
    if commit.pending(session.repo):
        with commit.exclusive(session.repo, "review") as tx:
            if tx.recovered:
                session.note(one_line(str(tx.recovered)))
    try:
        authority.demand_calm(session.repo)
    except KhmsError as error:
        session.note(fold(one_line(f"an approval would be refused now: {error.message}: {error.where}"), 2))
        session.note(fold(one_line(f"  {error.hint}"), 2))
    return here
