"""Cards: a person's own candidate, lists, links, a change of status, and any document whole."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from khms.cli import past, shared
from khms.cli.output import block, clean, fold, one_line, print_json, table
from khms.cli.session import Session
from khms.errors import No, Refused, Unavailable, Usage
from khms.model.card import STATUSES, Card, as_list, as_text, canonical_type

if TYPE_CHECKING:
    from khms.index.past import Past
    from khms.model.document import Link
    from khms.pipeline.manual import Draft, Proposed
    from khms.recall.lookup import Found


@click.group()
def card() -> None:
    """Make and list cards, show their links, give them another status."""


@card.command()
@click.argument("type_", metavar="TYPE")
@click.option("--title", default="", help="The claim in one line.")
@click.option("--body", metavar="FILE|-", help="The file that holds the text; - reads it from a pipe.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be given several times.")
@click.option("--source", default="", help="Where it stands; words in double quotes at its end become a quote.")
@click.option("--evidence", default="", metavar="HOW", help="measured, observed or reported.")
@click.option("--scope", default="", help="What it holds for; universal where nothing is said.")
@click.option(
    "--derived-from",
    "derived_from",
    multiple=True,
    metavar="K-…",
    help="A card it follows from; several times for more.",
)
@click.option("--open", "edit", is_flag=True, help="Write it in your editor.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def new(
    session: Session,
    type_: str,
    title: str,
    body: str | None,
    tags: tuple[str, ...],
    source: str,
    evidence: str,
    scope: str,
    derived_from: tuple[str, ...],
    edit: bool,
    as_json: bool,
) -> None:
    """Propose a card of your own. It waits in the inbox: only an approval makes it knowledge.

    \b
    echo "At 3 bar the valve stays shut." | khms card new fact --body - \\
        --title "The valve needs 4 bar" --evidence measured \\
        --source 'journal/2026-03-04.md line 22: "opened at 4 bar, not at 3"'
    khms card new problem-solution --open
    khms card new principle --open --derived-from K-00004 --derived-from K-00005
    """
    from khms.pipeline import manual

    kind = manual.card_type(type_, session.config)
    text = _body(session, body)
    draft = manual.Draft(kind.name, title, text, tags, scope, evidence, source, derived_from)
    if edit:
        draft = _edited(draft, text or manual.skeleton(kind), derived=kind.level == "derived")
    made = manual.propose(session.base, session.repo, session.config, draft)
    if as_json:
        print_json({**made.as_json(), "approve": made.approve})
        _warn(session, made)
        return
    if made.recovered:
        session.note(made.recovered)
    session.say(f"{made.path}  (commit {made.commit[:12]})")
    for name, outcome in made.checks.items():
        if outcome.message:
            session.say(fold(f"{name}: {outcome.state}, {one_line(outcome.message)}", 2))
    for card_id, near in made.nearest:
        session.say(fold(f"near: {card_id} {one_line(near)}", 2))
    if made.nearest:
        session.say("if it says something about one of them: supports:K-…, contradicts:K-… or supersedes:K-… for new")
    _warn(session, made)
    session.say(f"{'approve it' if not made.refused else 'then approve it'}: {shlex.join(made.approve)}")


def _warn(session: Session, made: "Proposed") -> None:
    """What an approval would stumble over, while whoever wrote it still knows better."""
    for finding in made.findings:
        session.note(fold(one_line(f"{finding.code} line {finding.line}: {finding.message} ({finding.mend})"), 2))
    if made.refused:
        session.note(fold(f"as it stands, an approval will refuse it: mend {made.path} in an editor", 2))


def _body(session: Session, where: str | None) -> str:
    if where is None:
        return ""
    try:
        data = sys.stdin.buffer.read() if where == "-" else (session.cwd / where).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise Usage(
            f"the body cannot be read: {error.strerror}",
            where=where,
            hint="--body names a file; text itself goes through a pipe: echo 'the text' | khms card new … --body -",
        ) from error
    except UnicodeDecodeError as error:
        raise Usage("the body is not UTF-8", hint="save it as UTF-8") from error


def _edited(draft: "Draft", body: str, *, derived: bool) -> "Draft":
    """The draft as it comes back from the person's editor. Raises Unavailable where the editor failed, Refused where
    nothing was saved or nothing was written under the labels."""
    from dataclasses import replace

    from khms.store import markdown

    meta = {
        "title": draft.title,
        "tags": list(draft.tags),
        "scope": draft.scope,
        "evidence": draft.evidence,
        "source": draft.source,
        **({"derived_from": list(draft.derived_from)} if derived or draft.derived_from else {}),
    }
    without = "or without an editor: --title 'the claim' --body FILE"
    try:
        text = click.edit(markdown.render(meta, body), extension=".md")
    except click.ClickException as error:
        raise Unavailable(
            "the editor did not work; nothing was proposed",
            where=error.message,
            hint=f"set VISUAL or EDITOR to one that runs here and waits, such as nano or 'code --wait'; {without}",
        ) from error
    if text is None:
        raise Refused("nothing was saved in the editor, so nothing was proposed", hint=f"save the file; {without}")
    page = markdown.parse(text, "what you wrote")
    labels = (line for line in page.body.splitlines() if line.strip())
    kept = "\n".join(line for line in labels if not (line.rstrip().endswith(":") and line.rstrip()[:-1].isupper()))
    if not kept.strip():
        raise Refused(
            "nothing was written under the labels, so nothing was proposed",
            hint=f"write the body below the second ---; {without}",
        )
    return replace(
        draft,
        title=as_text(page.meta.get("title")),
        tags=as_list(page.meta.get("tags")),
        scope=as_text(page.meta.get("scope")),
        evidence=as_text(page.meta.get("evidence")),
        source=as_text(page.meta.get("source")),
        derived_from=as_list(page.meta.get("derived_from")),
        body=page.body,
    )


@card.command("list")
@click.option("--type", "types", multiple=True, metavar="TYPE")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Several: cards that have them all.")
@click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES))
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def list_cards(
    ctx: click.Context, types: tuple[str, ...], tags: tuple[str, ...], statuses: tuple[str, ...], as_json: bool
) -> None:
    """The cards, by id. Exit 1 where one cannot be read and is therefore missing."""
    from khms.store import cards
    from khms.store import tags as registered

    session: Session = ctx.obj
    shelf = cards.shelf(session.base)
    registry = registered.registry(session.base)
    wanted = {registry.canonical(tag) for tag in tags}
    kinds = {canonical_type(name) for name in types}
    found = [
        held
        for _, held in sorted(shelf.cards.items())
        if (not kinds or held.type in kinds)
        and wanted <= {registry.canonical(tag) for tag in held.tags}
        and (not statuses or held.status in statuses)
    ]
    if as_json:
        problems = [{"path": e.path, "line": e.line, "message": e.message} for e in shelf.unreadable]
        print_json({"schema": "khms.cards/1", "cards": [_row(held) for held in found], "unreadable": problems})
    elif found:
        table(
            ("id", "type", "status", "date", "title"),
            [(held.id, held.type, held.status, held.date, held.title) for held in found],
        )
    elif shelf.cards:
        session.say("no card is like that; khms card list shows them all")
    else:
        session.say("there are no cards yet")
        session.say('next: khms mark decision "what was decided and why", then khms nightly; or khms card new --help')
    for error in shelf.unreadable:
        session.note(one_line(f"cannot be read: {error.path}:{error.line}: {error.message} ({error.mend})"))
    if shelf.unreadable:
        ctx.exit(1)


def _row(held: Card) -> dict[str, Any]:
    return {
        "id": held.id,
        "type": held.type,
        "level": held.level,
        "status": held.status,
        "title": held.title,
        "tags": list(held.tags),
        "scope": held.scope,
        "evidence": held.evidence,
        "date": held.date,
        "path": held.path,
    }


@card.command()
@click.argument("card_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def links(session: Session, card_id: str, as_json: bool) -> None:
    """What a card is linked to, both ways; what corrects it first."""
    from khms.recall.lookup import edges
    from khms.store import cards

    shelf = cards.shelf(session.base)
    held = shelf.cards.get(card_id)
    if held is None:
        if as_json:
            print_json({"schema": "khms.links/1", "id": card_id, "found": False})
        raise No(f"there is no card {card_id}", hint="khms card list shows what there is")
    own, naming, correcting = edges(shelf, held)
    if as_json:
        print_json(
            {
                "schema": "khms.links/1",
                "id": held.id,
                "found": True,
                "title": held.title,
                "correctors": [link.as_json() for link in correcting],
                "links": [link.as_json() for link in own],
                "named_by": [link.as_json() for link in naming],
            }
        )
        return
    print(fold(f"{held.id}  {one_line(held.title)}", 9))
    for line in _edge_lines(own, naming, correcting):
        print(fold(line, 4))


def _edge_lines(own: Iterable["Link"], naming: Iterable["Link"], correcting: Iterable["Link"]) -> Iterator[str]:
    for link in correcting:
        said = f"refuted by {link.id}" if link.rel == "refuted_by" else f"{link.id} {link.rel} it"
        yield f"  ! {clean(said)}: {one_line(link.title)}"
    for link in own:
        yield f"  {one_line(link.rel)} {one_line(link.id)}: {one_line(link.title)}"
    known = {(link.rel, link.id) for link in correcting}
    for link in naming:
        if (link.rel, link.id) not in known:
            yield f"  {one_line(link.id)} {one_line(link.rel)} it: {one_line(link.title)}"


@card.command()
@click.argument("card_id", metavar="ID")
@click.argument("new_status", metavar="NEW")
@click.option("--by", metavar="ID", help="The card that is the cause.")
@click.option("--why", default="", help="The reason; kept in the record.")
@click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def status(
    session: Session, card_id: str, new_status: str, by: str | None, why: str, here: bool, as_json: bool
) -> None:
    """Give a card another status: active, challenged, refuted, superseded or condensed. Recorded like an approval.

    \b
    khms card status K-00042 refuted --by K-00051 --why "measured again"
    """
    from khms.pipeline.status import change
    from khms.render import views

    remote = shared.begin(session, [card_id, *([by] if by else [])])
    done = change(
        session.base,
        session.repo,
        session.config,
        card_id,
        new_status,
        by=by,
        why=why,
        views=views.for_base,
        here=here,
    )
    shared.finish(session, remote, changed=bool(done.commit))
    if as_json:
        print_json(
            {
                "schema": "khms.card-status/1",
                "id": done.id,
                "old": done.old,
                "new": done.new,
                "commit": done.commit,
                "transitions": [
                    {"id": t.id, "field": t.field, "old": t.old, "new": t.new, "why": t.why} for t in done.transitions
                ],
            }
        )
        return
    if done.recovered:
        session.note(done.recovered)
    if done.commit is None:
        session.say(f"{done.id} is {done.new} already")
        return
    for t in done.transitions:
        session.say(clean(f"{t.id} {t.field}: {t.old or 'none'} -> {t.new or 'none'}"))
    session.say(f"commit {done.commit[:12]}")


@click.command()
@click.argument("identity", metavar="ID")
@past.option
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def show(session: Session, identity: str, at: str | None, as_json: bool) -> None:
    """One document whole: a card, a MARK, a candidate, a unit, a journal day, an approval record, a note.

    \b
    khms show K-00042
    khms show K-00042 --at 2026-11-01        as it was that day
    khms show 2026-11-30-nightly/C1
    khms show 2026-11-30
    """
    if not identity.strip():
        raise Usage(
            "there is no id", hint="khms show K-00042; khms card list, khms recall and khms inbox list print ids"
        )
    then = None
    when: dict[str, Any] = {} if at is None else {"at": None}
    try:
        then = past.as_of(session, at) if at is not None else None
        when = {"at": then.moment.as_json()} if then else {}
        found = _shown(session, identity, then)
    except No as error:
        if as_json:
            print_json({"schema": "khms.show/1", "id": identity, "found": False, **when})
        if then:
            raise No(f"{error.message} {past.said(then)}", where=str(session.base.root), hint=error.hint) from None
        raise
    if as_json:
        print_json({**found.as_json(), **when})
        return
    if then:
        print(fold(past.said(then), 2))
    for line in _page(session, found):
        print(line)


def _shown(session: Session, identity: str, then: "Past | None") -> "Found":
    """The document of this base, else of the person's own, which recall asks too."""
    from khms.recall import bases
    from khms.recall.lookup import look_up

    return look_up(then.base, identity, then.config) if then else bases.look_up(session.base, session.config, identity)


