"""Answering from the base as it was: what `recall --at` and `show --at` share."""

from typing import TYPE_CHECKING

import click

from khms.cli.output import one_line
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.index.past import Past

option = click.option(
    "--at", "at", metavar="DATE|COMMIT", help="From the base as of the end of that day, that time, or that commit."
)


def as_of(session: Session, text: str) -> "Past":
    """The base as of what a person typed. Raises Usage where that is neither a date nor a commit, No where there was no
    base yet, Unavailable where this clone does not hold it."""
    from khms.index import past
    from khms.pipeline import authority

    when = past.moment(session.repo, authority.receiving_branch(session.repo, session.config), text)
    return past.unfolded(session.base, session.repo, session.config, when)


def said(past: "Past") -> str:
    """Which commit answers, on one line."""
    line = f"as of {past.moment.date}, commit {past.moment.commit[:12]}"
    return one_line(f"{line} ({past.without})" if past.without else line)
