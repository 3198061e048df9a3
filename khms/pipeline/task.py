"""What a run of nightly works with, before it has decided anything."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from khms.config import Config
from khms.model.finding import Finding
from khms.pipeline import asking
from khms.pipeline.asking import Asker
from khms.pipeline.bounds import Meter
from khms.pipeline.carry import Run
from khms.pipeline.propose import ByAgent, Proposer
from khms.pipeline.sources import Window
from khms.store.layout import Base
from khms.store.repo import Repo

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """`told` is what a person should hear beside the result; `left_alone` knows the sessions that their user kept to
    himself."""

    base: Base
    repo: Repo
    config: Config
    window: Window
    cap: int
    proposer: Proposer
    progress: Progress
    meter: Meter
    left_alone: Callable[[str], bool]
    problems: list[Finding] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def by_agent(self) -> bool:
        return isinstance(self.proposer, ByAgent)

    @property
    def reads_sessions(self) -> bool:
        """Whether this run looks into sessions at all: only an agent is shown them, and never for one MARK alone."""
        return self.by_agent and not self.window.only_mark

    def folder(self, run: Run) -> Path:
        return self.base.carry / run.id

    def asker(self, run: Run) -> Asker:
        """Who asks for this run. What its earlier processes spent is counted."""
        assert isinstance(self.proposer, ByAgent)
        agent, folder = self.proposer.agent, self.folder(run)
        return asking.asker(self.config, self.base, self.repo, agent, self.meter, run.id, folder)
