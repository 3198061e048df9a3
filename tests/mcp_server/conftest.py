"""The server as a host starts it, over real pipes.

talk       talk(work, root=base, cwd=…, env=…) -> what `async def work(client)` returns; the protocol's own client
call       call("recall", {"query": "…"}, root=base, …) -> the result of one call
served     served(code="", root=base, …) -> a Peer: a process that one speaks to in lines; `code` runs in it first
"""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

pytest.importorskip("mcp", reason="needs the extra khms[mcp]")
PATIENCE = 120.0


@pytest.fixture
def talk(tmp_path: Path) -> Callable[..., Any]:
    import anyio
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    def run(
        work: Callable[[Client], Awaitable[Any]],
        *,
        root: Base | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Any:
        named = ["--root", str(root.root)] if root else []
        command = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-m", "khms", *named, "mcp"],
            env={**os.environ, **(env or {})},
            cwd=str(cwd or tmp_path),
        )

        async def session() -> Any:
            with (tmp_path / "stderr.txt").open("w", encoding="utf-8") as said, anyio.fail_after(PATIENCE):
                async with Client(stdio_client(command, errlog=said)) as client:
                    return await work(client)

        return anyio.run(session)

    return run


@pytest.fixture
def call(talk: Callable[..., Any]) -> Callable[..., Any]:
    def one(tool: str, arguments: dict[str, Any], **how: Any) -> Any:
        return talk(lambda client: client.call_tool(tool, arguments), **how)

    return one


class Peer:
    """A server that is spoken to in lines. `answer` reads until the message with that id; whatever else the server said
    in between is kept in `heard`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.heard: list[dict[str, Any]] = []

    def raw(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def hello(self) -> dict[str, Any]:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.send(id="hello", method="initialize", params=about)
        found = self.answer("hello")
        self.send(method="notifications/initialized")
        return found

    def call(self, number: Any, tool: str, **arguments: Any) -> None:
        self.send(id=number, method="tools/call", params={"name": tool, "arguments": arguments})

    def answer(self, number: Any) -> dict[str, Any]:
        for at, message in enumerate(self.heard):
            if message.get("id") == number:
                return self.heard.pop(at)
        while True:
            assert self.process.stdout
            line = self.process.stdout.readline()
            assert line, f"the server ended with {self.process.wait()}"
            message = json.loads(line)  # nothing but the protocol stands there
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return dict(message)
            self.heard.append(message)

    def end(self) -> tuple[bytes, int]:
        """Closes the server's input; what it still said, and its exit code."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        return self.process.stdout.read(), self.process.wait(PATIENCE)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Peer]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str = "", root: Base | None = None, cwd: Path | None = None, env: Any = None) -> Peer:
        script = (
            "import sys, pathlib\nfrom khms.mcp_server import serving, tools\nfrom dataclasses import replace\n"
            f"{code}\nserving.run(sys.argv[1], pathlib.Path.cwd())"
        )
        with (tmp_path / "stderr.txt").open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-c", script, str(root.root) if root else ""],
                cwd=cwd or tmp_path,
                env={**os.environ, **(env or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )
        started.append(process)
        return Peer(process)

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()
