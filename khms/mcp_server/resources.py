"""What can be read by address: `khms://card/K-00042`, and the base's generated pages as `khms://view/MEMORY`."""

from urllib.parse import quote, unquote

from khms.errors import KhmsError, No
from khms.mcp_server import results
from khms.mcp_server.places import Place
from khms.model.card import is_card_id
from khms.store import files
from khms.store.layout import VIEWS, Base

SCHEME = "khms://"
CARD, VIEW = "card", "view"
MEMORY = "MEMORY"
TEMPLATES = (
    (f"{SCHEME}{CARD}/{{id}}", CARD, "A card", "one reviewed card by its id, with what corrects it"),
    (f"{SCHEME}{VIEW}/{{name}}", VIEW, "A generated page", "an overview of the cards: MEMORY, tags, recent, topics"),
)


def views(base: Base) -> dict[str, str]:
    """The generated pages that are there: name -> path in the base. Other people's files are not among them."""
    from khms.render import pages

    folder = base.path(VIEWS)
    found = {MEMORY: pages.MEMORY}
    for file in sorted(folder.rglob("*.md")) if folder.is_dir() else ():
        found[file.relative_to(folder).with_suffix("").as_posix()] = base.relative(file)
    return {name: path for name, path in found.items() if _generated(base, path, pages.MARKER)}


def address_of(name: str) -> str:
    return f"{SCHEME}{VIEW}/{quote(name, safe='')}"


def read(place: Place, address: str) -> str:
    """The page at `address`, within the frame. Raises No where there is none."""
    sort, _, rest = address.removeprefix(SCHEME).partition("/")
    name = unquote(rest)
    if address.startswith(SCHEME) and sort == CARD:
        return _card(place, name.upper())
    if address.startswith(SCHEME) and sort == VIEW:
        known = views(place.base)
        if name in known:
            return results.page(str(place.base.path(known[name])), _lines(place.base, known[name]))
        raise No(
            f"there is no page {name[:100]!r}", where=str(place.base.root), hint=f"pages: {', '.join(known) or 'none'}"
        )
    raise No(f"there is nothing at {address[:100]!r}", hint="khms://card/K-00042, khms://view/MEMORY")


def _card(place: Place, card_id: str) -> str:
    from khms.recall import bases

    if not is_card_id(card_id):
        raise No(f"{card_id[:100]!r} is no card's id", hint="a card's id is like K-00042; the tool recall finds it")
    found = bases.look_up(place.base, place.config, card_id)
    said = [f"{link.id} {link.rel} this card: {link.title}" for link in found.correctors]
    head = [*filter(None, [found.warning]), *found.notes, *said]
    return results.page(str(place.base.path(found.path)), [*head, *_lines(place.base, found.path)])


def _lines(base: Base, path: str) -> list[str]:
    return files.read(base.path(path)).decode("utf-8-sig", "replace").splitlines()


def _generated(base: Base, path: str, header: bytes) -> bool:
    try:
        return files.read(files.inside(base.root, base.path(path))).startswith(header)
    except (OSError, KhmsError):
        return False
