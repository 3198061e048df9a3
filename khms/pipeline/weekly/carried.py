"""A weekly run that was begun and not finished: `.khms/carry/weekly/<run>/`, with its start and every reply that the
proposer's agent gave. What the other steps find is found again, from the cards as they are."""

import datetime
import json
from pathlib import Path

from khms.model.ulid import is_ulid, new_ulid, ulid_milliseconds
from khms.pipeline.carry import Run
from khms.pipeline.record import now
from khms.store import files
from khms.store.layout import Base

FOLDER = "weekly"
SCHEMA = "khms.weekly-carry/1"
RUN = "run.json"


def folder(base: Base, run: Run) -> Path:
    return base.carry / FOLDER / run.id


def unfinished(base: Base) -> Run | None:
    """The oldest run that was begun here and never finished; where its start cannot be read, its id tells it."""
    place = base.carry / FOLDER
    for path in sorted(place.iterdir()) if place.is_dir() else []:
        if is_ulid(path.name):
            return Run(path.name, _started(path), resumed=True)
    return None


def _started(path: Path) -> str:
    try:
        started = str(files.read_json(path / RUN)["started"])
        datetime.datetime.fromisoformat(started)
    except (OSError, ValueError, KeyError, TypeError):
        moment = datetime.datetime.fromtimestamp(ulid_milliseconds(path.name) / 1000)
        return moment.astimezone().isoformat(timespec="seconds")
    return started


def begin(base: Base) -> Run:
    run = Run(new_ulid(), now())
    value = {"schema": SCHEMA, "run": run.id, "started": run.started}
    files.write_atomic(folder(base, run) / RUN, (json.dumps(value, indent=1) + "\n").encode("utf-8"))
    return run


def finish(base: Base, run: Run) -> None:
    files.remove_tree(folder(base, run))
