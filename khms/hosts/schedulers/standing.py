"""How a base's schedule stands: what is there, when it last ran and how that ended, when it runs next. Reads only."""

import datetime
from dataclasses import asdict, dataclass
from typing import Any

from khms.errors import Busy, KhmsError
from khms.hosts.schedulers import installing, joblog, record, registry
from khms.hosts.schedulers.joblog import Run
from khms.store.layout import Base


@dataclass(frozen=True, slots=True)
class Job:
    """`there` says whether the scheduler holds it still; `next` is empty where it does not."""

    job: str
    when: str
    there: bool
    next: str
    last: Run | None
    log: str

    @property
    def failed(self) -> bool:
        """Whether its last run ended badly. One that found another at work did not."""
        return self.last is not None and self.last.code not in (None, 0, Busy.exit_code)


@dataclass(frozen=True, slots=True)
class Standing:
    """`why` says why it cannot be told what the scheduler holds."""

    scheduler: str
    name: str
    since: str
    jobs: tuple[Job, ...]
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def standing(base: Base) -> Standing | None:
    """The schedule of the base, None where it has none. Raises Unavailable where its record cannot be read."""
    name = record.name(base.root)
    held = record.load(record.place(name))
    if held is None:
        return None
    why = ""
    try:
        there = registry.scheduler(held.scheduler).jobs(name)
    except KhmsError as error:
        there, why = frozenset(), error.message
    now = datetime.datetime.now().astimezone()
    jobs = tuple(_job(base, job, when, job in there, now) for job, when in held.jobs.items())
    return Standing(held.scheduler, name, held.since, jobs, why)


def _job(base: Base, job: str, when: str, there: bool, now: datetime.datetime) -> Job:
    read = installing.JOBS.get(job, (None, ""))[0]
    following = read(when).after(now).isoformat(timespec="minutes") if read and there else ""
    return Job(job, when, there, following, joblog.last(base, job), str(joblog.path(base, job)))
