"""The log of a git repository as a source: what was committed since the last look, subject and body of each commit."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from khms.errors import KhmsError
from khms.hosts.transcripts.base import AGENT, Record
from khms.store.repo import Repo

MOST = 500  # commits in one reading, the oldest: the next run goes on behind them


def records(path: Path, since: str, oldest: float) -> Iterator[Record]:
    """The commits of HEAD after the commit `since`, oldest first; where that is empty or gone, those after the moment
    `oldest`. A position is a commit's id. Raises OSError where there is no repository."""
    try:
        repo = Repo(path)
        if since and not repo.text("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}", ok=(0, 1)):
            since = ""
        span = [f"{since}..HEAD"] if since else [f"--since=@{int(oldest)}", "HEAD"]
        later = max(int(repo.text("rev-list", "--count", *span)) - MOST, 0)
        out = repo.run("log", "-z", f"--skip={later}", "--no-show-signature", "--format=%H%n%at%n%an%n%B", *span)
    except KhmsError as error:
        raise OSError(f"git cannot tell its log: {error}") from error
    for entry in reversed(out.decode("utf-8", "replace").split("\0")):
        parts = entry.strip("\n").split("\n", 3)
        if len(parts) < 4:
            continue
        commit, at, author, message = parts
        when = float(at) if at.isdigit() else 0.0
        day = f"{datetime.fromtimestamp(when).astimezone():%Y-%m-%d} " if when else ""
        yield Record(AGENT, commit, when, f"commit {commit[:12]} {day}by {author}\n{message.strip()}", position=commit)
