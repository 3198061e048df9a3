"""One question to an agent, asked until its answer counts: at most two more tries with what was wrong shown, then at
most one repair of the form.

Every reply is made durable before the next call, so that a killed run never pays for the same call twice. What the
agent did to the base meanwhile is looked at after each call (`confinement`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from khms.config import Config
from khms.hosts.headless.base import (
    ANSWER,
    LIMIT,
    OVERSIZE,
    REFUSAL,
    TIMEOUT,
    TOO_LONG,
    TOOLS,
    Agent,
    Reply,
    Request,
)
from khms.model.redact import redact
from khms.pipeline import answer
from khms.pipeline.answer import Unusable
from khms.pipeline.bounds import Meter
from khms.pipeline.confinement import Guard
from khms.pipeline.prompts import Prompt
from khms.pipeline.sources import clean
from khms.store import files
from khms.store.layout import Base
from khms.store.repo import Repo

RETRIES = 2
SCHEMA = "khms.asked/1"
SHOWN = 20_000  # characters of an answer that a repair is shown
_SAID = {
    TIMEOUT: "it did not answer in time",
    TOOLS: "it called a tool, which voids the answer",
    OVERSIZE: "its answer is over the limit",
    TOO_LONG: "the prompt is too long for the model",
    REFUSAL: "the model declined",
}
_FINAL = (REFUSAL, TOO_LONG)  # asking the same again gives the same


class Undecided(Exception):
    """No answer counts; the message says why. Nothing is guessed: what was asked about stays open."""


@dataclass
class Asked:
    """The replies to one question, kept in `path`: the file is the record of calls that were paid for."""

    path: Path
    replies: list[Reply] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "Asked":
        """What an earlier process was told; a file that cannot be read counts as none."""
        try:
            value = files.read_json(path)
            if value["schema"] != SCHEMA:
                raise ValueError
            return cls(path, [_reply(one) for one in value["replies"]])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path)

    def keep(self, reply: Reply) -> None:
        self.replies.append(reply)
        value = {"schema": SCHEMA, "replies": [_as_json(one) for one in self.replies]}
        files.write_atomic(self.path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8"), 0o600)


@dataclass(frozen=True)
class Asker:
    """Who asks, for one run. `repair` allows the one further call that mends the form of an answer."""

    agent: Agent
    meter: Meter
    guard: Guard
    run: str
    seconds: float
    repair: bool = True

    def ask(
        self,
        prompt: Prompt,
        wrong: Callable[[dict[str, Any]], list[str]],
        asked: Asked,
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The object that the agent answers and with which nothing is `wrong`.

        Raises Undecided where none comes, Stopped where a bound or the host's own limit ends the run, Refused where the
        base was changed under the call.
        """
        said, text, first = "", prompt.text, ""
        for turn in range(1 + RETRIES):
            reply = self._reply(Request(prompt.system, text, schema, self.seconds, self.run), asked, turn)
            try:
                return _object(reply, wrong)
            except Unusable as error:
                said = str(error)
                if reply.kind in _FINAL:
                    raise Undecided(_line(said)) from None
                first = first or (reply.text if error.format else "")
            text = prompt.again(said)
        if self.repair and first:
            mend = prompt.repair(first[:SHOWN], said, schema)
            reply = self._reply(Request(mend.system, mend.text, schema, self.seconds, self.run), asked, 1 + RETRIES)
            try:
                return _object(reply, wrong)
            except Unusable as error:
                said = str(error)
        raise Undecided(_line(said))

    def _reply(self, request: Request, asked: Asked, turn: int) -> Reply:
        """The reply that is on record for this turn, else a new one, on record when this returns."""
        if turn < len(asked.replies):
            return asked.replies[turn]
        left = self.meter.allow()
        with self.guard.watch():
            reply = self.agent.ask(replace(request, seconds=min(request.seconds, left)))
        if reply.kind == LIMIT:
            until = f" (until {reply.resets})" if reply.resets else ""
            raise self.meter.limit(
                f"{self.agent.name}: {_line(reply.text or reply.said) or 'its usage limit is reached'}{until}"
            )
        if reply.kind == TIMEOUT and left < request.seconds:
            self.meter.allow()  # it was the run's own end that cut the call off, not a slow agent
        # what an endpoint says may hold halves of surrogate pairs, which no file and no later prompt can
        reply = replace(reply, text=_whole(reply.text), said=_whole(reply.said), model=_whole(reply.model))
        asked.keep(reply)
        self.meter.add(reply)
        return reply


def asker(config: Config, base: Base, repo: Repo, agent: Agent, meter: Meter, run: str, folder: Path) -> Asker:
    """Who asks for a run whose carry is `folder`. What its earlier processes spent is counted."""
    seconds, repair = float(config["nightly.call_seconds"]), bool(config["nightly.repair"])
    made = Asker(agent, meter, Guard(base, repo), run, seconds, repair)
    if not meter.made:
        for path in sorted((folder / "asked").glob("[!.]*.json")):
            for reply in Asked.load(path).replies:
                meter.add(reply)
    return made


def _object(reply: Reply, wrong: Callable[[dict[str, Any]], list[str]]) -> dict[str, Any]:
    if reply.kind != ANSWER:
        words, said = _SAID.get(reply.kind, "it failed"), _line(reply.text or reply.said)
        raise Unusable(f"{words}: {said}" if said else words)
    return answer.read(reply.text, wrong)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _line(text: str) -> str:
    """The beginning of what was said, on one line, without what may be kept nowhere."""
    return redact(" ".join(clean(text[:2000]).split()))[:300]


def _as_json(reply: Reply) -> dict[str, Any]:
    read, written = reply.tokens
    return {
        "kind": reply.kind,
        "text": reply.text,
        "said": reply.said,
        "cost_usd": reply.cost_usd,
        "tokens_in": read,
        "tokens_out": written,
        "model": reply.model,
    }


def _reply(value: Mapping[str, Any]) -> Reply:
    cost = value["cost_usd"]
    return Reply(
        kind=str(value["kind"]),
        text=str(value["text"]),
        said=str(value["said"]),
        cost_usd=None if cost is None else float(cost),
        tokens=(int(value["tokens_in"]), int(value["tokens_out"])),
        model=str(value["model"]),
    )
