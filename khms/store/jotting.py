"""Adding a MARK to the journal: what is written, by whatever surface it came in."""

from pathlib import Path

from khms.errors import Refused, Unavailable
from khms.model.mark import Mark, normalise, parse_marks, split_session
from khms.model.redact import redact
from khms.store import journal, local
from khms.store.layout import Base
from khms.values import dataclass

LONGEST = 20_000  # characters of one MARK; a journal file holds 262,144 bytes
SHORT = 8  # characters of a session's id that are kept


@dataclass(frozen=True, slots=True)
class Jotted:
    """A MARK that now stands in the journal file `path`; `redacted` says that something in it was taken out."""

    mark: Mark
    path: Path
    redacted: bool


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


def _short(session: str) -> str:
    return "".join(char for char in session if char.isascii() and (char.isalnum() or char in "-_"))[:SHORT]


def _writable(text: str) -> str:
    """`text` as UTF-8 can hold it, without control characters other than white space."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or not (c < " " or "\x7f" <= c < "\xa0"))
