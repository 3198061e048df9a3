"""Asking the base: `recall`, and `index` for what it asks."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from khms.cli import past
from khms.cli.output import clean, one_line, print_json
from khms.cli.progress import progress
from khms.cli.session import Session
from khms.errors import No, Usage

if TYPE_CHECKING:
    from khms.index.past import Past
    from khms.model.document import Hit
    from khms.recall.search import Answer


class Asking(click.Command):
    """A command whose words are a person's text: one that begins with a dash and is like no option is text too, as
    in an error message or a flag that somebody looks for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            ctx.ignore_unknown_options = True
            return super().parse_args(ctx, args)


@click.command(cls=Asking)
@click.argument("words", metavar="QUERY…", nargs=-1, required=True)
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Most hits shown.")
@click.option("--all", "everything", is_flag=True, help="The archive and what nobody reviewed too.")
@click.option("--unreviewed", is_flag=True, help="Journal and inbox too, labelled UNREVIEWED.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only cards, notes, journal, …")
@past.option
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def recall(
    ctx: click.Context,
    words: tuple[str, ...],
    limit: int | None,
    everything: bool,
    unreviewed: bool,
    kinds: tuple[str, ...],
    at: str | None,
    as_json: bool,
) -> None:
    """Ask the base, and your own beside it (recall.personal). Exit 1 where nothing is on record.

    The query is plain text: an error message or a stack trace can be pasted as it is. "In quotes" is a phrase;
    tag:x type:y kind:z scope:s status:s after:2026-01-01 before:2026-02-01 are filters. What begins with a dash goes
    after --, if it is like an option.

    \b
    khms recall checksum errors after the firmware update
    khms recall '"frame mismatch" tag:sensors'
    khms recall --at 2026-03-04 checksum errors        what was on record that day
    """
    from khms.recall import bases

    session: Session = ctx.obj
    text = " ".join(words)
    if not text.strip():
        raise Usage("there is no question", hint='khms recall "what you want to know"')
    asked = " ".join([*(f"kind:{kind}" for kind in kinds), text])
    try:
        then = _then(session, at) if at is not None else None
    except No as error:
        if as_json:
            print_json({**_empty(error.message).as_json(), "query": text, "at": None})
        raise
    here = (then.base, then.config) if then else (session.base, session.config)
    whole, alone = bases.together(*here) if then is None else ([here], "")
    answer = bases.ask(
        whole,
        asked,
        limit=limit,
        include_fog=everything,
        unreviewed=unreviewed or everything,
        refresh=True,
        strict=True,
        here=session.cwd,
    )
    if as_json:
        print_json({**answer.as_json(), "query": text, **({"at": then.moment.as_json()} if then else {})})
    else:
        if then:
            print(past.said(then))
        for rank, hit in enumerate(answer.hits, 1):
            show(rank, hit, session)
    if not (answer.hits or as_json):
        print(clean(f"nothing on record for: {text[:200]}"))
        for line in bases.unmet(whole, asked):
            session.note(one_line(line))
        for line in _elsewhere(answer, words, [*(part for kind in kinds for part in ("--kind", kind)), *_at(at)]):
            print(line)
    for line in (*_remarks(answer), *filter(None, [alone])):
        session.note(one_line(line))
    if not as_json and session.verbose:
        session.note(f"{answer.channel}{f' ({answer.note})' if answer.note else ''}, {answer.elapsed_ms:.0f} ms")
    if then is None:
        _at_hand(session)
    if not answer.hits:
        ctx.exit(1)


def _empty(why: str) -> "Answer":
    """The answer where there is no base to ask."""
    from khms.recall.search import LEXICAL, Answer

    return Answer("", (), LEXICAL, why, 0.0, "", 0.0)


def _at_hand(session: Session) -> None:
    """Has a server there for the next question, where the base is trusted; in a server this does nothing."""
    from khms.store import trust

    if session.config["server.enabled"] == "off" or trust.why_not(session.base):
        return
    with suppress(ImportError, OSError):  # a system without Unix sockets, or with no more room
        from khms.server import launch

        launch.start(str(session.base.root))


def _then(session: Session, at: str) -> "Past":
    """The base as it was, with its index; where that has to be built first, a bar shows it."""
    from khms.index import sync
    from khms.index.catchup import NEW

    found = past.as_of(session, at)
    with progress("indexing", quiet=session.quiet) as told:
        sync.refresh(found.base, progress=told, config=found.config, vectors=NEW)
    return found


