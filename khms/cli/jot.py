"""`khms mark KIND TEXT` in its plain form, without the command line library: it is paid for on every note."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from khms import cli
from khms.errors import Refused, Unavailable
from khms.model.mark import Mark, normalise, parse_marks, split_session
from khms.model.redact import redact
from khms.store import journal, layout, local
from khms.store.layout import Base
from khms.values import dataclass

LONGEST = 20_000  # characters of one MARK; a journal file holds 262,144 bytes
# What agent hosts call the session in the environment of what they run.
SESSIONS = (
    "CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "CODEX_THREAD_ID", "COPILOT_SESSION_ID", "CURSOR_SESSION_ID",
    "OPENCODE_SESSION_ID", "KIRO_SESSION_ID", "HERMES_SESSION_ID", "OPENCLAW_SESSION_ID",
)  # fmt: skip
SHORT = 8  # characters of a session's id that are kept


@dataclass(frozen=True, slots=True)
class Jotted:
    """A MARK that now stands in the journal file `path`; `redacted` says that something in it was taken out."""

    mark: Mark
    path: Path
    redacted: bool


def jot(kind: str, text: str) -> int:
    """Adds a MARK to the base at hand and prints where it stands; returns the exit code."""

    def work() -> int:
        tell(write(_base(), kind, text, session(os.environ)))
        return 0

    return cli.guard(work, ["mark", kind, text])


def write(base: Base, kind: str, text: str, session: str = "") -> Jotted:
    """Adds one MARK to today's journal. Raises Refused for a kind or text that would not read back as a MARK,
    Unavailable where the journal cannot be written, Busy while another writer holds it for long."""
    said = _writable(text)
    if len(said) > LONGEST:
        raise Refused(
            f"this MARK has {len(said):,} characters, more than {LONGEST:,}",
            hint="keep the gist, and put the rest into a note of its own",
        )
    clean = redact(said)
    kind = _writable(kind)
    line = journal.mark_line(kind, clean, _short(session))
    local.make(base)
    path = journal.append(base, line)
    text, _ = split_session(normalise(clean))
    marks = parse_marks(path.read_bytes().decode("utf-8-sig", "replace"), base.relative(path))
    mine = [mark for mark in marks if mark.kind == kind and mark.text == text]
    if not mine:
        raise Unavailable(
            "the line was written, but does not read back as a MARK",
            where=str(path),
            hint="is there a code fence that was never closed?",
        )
    return Jotted(mine[-1], path, clean != said)


def tell(jotted: Jotted) -> None:
    """One line on standard output: the id, the file and the line. On standard error, that a secret was taken out."""
    from khms.cli.output import clean

    print(f"{jotted.mark.id}  {clean(str(jotted.path))}:{jotted.mark.line}")
    if jotted.redacted:
        print("khms: what looks like a secret was replaced by [redacted:…] before it was written", file=sys.stderr)


def session(env: Mapping[str, str]) -> str:
    """The agent session that this process runs in, empty outside of one."""
    return next((env[name] for name in SESSIONS if env.get(name)), "")


def _base() -> Base:
    """The base that the command is about, without reading any configuration where one is named or near."""
    found = layout.find(None, Path.cwd())
    if found is not None:
        return found
    from khms.cli.session import Session

    return Session(None, Path.cwd()).base


def _short(session: str) -> str:
    return "".join(char for char in session if char.isascii() and (char.isalnum() or char in "-_"))[:SHORT]


def _writable(text: str) -> str:
    """`text` as UTF-8 can hold it, without control characters other than white space."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or not (c < " " or "\x7f" <= c < "\xa0"))
