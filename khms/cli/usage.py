"""`khms usage`: what became of what hooks injected."""

from typing import TYPE_CHECKING

import click

from khms.cli.output import clean, print_json, table
from khms.cli.progress import progress
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.measure.usage import Count, Usage


@click.command()
@click.option("--since", metavar="DATE", default="", help="Only from this day on, such as 2026-03-04.")
@click.option(
    "--by", type=click.Choice(["event", "host", "kind", "day"]), default="event", show_default=True, help="The groups."
)
@click.option("--by-arm", is_flag=True, help="Compare the arms of an experiment ([experiment] in khms.toml).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, with every grouping.")
@click.pass_obj
def usage(session: Session, since: str, by: str, by_arm: bool, as_json: bool) -> None:
    """Of all that was injected: how much did the agent name in its next three messages?

    A document is named by its id, its path or its title word for word, in what the agent wrote or gave to its tools.
    This comes from the transcripts that the host keeps on this machine and from .khms/log/inject.jsonl; what has no
    transcript is counted apart.

    \b
    khms usage
    khms usage --since 2026-03-01 --by day
    khms usage --by-arm --json
    """
    from khms.hooks import sessions
    from khms.measure import decisions
    from khms.measure.usage import usage as look

    first = decisions.since_day(since)
    with progress("transcripts", quiet=session.quiet or as_json) as told:
        found = look(session.base, since=first, left_alone=sessions.is_off, progress=told)
    if as_json:
        print_json(found.as_json())
        return
    _show(session, found, by, by_arm)


def _show(session: Session, found: "Usage", by: str, by_arm: bool) -> None:
    if not found.log.first:
        session.say("no hook has decided anything in this base yet: khms hook status")
        return
    total = found.total
    held = f"{len(found.log.decisions)} decisions since {max(found.since, found.log.first)}"
    bare = f", {found.bare} of them reminders without a pointer" if found.bare else ""
    session.say(f"{held}: {found.injections} injections{bare}, {total.pointers} pointers")
    session.say(f"named by the agent: {total.named} of {total.attributed} that can be told{_share(total)}")
    if found.named_by:
        session.say("  " + ", ".join(f"by its {name} {number}" for name, number in found.named_by.items()))
    left = sum(found.unattributed.values())
    session.say(f"cannot be told: {left}")
    for reason, number in found.unattributed.items():
        session.say(f"  {number}  {reason}")
    if by_arm:
        _show_arms(session, found)
    elif found.by[by]:
        session.say()
        table((by, "pointers", "can be told", "named", "share"), [_row(count) for count in found.by[by]])
    if found.silent:
        session.say()
        table(("silent because", "decisions"), [(clean(name), str(count)) for name, count in found.silent.items()])
    if found.log.unreadable:
        session.note(f"{found.log.unreadable} lines of the log make no sense and are left out")
    bad = sum(found.read.lines.get(name, 0) for name in ("garbage", "long"))
    if bad:
        session.note(f"{bad} lines of the transcripts make no sense, or are too long, and are left out")


def _show_arms(session: Session, found: "Usage") -> None:
    if not found.arms:
        session.say("no experiment has left a line in the log: khms config set experiment.name NAME begins one")
        return
    session.say()
    rows = [
        (arm.experiment, arm.arm, str(arm.sessions), str(arm.decisions), *_row(arm.count)[1:]) for arm in found.arms
    ]
    table(("experiment", "arm", "sessions", "decisions", "pointers", "can be told", "named", "share"), rows)
    session.say("in the control arm the pointers were withheld: what was named of them, was named without being told")


def _row(count: "Count") -> tuple[str, ...]:
    shown = "" if count.share is None else f"{100 * count.share:.0f} %"
    return clean(count.name), str(count.pointers), str(count.attributed), str(count.named), shown


def _share(count: "Count") -> str:
    return "" if count.share is None else f" ({100 * count.share:.0f} %)"
