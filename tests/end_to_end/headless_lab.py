"""The agents' real programs on PATH, logged in to a model on loopback, and that model."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.host_lab import HOSTS

PROGRAMS = {
    "claude": "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude",
    "codex": "node_modules/@openai/codex-linux-*/vendor/*/bin/codex",
    "gemini": "node_modules/@google/gemini-cli/bundle/gemini.js",
}
NAMES = {"claude": "Claude Code's program", "codex": "the program of Codex", "gemini": "the program of Gemini CLI"}
MODELS = {"claude": "", "codex": "gpt-5.4", "gemini": "gemini-2.5-pro", "openai": "tiny"}


@dataclass(frozen=True)
class Endpoint:
    """Where the model is to stand, and the folder in which it keeps what it was asked."""

    port: int
    asked: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def requests(self) -> list[dict[str, Any]]:
        files = sorted(self.asked.glob("[0-9]*.json"))
        return [json.loads(file.read_text(encoding="utf-8"))["body"] for file in files]

    @contextlib.contextmanager
    def model(self, program: Path, mode: str, answer: str) -> Iterator[None]:
        """The laboratory's model; in `script` mode it calls what tools it is offered before it answers."""
        reply = self.asked / "reply.json"
        reply.write_text(answer, encoding="utf-8")
        env = {**os.environ, "REPLY": str(reply), "LABDIR": str(self.asked), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            [sys.executable, program, str(self.port), str(self.asked), mode], env=env, stderr=subprocess.PIPE
        ) as process:
            try:
                while True:
                    assert process.poll() is None, process.stderr and process.stderr.read()
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                        break
                yield
            finally:
                process.kill()


def endpoint(host: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Puts the program of `host` on PATH, with keys for a model that is reached on loopback and nothing else that is
    reached at all; skips where the program is missing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bin, asked = folder / "bin", folder / "req"
    bin.mkdir()
    asked.mkdir()
    if host in PROGRAMS:
        program = next(iter(HOSTS.glob(PROGRAMS[host])), None)
        if program is None:
            pytest.skip(f"needs {NAMES[host]}: {HOSTS / PROGRAMS[host]}")
        provider = {"name": "lab", "base_url": f"http://127.0.0.1:{port}/v1", "wire_api": "responses",
                    "env_key": "CODEX_API_KEY"}  # fmt: skip
        # Codex is called without the user's configuration, which is where another endpoint would be named.
        flags = [f"-c model_providers.lab.{name}='{value}'" for name, value in provider.items()]
        before = {"codex": " ".join(["-c model_provider=lab", *flags])}.get(host, "")
        start = f"node '{program}'" if host == "gemini" else f"'{program}'"
        (bin / host).write_text(f'#!/bin/sh\nexec {start} {before} "$@"\n', encoding="utf-8")
        (bin / host).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin}:{os.environ['PATH']}")
    for name in ("ANTHROPIC_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{port}")
    for name in ("HTTPS_PROXY", "https_proxy"):  # nothing but loopback can be reached
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return Endpoint(port, asked)
