"""`khms sync`: a base shared through its git remote."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from khms.cli.output import one_line, print_json
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.pipeline.replay import Left
    from khms.pipeline.sync import Synced

_ASIDE = {
    "same-mark": "of the same MARK",
    "target-archived": "what it names was archived",
    "withheld-target": "what it names did not come in",
    "yielded": "left out as you said",
    "already-approved": "approved by others too",
}


@click.command()
@click.option(
    "--yield", "yielded", multiple=True, metavar="K-…", help="Leave this unpublished card, or change of a card, out."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def sync(session: Session, yielded: tuple[str, ...], as_json: bool) -> None:
    """Take in what others published and publish what was decided here.

    Approvals that are not published yet are made again on top of what others published: their cards may get other ids,
    and every link to them follows. Nothing changes here before the remote has it. Where two people corrected the same
    card, it stops and says so.

    \b
    khms sync
    khms sync --yield K-00042    your card of two that supersede the same one
    """
    from khms.cli.approval import refresh
    from khms.pipeline.sync import sync as share
    from khms.render import views

    done = share(
        session.base,
        session.repo,
        session.config,
        views.for_tree,
        say=lambda text: session.note(one_line(text)),
        yielded=frozenset(yielded),
    )
    if done.recovered:
        session.note(done.recovered)
    if done.pulled or done.ids or done.left:
        refresh(session)
    if as_json:
        print_json(synced_json(done))
    else:
        report(session, done)


def synced_json(done: "Synced") -> dict[str, Any]:
    return {
        "schema": "khms.sync/1",
        "remote": done.remote,
        "branch": done.branch,
        "commit": done.commit,
        "pulled": done.pulled,
        "pushed": done.pushed,
        "tries": done.tries,
        "ids": dict(done.ids),
        "withheld": withheld_json(done.left),
        "kept": list(done.kept),
    }


def withheld_json(left: Iterable["Left"]) -> list[dict[str, Any]]:
    return [
        {
            "unit": one.unit,
            "label": one.label,
            "id": one.id or None,
            "verdict": one.verdict,
            "reason": one.reason,
            "instead": one.instead or None,
        }
        for one in left
    ]


def told(ids: Mapping[str, str], left: Sequence["Left"]) -> Iterator[str]:
    """What changed on the way: ids that became others, and what did not come in."""
    lost = {one.id for one in left}
    for old, new in ids.items():
        if old not in lost:
            yield f"{old} -> {new}"
    for one in left:
        name = " ".join(part for part in (one.unit, one.label) if part)
        told_id = f"{one.id} " if one.id else ""
        yield one_line(f"{told_id}put aside ({_ASIDE[one.verdict]}): {name}: {one.reason}")


def report(session: Session, done: "Synced") -> None:
    """What a sync changed, in a few lines."""
    for line in told(done.ids, done.left):
        session.say(line)
    for path in done.kept:
        session.note(one_line(f"kept as it is, though the commit holds another: {path}"))
    place = f"{done.remote} {done.branch}"
    if not done.pulled and not done.pushed:
        session.say(one_line(f"nothing to do: {place} has all that is here, and the other way round"))
    else:
        session.say(one_line(f"{place}: {done.pulled} commits taken in, {done.pushed} published"))
