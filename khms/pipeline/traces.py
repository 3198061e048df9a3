"""Where else in a base certain words stand, and what those files are without them.

A file is changed whole or not at all; what must stay as it is (approval records, settings, signers, what nobody
committed yet) is named with the reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from khms.check import ahead
from khms.errors import KhmsError
from khms.model.approval import Approval, Transition, candidate_sha256
from khms.model.mark import parse_marks
from khms.model.receipt import Receipt, decided
from khms.pipeline.striking import claimed, forms, struck, struck_page
from khms.store import inbox, tracked
from khms.store.layout import APPROVALS, ARCHIVE, CONFIG, INBOX, JOURNAL, KNOW, RECEIPTS, SIGNERS, VIEWS, Base
from khms.store.receipts import Ledger
from khms.store.repo import Repo

CARDS = (f"{KNOW}/", f"{ARCHIVE}/")
GENERATED = (f"{VIEWS}/", "MEMORY.md")


@dataclass(frozen=True, slots=True)
class Trace:
    """A file that holds the words: on which lines, and its bytes without them. `kept` says why it stays as it is."""

    path: str
    lines: tuple[int, ...]
    before: bytes
    after: bytes | None = None
    kept: str = ""

    @property
    def is_card(self) -> bool:
        return self.path.startswith(CARDS)


def traces(base: Base, repo: Repo, words: Sequence[str], card: str) -> list[Trace]:
    """Every file that git tracks or would add and that holds the words, in the order of their paths; the card at the
    path `card` and what is made of the cards apart."""
    held, claims = forms(words), claimed(words)
    needles = tuple({form.encode("utf-8", "surrogateescape") for form in (*held, *claims)})
    dirty = set(repo.dirty(".")) if repo.head() is not None else set()
    found: list[Trace] = []
    for path in tracked.listing(base, repo):
        entry = tracked.entry(base, path)
        if entry is None or entry.link is not None or path == card or path.startswith(GENERATED):
            continue
        if not any(needle in entry.data for needle in needles):
            continue
        found += _trace(path, entry.data, (*held, *claims) if path.startswith(RECEIPTS + "/") else held, dirty)
    return found


def _trace(path: str, data: bytes, held: Sequence[str], dirty: set[str]) -> Iterator[Trace]:
    text = ahead.text_of(data)
    fresh, kept = _without(path, text, held)
    if fresh == text and not kept:
        return
    kept = kept or _kept(path, data, dirty)
    lines = _lines(text, held) or _differing(text, fresh)
    yield Trace(path, lines, data, None if kept else fresh.encode("utf-8"), kept)


def _without(path: str, text: str, held: Sequence[str]) -> tuple[str, str]:
    """The text without the words, or why it stays. A candidate that reads as no page is taken as plain text."""
    if not path.endswith(".md") or not path.startswith((*CARDS, INBOX + "/")):
        return struck(text, held), ""
    try:
        return struck_page(text, held, path), ""
    except KhmsError as error:
        return (text, error.message) if path.startswith(CARDS) else (struck(text, held), "")


def _kept(path: str, data: bytes, dirty: set[str]) -> str:
    if path.startswith(APPROVALS + "/"):
        return "an approval record never changes; only rewriting history takes it out"
    if path in (CONFIG, SIGNERS):
        return "trust hangs on it; change it by hand"
    if not ahead.is_text(data):
        return "this is no text"
    if path in dirty and not path.startswith((f"{INBOX}/", f"{JOURNAL}/")):
        return "it holds changes that are not committed"
    return ""


def _lines(text: str, held: Sequence[str]) -> tuple[int, ...]:
    """The lines on which the words begin."""
    found = set()
    for form in held:
        at = text.find(form)
        while at >= 0:
            found.add(text.count("\n", 0, at) + 1)
            at = text.find(form, at + len(form))
    return tuple(sorted(found))


def _differing(old: str, new: str) -> tuple[int, ...]:
    """The first line that differs, where the words stand in another spelling."""
    pairs = zip(old.split("\n"), new.split("\n"), strict=False)
    return (next((number for number, (a, b) in enumerate(pairs, 1) if a != b), 1),)


def marks(found: Sequence[Trace], ledger: Ledger, run: str, at: str) -> list[Receipt]:
    """The receipts that keep a MARK decided whose text, and with it whose id, changes."""
    held = decided(ledger.receipts)
    receipts = []
    for trace in found:
        if trace.after is None or not trace.path.startswith(JOURNAL + "/"):
            continue
        old = parse_marks(ahead.text_of(trace.before), trace.path)
        new = parse_marks(ahead.text_of(trace.after), trace.path)
        if len(old) != len(new):
            continue
        for before, after in zip(old, new, strict=True):
            if before.id != after.id and before.id in held:
                reason = f"it was {before.id} before words were taken out of it"
                receipts.append(replace(held[before.id], mark=after.id, run=run, at=at, reason=reason))
    return receipts


def candidates(found: Sequence[Trace], records: Sequence[Approval], why: str) -> list[Transition]:
    """The recorded changes of candidates that cards came from: their bytes differ from now on."""
    known = {(record.unit, card.label): card for record in records for card in record.cards}
    made = []
    for trace in found:
        if trace.after is None or not trace.path.startswith(INBOX + "/"):
            continue
        after = _hashes(trace.path, trace.after)
        for place, old in _hashes(trace.path, trace.before).items():
            card = known.get(place)
            new = after.get(place, "")
            if card is not None and old != new:
                made.append(Transition(card.id, "candidate_sha256", old, new, why))
    return made


def _hashes(path: str, data: bytes) -> Mapping[tuple[str, str], str]:
    """(unit, label) -> the hash of each candidate in an inbox file."""
    folder, _, name = path.rpartition("/")
    if folder == INBOX:
        unit = inbox.single(data, name.removesuffix(".md"), path)
        return {(path, c.label): candidate_sha256(c.text.encode("utf-8")) for c in unit.candidates}
    return {(folder, name.removesuffix(".md")): candidate_sha256(data)}
