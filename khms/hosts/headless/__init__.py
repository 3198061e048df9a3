"""Asking an agent one question and taking one answer: its program without tools, sessions and hooks as far as it lets
itself be so confined, or an endpoint over HTTP. One module an agent and one row here.

What is asked and what an answer is worth belongs to the pipeline below; `base` has the values that pass between.
"""

from __future__ import annotations

from khms.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from khms.config import Config
    from khms.hosts.headless.base import Agent, Enforces

AGENTS = {
    "claude": "khms.hosts.headless.claude",
    "codex": "khms.hosts.headless.codex",
    "gemini": "khms.hosts.headless.gemini",
    "openai": "khms.hosts.headless.openai",
    "command": "khms.hosts.headless.command",
}


def agent(config: Config) -> Agent:
    """The agent that `nightly.proposer` names. Raises Refused where there is none of that name or where it has tools
    and `nightly.allow_tools` does not allow that, and Unavailable where its program, its address or its key is missing.
    """
    name = config["nightly.proposer"]
    if name not in AGENTS:
        where = config.origin("nightly.proposer")
        raise Refused(f"there is no agent {name!r}", where=where, hint="one of: " + ", ".join(AGENTS))
    made: Agent = _module(name).agent(config)
    if made.enforces.tools.startswith("no") and not config["nightly.allow_tools"]:
        raise Refused(
            f"{name} cannot be kept from its tools: {made.enforces.tools.partition(': ')[2]}",
            where=config.origin("nightly.proposer"),
            hint="choose another nightly.proposer, or accept it: khms config set nightly.allow_tools true",
        )
    return made


def enforces(name: str) -> Enforces:
    """What the agent of this name can be held to, whether it is there or not."""
    found: Enforces = _module(name).ENFORCES
    return found


def _module(name: str) -> Any:
    return __import__(AGENTS[name], fromlist=["agent"])
