"""Two bases in one answer: the one that is asked, and the user's own.

Each base is asked by itself and by its own settings; its hits stay in its own order. From the heads of the lists comes
what the question names, then what has the higher score: a score is a share of the question or a certainty that was
calibrated against the size of the base, so a base of twenty cards stands beside one of ten thousand. The strength that
orders the hits within a base would not do: BM25 grows with the base.

Measured with 20 engineering cards beside a base of 40 more and 2,900 chat turns, MRR@10 of 10 and 20 paraphrases of
what the small and the large one hold, and of 150 questions about the turns: all in one index 24, 18, 47; merged by
score 33, 13, 46, by strength 2, 17, 47. Identifiers 100 in all of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

from khms import config as configuration
from khms.errors import KhmsError, No, Unavailable, Usage
from khms.recall import search
from khms.recall.search import Answer
from khms.store import layout
from khms.store.layout import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from khms.model.document import Hit
    from khms.recall.lookup import Found

    Config = Mapping[str, Any]


def together(base: Base, config: Config) -> tuple[list[tuple[Base, Config]], str]:
    """The bases that answer a question to `base`, that one first, each with its settings; and what is to be said of the
    user's own one where it cannot be asked."""
    alone = [(base, config)]
    named, found = _own() if config["recall.personal"] else ("", None)
    if not named or (found is not None and _same(found.root, base.root)):
        return alone, ""
    if found is None:
        return alone, f"your own base, {named}, was not asked: there is none to be read (base.default)"
    try:
        return [*alone, (found, configuration.load(found.root))], ""
    except KhmsError as error:
        return alone, f"your own base, {found.root}, was not asked: {error.message}"


def _own() -> tuple[str, Base | None]:
    """What the user's own configuration names as their base, and the base that is there."""
    from pathlib import Path

    try:
        named = str(configuration.load(None)["base.default"])
    except KhmsError:  # whoever loads it for its own sake says what is wrong with it
        return "", None
    try:
        return named, layout.named(Path(named)) if named else None
    except (KhmsError, OSError):
        return named, None


def ask(bases: Sequence[tuple[Base, Config]], text: str, **how: Any) -> Answer:
    """One answer from all of `bases`; what `search.recall` answers where there is only one. Only the first one's
    failure is raised; that of another is told in `others`, and its part is missing. A filter that no document can pass
    raises Usage, with `strict`, where that is so in every base."""
    (first, config), rest = bases[0], bases[1:]
    if not rest:
        return search.recall(first, text, config=config, **how)
    failed: Usage | None = None
    try:
        answers = [search.recall(first, text, config=config, **how)]
    except Usage as error:  # its own documents do not pass the filter; another base's may
        failed = error
        answers = [search.recall(first, text, config=config, **{**how, "strict": False})]
    others = []
    for base, settings in rest:
        shown = str(base.root)
        try:
            found = search.recall(base, text, config=settings, **how)
        except Usage:
            others.append((shown, ""))
        except (KhmsError, OSError) as error:
            others.append((shown, f"not asked: {error.message if isinstance(error, KhmsError) else error.strerror}"))
        else:
            answers.append(replace(found, hits=tuple(_of(base, hit) for hit in found.hits)))
            others.append((shown, _told(found)))
    if failed and len(answers) == 1:
        raise failed
    most = how.get("limit") or config["recall.limit"]
    hits = tuple(once(merged([answer.hits for answer in answers]), str(first.root))[:most])
    elsewhere: dict[str, int] = {}
    for answer in answers if not hits else ():
        for shelf, count in answer.elsewhere:
            elsewhere[shelf] = elsewhere.get(shelf, 0) + count
    elapsed = round(sum(answer.elapsed_ms for answer in answers), 2)
    return replace(answers[0], hits=hits, elapsed_ms=elapsed, elsewhere=tuple(elsewhere.items()), others=tuple(others))


def look_up(base: Base, config: Config, identity: str) -> Found:
    """The document of `base` that `identity` names, else that of the user's own base, whose path is then absolute.
    Raises what `lookup.look_up` raises for the first one."""
    from khms.recall import lookup

    try:
        return lookup.look_up(base, identity, config)
    except No:
        for other, settings in together(base, config)[0][1:]:
            with suppress(KhmsError):
                found = lookup.look_up(other, identity, settings)
                return replace(found, path=str(other.path(found.path)))
        raise


def unmet(bases: Sequence[tuple[Base, Config]], asked: str) -> Iterator[str]:
    """What a blank comes from where a filter names what no document has."""
    from khms.index import current
    from khms.recall import near
    from khms.recall.query import parse

    readers = []
    for base, _ in bases:
        with suppress(Unavailable):  # a further base is said to be missing elsewhere
            readers.append(current.opened(base)[0])
    yield from near.unmet(readers, parse(asked))


def merged(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """All hits: at each step the head of the list whose best is best, of equals the earlier list's."""
    waiting = [list(zip(hits, _best_to_come(hits), strict=True)) for hits in lists]
    found = []
    while any(waiting):
        at = max((number for number, hits in enumerate(waiting) if hits), key=lambda n: (waiting[n][0][1], -n))
        found.append(waiting[at].pop(0)[0])
    return found


def _best_to_come(hits: Sequence[Hit]) -> list[tuple[int, float, str]]:
    """Of each hit, the best that it or one behind it is worth: what stands before a good one is worth as much. Of
    equals the newer counts, as filters alone order them; but of what the question names, the first base's."""
    best, found = (0, 0.0, ""), []
    for hit in reversed(hits):
        best = max(best, (hit.exact, hit.score, "" if hit.exact else hit.date))
        found.append(best)
    return found[::-1]


def once(hits: Iterable[Hit], first: str) -> list[Hit]:
    """The hits without what is in both bases: one file that both hold, or a card with the same words and the same
    standing. The first base's stays, in the better place of the two."""
    kept: list[Hit] = []
    by_title: dict[tuple[str, str, str], list[int]] = {}
    for hit in hits:
        alike = by_title.setdefault((hit.kind, " ".join(hit.title.split()).casefold(), hit.status), [])
        twin = next((at for at in alike if kept[at].base != hit.base and _is_copy(kept[at], hit, first)), None)
        if twin is None:
            alike.append(len(kept))
            kept.append(hit)
        elif not hit.base:
            kept[twin] = hit
    return kept


def _is_copy(one: Hit, other: Hit, first: str) -> bool:
    paths = [os.path.join(first, hit.path) for hit in (one, other)]  # noqa: PTH118
    if _same(*paths):
        return True
    if one.correctors != other.correctors:
        return False
    bodies = [_body(path) for path in paths]
    return bodies[0] is not None and bodies[0] == bodies[1]


def _body(path: str) -> str | None:
    from khms.store import files, markdown

    try:
        return " ".join(markdown.parse(files.read(path), path).body.split())
    except (OSError, KhmsError, ValueError):
        return None


def _of(base: Base, hit: Hit) -> Hit:
    return replace(hit, base=str(base.root), path=os.path.normpath(base.root / hit.path))


def _told(answer: Answer) -> str:
    """What a reader must know of another base's part."""
    said = []
    if answer.failed:
        said.append(f"its index could not be brought up to date: {answer.failed}")
    if answer.behind:
        said.append(f"its index is behind: {answer.behind}")
    if answer.note and answer.note != search.LEXICAL_ONLY:
        said.append(f"found {answer.note}")
    if answer.skipped:
        said.append(f"{answer.skipped} file{'s'[: answer.skipped > 1]} not in its index")
    return "; ".join(said)


def _same(one: Path | str, other: Path | str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
