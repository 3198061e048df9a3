"""Which base a call works on: looked for anew at each call, because a base can come, go or be trusted meanwhile."""

import os
from pathlib import Path

from khms.config import Config
from khms.errors import Unavailable
from khms.hooks import places
from khms.store.layout import Base
from khms.values import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The base that answers, its settings, the folder that is worked in. `remark` says which base was passed over."""

    base: Base
    config: Config
    here: Path
    remark: str = ""


def choose(root: str, here: Path) -> Place:
    """The base named `root`, else the one that hooks would use in the folder `here`. Raises Unavailable where there is
    none, or none that is trusted."""
    env = {**os.environ, "KHMS_ROOT": root} if root else os.environ
    found = places.choose(str(here), env)
    over = found.passed_over
    if found.base is None:
        if over is not None:
            raise Unavailable(
                f"the base here is not used: {found.why}",
                where=str(over.root),
                hint=f"a person says so in a terminal: khms trust {over.root}",
            )
        raise Unavailable(
            "there is no base here or above, and no default base",
            where=str(here),
            hint="a person makes one in a terminal: khms init, or khms init --global",
        )
    remark = f"{over.root} was not used: {found.why} (a person can say: khms trust {over.root})" if over else ""
    return Place(found.base, found.config, here, remark)
