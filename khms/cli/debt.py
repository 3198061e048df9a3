"""`khms debt`: what the base holds and nobody meets."""

import click

from khms.cli.output import clean, print_json, table
from khms.cli.session import Session


@click.command()
@click.option("--limit", "-n", default=20, show_default=True, type=click.IntRange(min=1), help="Most rows of a table.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, whole.")
@click.pass_obj
def debt(session: Session, limit: int, as_json: bool) -> None:
    """Cards that no session was told of and that were the best answer to nothing; tags with many cards and few links.

    It is known from the log of hooks, which is this machine's alone; questions by khms recall leave no trace.

    \b
    khms debt
    khms debt --json
    """
    from khms.measure import debt as measure

    found = measure.debt(session.base)
    if as_json:
        print_json(found.as_json())
        return
    if found.since:
        session.say(f"{found.cards} cards; {found.decisions} decisions of hooks since {found.since}")
    else:
        session.say(f"{found.cards} cards; hooks have decided nothing here yet, so no card was met (khms hook status)")
    session.say(f"{found.met} were met: {found.injected} injected, {found.top} the best hit; {len(found.unmet)} never")
    if found.unmet:
        session.say()
        rows = [(card.id, card.type, card.date, card.title) for card in found.unmet[:limit]]
        table(("never met", "type", "date", "title"), [tuple(map(clean, row)) for row in rows])
        _rest(session, len(found.unmet), limit)
    session.say()
    what = f"at least {measure.MANY} cards and fewer than {measure.FEW:g} links a card"
    session.say(f"{len(found.loose)} of {found.tags} tags have {what}")
    if found.loose:
        table(
            ("tag", "cards", "links", "links a card"),
            [(clean(t.tag), str(t.cards), str(t.links), f"{t.share:.2f}") for t in found.loose[:limit]],
        )
        _rest(session, len(found.loose), limit)


def _rest(session: Session, there: int, limit: int) -> None:
    if there > limit:
        session.say(f"and {there - limit} more: --limit {there}, or --json")
