"""Codex without a terminal. It keeps no session and runs no hook, and our instructions stand in place of its own.

No flag takes all its tools away. Those that can be switched off are: of version 0.171 and a model like gpt-5.4 only a
question to the user is left, while models that it runs in code mode keep what that offers, in a read-only sandbox. A
call that its events show makes the answer void.
"""

import json
from dataclasses import dataclass
from typing import Any

from khms.config import Config
from khms.hosts.headless import child, forms
from khms.hosts.headless.base import FAILED, LIMIT, REFUSAL, TOO_LONG, TOOLS, Enforces, Reply, Request
from khms.hosts.headless.child import Ended, Room
from khms.hosts.headless.program import answered, events, find, meaning, number, stopped, tail

ENFORCES = Enforces(
    tools="no: some stay, in a read-only sandbox",
    session="yes",
    hooks="yes",
    system="yes",
    schema="yes, strictly",
    memory="no: the user's own AGENTS.md",
)
NEEDS = (
    *("CODEX_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG*"),
    "DBUS_SESSION_BUS_ADDRESS",  # the login may be in the key ring
)
# An unknown one is reported by Codex and passed over, so that older and newer versions take the list too.
OFF = (
    *("shell_tool", "unified_exec", "view_image", "image_generation", "apps", "goals", "multi_agent", "plugins"),
    "skill_search",
)
SETTINGS = (
    *("project_doc_max_bytes=0", 'web_search="disabled"', "skills.include_instructions=false"),
    *("include_permissions_instructions=false", "include_environment_context=false", "include_apps_instructions=false"),
)
SPOKEN = ("agent_message", "assistant_message")  # the latter in older versions
HARMLESS = (*SPOKEN, "reasoning", "error", "todo_list")  # items that are no use of a tool
SIGNS = (
    # Seen live against a model that answers 429 usage_limit_reached, with this apostrophe.
    (LIMIT, r"You['’]ve hit your usage limit(?:.*?try again (?:at|in) (?P<resets>[^.\n]+))?"),
    # Texts of the shipped program, 0.171.
    (LIMIT, r"You['’]ve reached your (?:usage limit|workspace credit limit)|usage limit reached|out of credits"),
    (LIMIT, r"quota exceeded\. Check your plan|usage not included|upgrade to Plus"),
    (LIMIT, r"exceeded retry limit, last status: 429"),
    (TOO_LONG, r"ran out of room in the model['’]s context window|context window exceeded|context_length_exceeded"),
    (REFUSAL, r"reason: content_filter|flagged for (?:possible|potentially)"),
)


@dataclass(frozen=True, slots=True)
class Codex:
    program: str
    model: str
    most: int
    name: str = "codex"
    enforces: Enforces = ENFORCES

    def ask(self, request: Request) -> Reply:
        with child.room() as room:
            env = child.environment(request.run, room, needs=NEEDS)
            ended = child.run(
                self.command(request, room), request.text, room, env=env, seconds=request.seconds, most=self.most
            )
        return stopped(ended, request.seconds, SIGNS) or read(ended)

    def command(self, request: Request, room: Room) -> list[str]:
        found = [self.program, "exec", *(["--model", self.model] if self.model else [])]
        found += ["--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
        found += ["--ignore-user-config", "--ignore-rules", "--disable", "hooks"]
        for setting in (*SETTINGS, *(f"features.{name}=false" for name in OFF)):
            found += ["-c", setting]
        if request.system:
            path = room.put("instructions.md", request.system)
            found += ["-c", f"model_instructions_file={json.dumps(str(path))}"]
        if request.schema is not None:
            path = room.put("schema.json", json.dumps(forms.strict(request.schema)))
            found += ["--output-schema", str(path)]
        return [*found, "--json", "-"]


def read(ended: Ended) -> Reply:
    """The reply that its events and its end amount to."""
    seen = events(ended.out)
    said, tokens = tail(ended.err), _tokens(seen)
    items = [event["item"] for event in seen if isinstance(event.get("item"), dict)]
    kinds = [str(item.get("type") or item.get("item_type") or "?") for item in items]
    called = list(dict.fromkeys(kind for kind in kinds if kind not in HARMLESS))
    if called:
        return Reply(TOOLS, f"it used {', '.join(called)}", said=said, tokens=tokens)
    failed = next((event for event in reversed(seen) if event.get("type") == "turn.failed"), None)
    if failed is None and ended.code == 0:
        spoken = [item.get("text") for item, kind in zip(items, kinds, strict=True) if kind in SPOKEN]
        text = next((text for text in reversed(spoken) if isinstance(text, str)), "")
        return answered(forms.without_nulls(text), said=said, tokens=tokens)
    words = _message(failed or {}) or next((_message(event) for event in reversed(seen) if _message(event)), "")
    words = words or said or tail(ended.out) or f"exit code {ended.code}"
    kind, resets = meaning(words, SIGNS)
    return Reply(kind or FAILED, tail(words), said=said, tokens=tokens, resets=resets)


def _message(event: dict[str, Any]) -> str:
    """The words of an event of error; the items that only warn are none."""
    error = event.get("error")
    found = error.get("message") if isinstance(error, dict) else event.get("message")
    return found if isinstance(found, str) else ""


def _tokens(seen: list[dict[str, Any]]) -> tuple[int, int]:
    usage: dict[str, Any] = next(
        (event["usage"] for event in reversed(seen) if isinstance(event.get("usage"), dict)), {}
    )
    return number(usage.get("input_tokens")), number(usage.get("output_tokens"))


def agent(config: Config) -> Codex:
    hint = "install Codex and log in once (codex login), or name another nightly.proposer"
    return Codex(find("codex", hint), config["nightly.model"], config["nightly.max_answer_bytes"])
