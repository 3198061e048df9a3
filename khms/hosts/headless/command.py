"""Any program as an agent: it reads the request on standard input and prints the answer. How it is confined beyond that
is up to whoever named it."""

import shlex
from dataclasses import dataclass

from khms.config import Config
from khms.errors import Refused
from khms.hosts.headless import child
from khms.hosts.headless.base import FAILED, Enforces, Reply, Request
from khms.hosts.headless.program import answered, find, stopped, tail, whole

ENFORCES = Enforces(
    tools="up to the program",
    session="up to the program",
    hooks="those of khms",
    system="before the text",
    schema="in words only",
    memory="up to the program",
)


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    most: int
    name: str = "command"
    model: str = ""
    enforces: Enforces = ENFORCES

    def ask(self, request: Request) -> Reply:
        with child.room() as room:
            env = child.environment(request.run, room)
            ended = child.run(self.words, whole(request), room, env=env, seconds=request.seconds, most=self.most)
        if reply := stopped(ended, request.seconds):
            return reply
        if ended.code != 0:
            return Reply(FAILED, tail(ended.err) or tail(ended.out) or f"exit code {ended.code}", said=tail(ended.err))
        return answered(ended.out, said=tail(ended.err))


def agent(config: Config) -> Command:
    where = config.origin("nightly.command")
    try:
        words = shlex.split(config["nightly.command"])
    except ValueError as error:
        hint = "close its quotes"
        raise Refused(f"nightly.command cannot be split into words: {error}", where=where, hint=hint) from error
    if not words:
        raise Refused("nightly.command names no program", where=where, hint="khms config set nightly.command 'PROGRAM'")
    return Command((find(words[0]), *words[1:]), config["nightly.max_answer_bytes"])
