"""`khms gc`: what is no longer needed goes."""

import click

from khms.cli.approval import agree_on_branch
from khms.cli.output import one_line, print_json
from khms.cli.session import Session


@click.command()
@click.option("--units", is_flag=True, help="Inbox units that are finished too, in one commit; history keeps them.")
@click.option("--dry-run", "dry", is_flag=True, help="Say what would go, and change nothing.")
@click.option("--here", is_flag=True, help="With --units: on this branch, though it does not receive approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def gc(session: Session, units: bool, dry: bool, here: bool, as_json: bool) -> None:
    """Remove what is no longer needed on this machine: what killed commands left, carry of published runs, old logs and
    states, older indexes, branches of units that were merged or refused.

    Cards, records, receipts and journals are never touched. How old is old: khms config list (gc.…).

    \b
    khms gc --dry-run
    khms gc --units --dry-run     which finished units would go, why others stay
    """
    from khms.pipeline.gc import collect

    agreed = here or (units and not dry and agree_on_branch(session, here))
    done = collect(session.base, session.repo, session.config, units=units, dry=dry, here=agreed)
    if as_json:
        gone = [{"what": one.what, "name": one.name, "bytes": one.size} for one in done.gone]
        kept = [{"unit": name, "why": why} for name, why in done.kept]
        print_json({
            "schema": "khms.gc/1",
            "dry_run": done.dry,
            "removed": gone,
            "kept": kept,
            "freed": done.freed,
            "commit": done.commit,
        })  # fmt: skip
        return
    if done.recovered:
        session.note(done.recovered)
    for one in done.gone:
        session.say(one_line(f"{one.name}: {one.what}" + (f", {_bytes(one.size)}" if one.size else "")))
    for name, why in done.kept:
        session.say(one_line(f"{name} stays: {why}"))
    if not done.gone:
        session.say("nothing to remove")
    else:
        verb = "would free" if done.dry else "freed"
        session.say(f"{verb} {_bytes(done.freed)}" + (f", commit {done.commit[:12]}" if done.commit else ""))


def _bytes(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.0f} KiB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MiB"
