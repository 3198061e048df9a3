"""What one call of the command line works on: the base, its configuration, and how much to say."""

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from khms import config as configuration
from khms.cli.output import folded
from khms.errors import Unavailable
from khms.store import layout
from khms.store.layout import Base

if TYPE_CHECKING:
    from khms.config import Config
    from khms.store.repo import Repo


@dataclass
class Session:
    root: str | None
    cwd: Path
    quiet: bool = False
    verbose: bool = False
    debug: bool = False

    @cached_property
    def base(self) -> Base:
        """The base that this call is about; raises Unavailable where there is none."""
        default = configuration.load(None)["base.default"]
        found = layout.find(self.root, self.cwd, Path(default) if default else None)
        if found is None:
            raise Unavailable(
                "there is no base here or above",
                where=str(self.cwd),
                hint="make one: khms init  (or name one: khms --root DIR …, KHMS_ROOT=DIR)",
            )
        return found

    @cached_property
    def config(self) -> "Config":
        """The settings in force. A command that a person types takes the base at their word; hooks ask trust."""
        return configuration.load(self.base.root)

    @cached_property
    def repo(self) -> "Repo":
        """The base's repository; raises Unavailable where it has none."""
        from khms.store.repo import Repo

        repo = Repo(self.base.root)
        repo.top  # noqa: B018  raises where there is no repository
        return repo

    def need_git(self) -> None:
        """Raises Unavailable where there is no git."""
        from khms.store.repo import Repo

        Repo(self.cwd).run("version")

    def say(self, text: str = "") -> None:
        """A line for a person, on standard output, folded to a terminal's width; not under --quiet."""
        if not self.quiet:
            print(folded(text) if sys.stdout.isatty() else text)

    def note(self, text: str) -> None:
        """A remark beside the answer, on standard error; not under --quiet."""
        if not self.quiet:
            print(folded(text) if sys.stderr.isatty() else text, file=sys.stderr)

    @property
    def colour(self) -> bool:
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
