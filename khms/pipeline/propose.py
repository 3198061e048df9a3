"""Who turns a MARK into a verdict: `rules`, or one of the agents of `hosts.headless`.

Whatever a proposer answers is checked here before it counts: valid under the schema, and naming only cards that exist
and candidates of this run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from khms.config import Config
from khms.errors import Refused
from khms.hosts import headless
from khms.hosts.headless.base import Agent
from khms.model.verdict import ALREADY, ATTACH, CORRECT, Verdict, verdict_from
from khms.pipeline import prompts, sources
from khms.pipeline.asking import Asked, Asker
from khms.pipeline.packet import Packet
from khms.pipeline.rules import Rules
from khms.store import markdown, schema
from khms.store.markdown import Unreadable


class Proposer(Protocol):
    """`propose` answers about one MARK from its packet and from nothing else."""

    @property
    def name(self) -> str: ...

    def propose(self, packet: Packet) -> Verdict: ...


@dataclass(frozen=True)
class ByAgent:
    """A proposer whose answers an agent gives. Only within a run can it be asked: `asker` holds the run's bounds, and
    below `folder` every reply is kept."""

    agent: Agent
    asker: Asker | None = None
    folder: Path = Path()

    @property
    def name(self) -> str:
        return self.agent.name

    def within(self, asker: Asker, folder: Path) -> "ByAgent":
        return replace(self, asker=asker, folder=folder)

    def propose(self, packet: Packet) -> Verdict:
        """Raises Undecided, Stopped and Refused as `Asker.ask` does."""
        assert self.asker is not None
        made = prompts.made(prompts.EVALUATE, packet.text, self.asker.run)

        def wrong(value: dict[str, Any]) -> list[str]:
            said = [f"{where}: {words}" if where else words for where, words in schema.problems("verdict", value)]
            return said or faults(verdict_from(value), packet) + unwritable(verdict_from(value))

        asked = Asked.load(asked_path(self.folder, packet.mark.id))
        return verdict_from(self.asker.ask(made, wrong, asked, schema.definition("verdict")))


def asked_path(folder: Path, name: str) -> Path:
    """Where the replies about a MARK, or about a chunk, are kept in a run's carry."""
    return folder / "asked" / f"{name}.json"


def _by_agent(config: Config) -> ByAgent:
    return ByAgent(headless.agent(config))


PROPOSERS: dict[str, Callable[[Config], Proposer]] = {"rules": Rules, **dict.fromkeys(headless.AGENTS, _by_agent)}


def proposer(config: Config) -> Proposer:
    """The proposer that the configuration names; raises Refused where there is none of that name."""
    name = config["nightly.proposer"]
    make = PROPOSERS.get(name)
    if make is None:
        where = config.origin("nightly.proposer")
        raise Refused(f"there is no proposer {name!r}", where=where, hint="one of: " + ", ".join(PROPOSERS))
    return make(config)


def unwritable(verdict: Verdict) -> list[str]:
    """Why no card's file can hold what an agent wrote, in words: an agent can put that otherwise, and once decided its
    MARK would not be seen again."""
    try:
        for body in (verdict.proposal.body if verdict.proposal else "", verdict.text):
            markdown.render({"id": "C1"}, sources.clean(body))
            if markdown.conflict_line(sources.clean(body)):
                return ["no card can hold this body: a line of it looks like a merge conflict's"]
    except Unreadable as error:
        return [f"no card can hold this body: {error.message}"]
    return []


def faults(verdict: Verdict, packet: Packet) -> list[str]:
    """What keeps a verdict from counting, in words: none, or its MARK stays open."""
    found = [words for _, words in schema.problems("verdict", verdict.as_json())]
    if verdict.kind == ATTACH and verdict.to not in packet.labels:
        found.append(f"there is no candidate {verdict.to} in this run")
    named = {ALREADY: verdict.card, CORRECT: verdict.corrects}.get(verdict.kind, "")
    if named and named not in packet.ids:
        found.append(f"there is no card {named}")
    return found
