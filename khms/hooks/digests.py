"""Where the record of a session lies, kept for the nightly run when the host is about to cut it down or to close it.

One small file a session in the base's `.khms/run`. Nothing of what was said is in it, and there is none of a session
that is left alone (`sessions.is_off`): whoever reads these files asks that again, for it may have been switched later.
"""

import json
import time
from pathlib import Path

from khms.hooks import sessions
from khms.hosts.base import Event
from khms.store import files, local
from khms.store.layout import Base

SCHEMA = "khms.digest-pointer/1"
NAMED = "digest-"


def folder(base: Base) -> Path:
    return base.local / "run"


def keep(base: Base, event: Event) -> str:
    """Writes the session's file anew; one word on what came of it. Raises Unavailable where nothing can be written."""
    if not event.session:
        return "no-session"
    path = Path(event.transcript)
    if not (path.is_absolute() and _is_file(path)):
        return "no-transcript"
    value = {
        "schema": SCHEMA,
        "host": event.host,
        "session": event.session,
        "transcript": event.transcript,
        "cwd": event.cwd,
        "moment": event.moment,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    local.make(base)
    files.make_folder(folder(base))
    target = folder(base) / f"{NAMED}{sessions.key(event.session)}.json"
    files.write_atomic(target, (json.dumps(value) + "\n").encode("ascii"), 0o600)
    return "captured"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
