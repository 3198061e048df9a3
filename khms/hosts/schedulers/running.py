"""What a scheduler starts: one job of one base, in the environment that was recorded, with a log.

The job is a process of its own, so that the log tells of its end however it ends. One line on standard error says what
failed: cron mails it, systemd keeps it.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from khms.errors import KhmsError, Refused, Unavailable
from khms.hosts.schedulers import joblog, record
from khms.store import layout, local, trust
from khms.store.layout import Base


def run(root: str, job: str, path: Path) -> int:
    """Does the job of the base at `root` and returns its exit code; `path` is the record. Raises KhmsError where it was
    not begun, with a line in the base's log, or beside the record where there is no base any more."""
    own = path.with_suffix(".log")
    try:
        held = record.load(path)
        if held is None:
            what = "the record of this schedule is gone"
            raise Unavailable(what, where=str(path), hint=f"khms --root {root} schedule install")
        os.environ.update(held.environment)
        base = _base(root, held)
        local.make(base)
        own = joblog.path(base, job)
        demand_trust(base, held)
        with joblog.opened(own) as log:
            return _run(base, job, log)
    except KhmsError as error:
        with contextlib.suppress(KhmsError, OSError), joblog.opened(own) as log:
            joblog.tell(log, job, joblog.ended(error.exit_code, f"{error.message}: {error.where or root}"))
        raise


def command(root: str, job: str) -> tuple[str, ...]:
    """The job as a person would type it, by this very khms. `-P`: what stands in the folder that a scheduler happens to
    start it in is not imported."""
    return (sys.executable, "-P", "-m", "khms", "--root", root, job)


def demand_trust(base: Base, held: record.Record) -> None:
    """Raises Refused where the settings that name programs, addresses and models are neither those that were scheduled
    nor those that were trusted since. They can come with a pull, and nobody is there to look at them."""
    if trust.config_sha256(base) == held.trusted:
        return
    entry = trust.entry(base)
    if entry is None or entry["config_sha256"] != trust.config_sha256(base):
        raise Refused(
            "the base's settings that need trust have changed since it was scheduled",
            where=str(base.config),
            hint=f"look at them, then: khms --root {base.root} schedule install",
        )


def _base(root: str, held: record.Record) -> Base:
    try:
        base = layout.named(Path(root))
    except (Unavailable, OSError) as error:
        hint = f"where it is gone for good: khms --root {root} schedule uninstall"
        raise Unavailable("the scheduled base is not there any more", where=root, hint=hint) from error
    if str(base.root) != held.root:
        raise Unavailable("the scheduled base is not there any more", where=root, hint="khms schedule install")
    return base


def _run(base: Base, job: str, log: int) -> int:
    joblog.tell(log, job, "started")
    start = os.fstat(log).st_size
    child = subprocess.Popen(
        command(str(base.root), job), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=base.root
    )

    def stop(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    if code < 0:
        joblog.tell(log, job, joblog.ended(128 - code, f"ended by {signal.Signals(-code).name}"))
        code = 128 - code
    else:
        joblog.tell(log, job, joblog.ended(code, joblog.reason(log, start) if code else ""))
    if code:
        print(f"khms: {job} of {base.root} ended with {code}: see {joblog.path(base, job)}", file=sys.stderr)
    return code
