"""What must be known before a risky shell command: what the base, and the user's own one, have under its class."""

from __future__ import annotations

from khms.errors import KhmsError
from khms.hooks import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.hooks.places import Place
    from khms.model.document import Hit
    from khms.store.layout import Base


def before(place: Place, command: str) -> tuple[tuple[str, ...], list[tuple[Hit, Base | None]]]:
    """The classes of `command`, and the cards under them, each with the base that it comes from where that is another
    one. Without a class no index is opened. Raises what reading the first base raises; another one that cannot be read
    adds nothing."""
    from khms.recall.precheck import precheck

    assert place.base is not None
    most = place.config["hooks.warnings"]
    known = precheck(place.base, place.config, command=command, limit=most)
    found: list[tuple[Hit, Base | None]] = [(hit, None) for hit in known]
    if known.classes and len(found) < most:
        for base, config in places.others(place):
            try:
                more = precheck(base, config, command=command, limit=most - len(found))
            except (KhmsError, OSError):
                continue
            found += [(hit, base) for hit in more]
    return known.classes, found
