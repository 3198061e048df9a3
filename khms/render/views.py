"""The generated files of a base: MEMORY.md, and in memory/views/ the tags, the newest cards and one page a tag.

`views` is pure: cards in, bytes out. The rest compares them with what stands in a base, where someone else's file is
left alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from khms import config
from khms.errors import Refused, Unavailable
from khms.model.belief import FIGURES, Figures, figures
from khms.model.card import Card
from khms.model.tags import Registry
from khms.render import pages
from khms.render.pages import MARKER, MEMORY, MEMORY_LINES, PAGE_LINES, RECENT_PAGE, TAGS_PAGE, TOPICS
from khms.store import files
from khms.store.layout import CONFIG, VIEWS, Base

Pages = dict[str, bytes]


def views(cards: Mapping[str, Card], tags: Registry | None = None, by: Figures = FIGURES) -> Pages:
    """Every generated file of a base that holds `cards`: base path -> bytes."""
    shelf = sorted(cards.values(), key=pages.age_key, reverse=True)
    topics = pages.topics(shelf, tags)
    found = {
        MEMORY: _page(pages.memory(shelf, dict(cards), topics, by), MEMORY_LINES),
        TAGS_PAGE: _page(pages.tags_page(topics, tags), PAGE_LINES),
        RECENT_PAGE: _page(pages.recent_page(shelf), PAGE_LINES),
    }
    for tag, members in topics.items():
        found[pages.topic_path(tag)] = _page(pages.topic_page(tag, members, tags), PAGE_LINES)
    return found


def changed(base: Base, wanted: Mapping[str, bytes]) -> dict[str, bytes | None]:
    """What of `wanted` differs from the disk, and None for each topic page that nothing stands behind any more. Files
    without our header are not ours: they are left out, see `foreign`."""
    kept_out = set(foreign(base, wanted))
    found: dict[str, bytes | None] = {}
    for path, data in wanted.items():
        if path not in kept_out and _bytes(base, path) != data:
            found[path] = data
    folder = base.path(TOPICS)
    for file in sorted(folder.glob("*.md")) if folder.is_dir() else ():
        path = base.relative(file)
        if path not in wanted and (_bytes(base, path) or b"").startswith(MARKER):
            found[path] = None
    return found


def foreign(base: Base, wanted: Iterable[str]) -> list[str]:
    """The paths among `wanted` where someone else's file stands: one without our header, or no file at all."""
    found = []
    for path in wanted:
        file = base.path(path)
        if file.is_symlink() or file.is_dir() or not (_bytes(base, path) or MARKER).startswith(MARKER):
            found.append(path)
    return sorted(found)


def wanted(base: Base, cards: Mapping[str, Card]) -> Pages:
    """The generated files of `base` as `cards` would have them."""
    from khms.store import tags

    return views(cards, tags.registry(base), _figures(_bytes(base, CONFIG)))


def for_base(base: Base, cards: Mapping[str, Card]) -> dict[str, bytes | None]:
    """What a commit has to write so that the generated files fit `cards`: what differs from the disk, and what the disk
    holds but no commit yet."""
    from khms.store.repo import Repo

    fresh = wanted(base, cards)
    found = changed(base, fresh)
    ours = fresh.keys() - set(foreign(base, fresh))
    for path in Repo(base.root).dirty(MEMORY, VIEWS):
        if path in ours:
            found[path] = fresh[path]
        elif path.startswith(TOPICS + "/") and not base.path(path).exists():
            found[path] = None
    return found


def for_tree(
    cards: Mapping[str, Card], tags: Registry, read: Callable[[str], bytes | None], listed: Iterable[str]
) -> dict[str, bytes | None]:
    """The generated files of a commit that holds `cards`, and None for each page that nothing stands behind any more.
    `read` gives what the commit has at a path, `listed` its files; someone else's are left out."""
    fresh = views(cards, tags, _figures(read(CONFIG)))
    found: dict[str, bytes | None] = {p: data for p, data in fresh.items() if (read(p) or MARKER).startswith(MARKER)}
    for path in listed:
        if path.startswith(TOPICS + "/") and path not in fresh and (read(path) or b"").startswith(MARKER):
            found[path] = None
    return found


def _figures(settings: bytes | None) -> Figures:
    """What belief is computed with, from the base's own configuration alone: the same base gives the same bytes,
    whoever the user is. The defaults where that cannot be read; whoever loads it says what is wrong with it."""
    if not settings:
        return FIGURES
    try:
        return figures(config.parse(settings.decode("utf-8-sig"), CONFIG))
    except (Refused, UnicodeDecodeError):
        return FIGURES


def _bytes(base: Base, path: str) -> bytes | None:
    """A file of the base, None where there is none; raises Unavailable where it cannot be read."""
    try:
        return files.read(base.path(path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"cannot read: {error.strerror}", where=path, hint="give it its read permission") from error


def _page(lines: Sequence[str], limit: int) -> bytes:
    assert len(lines) <= limit, f"{len(lines)} lines"
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8")
