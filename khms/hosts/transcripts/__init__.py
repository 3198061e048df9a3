"""What agent hosts keep of their sessions: one module a host, each a reader, and one row of the table here.

A transcript is somebody else's file, of any size, often still being written: it is read as a stream, from a position
on, and whatever is not told is counted with the reason. `base` says what a reader offers. Plain logs, which belong to
no host, are read by `logs`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.hosts.transcripts.base import Reader

READERS = {
    "claude-code": "khms.hosts.transcripts.claude_code",
    "codex": "khms.hosts.transcripts.codex",
    "gemini": "khms.hosts.transcripts.gemini",
    "copilot": "khms.hosts.transcripts.copilot",
    "opencode": "khms.hosts.transcripts.opencode",
}


def reader(host: str) -> Reader | None:
    """The reader of this host's transcripts; None where there is none yet."""
    if host not in READERS:
        return None
    module: Reader = __import__(READERS[host], fromlist=["sessions"])
    return module
