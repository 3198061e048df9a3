"""Bringing the index up to date with the files: what a refresh costs is what has changed.

The order makes it safe to be killed anywhere. The look at folders and git comes first, so a later write always shows as
newer. Tantivy commits, then the manifest is renamed into place. A process that dies in between leaves index files that
the manifest does not know, which the next refresh sees, and builds again. A rebuild goes into a new folder, so readers
keep the old index until the manifest names the new one.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from khms.config import load
from khms.errors import Busy, KhmsError, Unavailable
from khms.index import current, graph, manifest, models, sources, vector
from khms.index.catchup import ALL, LATER, NEW, catch_up, clear_away, most_on_the_way, next_name, waiting
from khms.index.changes import Changes, Lost, changes, missing
from khms.index.documents import documents
from khms.index.extent import Extent
from khms.index.freshness import look
from khms.index.lexical import Damaged, Reader
from khms.index.looks import Looks
from khms.index.manifest import LOCK, NOTHING, Manifest, Mark, Unusable, mark
from khms.index.reading import content
from khms.index.sources import Place, Rules
from khms.index.vector import Feed, begun
from khms.index.writer import BIG_HEAP, HEAP, Writer, writing
from khms.model.document import Document
from khms.model.finding import Finding
from khms.store import files, local
from khms.store.layout import Base
from khms.store.lock import hold

LOOKS = "index.looks"
WAIT_SECONDS = 2.0
PATIENT = 60.0  # seconds that one waits who has gone half the way
TURN = 0.02  # seconds between two tries
# What was written this shortly before a look may be written again without its time changing.
RACY_NS = 20_000_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Report:
    """`docs` counts documents; `added`, `updated`, `removed` count files. `skipped` is everything in the base that
    could not be indexed, not only what this refresh read. `rebuilt` says why an index that was there could not be used,
    None where it could or there was none. `waiting` counts documents without a vector yet; `wordless` says why none
    could be made; `vast` says that there are so many vectors that a graph is to find the nearest, `graphless` why none
    can."""

    docs: int
    added: int = 0
    updated: int = 0
    removed: int = 0
    skipped: tuple[Finding, ...] = ()
    rebuilt: str | None = None
    elapsed_ms: float = 0.0
    waiting: int = 0
    wordless: str = ""
    vast: bool = False
    graphless: str = ""


def refresh(
    base: Base,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
    config: Mapping[str, Any] | None = None,
    wait: float = WAIT_SECONDS,
    vectors: str = ALL,
) -> Report:
    """Makes the index equal to one built from nothing. `vectors` is LATER where loading the model would cost more than
    the caller has time for, NEW where those of another model may stay as they are. Raises Busy where another process
    refreshes it for longer than `wait` seconds, Unavailable where the index cannot be written or git fails."""
    started = time.perf_counter()
    config = config if config is not None else load(base.root)
    first = last = _locked(base, config, rebuild, progress, wait, vectors)
    # What a slow model leaves waiting is done in further turns, so that others come to the lock between two of them,
    # and what is done stays done if this is killed.
    total = left = first.waiting if vectors == ALL else 0
    while left and not last.wordless:
        if progress is not None:
            progress(total - left, total)
        time.sleep(3 * TURN)
        last = _locked(base, config, False, None, max(wait, PATIENT), vectors)
        left = last.waiting if last.waiting < left else 0
    graphless = graph.build(base, config, progress) if vectors == ALL and last.vast else ""
    elapsed = round((time.perf_counter() - started) * 1000, 1)
    counts = {name: getattr(first, name) for name in ("added", "updated", "removed", "rebuilt")}
    return replace(last, **counts, elapsed_ms=elapsed, graphless=graphless)


def _locked(
    base: Base, config: Mapping[str, Any], rebuild: bool, progress: Progress | None, wait: float, vectors: str
) -> Report:
    """One refresh, under the lock. Raises as `refresh` does."""
    started = time.perf_counter()
    rules = sources.rules(base, config)
    encoding = _Encoding(base, config, vectors)
    local.make(base)
    looks = Looks(base.locks / LOOKS)

    def by_another() -> Report | None:
        """The report, where another process looked at all since this one came."""
        known = _usable(base, rules)[0] if not rebuild and looks.done_since() else None
        if known is None or not _complete(known, vectors):
            return None
        return replace(_as_left(base, rules, known, started), vast=graph.wanted(known, config))

    with contextlib.ExitStack() as stack:
        left = _turn(stack, base.locks / LOCK, wait, by_another)
        if left is not None:
            return left
        known, reason = _usable(base, rules)
        looks.begin()
        if rebuild and reason is None and known is not None:
            reason = "asked for"
        if reason is not None:
            known = None
        try:
            report = _Refresh(base, rules, known, progress, encoding).run()
        except (Lost, Damaged) as lost:
            reason = str(lost)
            try:
                report = _Refresh(base, rules, None, progress, encoding).run()
            except Damaged as error:
                raise Unavailable(f"the index cannot be built: {error}", where=str(base.index)) from error
        looks.end()
    return replace(report, rebuilt=reason, elapsed_ms=round((time.perf_counter() - started) * 1000, 1))


def _turn(
    stack: contextlib.ExitStack, lock: Path, wait: float, by_another: Callable[[], Report | None]
) -> Report | None:
    """Waits for the lock, which `stack` holds from then on, or for the work that it is wanted for to be done. Raises
    Busy after `wait` seconds."""
    until = time.monotonic() + wait
    while True:
        try:
            stack.enter_context(hold(lock, "index"))
            return by_another()
        except Busy:
            left = by_another()
            if left is not None:
                return left
            if time.monotonic() >= until:
                raise
        time.sleep(TURN)


def _complete(known: Manifest, vectors: str) -> bool:
    """Whether a refresh that found nothing changed would leave the index as it is."""
    return vectors == LATER or (vectors == NEW and known.vectors is not None and not waiting(known))


def _as_left(base: Base, rules: Rules, known: Manifest, started: float) -> Report:
    """The report of a refresh whose work another process did in the meantime."""
    missed = (*missing(base.root, rules), *(found for _, found in sorted(_skipped(known).items())))
    elapsed = round((time.perf_counter() - started) * 1000, 1)
    return Report(known.docs, skipped=missed, elapsed_ms=elapsed, waiting=waiting(known))


def _skipped(known: Manifest) -> dict[str, Finding]:
    """The findings by path; one whose name is not UTF-8 is shown as `reading` shows it."""
    shown = {path: path.encode("utf-8", "replace").decode("utf-8") for path in known.skipped}
    return {path: Finding(found[0], "error", shown[path], *found[1:]) for path, found in known.skipped.items()}


def verify(base: Base) -> str:
    """What is wrong with the index, every byte of it read; empty where nothing is. For the doctor."""
    try:
        known = manifest.load(base.index)
        if known is None:
            return "there is no index yet"
        wrong = manifest.damage(base.index, known, thorough=True)
        if not wrong and known.vectors is not None:
            folder = base.index / known.generation
            wrong = vector.damage(folder, known.vectors, thorough=True)
            wrong = wrong or (graph.damage(folder, known.graph, thorough=True) if known.graph else "")
        return wrong or _miscounted(base, known)
    except (Unusable, Damaged) as error:
        return str(error)


def _miscounted(base: Base, known: Manifest) -> str:
    """What is wrong with the number of documents; raises Damaged where the index cannot be opened."""
    held = Reader(base.index / known.generation, known.language).documents
    return "" if held == known.docs else f"it holds {held} documents, its manifest says {known.docs}"


def _usable(base: Base, rules: Rules) -> tuple[Manifest | None, str | None]:
    """The manifest to go on from, or why the index there is must be built again."""
    try:
        known = manifest.load(base.index)
        if known is None:
            return None, None
        wrong = manifest.damage(base.index, known) or _miscounted(base, known)
        if not wrong and known.vectors is not None:
            wrong = vector.damage(base.index / known.generation, known.vectors)
    except (Unusable, Damaged) as error:
        return None, str(error)
    if wrong:
        return None, wrong
    if known.rules != rules.as_json():
        return None, "the [index] settings changed"
    return known, None


@dataclass(slots=True)
class _Encoding:
    """The vectors' part of a refresh. Where it cannot be done, as `failed` tells, the lexical index stands as it is."""

    base: Base
    config: Mapping[str, Any]
    mode: str
    failed: str = ""

    def feed(self, folder: Path, known: Manifest | None, files: int) -> Feed | None:
        """What takes the documents of so many files while their texts are at hand. None where there are no vectors to
        go on from, or too many files for the time that the caller has: `catch_up` sees to it."""
        if self.mode == LATER:
            return None
        if known is not None and (known.vectors is None or waiting(known)):
            return None
        try:
            choice = models.chosen(self.base, self.config)
            much = files > most_on_the_way(choice)
            if self._unaffordable(choice) or (much and (choice.slow or (known is not None and self.mode != ALL))):
                return None
            if known is not None and known.vectors is not None and known.vectors.model != choice.id:
                return None
            model = models.load(choice)
        except Unavailable as error:
            self.failed = error.message
            return None
        return Feed(folder, known.vectors if known and known.vectors else begun(next_name(folder), model), model)

    def _unaffordable(self, choice: models.Chosen) -> bool:
        return self.mode != ALL and not current.affordable(choice)

    def catch_up(self, rules: Rules, known: Manifest) -> Manifest:
        """The manifest after those that waited have theirs; saved if it says more than before."""
        if self.mode == LATER or self.failed:
            return known
        try:
            choice = models.chosen(self.base, self.config)
            if self._unaffordable(choice):
                return known
            extent = catch_up(self.base, rules, known, choice, self.mode)
        except Unavailable as error:
            self.failed = error.message
            return known
        new = replace(known, vectors=extent)
        if new != known:
            manifest.save(self.base.index, new)
            if known.vectors is not None and extent is not None and extent.name != known.vectors.name:
                clear_away(self.base.index / known.generation, extent.name)
        return new


