"""Who turns a MARK into a verdict. A proposer is one module and one row of the registry below.

Whatever a proposer answers is checked here before it counts: valid under the schema, and naming only cards that exist
and candidates of this run.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from khms.config import Config
from khms.errors import Refused
from khms.model.verdict import ALREADY, ATTACH, CORRECT, Verdict
from khms.pipeline.packet import Packet
from khms.pipeline.rules import Rules
from khms.store import schema


class Proposer(Protocol):
    """`propose` answers about one MARK from its packet and from nothing else."""

    @property
    def name(self) -> str: ...

    def propose(self, packet: Packet) -> Verdict: ...


PROPOSERS: dict[str, Callable[[Config], Proposer]] = {"rules": Rules}


def proposer(config: Config) -> Proposer:
    """The proposer that the configuration names; raises Refused where there is none of that name."""
    name = config["nightly.proposer"]
    make = PROPOSERS.get(name)
    if make is None:
        where = config.origin("nightly.proposer")
        raise Refused(f"there is no proposer {name!r}", where=where, hint="one of: " + ", ".join(PROPOSERS))
    return make(config)


def faults(verdict: Verdict, cards: Collection[str], labels: Collection[str]) -> list[str]:
    """What keeps a verdict from counting, in words: none, or its MARK stays open."""
    found = [words for _, words in schema.problems("verdict", verdict.as_json())]
    if verdict.kind == ATTACH and verdict.to not in labels:
        found.append(f"there is no candidate {verdict.to} in this run")
    named = {ALREADY: verdict.card, CORRECT: verdict.corrects}.get(verdict.kind, "")
    if named and named not in cards:
        found.append(f"there is no card {named}")
    return found
