"""Which base a hook answers from: KHMS_ROOT, else the nearest at or above the session's folder if it is trusted, else
the user's own base."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from khms import config as configuration
from khms.config import Config
from khms.store import layout, trust
from khms.store.layout import Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """The base and its settings; no base where there is none that may be used. `passed_over` is one that was found but
    is not trusted, and `why` says what is missing."""

    base: Base | None
    config: Config
    passed_over: Base | None = None
    why: str = ""


def choose(cwd: str, env: Mapping[str, str] = os.environ) -> Place:
    """The place for a session in the folder `cwd`. Raises Unavailable where KHMS_ROOT or the user's own base is not
    there, Refused where a configuration cannot be read."""
    if env.get("KHMS_ROOT"):
        base = layout.named(Path(env["KHMS_ROOT"]))
        return Place(base, configuration.load(base.root))
    found = _nearest(cwd)
    if found is not None:
        why = trust.why_not(found)
        if not why:
            return Place(found, configuration.load(found.root))
    config = configuration.load(None)
    if not config["base.default"]:
        return Place(None, config, found, why if found else "")
    own = layout.named(Path(config["base.default"]))
    config = configuration.load(own.root)
    return Place(own, config) if found and found.root == own.root else Place(own, config, found, why if found else "")


def others(place: Place) -> list[tuple[Base, Mapping[str, Any]]]:
    """The user's own base with its settings, where it answers beside the place's; nothing where there is none, where
    it is the same, or where it cannot be read: the place's own answers go on without it."""
    if place.base is None or not place.config["base.default"] or not place.config["recall.personal"]:
        return []
    from khms.recall import bases

    return bases.together(place.base, place.config)[0][1:]


def _nearest(cwd: str) -> Base | None:
    """The base at or above a folder that a host named; the folder may be gone, or no path at all."""
    try:
        return layout.walk(Path(cwd)) if Path(cwd).is_absolute() else None
    except (OSError, ValueError, RuntimeError):
        return None
