"""What a sync is about to publish in place of the branch's own commits, kept beside git's files until the branch is
there too. A run that dies in between has published its work, and only this note tells that the old commits are that
work and not more of it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khms.store import files
from khms.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Pushed:
    """`new` stands for all that `head` had; `told` is what there is to say about it."""

    head: str
    new: str
    told: Mapping[str, Any]


def _place(repo: Repo) -> Path:
    return repo.folder / "khms" / "pushed.json"


def note(repo: Repo, held: Pushed) -> None:
    value = {"head": held.head, "new": held.new, "told": held.told}
    files.write_atomic(_place(repo), json.dumps(value, ensure_ascii=False).encode("utf-8"))


def noted(repo: Repo) -> Pushed | None:
    """The note of a run that did not end; None where there is none, or none that can be read."""
    try:
        value = files.read_json(_place(repo))
        return Pushed(str(value["head"]), str(value["new"]), dict(value["told"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def forget(repo: Repo) -> None:
    if _place(repo).exists():
        files.unlink(_place(repo))
