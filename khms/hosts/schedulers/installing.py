"""Putting a base's jobs into a scheduler, and taking them out: all of it, or nothing."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from khms.errors import KhmsError, Refused, Unavailable, Usage
from khms.hosts.schedulers import base as values
from khms.hosts.schedulers import record, registry
from khms.hosts.schedulers.base import Entry, Scheduler, When
from khms.store import files, lock, trust
from khms.store.layout import Base

# job -> (how its time is read, its time where none is named)
JOBS = {"nightly": (values.daily, "03:15"), "weekly": (values.weekly, "Sun 04:00")}
OFF = "off"


@dataclass(frozen=True, slots=True)
class Done:
    """`changed` says whether the scheduler holds something else than before, `left` which other one was emptied."""

    scheduler: Scheduler
    changed: bool
    left: str = ""


def install(base: Base, kind: str | None, asked: Mapping[str, str | None]) -> Done:
    """Schedules the base's jobs with the scheduler `kind`, or one that the machine has. `asked` names times; a job
    without one keeps the time that it has, else gets the usual one. Raises Usage for a time that is none, Refused for
    a base that is not trusted or a path that no scheduler can hold, Unavailable where the scheduler fails."""
    if why := trust.why_not(base):
        raise Refused(f"this base is not scheduled: {why}", where=str(base.root), hint="khms trust")
    base = replace(base, root=base.root.resolve())
    path = record.place(record.name(base.root))
    with _alone(path):
        before = record.load(path)
        times = _times(asked, before)
        chosen = registry.scheduler(kind) if kind else _chosen(before)
        if why := chosen.why_not():
            raise Unavailable(f"{chosen.ID} cannot be used here: {why}", hint="khms schedule install picks what can")
        entries = [Entry(job, when, path.stem, str(base.root), argv(base, job, path)) for job, when in times.items()]
        _demand_writable(entries)
        _demand_start()
        new = record.Record(
            root=str(base.root),
            scheduler=chosen.ID,
            jobs={job: str(when) for job, when in times.items()},
            since=record.now(),
            trusted=trust.config_sha256(base),
            environment=record.environment(),
        )
        if before and (before.scheduler, before.jobs) == (new.scheduler, new.jobs):
            new = replace(new, since=before.since)
        changed = _put(chosen, entries, path, before, new)
        other = before.scheduler if before and before.scheduler != chosen.ID else ""
        left = other if other and registry.scheduler(other).uninstall(path.stem) else ""
    return Done(chosen, changed, left)


def uninstall(root: Path, kind: str | None) -> list[str]:
    """Takes the jobs of the base at `root`, which may be gone, out of the scheduler `kind`, or of every one that the
    machine has; returns where there were any. Its logs stay."""
    path = record.place(record.name(root))
    found = []
    with _alone(path):
        before = record.load(path)
        for name in [kind] if kind else registry.SCHEDULERS:
            scheduler = registry.scheduler(name)
            usable = kind or not scheduler.why_not() or (before and before.scheduler == name)
            if usable and scheduler.uninstall(path.stem):
                found.append(name)
        if before and (kind is None or before.scheduler == kind):
            files.unlink(path)
            files.unlink(path.with_suffix(".log"))
    return found


def argv(base: Base, job: str, path: Path) -> tuple[str, ...]:
    """What a scheduler runs for a job. The record's path comes last, and tells whose line it is."""
    root = str(base.root)
    return (sys.executable, "-P", "-m", "khms", "--root", root, "schedule", "run", job, "--record", str(path))


def _chosen(before: record.Record | None) -> Scheduler:
    """The one that has the jobs already, as long as it can be used."""
    if before and before.scheduler in registry.SCHEDULERS:
        held = registry.scheduler(before.scheduler)
        if not held.why_not():
            return held
    return registry.choose()


def _times(asked: Mapping[str, str | None], before: record.Record | None) -> dict[str, When]:
    found = {}
    for job, (read, usual) in JOBS.items():
        text = asked.get(job)
        if text is None:
            text = before.jobs.get(job, OFF) if before else usual
        if text.strip().lower() != OFF:
            found[job] = read(text)
    if not found:
        raise Usage("nothing is left to schedule", hint="khms schedule uninstall")
    return found


def _put(
    scheduler: Scheduler, entries: Sequence[Entry], path: Path, before: record.Record | None, new: record.Record
) -> bool:
    """The record first: an entry always names one that is there."""
    if new != before:
        record.save(path, new)
    try:
        return scheduler.install(path.stem, entries)
    except BaseException:
        with contextlib.suppress(KhmsError):
            if before is None:
                files.unlink(path)
            else:
                record.save(path, before)
        raise


def _demand_writable(entries: Sequence[Entry]) -> None:
    for word in (word for entry in entries for word in entry.argv):
        if not word.isprintable():
            what = "no scheduler can hold this path: it has a character that is no text"
            raise Refused(what, where=ascii(word), hint="rename the folder")


def _demand_start() -> None:
    """Raises Unavailable where khms does not start as a scheduler would start it."""
    bare = {"HOME": os.environ.get("HOME", "/"), "PATH": "/usr/bin:/bin"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "khms", "version"],
            env=bare, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        said = "" if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        failed = done.returncode != 0
    except OSError as error:
        said, failed = str(error), True
    if failed:
        raise Unavailable(
            f"khms does not start without the environment of this shell: {said}",
            where=sys.executable,
            hint="install it (pip install, uv tool install, pipx), then run the command again",
        )


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One change of this user's schedules at a time: two would read the same crontab."""
    files.make_folder(path.parent, 0o700)
    with lock.hold(path.parent / "lock", "schedule", wait=10.0):
        yield
