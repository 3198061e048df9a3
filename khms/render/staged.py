"""The generated files among what is staged: whether they are what khms would write from the staged cards.

Costs the reading of all cards, so it is asked only where such a file is staged.
"""

from collections.abc import Sequence

from khms.model.card import Card, card_from
from khms.render import views
from khms.render.pages import MARKER, MEMORY
from khms.store import history, markdown, tags
from khms.store.history import Tree
from khms.store.layout import ARCHIVE, KNOW, TAGS, VIEWS, is_card_file
from khms.store.markdown import Unreadable
from khms.store.repo import Repo


def altered(repo: Repo, index: str = "") -> Sequence[str]:
    """The base paths of the staged generated files that are not as khms would write them. One that has lost khms's
    header by this change counts too. `index` names the staging area where it is not git's usual one."""
    changes = history.staged(repo, repo.prefix, index)
    moved = [c for c in changes if c.new and (c.path == MEMORY or c.path.startswith(f"{VIEWS}/"))]
    if not moved:
        return ()
    tree = Tree(repo, repo.prefix, "", index)
    cards = _cards(tree)
    if cards is None:
        return ()
    data = history.blobs(repo, [blob for c in moved for blob in (c.old, c.new) if blob])
    wanted = views.views(cards, tags.parse(tree.read(TAGS).get(TAGS, b"")))
    found = []
    for change in moved:
        was, now = (data.get(blob or "", b"") for blob in (change.old, change.new))
        ours = was.startswith(MARKER) or now.startswith(MARKER)
        if ours and wanted.get(change.path) != now:
            found.append(change.path)
    return found


def _cards(tree: Tree) -> dict[str, Card] | None:
    """The staged cards by id; of two files with one id the first counts. None where one cannot be read."""
    listing = {path: blob for path, blob in tree.listing(KNOW, ARCHIVE).items() if is_card_file(path)}
    data = history.blobs(tree.repo, listing.values())
    found: dict[str, Card] = {}
    for path in sorted(listing, key=lambda path: (not path.startswith(KNOW), path)):
        try:
            page = markdown.parse(data[listing[path]], path)
        except Unreadable:
            return None
        card = card_from(page.meta, page.body, path, page.body_line)
        found.setdefault(card.id, card)
    return found
