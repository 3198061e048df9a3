"""Which project is at hand, as the scopes of cards name it."""

from __future__ import annotations

from khms.index.text import fold
from khms.store import gitdir
from khms.store.layout import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any


def at_hand(base: Base, config: Mapping[str, Any], here: Path | None = None) -> frozenset[str]:
    """The names that a scope may give it, folded: those that recall.scope sets, else the folder of the repository that
    `here` lies in, or that the base lies in. Empty where that is the base's own repository: it holds what is known of
    many projects."""
    named = config["recall.scope"]
    if named:
        return _names(named)
    for place in filter(None, (here, base.root)):
        git = gitdir.find(place)
        if git is not None and git.top != base.root:
            own = git.common.parent if git.common.name == ".git" else git.top  # a further work tree has any name
            return _names(own.name)
    return frozenset()


def _names(said: str) -> frozenset[str]:
    whole = fold(said.strip())
    return frozenset(filter(None, (whole, whole.rpartition(":")[2])))
