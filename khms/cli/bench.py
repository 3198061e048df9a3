"""`khms bench`: time khms on this machine."""

import sys

import click

from khms.cli.output import print_json, table
from khms.cli.session import Session


@click.command()
@click.argument("rows", metavar="[ROW…]", nargs=-1)
@click.option(
    "--cards", default=10_000, show_default=True, type=click.IntRange(min=50), help="Size of the made-up base."
)
@click.option(
    "--runs", default=5, show_default=True, type=click.IntRange(min=1), help="Runs of each command; the median counts."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def bench(session: Session, rows: tuple[str, ...], cards: int, runs: int, as_json: bool) -> None:
    """Time whole commands over a made-up base, beside a bare interpreter (P).

    ROW is the name of a figure as the report shows it, or how several begin: `hook` means all of the hook's. Without
    one, all are measured. Figures are reported, not judged: it ends with 0 whatever they are.

    \b
    khms bench
    khms bench hook recall
    khms bench query refresh memory --cards 100000
    khms bench --cards 1000 --runs 9 --json
    """
    from khms.measure import bench as measure

    session.need_git()

    def say(line: str) -> None:
        session.note(line)
        sys.stderr.flush()  # it takes minutes

    report = measure.bench(measure.chosen(rows), cards, runs, say)
    if as_json:
        print_json(report.as_json())
        return
    session.say(f"{report.machine}")
    session.say(f"base of {cards} cards, {runs} runs; P = {report.bare_ms:.1f} ms")
    table(
        ("row", "what", "measured", "to reach", ""),
        [
            (
                row.name,
                row.what,
                "-" if row.value is None else f"{row.value:.2f} {row.unit}",
                f"{row.limit:g} {row.unit}",
                row.note or ("reached" if row.reached else "NOT reached"),
            )
            for row in report.rows
        ],
    )
