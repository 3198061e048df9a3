"""`khms doctor --secrets`: what looks like a secret anywhere in git's history, not only in today's files.

The same looks as lint's (KH013). A secret that a later commit took out is found where it came in; it is out of the
history only once that was rewritten.
"""

from collections.abc import Callable
from dataclasses import dataclass

from khms.check import ahead
from khms.errors import Unavailable
from khms.store import past
from khms.store.past import Past
from khms.store.repo import Repo
from khms.store.tracked import LARGEST, Entry

Progress = Callable[[int, int], None]
EVERY = 500  # objects between two reports of progress


@dataclass(frozen=True, slots=True)
class Leak:
    """What looks like a secret: the commit that brought it, the file (empty: the commit's own message), the line, what
    it looks like and its redacted surroundings. `here` says that the file holds it today too."""

    commit: str
    path: str
    line: int
    id: str
    snippet: str
    known_prefix: bool
    here: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """`looked` counts the contents and messages; `large` are the paths of contents that were too large to look at."""

    looked: int
    leaks: tuple[Leak, ...]
    large: tuple[str, ...] = ()


def scan(repo: Repo, progress: Progress | None = None) -> Scan:
    """Looks at every content once. `progress` is told (objects done, objects in all). Raises Unavailable where the
    history is cut short: what is not there cannot be called clean."""
    if repo.text("rev-parse", "--is-shallow-repository") == "true":
        raise Unavailable(
            "the history is cut short here, so it cannot be looked through",
            where=str(repo.root),
            hint="git fetch --unshallow",
        )
    objects = past.listed(repo)
    found: list[tuple[Past, int, str, str, bool]] = []
    for done, (one, data) in enumerate(past.contents(repo, objects), 1):
        text = data if one.kind == "blob" else _message(data)
        for hit in ahead.hits(Entry(one.path, text, len(text))):
            if hit.kind == "secret":
                found.append((one, hit.line, hit.id, hit.snippet, hit.known_prefix))
        if progress is not None and done % EVERY == 0:
            progress(done, len(objects))
    places = past.came_in(repo, list(dict.fromkeys(one.id for one, *_ in found if one.kind == "blob")))
    today = _today(repo) if found else frozenset()
    leaks = []
    for one, line, name, snippet, known in found:
        commit, path = places.get(one.id, (one.id if one.kind != "blob" else "", one.path))
        leaks.append(Leak(commit, path, line, name, snippet, known, one.id in today))
    large = tuple(one.path for one in objects if one.size > LARGEST)
    order = sorted(leaks, key=lambda leak: (leak.path, leak.commit, leak.line, leak.id))
    return Scan(len(objects) - len(large), tuple(order), large)


def _today(repo: Repo) -> frozenset[str]:
    """The contents of HEAD's files."""
    head = repo.head()
    listed = repo.text("ls-tree", "-r", "--full-tree", "--format=%(objectname)", head) if head else ""
    return frozenset(listed.split())


def _message(data: bytes) -> bytes:
    """What a commit or a tag says, without its headers and its signature, which look like secrets and are none."""
    text = data.partition(b"\n\n")[2]
    for begin in (b"-----BEGIN PGP SIGNATURE", b"-----BEGIN SSH SIGNATURE", b"-----BEGIN SIGNED MESSAGE"):
        text = text.partition(begin)[0]
    return text
