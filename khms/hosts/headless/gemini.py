"""Gemini CLI without a terminal, in a home of its own that holds the user's login and nothing else.

By itself it always keeps its session, runs the user's hooks and servers and reads the user's GEMINI.md: seen with
version 0.61. In such a home none of these is there, and what it keeps goes with the folder.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khms.config import Config
from khms.hosts.base import home
from khms.hosts.headless import child
from khms.hosts.headless.base import FAILED, LIMIT, REFUSAL, TOO_LONG, TOOLS, Enforces, Reply, Request
from khms.hosts.headless.child import Ended, Room
from khms.hosts.headless.program import answered, find, meaning, number, stopped, tail

ENFORCES = Enforces(
    tools="yes",
    session="yes, in a home of its own",
    hooks="yes, in a home of its own",
    system="yes",
    schema="in words only",
    memory="yes, in a home of its own",
)
NEEDS = (
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_*", "GOOGLE_CLOUD_*", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT", "GEMINI_DEFAULT_AUTH_TYPE"),
    "DBUS_SESSION_BUS_ADDRESS",  # the login may be in the key ring
)
# Where a login is kept; a link, so that what is renewed there stays renewed.
LOGIN = ("oauth_creds.json", "google_accounts.json", "gemini-credentials.json", ".env")
NO_TOOLS = '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 999\n'
SIGNS = (
    # Seen live against a model that answers 429: this code stands in its JSON, the words on standard error.
    (LIMIT, r'^\s*"?(?:code|status)"?: 429\b'),
    (LIMIT, r"You exceeded your current quota|RESOURCE_EXHAUSTED|QuotaError"),
    # Texts of the shipped program, 0.61.
    (LIMIT, r"You have exhausted your (?:daily quota|capacity)(?:.*?reset after (?P<resets>[\w.]+))?"),
    (LIMIT, r"quota exceeded for"),
    (TOO_LONG, r"exceeds the maximum number of tokens|input token count .{0,40}exceeds"),
    (REFUSAL, r"blocked due to safety settings|ended due to safety settings|PROHIBITED_CONTENT"),
)


@dataclass(frozen=True, slots=True)
class Gemini:
    program: str
    model: str
    most: int
    name: str = "gemini"
    enforces: Enforces = ENFORCES

    def ask(self, request: Request) -> Reply:
        with child.room() as room:
            env = child.environment(request.run, room, needs=NEEDS, more=self.settings(request, room))
            ended = child.run(self.command(room), request.text, room, env=env, seconds=request.seconds, most=self.most)
        return stopped(ended, request.seconds, SIGNS) or read(ended)

    def command(self, room: Room) -> list[str]:
        found = [self.program, "--skip-trust", "-e", "none", *(["-m", self.model] if self.model else [])]
        return [*found, "--policy", str(room.put("deny-all.toml", NO_TOOLS)), "-o", "json"]

    def settings(self, request: Request, room: Room) -> dict[str, str]:
        """Makes the home and names it, and the file that stands in place of the program's own instructions."""
        user = home("GEMINI_CLI_HOME") / ".gemini"
        own = room.files / ".gemini"
        own.mkdir()
        for name in LOGIN:
            if (user / name).is_file():
                (own / name).symlink_to(user / name)
        # At a limit it tries ten times unless told otherwise, which takes minutes.
        held = {"security": {"auth": _auth(user / "settings.json")}, "general": {"maxAttempts": 2}}
        room.put(".gemini/settings.json", json.dumps(held | {"privacy": {"usageStatisticsEnabled": False}}))
        found = {"GEMINI_CLI_HOME": str(room.files), "GEMINI_CLI_NO_RELAUNCH": "1"}
        return found | ({"GEMINI_SYSTEM_MD": str(room.put("system.md", request.system))} if request.system else {})


def _auth(settings: Path) -> dict[str, Any]:
    """How the user has chosen to log in; nothing where that cannot be told."""
    try:
        security = json.loads(settings.read_text(encoding="utf-8"))["security"]["auth"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return security if isinstance(security, dict) else {}


def read(ended: Ended) -> Reply:
    """The reply that its one document and its end amount to."""
    document = _document(ended.out) or _document(ended.err)  # of an error it writes to the latter
    said, (model, tokens, calls) = tail(ended.err), _stats(document)
    if calls:
        return Reply(TOOLS, f"it called {calls} tools", said=said, tokens=tokens, model=model)
    response = document.get("response")
    error = document.get("error")
    if ended.code == 0 and not error and isinstance(response, str):
        return answered(response, said=said, tokens=tokens, model=model)
    words = str(error.get("message") or "") if isinstance(error, dict) else ""
    words = words or said or tail(ended.out) or f"exit code {ended.code}"
    kind, resets = meaning(words, SIGNS)
    if isinstance(error, dict) and error.get("code") == 429:
        kind = LIMIT
    if not kind:
        kind, resets = meaning(ended.err, SIGNS)
    return Reply(kind or FAILED, tail(words), said=said, tokens=tokens, model=model, resets=resets)


def _document(out: str) -> dict[str, Any]:
    """The JSON object that ends the output, alone or after lines of other matter; empty where there is none."""
    for start in (out.find("{"), out.rfind("\n{")):
        try:
            found = json.loads(out[max(start, 0) :])
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def _stats(document: dict[str, Any]) -> tuple[str, tuple[int, int], int]:
    """The first model named, the tokens of all, and how many tools were called."""
    stats = document.get("stats")
    if not isinstance(stats, dict):
        return "", (0, 0), 0
    models, tools = stats.get("models"), stats.get("tools")
    each = [value.get("tokens") for value in models.values()] if isinstance(models, dict) else []
    counts = [tokens for tokens in each if isinstance(tokens, dict)]
    tokens = (sum(number(one.get("prompt")) for one in counts), sum(number(one.get("candidates")) for one in counts))
    name = next(iter(models), "") if isinstance(models, dict) else ""
    return str(name), tokens, number(tools.get("totalCalls")) if isinstance(tools, dict) else 0


def agent(config: Config) -> Gemini:
    hint = "install Gemini CLI and log in once (gemini), or name another nightly.proposer"
    return Gemini(find("gemini", hint), config["nightly.model"], config["nightly.max_answer_bytes"])
