"""What is particular to one host: how it is called, and what its own words stand for."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Refused, Unavailable
from khms.hosts import headless
from khms.hosts.headless import forms
from khms.hosts.headless.program import clock

Make = Callable[[str], Any]
Form = Callable[..., str]


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def spoken(*parts: dict[str, Any], **event: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": list(parts), **event.pop("message", {})}, **event}


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "result": text, **more}


def failed(text: str) -> str:
    return lines({"type": "turn.started"}, {"type": "turn.failed", "error": {"message": text}})


def item(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "1", "type": kind, **more}}


REJECTED = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1796100000}}
SPENT = (
    "You’ve hit your usage limit. Upgrade to Pro (https://example.org), or try again at 3:12 PM."  # its own apostrophe
)
SAID = (
    ("claude", lines(result("API Error: Request rejected (429) · busy", api_error_status=429)), "", 1, "limit", ""),
    ("claude", lines(result("You've hit your session limit · resets 3pm (UTC)")), "", 1, "limit", "3pm (UTC)"),
    ("claude", lines(result("Claude AI usage limit reached|1796100000")), "", 1, "limit", clock(1796100000)),
    ("claude", lines({**result("You've hit your weekly limit"), "is_error": False}), "", 0, "limit", ""),
    ("claude", lines(REJECTED, result("over")), "", 1, "limit", clock(1796100000)),
    ("claude", lines(spoken(error="billing_error"), result("Credit balance")), "", 1, "limit", ""),
    ("claude", lines(result("Prompt is too long")), "", 1, "too-long", ""),
    ("claude", lines(result("over", terminal_reason="prompt_too_long")), "", 1, "too-long", ""),
    ("claude", lines(spoken(message={"stop_reason": "refusal"}), result("no")), "", 1, "refusal", ""),
    ("claude", lines({**result("", stop_reason="refusal"), "is_error": False}), "", 0, "refusal", ""),
    ("claude", lines(result("Invalid API key · Please run /login")), "", 1, "failed", ""),
    ("claude", lines(spoken(error="overloaded"), result("API Error: Overloaded")), "", 1, "failed", ""),
    ("claude", "", "Error: unknown option '--tools'", 1, "failed", ""),
    (
        "claude",
        lines(spoken({"type": "tool_use", "name": "Bash"}), {**result('{"answer": "ja"}'), "is_error": False}),
        "",
        0,
        "tools",
        "",
    ),
    ("codex", failed(SPENT), "", 1, "limit", "3:12 PM"),
    ("codex", failed("You've reached your workspace credit limit"), "", 1, "limit", ""),
    ("codex", failed("exceeded retry limit, last status: 429 Too Many Requests"), "", 1, "limit", ""),
    ("codex", failed("Codex ran out of room in the model's context window. Start anew."), "", 1, "too-long", ""),
    ("codex", failed("Incomplete response returned, reason: content_filter"), "", 1, "refusal", ""),
    ("codex", failed("stream disconnected before completion"), "", 1, "failed", ""),
    ("codex", "", "Not logged in", 1, "failed", ""),
    ("codex", lines(item("command_execution"), item("agent_message", text="{}")), "", 0, "tools", ""),
    ("codex", lines(item("file_change"), item("agent_message", text="{}")), "", 0, "tools", ""),
    ("gemini", "", 'stack\n  status: 429\n}\n{\n "error": {"message": "over", "code": 429}\n}', 173, "limit", ""),
    ("gemini", json.dumps({"error": {"message": "You exceeded your current quota"}}), "", 1, "limit", ""),
    (
        "gemini",
        "",
        "You have exhausted your capacity on this model. Your quota will reset after 2h3m.",
        1,
        "limit",
        "2h3m",
    ),
    (
        "gemini",
        json.dumps({"error": {"message": "The input token count (9) exceeds the maximum number of tokens"}}),
        "",
        1,
        "too-long",
        "",
    ),
    ("gemini", "", "The model response was blocked due to safety settings.", 1, "refusal", ""),
    ("gemini", "", "Gemini CLI is not running in a trusted directory", 55, "failed", ""),
    ("gemini", json.dumps({"response": "{}", "stats": {"tools": {"totalCalls": 2}}}), "", 0, "tools", ""),
    ("gemini", json.dumps({"response": None}), "", 0, "failed", ""),
)


@pytest.mark.parametrize("host, out, err, code, kind, resets", SAID)
def test_the_words_of_a_host_have_their_meaning(
    host: str, out: str, err: str, code: int, kind: str, resets: str, scripted: Make
) -> None:
    reply = scripted(host).does(out, err, code).ask()
    assert (reply.kind, reply.resets) == (kind, resets), reply
    assert reply.text


def test_a_host_that_tries_again_until_its_time_is_up_was_at_a_limit(scripted: Make) -> None:
    waits = "import time; sys.stderr.write('Attempt 1 failed\\n  status: 429\\n'); sys.stderr.flush(); time.sleep(1000)"
    assert scripted("gemini").does(do=waits).ask(seconds=2).kind == "limit"


def test_claude_is_called_without_anything_of_the_users(scripted: Make, form: Form) -> None:
    agent = scripted("claude").does(form("claude", "", structured_output={"answer": "“ja”"}))
    agent.settings["nightly.model"] = "opus"
    reply = agent.ask()
    assert (reply.kind, reply.text) == ("answer", '{"answer": "“ja”"}')
    assert (reply.cost_usd, reply.tokens, reply.model) == (0.25, (11, 7), "claude-test")
    args = agent.seen["args"]
    for name, value in {
        "--tools": "",
        "--setting-sources": "",
        "--model": "opus",
        "--system-prompt": "Answer with one JSON object.",
    }.items():
        assert args[args.index(name) + 1] == value
    assert {"-p", "--no-session-persistence", "--strict-mcp-config", "--disable-slash-commands"} <= set(args)
    schema = json.loads(args[args.index("--json-schema") + 1])
    assert "$schema" not in schema and schema["required"] == ["answer"]
    assert "--json-schema" not in agent.does(form("claude", "ja")).ask(schema=None).text
    assert "--json-schema" not in agent.seen["args"]


def test_codex_gets_our_instructions_and_a_strict_form(scripted: Make, form: Form) -> None:
    agent = scripted("codex").does(form("codex", {"answer": "ja", "why": None}))
    reply = agent.ask()
    assert (reply.text, reply.tokens) == ('{"answer": "ja"}', (11, 7))
    args = agent.seen["args"]
    assert args[0] == "exec" and args[-1] == "-" and args[args.index("--sandbox") + 1] == "read-only"
    assert {"--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check", "--json"} <= set(args)
    assert args[args.index("--disable") + 1] == "hooks" and "features.shell_tool=false" in args
    texts = list(agent.seen["read"].values())
    assert "Answer with one JSON object." in texts
    schema = next(json.loads(text) for text in texts if text.startswith("{"))
    assert schema["required"] == ["answer", "why"] and schema["additionalProperties"] is False


def test_gemini_has_a_home_of_its_own_with_the_users_login(scripted: Make, form: Form, own_environment: Path) -> None:
    user = own_environment / ".gemini"
    user.mkdir()
    settings = {"security": {"auth": {"selectedType": "oauth"}}, "hooks": {"SessionStart": []}, "mcpServers": {"x": {}}}
    (user / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (user / "oauth_creds.json").write_text("login", encoding="utf-8")
    (user / "GEMINI.md").write_text("memory", encoding="utf-8")
    looks = """
