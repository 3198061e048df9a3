"""Decisions made durable before anything is published: one fsynced JSON file a MARK, in a folder named by the run.

A killed run is resumed under its own id and start, so that what it decided counts and what it will publish has the
same bytes. The folder goes when the commit stands.
"""

import datetime
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from khms.model.finding import Finding
from khms.model.ulid import is_ulid, new_ulid, ulid_milliseconds
from khms.model.verdict import Verdict, verdict_from
from khms.pipeline.cursors import Cursor, advance, cursor_from
from khms.pipeline.digest import Chunk, chunk_from
from khms.pipeline.gathering import Gathered, gathered_from
from khms.pipeline.record import now
from khms.pipeline.sources import Window
from khms.store import files, schema
from khms.store.layout import Base

SCHEMA = "khms.carry/1"
RUN, GATHERED, AFTER = "run.json", "gathered.json", "after.json"
UNDECIDED, FOUND = "undecided", "found"


@dataclass(frozen=True, slots=True)
class Run:
    """A run by its id and its start (ISO 8601 with zone), the one clock of all that it writes. `resumed` says that an
    earlier process began it."""

    id: str
    started: str
    resumed: bool = False

    @property
    def day(self) -> str:
        return self.started[:10]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one MARK. `label` is the candidate's, where the verdict makes one; `nearest` the ids of
    the cards that came near, `shown` what the packet still held of cards and candidates, `over` whether the MARK alone
    was beyond its target, `held_back` what screening found in the MARK itself."""

    mark: str
    verdict: Verdict
    label: str = ""
    proposer: str = ""
    nearest: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    over: bool = False
    held_back: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "mark": self.mark,
            "label": self.label,
            "proposer": self.proposer,
            "nearest": list(self.nearest),
            "shown": list(self.shown),
            "over": self.over,
            "held_back": list(self.held_back),
            "verdict": self.verdict.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Carried:
    """An unfinished run: its decisions by MARK, and the carry files that cannot be read."""

    run: Run
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    broken: tuple[Finding, ...] = ()


def unfinished(base: Base) -> Carried | None:
    """The oldest run that was begun here and never finished; None where there is none."""
    for folder in sorted(base.carry.iterdir()) if base.carry.is_dir() else []:
        if is_ulid(folder.name):
            return _load(base, *_run(base, folder.name))
    return None


def _run(base: Base, run: str) -> tuple[Run, tuple[Finding, ...]]:
    """The run as run.json tells it; where that is missing or broken its id still tells when it began."""
    file = base.carry / run / RUN
    try:
        started = str(files.read_json(file)["started"])
        datetime.datetime.fromisoformat(started)
    except FileNotFoundError:
        return Run(run, _began(run), resumed=True), ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = _broken(base, file, error, "its start is taken from the run's id")
        return Run(run, _began(run), resumed=True), (said,)
    return Run(run, started, resumed=True), ()


def _began(run: str) -> str:
    moment = datetime.datetime.fromtimestamp(ulid_milliseconds(run) / 1000)
    return moment.astimezone().isoformat(timespec="seconds")


def _broken(base: Base, file: Path, error: Exception, instead: str) -> Finding:
    return Finding("KH001", "warning", base.relative(file), 0, f"this cannot be read ({error}); {instead}", "")


def _load(base: Base, run: Run, problems: tuple[Finding, ...]) -> Carried:
    decisions, broken = {}, [*problems]
    for file in sorted((base.carry / run.id).glob("M-*.json")):
        try:
            decision = decision_from(files.read_json(file))
            if decision.mark != file.stem:
                raise ValueError(f"it holds the decision about {decision.mark}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            broken.append(_broken(base, file, error, "its MARK is decided anew"))
        else:
            decisions[decision.mark] = decision
    return Carried(run, decisions, tuple(broken))


def decision_from(value: Mapping[str, Any]) -> Decision:
    """The decision that one parsed file holds; raises KeyError or ValueError for what is none."""
    if value["schema"] != SCHEMA:
        raise ValueError("it is of another form")
    if wrong := schema.problems("verdict", value["verdict"]):
        raise ValueError(wrong[0][1])
    return Decision(
        mark=str(value["mark"]),
        verdict=verdict_from(value["verdict"]),
        label=str(value["label"]),
        proposer=str(value["proposer"]),
        nearest=tuple(map(str, value["nearest"])),
        shown=tuple(map(str, value["shown"])),
        over=bool(value["over"]),
        held_back=tuple(map(str, value["held_back"])),
    )


def begin(base: Base, window: Window, proposer: str) -> Run:
    """Starts a run and writes down that it began."""
    run = Run(new_ulid(), now())
    value = {
        "schema": SCHEMA,
        "run": run.id,
        "started": run.started,
        "proposer": proposer,
        "since": window.since,
        "only_mark": window.only_mark,
    }
    _write(base, run, RUN, value)
    return run


def keep(base: Base, run: Run, decision: Decision) -> None:
    """Makes one decision durable; when this returns, no kill undoes it."""
    _write(base, run, f"{decision.mark}.json", decision.as_json())


def _write(base: Base, run: Run, name: str, value: Mapping[str, Any]) -> None:
    """In ASCII: a transcript's name among the values need not be text in any encoding. Pieces of sessions are nobody
    else's to read."""
    files.write_atomic(base.carry / run.id / name, (json.dumps(value, indent=1) + "\n").encode("ascii"), 0o600)


