"""`khms schedule`: have the machine's own scheduler run a base's jobs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from khms.cli.output import one_line, print_json
from khms.cli.session import Session
from khms.errors import No, Unavailable

if TYPE_CHECKING:
    from khms.hosts.schedulers.standing import Job, Standing

SCHEMA = "khms.schedule/1"
KINDS = ("cron", "systemd", "launchd")
_kind = click.argument("kind", metavar="[cron|systemd|launchd]", type=click.Choice(KINDS), required=False)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group()
def schedule() -> None:
    """Have this machine run nightly and weekly by the clock, with a log, whether or not anybody is there.

    \b
    khms schedule install
    khms schedule status
    khms schedule uninstall
    """


@schedule.command()
@_kind
@click.option("--nightly", metavar="TIME", help='When nightly runs, such as 03:15 (the default); "off" leaves it out.')
@click.option("--weekly", metavar="TIME", help='When weekly runs, such as "Sun 04:00" (the default); or "off".')
@click.pass_obj
def install(session: Session, kind: str | None, nightly: str | None, weekly: str | None) -> None:
    """Schedule this base's jobs, or change their times. Without a name, what this machine has is taken.

    Each base has entries of its own; nothing else in a crontab changes. The job gets the PATH, language and folders of
    the shell that you type this in, and none of its keys. Type it again when those have changed, or khms has moved.

    \b
    khms schedule install
    khms schedule install cron --nightly 02:30 --weekly "Mon 06:00"
    khms schedule install systemd --weekly off
    """
    from khms.hosts.schedulers import installing, record
    from khms.hosts.schedulers.standing import standing

    done = installing.install(session.base, kind, {"nightly": nightly, "weekly": weekly})
    what = "scheduled with" if done.changed else "as it was: scheduled with"
    session.say(f"{what} {done.scheduler.ID}")
    if done.left:
        session.say(f"no longer scheduled with {done.left}")
    found = standing(session.base)
    for job in found.jobs if found else ():
        session.say("  " + one_line(f"{job.job:<8} {job.when:<10} next {job.next or 'never'}; log {job.log}"))
    for note in (done.scheduler.MISSED, *done.scheduler.notes()):
        session.note(one_line(f"note: {note}"))
    if keys := record.secrets():
        session.note(one_line(f"note: not kept for the jobs, being secret: {', '.join(keys)}; {done.scheduler.KEYS}"))
    session.say("where a job fails or is overdue, khms status says so, and khms status --check ends with 1")
    session.say("undo: khms schedule uninstall")


@schedule.command()
@_kind
@click.pass_obj
def uninstall(session: Session, kind: str | None) -> None:
    """Take this base's jobs out of the scheduler; a base that is gone is named by --root. Its logs stay.

    \b
    khms schedule uninstall
    khms --root ~/gone schedule uninstall cron
    """
    from khms.hosts.schedulers import installing

    try:
        root = session.base.root
    except Unavailable:
        if not session.root:
            raise
        root = session.cwd / session.root
    found = installing.uninstall(root, kind)
    if not found:
        raise No(f"nothing is scheduled for {root}" + (f" with {kind}" if kind else ""), hint="khms schedule status")
    session.say(one_line(f"no longer scheduled with {' and '.join(found)}: {root}"))


@schedule.command()
@_json
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """What is scheduled for this base, how it last ended and when it is next. Exit 1 where nothing is, or it is broken.

    \b
    khms schedule status
    khms schedule status --json
    """
    from khms.hosts.schedulers.standing import standing

    session: Session = ctx.obj
    found = standing(session.base)
    if as_json:
        held = found.as_json() if found else {"scheduler": None, "jobs": []}
        print_json({"schema": SCHEMA, "root": str(session.base.root), **held})
    elif found is None:
        session.say(one_line(f"nothing is scheduled for {session.base.root}"))
        session.say("next: khms schedule install")
    else:
        _show(session, found)
    if found is None or not all(job.there for job in found.jobs) or any(job.failed for job in found.jobs):
        ctx.exit(1)


@schedule.command(hidden=True)
@click.argument("job", type=click.Choice(("nightly", "weekly")))
@click.option("--record", "path", required=True, metavar="FILE")
@click.pass_context
def run(ctx: click.Context, job: str, path: str) -> None:
    """What the scheduler starts: one job, in the environment that was recorded, with a log."""
    from khms.hosts.schedulers import running

    session: Session = ctx.obj
    ctx.exit(running.run(session.root or str(session.base.root), job, Path(path)))


def _show(session: Session, found: "Standing") -> None:
    session.say(one_line(f"{session.base.root}: scheduled with {found.scheduler} since {found.since}"))
    if found.why:
        session.note(one_line(f"khms: what {found.scheduler} holds cannot be told: {found.why}"))
    for job in found.jobs:
        session.say("  " + one_line(f"{job.job:<8} {job.when:<10} {told(job)}"))
        session.say(" " * 22 + one_line(f"log {job.log}"))


def told(job: "Job") -> str:
    """How the job last ended, and when it is next, for a person."""
    if job.last is None:
        last = "has not run yet"
    elif job.last.code is None:
        last = f"began {job.last.at} and has not ended"
    else:
        how = (
            "well" if job.last.code == 0 else f"with {job.last.code}" + (f" ({job.last.said})" if job.last.said else "")
        )
        last = f"ended {how} {job.last.at}"
    return f"{last}; " + (f"next {job.next}" if job.there else "GONE from the scheduler: khms schedule install")