home = os.environ["GEMINI_CLI_HOME"] + "/.gemini/"
seen = {name: open(home + name, encoding="utf-8").read() for name in os.listdir(home)}
json.dump(seen, open(here + "/home.json", "w", encoding="utf-8"))
open(home + "oauth_creds.json", "w").write("renewed")
"""
    agent = scripted("gemini").does(form("gemini", {"answer": "ja"}), do=looks)
    reply = agent.ask()
    assert (reply.kind, reply.model, reply.tokens) == ("answer", "gemini-test", (11, 7))
    home = json.loads((agent.folder / "home.json").read_text(encoding="utf-8"))
    assert set(home) == {"settings.json", "oauth_creds.json"} and home["oauth_creds.json"] == "login"
    own = json.loads(home["settings.json"])
    assert own["security"] == settings["security"] and not {"hooks", "mcpServers"} & set(own)
    assert (user / "oauth_creds.json").read_text(encoding="utf-8") == "renewed"
    texts = agent.seen["read"]
    assert texts[agent.seen["env"]["GEMINI_SYSTEM_MD"]] == "Answer with one JSON object."
    (rule,) = tomllib.loads(texts[agent.seen["args"][agent.seen["args"].index("--policy") + 1]])["rule"]
    assert (rule["toolName"], rule["decision"]) == ("*", "deny")


def test_a_command_gets_its_own_arguments(scripted: Make) -> None:
    agent = scripted("command").does("ja")
    assert agent.ask().text == "ja"
    assert agent.seen["args"] == ["--flag", "a b"]


def made(**values: Any) -> headless.base.Agent:
    return headless.agent(Config([("khms.toml", {f"nightly.{name}": value for name, value in values.items()})]))


def test_an_agent_that_cannot_be_asked_is_refused_before_it_is(scripted: Make) -> None:
    for host in ("claude", "codex", "gemini"):
        with pytest.raises(Unavailable, match=f"{host} is not on PATH") as caught:
            made(proposer=host, allow_tools=True)
        assert "install" in caught.value.hint
    scripted("codex"), scripted("claude")
    with pytest.raises(Refused, match="cannot be kept from its tools") as refused:
        made(proposer="codex")
    assert "nightly.allow_tools true" in refused.value.hint
    assert made(proposer="claude", model="opus").model == "opus"
    assert made(proposer="codex", allow_tools=True).name == "codex"
    with pytest.raises(Refused, match="there is no agent"):
        made(proposer="rules")
    for wrong, says in {"": "names no program", "'": "cannot be split"}.items():
        with pytest.raises(Refused, match=says):
            made(proposer="command", command=wrong)
    with pytest.raises(Unavailable, match="nowhere-to-be-found is not on PATH"):
        made(proposer="command", command="nowhere-to-be-found --x")


def test_every_agent_says_what_it_enforces() -> None:
    for name in headless.AGENTS:
        said = headless.enforces(name)
        words = [getattr(said, part) for part in ("tools", "session", "hooks", "system", "schema", "memory")]
        assert all(words)
    assert headless.enforces("codex").tools.startswith("no") and headless.enforces("claude").tools == "yes"


def test_a_strict_form_names_every_key_and_admits_null() -> None:
    schema = {
        "$schema": "x", "type": "object", "required": ["a"], "allOf": [{"if": {}}],
        "properties": {
            "a": {"type": "string", "pattern": "x", "title": "A", "description": "words"},
            "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"$ref": "#/$defs/d"}}}},
        },
        "$defs": {"d": {"type": "object", "required": [], "properties": {"title": {"enum": ["x"]}}}},
    }  # fmt: skip
    shape = forms.strict(schema)
    assert set(shape) == {"type", "required", "properties", "$defs", "additionalProperties"}
    assert shape["properties"]["a"] == {"type": "string", "description": "words"}
    inner = shape["properties"]["b"]["anyOf"]
    assert inner[1] == {"type": "null"}
    assert inner[0]["items"]["required"] == ["c"] and inner[0]["items"]["additionalProperties"] is False
    assert shape["$defs"]["d"]["required"] == ["title"]
    assert set(forms.plain(schema)) == {"type", "required", "properties", "$defs"}
    assert forms.without_nulls('{"a": null, "b": [{"c": null, "d": "ä"}]}') == '{"b": [{"d": "ä"}]}'
    for text in ("no JSON", '```{"a": null}```', "[null]", "{" * 3000):
        assert forms.without_nulls(text) == text


def test_a_figure_that_is_none_counts_as_none(scripted: Make, form: Form) -> None:
    for wrong in (float("nan"), float("inf"), -1, "3", None, True):
        usage = {"input_tokens": wrong, "output_tokens": wrong}
        reply = scripted("claude").does(form("claude", "{}", total_cost_usd=wrong, usage=usage)).ask()
        assert (reply.kind, reply.cost_usd, reply.tokens) == ("answer", None, (0, 0))
