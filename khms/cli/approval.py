"""`khms approve`: candidates of a unit become cards."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from khms.cli import shared
from khms.cli.output import fold, one_line, print_json
from khms.cli.session import Session
from khms.cli.sync import withheld_json
from khms.errors import Usage
from khms.pipeline.approve import Result
from khms.pipeline.ruling import Wish

if TYPE_CHECKING:
    from khms.pipeline.sharing import Sharing


@click.command()
@click.argument("unit", required=False)
@click.argument("labels", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Everything that is pending in the unit.")
@click.option(
    "--merged",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[A..B]",
    help="In a CI job: take in what a pull request's reviewer approved, of the pushed commits or of A..B.",
)
@click.option(
    "--relation",
    "relations",
    multiple=True,
    metavar="LABEL=KIND[:K-…]",
    help="Settle a relation: new, supports:K-…, contradicts:K-…, supersedes:K-…",
)
@click.option("--unjudged", is_flag=True, help="Accept candidates whose relation nobody judged.")
@click.option(
    "--accept-unchecked", "accepted", multiple=True, metavar="CHECK[:LABEL]", help="Accept that a check did not run."
)
@click.option(
    "--waive", "waived", multiple=True, metavar="CHECK:LABEL", help="Let a named finding of one candidate pass."
)
@click.option("--why", default="", help="The reason of a waiver, or of a correction: what makes the new card right.")
@click.option("--also", is_flag=True, help="Let in a second card of a MARK that became one already.")
@click.option("--here", is_flag=True, help="Approve on this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def approve(
    session: Session,
    unit: str | None,
    labels: tuple[str, ...],
    everything: bool,
    merged: str | None,
    relations: tuple[str, ...],
    unjudged: bool,
    accepted: tuple[str, ...],
    waived: tuple[str, ...],
    why: str,
    also: bool,
    here: bool,
    as_json: bool,
) -> None:
    """Let candidates of UNIT in as cards: all that are named, or nothing.

    Each gets the next id; what it corrects is re-statused; a record with the hashes of all bytes comes into the same
    commit. The reviewer is git's own identity.

    \b
    khms approve 2026-11-30-nightly C1 C3
    khms approve 2026-11-30-nightly C2 --relation C2=supersedes:K-00008 \\
        --why "measured again"
    khms approve 2026-11-30-nightly --all --unjudged
    khms approve --merged         the job that runs when a pull request was merged
    """
    from khms.pipeline.approve import approve as let_in
    from khms.render import views

    if merged is not None:
        if unit or labels or everything or relations or waived or why or here or also:
            raise Usage("--merged takes --unjudged, --accept-unchecked and --json only", hint="khms approve --merged")
        from khms.cli.merging import approve_merged
        from khms.pipeline.merged import Said

        sys.exit(approve_merged(session, Said(merged, unjudged, frozenset(accepted)), as_json))
    if unit is None:
        raise Usage("which unit?", hint="khms inbox list shows them; then: khms approve UNIT LABEL…")
    if everything and labels:
        raise Usage("labels and --all exclude each other", hint="name the labels, or say --all")
    wish = Wish(
        labels=labels,
        everything=everything,
        relations=_once(relations),
        unjudged=unjudged,
        also=also,
        accepted=frozenset(accepted),
        waived=dict.fromkeys(_pairs(waived, ":", "--waive quotes:C1"), why),
        why=why,
        here=here or agree_on_branch(session, here),
    )
    if wish.waived and not why.strip():
        raise Usage("a waiver needs its reason", hint="--why 'what makes it right all the same'")
    remote = shared.begin(session, [said.partition(":")[2] for said in wish.relations.values()])
    result = let_in(session.base, session.repo, session.config, unit, wish, views.for_base)
    result = shared.published(session, remote, result)
    follow_up(session, result)
    if as_json:
        print_json(approve_json(result, remote))
        return
    report(session, result)


def follow_up(session: Session, result: Result) -> None:
    """What comes after every approval: the remarks beside its answer, and the index."""
    if result.recovered:
        session.note(result.recovered)
    if result.unneeded:
        session.note(one_line(f"not needed and not recorded: --waive {', --waive '.join(result.unneeded)}"))
    if result.commit:
        refresh(session)


def _pairs(items: Iterable[str], separator: str, example: str) -> Iterable[tuple[str, str]]:
    for item in items:
        left, found, right = item.partition(separator)
        if not found or not left or not right:
            raise Usage(f"{item!r} is not of the form LEFT{separator}RIGHT", hint=f"for example: {example}")
        yield left, right


def _once(relations: Iterable[str]) -> dict[str, str]:
    """label -> relation; raises Usage where one label gets two."""
    found: dict[str, str] = {}
    for label, relation in _pairs(relations, "=", "--relation C1=new"):
        if label in found:
            said = f"--relation {label}={found[label]} and --relation {label}={relation}"
            raise Usage(f"{label} has two relations: {said}", hint="a candidate has exactly one")
        found[label] = relation
    return found


def agree_on_branch(session: Session, here: bool) -> bool:
    """Asks at a terminal whether to approve on another branch than the receiving one."""
    from khms.pipeline import authority

    if here or not sys.stdin.isatty() or authority.on_receiving_branch(session.repo, session.config):
        return here
    want, at = authority.receiving_branch(session.repo, session.config), session.repo.branch() or "no branch"
    return click.confirm(f"Approvals belong on {want}, and HEAD is on {at}. Approve here?", err=True)


def refresh(session: Session) -> None:
    """Brings the index up to the commit, so that the next prompt finds the card; what fails here is only late. Its
    vector comes with the next command that loads the model."""
    from khms.errors import KhmsError
    from khms.index import sync
    from khms.index.catchup import LATER

    try:
        sync.refresh(session.base, config=session.config, vectors=LATER)
    except KhmsError as error:
        session.note(f"the index was not refreshed: {error.message} (khms index does it)")


def approve_json(result: Result, remote: "Sharing | None" = None) -> dict[str, Any]:
    """`published` is null in a base that does not share at once, and where nothing was decided."""
    return {
        "schema": "khms.approve/1",
        "unit": result.unit,
        "commit": result.commit,
        "cards": [{"label": label, "id": card_id, "path": path} for label, card_id, path in result.cards],
        "changed": [{"label": label, "id": card_id, "path": path} for label, card_id, path in result.changed],
        "transitions": [
            {"id": t.id, "field": t.field, "old": t.old, "new": t.new, "why": t.why} for t in result.transitions
        ],
        "already": dict(result.already),
        "unchecked": list(result.unchecked),
        "unneeded": list(result.unneeded),
        "published": None if remote is None or not result.commit else not remote.unpublished,
        "withheld": withheld_json(remote.left) if remote else [],
    }


def report(session: Session, result: Result) -> None:
    if result.commit is None:
        known = ", ".join(f"{label} = {card_id}" for label, card_id in result.already.items())
        session.say(one_line(f"nothing is pending in {result.unit}" + (f"; approved before: {known}" if known else "")))
        return
    if not result.cards and not result.changed:
        session.say(one_line(f"nothing of {result.unit} came in: others were faster"))
        return
    for label, card_id, path in result.cards:
        session.say(fold(one_line(f"{label} -> {card_id}  {path}"), 2))
    for label, card_id, path in result.changed:
        session.say(fold(one_line(f"{label} changed {card_id}  {path}"), 2))
    for t in result.transitions:
        session.say(fold(one_line(f"{t.id} {t.field}: {_shown(t.old)} -> {_shown(t.new)}  ({t.why})"), 2))
    for line in result.unchecked:
        session.say(fold(one_line(f"accepted unchecked: {line}"), 2))
    session.say(f"commit {result.commit[:12]}, record memory/approvals/{result.record}.json")


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
