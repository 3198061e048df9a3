"""How a job last ended on this machine, for whoever asks whether it is overdue."""

import json

from khms.pipeline.record import now
from khms.store import files
from khms.store.layout import Base


def remember(base: Base, job: str, run: str, error: str) -> None:
    """Writes down that `job` ended now: well where `error` is empty. `success` is when a run last ended well."""
    path = base.state / f"{job}.json"
    for leftover in base.state.glob(f"{files.TEMPORARY}*-{path.name}") if base.state.is_dir() else ():
        files.unlink(leftover)
    at = now()
    value = {"at": at, "run": run, "ok": not error, "error": error, "success": success(base, job) if error else at}
    files.write_atomic(path, (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8"))


def success(base: Base, job: str) -> str | None:
    """When the job last ended well; None where it never did, or where that cannot be read."""
    try:
        held = files.read_json(base.state / f"{job}.json")
        return str(held["success"]) if held["success"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
