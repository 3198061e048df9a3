"""`khms eval`: golden queries, asked and drafted."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from khms.cli.output import clean, one_line, print_json, table
from khms.cli.progress import progress
from khms.cli.session import Session
from khms.errors import Refused

if TYPE_CHECKING:
    from khms.measure.evaluation import Evaluation

NAMES = ("hybrid", "lexical", "dense")


@click.group()
def eval() -> None:
    """Measure recall by golden queries, and draft such queries."""


@eval.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--channel", "channels", multiple=True, type=click.Choice(NAMES), help="Only this one; several times for more."
)
@click.option(
    "--floor",
    "floors",
    multiple=True,
    metavar="METRIC=VALUE",
    help="Exit 1 below it: recall@5=0.9, dense:mrr@10=0.4, silent=0.9.",
)
@click.option("--unreviewed", is_flag=True, help="Ask journal and inbox too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def run(
    ctx: click.Context,
    file: Path,
    channels: tuple[str, ...],
    floors: tuple[str, ...],
    unreviewed: bool,
    as_json: bool,
) -> None:
    """Ask the golden queries of FILE and show how well they are answered. Exit 1 where a gate or a floor fails.

    A line is {"query": "…", "gold": [ids]}; with "gate": true it must be answered within its first "k" hits
    (recall.limit where it names none); with an empty gold, nothing must be found; "kind" groups lines. A channel that
    cannot be asked here is left out; one that --channel names is demanded (exit 4).

    \b
    khms eval run golden.jsonl
    khms eval run golden.jsonl --floor recall@5=0.9 --floor lexical:mrr@10=0.7
    khms eval run golden.jsonl --channel dense --json
    """
    from khms.measure import evaluation, golden

    session: Session = ctx.obj
    asked = tuple(dict.fromkeys(channels)) or evaluation.CHANNELS
    demanded = [evaluation.floor(text, asked) for text in floors]
    lines = golden.load(session.cwd / file)
    with progress("golden queries", quiet=session.quiet or as_json) as told:
        found = evaluation.evaluate(
            session.base,
            session.config,
            lines,
            channels=asked,
            floors=demanded,
            unreviewed=unreviewed,
            whole=bool(channels),
            progress=told,
        )
    if as_json:
        print_json(found.as_json())
    else:
        _show(session, found)
    for lost in found.lost:
        session.note(one_line(f"{file}:{lost.line}: {lost.gold}: {lost.why}"))
    if not found.passed:
        ctx.exit(1)


def _show(session: Session, found: "Evaluation") -> None:
    from khms.measure.figures import METRICS

    silent = ("silent",) if found.unrelated else ()
    session.say(f"{len(found.golden)} queries" + (f", {found.unrelated} of which nothing answers" if silent else ""))
    rows = []
    for kind, channels in {"": found.channels, **found.kinds}.items():
        for channel, held in channels.items():
            if held is None:
                continue
            shown = [f"{held[name]:.3f}" if name in held else "" for name in (*METRICS, *silent)]
            rows.append((channel, clean(kind) or "all", *shown))
    table(("channel", "kind", *METRICS, *silent), rows)
    for channel, why in found.notes.items():
        session.note(one_line(f"{channel}: {why}"))
    for gate in found.gates:
        if not gate.passed:
            where = f"rank {gate.rank}" if gate.rank else "not found"
            session.say(one_line(f"gate {gate.id} FAILED: {where}, wanted within {gate.k}: {gate.query}"))
    for floor in found.floors:
        if not floor.passed:
            value = "not measured" if floor.value is None else f"{floor.value:.3f}"
            session.say(f"floor FAILED: {floor.channel} {floor.metric} is {value}, wanted {floor.least:g}")
    passed = sum(gate.passed for gate in found.gates), sum(floor.passed for floor in found.floors)
    if found.gates or found.floors:
        session.say(f"{passed[0]} of {len(found.gates)} gates and {passed[1]} of {len(found.floors)} floors hold")
    if found.drafts:
        session.note(f'{found.drafts} of the queries are drafts: say them in your own words and take out "draft"')


@eval.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--n", "-n", "count", default=30, show_default=True, type=click.IntRange(min=1), help="Most queries.")
@click.option("--seed", default=0, show_default=True, help="Another number draws other cards.")
@click.pass_obj
def make(session: Session, file: Path | None, count: int, seed: int) -> None:
    """Draft golden queries from cards into FILE, which must not exist, or on standard output.

    They repeat the words of titles, texts and tags, which is what every search finds: say each as somebody would ask
    who does not know the card, take out "draft", and add questions that nothing here answers, with "gold": [].

    \b
    khms eval make golden.jsonl
    khms eval make --n 100 --seed 7 > more.jsonl
    """
    from khms.measure import golden
    from khms.store import files

    place = session.cwd / file if file else None
    if place is not None and place.exists():
        raise _there(place)
    lines = [golden.as_line(value) for value in golden.draft(session.base, count, seed)]
    if place is None:
        sys.stdout.write("".join(lines))
        return
    with files.naming(place):
        try:
            files.write_new(place, "".join(lines).encode("utf-8"))
        except FileExistsError:
            raise _there(place) from None
    session.say(one_line(f"{len(lines)} drafts in {place}: correct them, then: khms eval run {file}"))


def _there(place: Path) -> Refused:
    return Refused("this file is there already", where=str(place), hint="name a new one, or move it away")
