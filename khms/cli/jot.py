"""`khms mark KIND TEXT` in its plain form, without the command line library: it is paid for on every note."""

import os
import sys
from pathlib import Path

from khms import cli
from khms.hosts.environment import session
from khms.store import layout
from khms.store.jotting import Jotted, write
from khms.store.layout import Base


def jot(kind: str, text: str) -> int:
    """Adds a MARK to the base at hand and prints where it stands; returns the exit code."""

    def work() -> int:
        tell(write(_base(), kind, text, session(os.environ)))
        return 0

    return cli.guard(work, ["mark", kind, text])


def tell(jotted: Jotted) -> None:
    """One line on standard output: the id, the file and the line. On standard error, that a secret was taken out."""
    from khms.cli.output import clean

    print(f"{jotted.mark.id}  {clean(str(jotted.path))}:{jotted.mark.line}")
    if jotted.redacted:
        print("khms: what looks like a secret was replaced by [redacted:…] before it was written", file=sys.stderr)


def _base() -> Base:
    """The base that the command is about, without reading any configuration where one is named or near."""
    found = layout.find(None, Path.cwd())
    if found is not None:
        return found
    from khms.cli.session import Session

    return Session(None, Path.cwd()).base
