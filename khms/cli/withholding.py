"""`khms reject`, `khms defer`, `khms unreject`: candidates of a unit that do not come in, not now, or after all."""

from collections.abc import Sequence
from typing import Any

import click

from khms.cli import shared
from khms.cli.approval import agree_on_branch
from khms.cli.output import one_line, print_json
from khms.cli.session import Session
from khms.pipeline.withhold import Withheld


@click.command()
@click.argument("unit")
@click.argument("labels", nargs=-1)
@click.option("--why", required=True, help="What is wrong; kept in the receipt.")
@click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def reject(session: Session, unit: str, labels: tuple[str, ...], why: str, here: bool, as_json: bool) -> None:
    """Refuse candidates of UNIT: they move to its dropped/ folder. Without labels: all that are pending.

    What they say is remembered: a later candidate that says the same is withheld, until khms unreject.

    \b
    khms reject 2026-11-30-nightly C3 --why "was never measured"
    """
    _withhold(session, unit, labels, "rejected", why, here, as_json)


@click.command()
@click.argument("unit")
@click.argument("labels", nargs=-1)
@click.option("--why", default="", help="Why not now; kept in the receipt.")
@click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def defer(session: Session, unit: str, labels: tuple[str, ...], why: str, here: bool, as_json: bool) -> None:
    """Put candidates of UNIT off: they move to its deferred/ folder. Moving a file back brings it back.

    \b
    khms defer 2026-11-30-nightly C2
    """
    _withhold(session, unit, labels, "deferred", why, here, as_json)


@click.command()
@click.argument("unit")
@click.argument("labels", nargs=-1)
@click.option("--why", default="", help="Why it deserves another look; kept in the receipt.")
@click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def unreject(session: Session, unit: str, labels: tuple[str, ...], why: str, here: bool, as_json: bool) -> None:
    """Take the refusal of candidates of UNIT back: they move from dropped/ to the front and are pending again.

    From then on nothing is withheld any more because it says the same.

    \b
    khms unreject 2026-11-30-nightly C3 --why "it was measured after all"
    """
    from khms.pipeline.unreject import unreject as take_back

    agreed = here or agree_on_branch(session, here)
    remote = shared.begin(session)
    result = take_back(session.base, session.repo, session.config, unit, labels, why, here=agreed)
    shared.finish(session, remote, changed=bool(result.commit))
    if result.recovered:
        session.note(result.recovered)
    if as_json:
        print_json({
            "schema": "khms.unreject/1",
            "unit": result.unit,
            "commit": result.commit,
            "candidates": [{"label": label, "path": path} for label, path in result.moved],
            "gone": list(result.gone),
            "already": list(result.already),
        })  # fmt: skip
        return
    for label, path in result.moved:
        session.say(one_line(f"{label} is pending again: {path}"))
    for label in result.gone:
        session.say(one_line(f"{label} is refused no longer; its file is in git's history only"))
    if result.already:
        session.say(one_line(f"taken back before: {', '.join(result.already)}"))


def _withhold(
    session: Session, unit: str, labels: Sequence[str], verdict: str, why: str, here: bool, as_json: bool
) -> None:
    from khms.pipeline.withhold import withhold

    agreed = here or agree_on_branch(session, here)
    remote = shared.begin(session)
    result = withhold(session.base, session.repo, session.config, unit, labels, verdict, why, here=agreed)
    shared.finish(session, remote, changed=bool(result.commit))
    if result.recovered:
        session.note(result.recovered)
    if as_json:
        print_json(_withheld_json(result, verdict))
        return
    for label, path in result.moved:
        session.say(one_line(f"{label} {verdict}: {path}"))
    if result.branch:
        session.say(one_line(f"{result.unit} is recorded here; its branch may go: {_branch_goes(result.branch)}"))
    if result.commit is None:
        session.say(one_line(f"nothing to do in {result.unit}: {', '.join(result.already) or 'nothing is pending'}"))


def _branch_goes(unit: str) -> str:
    from khms.store.branches import PREFIX

    return f"git branch -D {PREFIX}{unit}  and  git push REMOTE --delete {PREFIX}{unit}"


def _withheld_json(result: Withheld, verdict: str) -> dict[str, Any]:
    return {
        "schema": f"khms.{'reject' if verdict == 'rejected' else 'defer'}/1",
        "unit": result.unit,
        "commit": result.commit,
        "candidates": [{"label": label, "path": path} for label, path in result.moved],
        "already": list(result.already),
    }
