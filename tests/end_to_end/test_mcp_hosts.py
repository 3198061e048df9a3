"""khms's tools in real hosts and in the protocol's own inspector: listed, called by name, and their answers seen by the
model."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.host_lab import ANSWER, HOSTS, Lab, laboratory

pytestmark = pytest.mark.host

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAMS = {
    "claude": ("claude-code", "Claude Code", "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude"),
    "codex": ("codex", "Codex", "node_modules/@openai/codex-linux-*/vendor/*/bin/codex"),
    "copilot": ("copilot", "Copilot CLI", "node_modules/@github/copilot-linux-*/copilot"),
    "opencode": ("opencode", "opencode", "node_modules/opencode-linux-*/bin/opencode"),
}
# The laboratory's model calls what is scripted; here it is to call the tools that the test names.
SCRIPTED = "def pick(tools):\n"
NAMED = (
    SCRIPTED
    + "    if os.environ.get('TOOLCALLS'): return [tuple(one) for one in json.loads(os.environ['TOOLCALLS'])]\n"
)
# Codex groups a server's tools under a name of its own, which a call has to carry.
PLAIN = "        else:\n            txt=ANSWER\n"
GROUPED = (
    "            item.update(next(({'namespace':t['name']} for t in b['tools'] if t.get('type')=='namespace'"
    " and any(u.get('name')==nm for u in t['tools'])),{}))\n" + PLAIN
)
QUESTION = {"query": "checksum mismatch of the weather station"}


@pytest.fixture
def lab(request: Any, tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    _, title, pattern = PROGRAMS[request.param]
    made = laboratory(pattern, title, tmp_path, own_environment, shared, run_khms)
    tools = tmp_path / "hosts-lab"
    shutil.copytree(made.runner.parent, tools)
    model = tools / "model_server.py"
    text = model.read_text(encoding="utf-8")
    assert text.count(SCRIPTED) == 1 and text.count(PLAIN) == 1
    model.write_text(text.replace(SCRIPTED, NAMED).replace(PLAIN, GROUPED), encoding="utf-8")
    return Lab(made.root, tools / made.runner.name, made.run_khms)


def calling(lab: Lab, host: str, calls: list[tuple[str, dict[str, Any]]], *args: str) -> dict[str, Any]:
    """A session in which the model calls these tools; its last request."""
    done = subprocess.run(
        [lab.runner, host, lab.root, *args],
        env={**os.environ, "HOSTS": str(HOSTS), "KHMS_ROOT": "", "TOOLCALLS": json.dumps(calls)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )
    assert done.returncode == 0 and ANSWER in done.stdout, done.stdout + done.stderr
    last = sorted((lab.root / "req").glob("[0-9]*.json"))[-1]
    body: dict[str, Any] = json.loads(last.read_text(encoding="utf-8"))["body"]
    return body


def base_of(lab: Lab) -> None:
    lab.khms("init", lab.base)
    lab.khms("config", "set", "server.enabled", "off")
    lab.khms("mark", "solved", "checksum mismatch on frame 7 of the weather station was a loose ground, not timing")
    unit = json.loads(lab.khms("nightly", "--json"))["unit"]
    lab.khms("approve", unit, "--all", "--relation", "C1=new")


def marked(lab: Lab, text: str) -> bool:
    day = lab.base / "journal" / f"{time.strftime('%Y-%m-%d')}.md"
    return f"MARK[solved] {text}" in day.read_text(encoding="utf-8")


@pytest.mark.parametrize("lab", ["claude"], indirect=True)
def test_claude_code_calls_the_tools(lab: Lab) -> None:
    base_of(lab)
    lab.khms("--root", lab.base, "mcp", "install", "claude-code")
    names = ["mcp__khms__recall", "mcp__khms__mark"]
    calls = [
        ("ToolSearch", {"query": f"select:{','.join(names)}", "max_results": 5}),
        (names[0], QUESTION),
        (names[1], {"kind": "solved", "text": "said by way of Claude Code"}),
    ]
    body = calling(lab, "claude", calls, "-p", "x", "--output-format", "json", "--allowedTools", ",".join(names))
    results = [
        str(part["content"])
        for message in body["messages"]
        for part in message["content"]
        if isinstance(part, dict) and part.get("type") == "tool_result"
    ]
    assert '"id":"K-00001"' in results[1] and f"Reference data from {lab.base}" in results[1], results
    assert marked(lab, "said by way of Claude Code (sess ")


@pytest.mark.parametrize("lab", ["codex"], indirect=True)
def test_codex_calls_the_tools(lab: Lab) -> None:
    base_of(lab)
    # The laboratory writes the settings that name its model where there are none.
    lab.home.joinpath(".codex").mkdir()
    subprocess.run(
        [lab.runner, "codex", lab.root, "--version"], env={**os.environ, "HOSTS": str(HOSTS)}, check=True, timeout=90,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    lab.khms("--root", lab.base, "mcp", "install", "codex")
    calls = [
        ("read_mcp_resource", {"server": "khms", "uri": "khms://card/K-00001"}),  # waits until the server is there
        ("recall", QUESTION),
        ("mark", {"kind": "solved", "text": "said by way of Codex"}),
    ]
    body = calling(lab, "codex", calls, "exec", "--skip-git-repo-check", "x")
    page, answer, _ = [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    assert "loose ground" in page and "[/khms]" in page
    assert '"id":"K-00001"' in answer and f"Reference data from {lab.base}" in answer
    assert marked(lab, "said by way of Codex")


@pytest.mark.parametrize("lab", list(PROGRAMS), indirect=True)
def test_the_host_itself_lists_the_server(lab: Lab, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["lab"]
    host, _, pattern = PROGRAMS[name]
    lab.khms("mcp", "install", host)
    program = next(HOSTS.glob(pattern))
    env = {"PATH": os.environ["PATH"], "HOME": str(lab.home), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [program, "mcp", "list"], env=env, cwd=lab.root, stdin=subprocess.DEVNULL, capture_output=True,
        encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    line = next(line for line in (done.stdout + done.stderr).splitlines() if "khms" in line.replace(str(lab.root), ""))
    assert {"claude": "Connected", "opencode": "connected", "codex": "enabled", "copilot": "local"}[name] in line


INSPECTOR = "node_modules/@modelcontextprotocol/inspector"


@pytest.fixture
def inspect(indexed: Any, shared: Callable[[str], Path]) -> Callable[..., Any]:
    folder = HOSTS / INSPECTOR
    if not folder.is_dir():
        pytest.skip(f"needs the inspector of the Model Context Protocol: npm install --prefix {HOSTS} {INSPECTOR[13:]}")
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    node = os.environ.get("KHMS_TEST_NODE", "node")
    command = [node, str(folder / manifest["bin"]["mcp-inspector"]), "--cli"]

    def run(*words: str) -> Any:
        import sys

        server = ["-e", f"HOME={os.environ['HOME']}", "-e", "KHMS_SERVER_OFF=1"]
        started = [sys.executable, "-I", "-m", "khms", "--root", str(indexed.root), "mcp"]
        done = subprocess.run(
            [*command, *server, *started, *words], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            timeout=60, check=False,
        )  # fmt: skip
        return json.loads(done.stdout[: done.stdout.rindex("}") + 1]) if "}" in done.stdout else done.stderr

    return run


def test_the_inspector_lists_and_calls(inspect: Callable[..., Any]) -> None:
    found = inspect("--method", "tools/list")
    assert isinstance(found, dict), found
    assert len(found["tools"]) == 6
    answer = inspect("--method", "tools/call", "--tool-name", "show", "--tool-arg", "id=K-00001")
    assert answer["structuredContent"]["id"] == "K-00001"
    assert len(inspect("--method", "prompts/list")["prompts"]) == 2
    assert len(inspect("--method", "resources/templates/list")["resourceTemplates"]) == 2
    page = inspect("--method", "resources/read", "--uri", "khms://card/K-00001")
    assert page["contents"][0]["text"].startswith("[khms] ")