def keep_gathered(base: Base, run: Run, data: bytes) -> None:
    """Makes durable what was gathered from sessions, so that a resumed run asks about the same pieces."""
    path = base.carry / run.id / GATHERED
    if not path.exists():
        files.write_atomic(path, data, 0o600)


def gathered(base: Base, run: Run) -> Gathered | None:
    """What an earlier process of the run gathered; None where it did not come so far, or where that is unreadable."""
    try:
        return gathered_from(files.read_json(base.carry / run.id / GATHERED))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class After:
    """What is to be done once a run's commit stands: where the cursors go, and the pieces of sessions with MARKs that
    nobody decided yet, each with the answer that found them. They are decided by a later run, which need not ask for
    them again."""

    moved: Mapping[str, Cursor] = field(default_factory=dict)
    found: tuple[tuple[Chunk, Mapping[str, Any]], ...] = ()


def keep_after(base: Base, run: Run, after: After) -> None:
    """Writes it down before the commit: a run that is killed right behind its commit still does it."""
    moved = {key: cursor.as_json() for key, cursor in after.moved.items()}
    found = [{"chunk": chunk.as_json(), "answer": answer} for chunk, answer in after.found]
    _write(base, run, AFTER, {"schema": SCHEMA, "moved": moved, "found": found})


def settle(base: Base, run: Run) -> None:
    """Does what `keep_after` wrote down; doing it twice is doing it once."""
    try:
        value = files.read_json(base.carry / run.id / AFTER)
        moved = {str(key): cursor_from(row) for key, row in value["moved"].items()}
        found = [(chunk_from(one["chunk"]), one) for one in value["found"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    kept = {f"{chunk.id}.json" for chunk, _ in found}
    for chunk, one in found:
        text = json.dumps({"schema": SCHEMA, **one}) + "\n"
        files.write_atomic(base.carry / FOUND / f"{chunk.id}.json", text.encode("ascii"), 0o600)
    for path in sorted((base.carry / FOUND).glob("*.json")):
        if path.name not in kept:
            files.unlink(path)
    advance(base, moved)


def found_before(base: Base) -> list[tuple[Chunk, dict[str, Any]]]:
    """The pieces whose MARKs earlier runs left open, with the answer that found them; an unreadable one is none."""
    held = []
    for path in sorted((base.carry / FOUND).glob("[!.]*.json")):
        try:
            value = files.read_json(path)
            answer = dict(value["answer"])
            if not schema.problems("generated", answer):
                held.append((chunk_from(value["chunk"]), answer))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return held


def finish(base: Base, run: Run, left: Collection[str] = ()) -> None:
    """Removes what was carried: it is published, or there was nothing to publish. What was answered about the MARKs in
    `left`, which no answer decided, is put aside."""
    for name in sorted(left):
        asked = base.carry / run.id / "asked" / f"{name}.json"
        if asked.is_file():
            files.make_folder(base.carry / UNDECIDED)
            files.rename(asked, base.carry / UNDECIDED / asked.name)
    files.remove_tree(base.carry / run.id)
