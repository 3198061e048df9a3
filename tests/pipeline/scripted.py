"""`Scripted`: a base whose proposer is the program `scripted_agent.py`."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khms.config import Config
from khms.pipeline import nightly as pipeline
from khms.pipeline.night import Result
from khms.store import inbox
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.repo import Repo

AGENT = Path(__file__).with_name("scripted_agent.py")


@dataclass
class Scripted:
    """`plan` says what it answers, `calls` what it was asked."""

    base: Base
    folder: Path

    def plan(self, *rules: Mapping[str, Any]) -> None:
        (self.folder / "plan.json").write_text(json.dumps(rules), encoding="utf-8")

    @property
    def command(self) -> str:
        return f"{sys.executable} -I -S {AGENT} {self.folder / 'plan.json'} {self.folder / 'calls'}"

    def run(self, settings: Mapping[str, Any] | None = None, **options: Any) -> Result:
        own = {"nightly.proposer": "command", "nightly.command": self.command, "nightly.transcripts": "none"}
        config = Config([("test", {**own, **(settings or {})})])
        return pipeline.nightly(self.base, Repo(self.base.root), config, **options)

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def unit(self, found: Result) -> Unit:
        return inbox.find(self.base, found.unit)
