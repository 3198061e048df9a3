"""A unit that is on a branch of its own only, as what would come in with it: what a reviewer refuses or puts off there
is recorded on the branch that receives approvals, whole, before its branch goes."""

from collections.abc import Sequence
from dataclasses import dataclass

from khms.errors import Usage
from khms.store import branches
from khms.store.branches import Branch
from khms.store.inbox import Unit, folder_of, unit_path
from khms.store.layout import EVENTS, RECEIPTS, Base
from khms.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Arriving:
    """`files` are the unit's by base path; `records` its receipts and events that HEAD does not hold."""

    branch: Branch
    unit: Unit
    files: dict[str, bytes]
    records: dict[str, bytes]


def arriving(base: Base, repo: Repo, name: str, labels: Sequence[str] = ()) -> Arriving | None:
    """The unit that `name` means, where it is on a branch only; None else. Raises Usage for single labels of it: the
    others would come in undecided."""
    branch = branches.unmerged_unit(base, name)
    if branch is None:
        return None
    path = unit_path(branch.unit)
    held = branches.files(repo, branch.commit, path)
    if labels:
        raise Usage(
            f"{branch.unit} is on the branch {branch.name}: here it can be decided as a whole only",
            hint="move single candidates to dropped/ or deferred/ on that branch",
        )
    unit = folder_of(path, held) if held else branches.unit(repo, branch)
    run = str(unit.meta.get("run") or "")
    more = branches.added(repo, branch, repo.head() or branch.commit, (RECEIPTS, EVENTS))
    about = {file: data for file, data in more.items() if (run and run in file) or path.encode() in data}
    return Arriving(branch, unit, held, about)