def _at(at: str | None) -> list[str]:
    return [] if at is None else ["--at", at]


def _remarks(answer: "Answer") -> Iterator[str]:
    """What a reader must know of the index that answered."""
    from khms.index.current import SWITCHED_OFF

    if answer.rebuilt:
        yield f"the index was built anew: {answer.rebuilt}"
    if answer.failed:
        yield f"the index could not be brought up to date: {answer.failed}"
    if answer.behind:
        yield f"the index is behind: {answer.behind}"
    if answer.note and not answer.note.endswith(SWITCHED_OFF):
        yield f"found {answer.note}"
    if answer.skipped:
        files = "1 file is" if answer.skipped == 1 else f"{answer.skipped} files are"
        yield f"{files} not in the index, so nothing in there is found: khms index lists what was left out"
    yield from (f"{root}: {note}" for root, note in answer.others if note)


def show(rank: int, hit: "Hit", session: Session) -> None:
    kind = "" if hit.kind == "card" else f" ({hit.kind})"
    kind += f" of {hit.base}" if hit.base else ""
    flags = f"  [{', '.join(hit.flags)}]" if hit.flags else ""
    head = click.style(one_line(hit.id), bold=True) if session.colour else one_line(hit.id)
    flagged = click.style(clean(flags), fg="yellow") if session.colour else clean(flags)
    print(f"{rank:>2}  {head}{clean(kind)}  {clean(_line(hit.title))}{flagged}")
    for corrector in hit.correctors:
        print(f"    ! {one_line(_corrects(corrector.rel, corrector.id))}: {clean(_line(corrector.title))}")
    if hit.note:
        print(clean(f"    ({_line(hit.note)})"))
    print(f"    {one_line(hit.path)}:{hit.line}")
    if hit.snippet:
        print(clean(f"    | {_line(hit.snippet)}"))
    known = {corrector.id for corrector in hit.correctors}
    for link in hit.links:
        if link.id not in known and session.verbose:
            print(f"    {one_line(link.rel)} {one_line(link.id)}: {clean(_line(link.title))}")


def _corrects(rel: str, card_id: str) -> str:
    return f"refuted by {card_id}" if rel == "refuted_by" else f"{card_id} {rel} it"


def _line(text: str) -> str:
    return " ".join(text.split())


_OPTIONS = {"unreviewed": "--unreviewed", "fog": "--all"}
_NAMES = {"unreviewed": "that nobody reviewed", "fog": "in the archive"}


def _elsewhere(answer: "Answer", words: tuple[str, ...], said: list[str]) -> Iterator[str]:
    """What other shelves hold, each with the command that shows it; else what to do about a blank."""
    for shelf, count in answer.elsewhere:
        command = shlex.join(["khms", "recall", _OPTIONS[shelf], *said, *words])
        noun = "1 document" if count == 1 else f"{count} documents"
        yield clean(f"  {noun} {_NAMES[shelf]}: {command}")
    if not answer.elsewhere:
        yield '  if you find it out: khms mark solved "…"'


@click.command()
@click.option("--rebuild", is_flag=True, help="Build it anew, whatever is there.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def index(ctx: click.Context, rebuild: bool, as_json: bool) -> None:
    """Bring the index up to date; it can be deleted at any time. Exit 1 where a file had to be left out."""
    from khms.index import sync

    session: Session = ctx.obj
    with progress("indexing", quiet=session.quiet) as told:
        report = sync.refresh(session.base, rebuild=rebuild, progress=told, config=session.config)
    if as_json:
        print_json(
            {
                "schema": "khms.index/1",
                "docs": report.docs,
                "added": report.added,
                "updated": report.updated,
                "removed": report.removed,
                "skipped": [finding.as_json() for finding in report.skipped],
                "rebuilt": report.rebuilt,
                "elapsed_ms": report.elapsed_ms,
                "waiting": report.waiting,
                "wordless": report.wordless or None,
            }
        )
    else:
        if report.rebuilt:
            session.say(clean(f"built anew: {report.rebuilt}"))
        changed = f"{report.added} files added, {report.updated} updated, {report.removed} removed"
        session.say(f"{report.docs} documents; {changed}; {report.elapsed_ms:.0f} ms")
    if report.wordless:
        session.note(clean(f"recall goes by words alone: {report.wordless}"))
    if report.graphless:
        session.note(clean(f"each question compares every vector: {report.graphless}"))
    for finding in report.skipped:
        session.note(clean(f"left out: {finding}"))
    if report.skipped:
        ctx.exit(1)