def _page(session: Session, found: "Found") -> Iterator[str]:
    if found.warning:
        warning = fold(one_line(found.warning), 2)
        yield click.style(warning, fg="red") if session.colour else warning
    title = "" if found.title == found.id else f"  {' '.join(found.title.split())}"
    head = fold(one_line(found.id + title), 2)
    yield click.style(head, bold=True) if session.colour else head
    yield f"{one_line(found.path)}:{found.line}"
    yield from (fold(clean(f"note: {note}"), 2) for note in found.notes)
    keys = ("type", "level", "status", "scope", "evidence", "date")
    facts = [as_text(found.meta.get(key)) for key in keys]
    if any(facts):
        yield fold(one_line(" · ".join(fact for fact in facts if fact)), 2)
    tags = ", ".join(as_list(found.meta.get("tags")))
    if tags:
        yield fold(clean(f"tags: {tags}"), 2)
    if as_text(found.meta.get("source")):
        yield fold(one_line(f"source: {found.meta['source']}"), 2)
    if found.belief:
        yield f"belief: {found.belief}"
    yield from (fold(line, 4) for line in _edge_lines((), (), found.correctors))
    yield ""
    yield from block(clean(found.body).rstrip("\n"), "")
    edges = list(_edge_lines(found.links, found.named_by, found.correctors))[len(found.correctors) :]
    if edges:
        yield ""
        yield from (fold(line, 4) for line in edges)
    if found.history:
        yield ""
        told = (one_line(f"{event.at}  {event.what}, {event.who}  {event.record}") for event in found.history)
        yield from (fold(line, 4) for line in told)
