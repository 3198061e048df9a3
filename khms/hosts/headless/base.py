"""What every agent behind a proposer takes and gives: one request in, one reply out, never an exception.

`text` of a request arrives at the agent byte for byte. An agent that can be given instructions apart from the text gets
`system` so; any other finds it before the text, with an empty line between.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

ANSWER = "answer"  # what the agent answered; whether it is any good is for others to judge
LIMIT = "limit"  # used up: a usage limit, a quota, too many requests; asking on is pointless for now
REFUSAL = "refusal"  # the model declined
FAILED = "failed"  # no answer: crash, exit code, not logged in, nonsense from the host
TIMEOUT = "timeout"
TOOLS = "tools"  # a tool was called, so that what came of it does not count
TOO_LONG = "too-long"  # the request is over what the model can take
OVERSIZE = "oversize"  # more output than the limit


@dataclass(frozen=True, slots=True)
class Request:
    """`text` begins with the marker of the run `run`, a ULID. `schema` is the JSON schema of the answer, None for free
    text; an agent passes on as much of it as its host takes. After `seconds` the call is given up."""

    system: str
    text: str
    schema: Mapping[str, Any] | None
    seconds: float
    run: str


@dataclass(frozen=True, slots=True)
class Reply:
    """`text` is the answer; with any kind but ANSWER it is what the model or the host said, in a few lines. `said` is
    the end of what the host reported beside it, for the record. `tokens` are those read and those written, `model` is
    what answered, `resets` says when a limit ends, as the host words it; what is not known is None, 0 or empty."""

    kind: str
    text: str
    said: str = ""
    cost_usd: float | None = None
    tokens: tuple[int, int] = (0, 0)
    model: str = ""
    resets: str = ""


@dataclass(frozen=True, slots=True)
class Enforces:
    """What is certain while the agent answers, each "yes", "no" or a few words: it has no tools; it keeps no session
    that could be read as a source later; no hooks run; it has our instructions in place of its own; its answer has the
    form of the schema; it reads no memory of its own or of the project."""

    tools: str
    session: str
    hooks: str
    system: str
    schema: str
    memory: str


class Agent(Protocol):
    """One agent, ready to be asked. `model` is the one that was configured, empty for the agent's own choice."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def enforces(self) -> Enforces: ...

    def ask(self, request: Request) -> Reply: ...