@dataclass(slots=True)
class _Refresh:
    """One refresh; `known` None builds everything into a new folder."""

    base: Base
    rules: Rules
    known: Manifest | None
    progress: Progress | None
    encoding: _Encoding
    added: int = 0
    updated: int = 0
    removed: int = 0
    seen: dict[str, tuple[Mark, str]] = field(default_factory=dict)
    skipped: dict[str, Finding] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    started: int = 0
    generation: str = ""
    slots: int = 0
    extent: Extent | None = None

    def run(self) -> Report:
        self.started = time.time_ns()
        known = self.known
        self.folders = {*sources.FOLDERS, *sources.folders(self.rules), *sources.outside(self.rules)}
        self.folders.update(name for name in (known.looked if known else ()) if not name.startswith("git:"))
        looked = look(self.base, self.folders)
        found = changes(self.base, self.rules, known)
        self.generation = known.generation if known else self._next()
        if known:
            self.slots, self.extent = known.slots, known.vectors
            self.skipped = _skipped(known)
        wrote = self._apply(found)
        looked |= look(self.base, self.folders - looked.keys())
        new = self._manifest(found, looked, wrote)
        if known is None or replace(new, at=known.at) != known:
            manifest.save(self.base.index, new)
        if known is None:
            self._clear_away()
        new = self.encoding.catch_up(self.rules, new)
        skipped = (*found.findings, *(self.skipped[path] for path in sorted(self.skipped)))
        return Report(
            new.docs,
            self.added,
            self.updated,
            self.removed,
            skipped,
            waiting=waiting(new),
            wordless=self.encoding.failed,
            vast=graph.wanted(new, self.encoding.config),
        )

    def _apply(self, found: Changes) -> bool:
        """Reads what may have changed and writes what did; whether anything was written."""
        folder = self.base.index / self.generation
        todo = [
            (path, there, spot)
            for path, there in sorted(found.paths.items())
            if (spot := sources.place(self.rules, path)) is not None and not self._settled(path, there, found.loose)
        ]
        with contextlib.ExitStack() as stack:
            writer = reader = feed = None
            if self.known is None:
                files.make_folder(folder)
                feed = self.encoding.feed(folder, None, len(todo))
                writer = stack.enter_context(writing(folder, self.rules.language, heap=BIG_HEAP))
            for number, (path, there, spot) in enumerate(todo):
                if self.progress is not None and number % 100 == 0:
                    self.progress(number, len(todo))
                held = self._read(path, there, spot, path in found.loose)
                if held is None:
                    continue
                if reader is None and self.known is not None:
                    reader = Reader(folder, self.rules.language)
                before = reader is not None and reader.holds(path)
                self._count(before, bool(held))
                if before or held:
                    if writer is None:
                        feed = self.encoding.feed(folder, self.known, len(todo))
                        writer = stack.enter_context(writing(folder, self.rules.language, heap=HEAP, slot=self.slots))
                    _put(writer, path, held, before, feed)
            if self.progress is not None:
                self.progress(len(todo), len(todo))
            if writer is not None:
                self.slots = writer.slot
            if feed is not None:
                self.extent = feed.finish()
        return writer is not None

    def _settled(self, path: str, there: bool, loose: frozenset[str]) -> bool:
        """Whether the file looks as it did when it was last read, long enough after it was written."""
        old = self.known.seen.get(path) if self.known else None
        if not (old and self.known and there and old[0] != NOTHING):
            return False
        if mark(self.base.root / path) != old[0] or _touched(old[0]) >= self.known.at - RACY_NS:
            return False
        if path in loose:
            self.seen[path] = old
        return True

    def _read(self, path: str, there: bool, spot: Place, loose: bool) -> tuple[Document, ...] | None:
        """The documents that `path` holds now, none where it is gone or skipped; None where nothing has changed."""
        old = self.known.seen.get(path) if self.known else None
        before = mark(self.base.root / path) if there else NOTHING
        data = content(self.base.root, self.rules, path) if before != NOTHING else None
        digest = hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else ""
        self.folders.update(_parents(path) if before != NOTHING else ())
        # No commit vouches for a loose file, nor for one that may have been written after git looked, nor for what a
        # link leads to: of that its own times tell nothing.
        link = before != NOTHING and os.path.islink(self.base.root / path)  # noqa: PTH114
        if loose or link or _touched(before) >= self.started - RACY_NS:
            kept = not link and mark(self.base.root / path) == before
            self.seen[path] = (before if kept else NOTHING, digest)
        if old and digest and old[1] == digest:
            return None
        self.skipped.pop(path, None)
        held = documents(spot, path, data) if isinstance(data, bytes) else data
        if isinstance(held, Finding):
            self.skipped[path] = held
        return held if isinstance(held, tuple) else ()

    def _count(self, before: bool, after: bool) -> None:
        self.added += after and not before
        self.updated += after and before
        self.removed += before and not after

    def _manifest(self, found: Changes, looked: dict[str, Mark], wrote: bool) -> Manifest:
        folder = self.base.index / self.generation
        known = self.known
        docs, stored = (known.docs, known.stored) if known else (0, {})
        if wrote:
            docs = Reader(folder, self.rules.language).documents
            stored = manifest.store(folder, stored)
        # A folder that changed while it was looked at may change again unseen: it counts as never looked at.
        settled = {name: at if at[1] < self.started - RACY_NS else NOTHING for name, at in looked.items()}
        skipped = {path: (f.code, f.line, f.message, f.mend) for path, f in self.skipped.items()}
        return Manifest(
            self.generation,
            self.rules.as_json(),
            docs,
            found.commit,
            self.started,
            settled,
            self.seen,
            skipped,
            stored,
            self.slots,
            self.extent,
            known.graph if known else None,
        )

    def _next(self) -> str:
        """The name of the next index folder."""
        return f"lexical-{next_name(self.base.index, 'lexical')}"

    def _clear_away(self) -> None:
        """Removes the index folders that no manifest names any more; one that is still open elsewhere may stay."""
        for path in self.base.index.glob("lexical-*"):
            if path.name != self.generation:
                with contextlib.suppress(KhmsError):
                    files.remove_tree(path)


def _touched(at: Mark) -> int:
    """When a file was last written, as far as its own times tell; one of them can be set at will."""
    return max(at[1], at[3])


def _parents(path: str) -> list[str]:
    """The folders above `path`, up to the base."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _put(writer: Writer, path: str, held: tuple[Document, ...], before: bool, feed: Feed | None) -> None:
    if before:
        writer.drop(path)
    if feed is not None:
        for slot, document in enumerate(held, writer.slot):
            feed.add(slot, document)
    writer.add(held)
