"""`khms calibrate`: from which score on hooks speak, from evidence."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from khms.cli.output import one_line, print_json, table
from khms.cli.progress import progress
from khms.cli.session import Session
from khms.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from khms.measure.calibrate import Found, Point, Setting, Ways

GOLDEN = "golden.jsonl"


@click.command()
@click.option(
    "--golden", "file", type=click.Path(path_type=Path), help=f"Golden queries; else the base's own {GOLDEN}."
)
@click.option(
    "--channel",
    type=click.Choice(["hybrid", "lexical"]),
    default="hybrid",
    show_default=True,
    help="How hooks ask: hybrid with a server, lexical without.",
)
@click.option("--apply", "write", is_flag=True, help="Write what is better into khms.toml.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, with every curve.")
@click.pass_obj
def calibrate(session: Session, file: Path | None, channel: str, write: bool, as_json: bool) -> None:
    """Show what hooks would say at each threshold, and propose the figures of hooks.*_threshold and recall.floor.

    It goes by golden queries (khms eval), those with an empty gold standing for what nothing here answers, and by the
    scores of what hooks were silent about (.khms/log/inject.jsonl). Nothing is changed without --apply, and with it
    only where the proposal is better by a hundredth of its value over enough lines.

    \b
    khms calibrate --golden golden.jsonl
    khms calibrate --channel lexical --apply
    """
    from khms.measure import calibrate as measure
    from khms.measure import golden

    path = session.cwd / file if file else session.base.path(GOLDEN)
    lines = golden.load(path) if file or path.exists() else ()
    with progress("golden queries", quiet=session.quiet or as_json) as told:
        found = measure.calibrate(session.base, session.config, lines, _ways(session, channel == "hybrid"), told)
    if not found:
        raise Refused(
            "there is nothing to go by: no golden query, and no silence in the log of hooks",
            where=str(path),
            hint="khms eval make golden.jsonl drafts queries to correct",
        )
    done = _apply(session, found) if write else {}
    if as_json:
        settings = [setting.as_json() for setting in found]
        drafts = sum(line.draft for line in lines)
        head = {"schema": measure.SCHEMA, "channel": channel, "golden": len(lines), "drafts": drafts}
        print_json({**head, "settings": settings, "applied": dict(done)})
        return
    for setting in found:
        _show(session, setting)
    session.say("unrelated, silences: the share of them that would be answered")
    if drafts := sum(line.draft for line in lines):
        session.note(f"{drafts} of the golden queries are drafts in the cards' own words: the figures flatter")
    _tell(session, found, done, write)


def _ways(session: Session, by_meaning: bool) -> "Ways":
    """How hooks make a question, and what they choose of what they find, by their own functions."""
    from khms.hooks import budget, query
    from khms.measure.calibrate import Ways

    config, limit = session.config, session.config["hooks.query_chars"]

    def questions(moment: str, text: str) -> "Sequence[str]":
        if moment == "shell":
            return query.from_command(text, limit)
        if moment == "edit":
            path, _, put_in = text.partition(" ")
            return query.from_edit(path, "", put_in, limit)
        return query.from_prompt(text, limit)

    def chosen(found: "Found", threshold: float) -> "Sequence[str]":
        pointers = [budget.Pointer(name, score, "") for name, score in found]
        choice = budget.choose(budget.SessionState(), config, threshold, pointers, config["hooks.chars"], 0.0)
        return [pointer.id for pointer in choice.pointers]

    return Ways(questions, chosen, by_meaning)


def _apply(session: Session, found: "Sequence[Setting]") -> "Mapping[str, float]":
    from khms.measure.calibrate import changed
    from khms.store import files

    path = session.base.config
    try:
        text = files.read(path).decode("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"this configuration cannot be read: {error}", where=str(path)) from error
    new, done = changed(text, found, str(path))
    if done:
        files.write_atomic(path, new.encode("utf-8"))
    return done


def _show(session: Session, setting: "Setting") -> None:
    session.say(f"{setting.name}: now {_figures(setting.current)}")
    if setting.proposed:
        session.say(f"  proposed {_figures(setting.proposed)}" + ("" if setting.better else ": no better"))
    session.say(f"  {setting.why}")
    rows = [
        (
            f"{p.threshold:.2f}",
            *map(_percent, (p.precision, p.recall, p.unrelated, p.silences, p.pointers)),
            f"{p.value:.3f}",
        )
        for p in setting.curve
    ]
    table(("threshold", "precision", "recall", "unrelated", "silences", "pointers right", "value"), rows)
    session.say()


def _figures(point: "Point") -> str:
    return f"{point.threshold:g} (precision {_percent(point.precision)}, recall {_percent(point.recall)})"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _tell(session: Session, found: "Sequence[Setting]", done: "Mapping[str, float]", write: bool) -> None:
    for name, value in done.items():
        session.say(one_line(f"{session.base.config}: {name} = {value:g}"))
    better = [setting for setting in found if setting.better]
    if write and not done:
        enough = any(setting.proposed for setting in found)
        why = "nothing is better than what is set" if enough else "there is too little to go by for any proposal"
        session.say(f"nothing was changed: {why}")
    elif better and not write:
        session.say("next: the same with --apply, or khms config set " + _command(better[0]))


def _command(setting: "Setting") -> str:
    return f"{setting.name} {setting.proposed.threshold:g}" if setting.proposed else ""
