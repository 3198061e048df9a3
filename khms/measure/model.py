"""Which embedding model answers, and what is missing before it does: for status and doctor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.errors import Unavailable
from khms.index import models
from khms.index.catchup import most_on_the_way, waiting
from khms.index.embedding import SHIPPED
from khms.index.manifest import Manifest
from khms.store.layout import Base

INDEX = "khms index"


@dataclass(frozen=True, slots=True)
class InForce:
    """`name` is empty where recall goes by words alone because it is so set. `missing` is empty, or says why the model
    does not answer and will not by itself; `mend` is the command for that."""

    name: str
    only_server: bool = False
    missing: str = ""
    mend: str = ""
    left: int = 0  # documents that alone it does not answer for; 0 where it answers for none or for all

    @property
    def remark(self) -> str:
        """What `missing` means for whoever asks; empty where nothing is."""
        part = f" for {self.left} documents" if self.left else ""
        return f"recall goes by words alone{part}: {self.missing}" if self.missing else ""

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name or None, "only_server": self.only_server, "missing": self.missing, "mend": self.mend}

    def __str__(self) -> str:
        name = self.name or "none: recall goes by words alone (recall.model)"
        return name + (", in the server only" if self.only_server else "")


def in_force(base: Base, config: Mapping[str, Any], known: Manifest | None) -> InForce:
    """As the settings, what is installed and the index say; `known` is the index's manifest, None where there is
    none. Loads no model."""
    wanted = str(config["recall.model"])
    if wanted == models.OFF:
        return InForce("")
    try:
        choice = models.chosen(base, config)
    except Unavailable as error:
        return InForce(wanted or SHIPPED, wanted in models.PACKED, error.message, error.hint)
    missing, left = "", 0
    if known is not None and known.vectors is not None and choice.id and known.vectors.model != choice.id:
        missing = "the vectors are another model's"
    elif known is not None and waiting(known) > most_on_the_way(choice):  # fewer get theirs with the next question
        missing, left = "there are no vectors yet", waiting(known) if known.vectors else 0
    return InForce(choice.name, choice.slow, missing, INDEX if missing else "", left)
