"""`khms approve --merged`: what a pull request's reviewer approved, taken in by a CI job."""

import os
from typing import Any

from khms.cli.output import one_line, print_json
from khms.cli.session import Session
from khms.errors import Unavailable
from khms.pipeline.merged import NAMED, Merged, One, Said

NAME = "khms-ci"


def approve_merged(session: Session, said: Said, as_json: bool) -> int:
    """Does it, shows what became of each unit, and returns the exit code: 3 where one of them may not come in."""
    from khms.hosts import forges
    from khms.pipeline import merged
    from khms.render import views

    job = forges.this_job()
    _identify(session, job.server)
    done = merged.approve_merged(
        session.base, session.repo, session.config, forges.forge(job.forge), job, said, views.for_base
    )
    if as_json:
        print_json(_json(done))
    else:
        _report(session, done)
    return 0 if done.ok else 3


def _identify(session: Session, server: str) -> None:
    """Gives the job's commits an author where it configured none. Who approved stands in the record, not there."""
    try:
        session.repo.identity()
    except Unavailable:
        for part in ("AUTHOR", "COMMITTER"):
            os.environ[f"GIT_{part}_NAME"] = NAME
            os.environ[f"GIT_{part}_EMAIL"] = f"{NAME}@users.noreply.{server}"


def _report(session: Session, done: Merged) -> None:
    if done.note:
        session.say(one_line(done.note))
    for one in done.units:
        said = f"{one.unit}: {one.state}"
        said += f" by {one.reviewer} in {one.request}" if one.state == NAMED else f": {one.why}" if one.why else ""
        session.say(one_line(said))
        for label, card_id, path in one.result.cards if one.result else ():
            session.say(one_line(f"  {label} -> {card_id}  {path}"))
        for label, card_id, path in one.result.changed if one.result else ():
            session.say(one_line(f"  {label} changed {card_id}  {path}"))
    if done.pushed:
        session.say(f"pushed {done.pushed[:12]}")
    if done.opened:
        session.say(one_line(f"the branch is protected; the approval waits in {done.opened}"))


def _json(done: Merged) -> dict[str, Any]:
    return {
        "schema": "khms.merged/1",
        "units": [_unit(one) for one in done.units],
        "pushed": done.pushed or None,
        "opened": done.opened or None,
        "note": done.note or None,
    }


def _unit(one: One) -> dict[str, Any]:
    made = one.result.cards if one.result else ()
    changed = one.result.changed if one.result else ()
    return {
        "unit": one.unit,
        "state": one.state,
        "why": one.why or None,
        "reviewer": one.reviewer or None,
        "request": one.request or None,
        "commit": one.result.commit if one.result else None,
        "cards": [{"label": label, "id": card_id, "path": path} for label, card_id, path in made],
        "changed": [{"label": label, "id": card_id, "path": path} for label, card_id, path in changed],
    }
