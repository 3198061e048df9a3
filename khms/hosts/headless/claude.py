"""Claude Code without a terminal: no tools, no session kept, no settings, hooks, servers or memory of the user's.

Its events are read rather than its last word alone, because only they show a tool that was called and when a
subscription's limit ends.
"""

import json
from dataclasses import dataclass
from typing import Any

from khms.config import Config
from khms.hosts.headless import child, forms
from khms.hosts.headless.base import ANSWER, FAILED, LIMIT, REFUSAL, TOO_LONG, TOOLS, Enforces, Reply, Request
from khms.hosts.headless.child import Ended
from khms.hosts.headless.program import amount, answered, clock, events, find, meaning, number, stopped, tail

ENFORCES = Enforces(
    tools="yes",
    session="yes",
    hooks="yes",
    system="yes, after a line of its own",
    schema="yes, but for combinations",
    memory="yes",
)
NEEDS = (
    *("ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_API_KEY_*", "CLAUDE_CODE_USE_*"),
    *("CLAUDE_CODE_SKIP_*_AUTH", "AWS_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
)
QUIET = {
    "CLAUDE_CODE_MAX_RETRIES": "0",  # by itself it tries many times at a limit; who asks decides on that
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}
# The one tool by which it hands over an answer of a given form; not offered where no form is given.
ANSWERS_BY = "StructuredOutput"
# Kinds of error in its events (types of version 2.1.332).
ERRORS = {"rate_limit": LIMIT, "billing_error": LIMIT}
SIGNS = (
    # Seen live against a model that answers 429; `api_error_status` says it too.
    (LIMIT, r"Request rejected \(429\)"),
    # Beginnings of the lines that 2.1.332 itself takes for a used-up subscription (text of the shipped program).
    (LIMIT, r"^You['’]ve (?:hit|reached) your\b(?:.*?\bresets? (?:at )?(?P<resets>[^\n·]+))?"),
    (LIMIT, r"^You['’]re out of (?:usage credits|extra usage)|^Your org is out of usage"),
    (LIMIT, r"^Your seat type doesn['’]t include|^Your usage allocation has been disabled|usage limit is set to \$0"),
    # Older versions: "Claude AI usage limit reached|1760000000".
    (LIMIT, r"usage limit reached(?:\|(?P<resets>\d+))?"),
    (LIMIT, r"credit balance is too low"),
    (TOO_LONG, r"^(?:API Error: )?prompt is too long"),
    # What it writes in place of an answer that was stopped; the event's stop_reason "refusal" says it too.
    (REFUSAL, r"unable to respond to this request|violate our Usage Policy"),
)


@dataclass(frozen=True, slots=True)
class Claude:
    program: str
    model: str
    most: int
    name: str = "claude"
    enforces: Enforces = ENFORCES

    def ask(self, request: Request) -> Reply:
        with child.room() as room:
            env = child.environment(request.run, room, needs=NEEDS, more=QUIET)
            ended = child.run(
                self.command(request), request.text, room, env=env, seconds=request.seconds, most=self.most
            )
        return stopped(ended, request.seconds, SIGNS) or read(ended)

    def command(self, request: Request) -> list[str]:
        found = [self.program, "-p", *(["--model", self.model] if self.model else []), "--tools", ""]
        found += ["--no-session-persistence", "--setting-sources", "", "--strict-mcp-config"]
        found += ["--disable-slash-commands", "--system-prompt", request.system]
        found += ["--output-format", "stream-json", "--verbose"]
        if request.schema is not None:
            found += ["--json-schema", json.dumps(forms.plain(request.schema))]
        return found


def read(ended: Ended) -> Reply:
    """The reply that its events and its end amount to."""
    seen = events(ended.out)
    result: dict[str, Any] = next((event for event in reversed(seen) if event.get("type") == "result"), {})
    said = tail(ended.err)
    words = str(result.get("result") or "")
    text = words or _spoken(seen) or said or tail(ended.out)
    rest: dict[str, Any] = {"said": said, "tokens": _tokens(result), "model": _model(seen, result)}
    rest["cost_usd"] = amount(result.get("total_cost_usd"))
    called = [part.get("name") for part in _parts(seen) if part.get("type") == "tool_use"]
    if any(name != ANSWERS_BY for name in called):
        return Reply(TOOLS, f"it called {', '.join(str(name) for name in called)}", **rest)
    rejected = _rejected(seen)
    resets = clock(number(rejected["resetsAt"])) if rejected.get("resetsAt") else ""
    if _refused(seen, result):
        return Reply(REFUSAL, tail(text), **rest)
    if result and not result.get("is_error") and ended.code == 0:
        structured = result.get("structured_output")
        if structured is not None:
            return Reply(ANSWER, json.dumps(structured, ensure_ascii=False), **rest)
        kind, ends = meaning(text, SIGNS) if "{" not in text else ("", "")
        return Reply(kind, tail(text), resets=ends or resets, **rest) if kind else answered(words, **rest)
    kind = ERRORS.get(next((str(event["error"]) for event in reversed(seen) if event.get("error")), ""), "")
    if result.get("api_error_status") == 429:
        kind = LIMIT
    if result.get("terminal_reason") == "prompt_too_long":
        kind = TOO_LONG
    by_words, ends = meaning(text, SIGNS)
    kind = kind or by_words or (LIMIT if rejected else FAILED)
    return Reply(kind, tail(text) or f"exit code {ended.code}", resets=ends or resets, **rest)


def _parts(seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of what the model said."""
    messages = [event.get("message") for event in seen if event.get("type") == "assistant"]
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    return [part for content in contents if isinstance(content, list) for part in content if isinstance(part, dict)]


def _spoken(seen: list[dict[str, Any]]) -> str:
    return "\n".join(str(part.get("text", "")) for part in _parts(seen) if part.get("type") == "text")


def _refused(seen: list[dict[str, Any]], result: dict[str, Any]) -> bool:
    messages = [event.get("message") for event in seen if event.get("type") == "assistant"]
    reasons = [message.get("stop_reason") for message in messages if isinstance(message, dict)]
    return "refusal" in (*reasons, result.get("stop_reason"))


def _rejected(seen: list[dict[str, Any]]) -> dict[str, Any]:
    """What the last event says of the subscription's limit that the call was rejected on; empty where none was."""
    for event in reversed(seen):
        info = event.get("rate_limit_info")
        if event.get("type") == "rate_limit_event" and isinstance(info, dict) and info.get("status") == "rejected":
            return info
    return {}


def _tokens(result: dict[str, Any]) -> tuple[int, int]:
    usage = result.get("usage")
    if not isinstance(usage, dict):
        return (0, 0)
    read_in = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(number(usage.get(name)) for name in read_in), number(usage.get("output_tokens"))


def _model(seen: list[dict[str, Any]], result: dict[str, Any]) -> str:
    used = result.get("modelUsage")
    if isinstance(used, dict) and used:
        return str(next(iter(used)))
    return next((str(event["model"]) for event in seen if event.get("subtype") == "init" and event.get("model")), "")


def agent(config: Config) -> Claude:
    hint = "install Claude Code and log in once (claude), or name another nightly.proposer"
    return Claude(find("claude", hint), config["nightly.model"], config["nightly.max_answer_bytes"])
