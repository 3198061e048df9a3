"""`khms bench`: time khms on this machine."""

import click

from khms.cli.output import print_json, table
from khms.cli.session import Session


@click.command()
@click.option("--cards", default=10_000, show_default=True, help="Size of the made-up base.")
@click.option("--runs", default=5, show_default=True, help="Runs of each command; the median counts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def bench(session: Session, cards: int, runs: int, as_json: bool) -> None:
    """Time whole commands over a made-up base, beside a bare interpreter (P).

    \b
    khms bench
    khms bench --cards 1000 --runs 9 --json
    """
    from khms.measure import bench as measure

    session.need_git()
    report = measure.bench(cards, runs, session.note)
    if as_json:
        rows = [
            {"what": r.what, "value": round(r.value, 3), "limit": r.limit, "unit": r.unit, "reached": r.reached}
            for r in report.rows
        ]
        machine = {"machine": report.machine(), "cards": cards, "bare_ms": round(report.bare_ms, 2)}
        print_json({"schema": "khms.bench/1", **machine, "rows": rows})
        return
    session.say(f"{report.machine()}; base of {cards} cards; P = {report.bare_ms:.1f} ms")
    table(
        ("what", "measured", "to reach", ""),
        [
            (r.what, f"{r.value:.2f} {r.unit}", f"{r.limit:g} {r.unit}", "reached" if r.reached else "NOT reached")
            for r in report.rows
        ],
    )
