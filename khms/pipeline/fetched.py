"""The receipts that a run has to know of: the base's own, and those that others published and the last fetch brought,
though `khms sync` has not taken them in yet. A MARK that they decided is not decided again here.
"""

from khms.config import Config
from khms.errors import KhmsError
from khms.pipeline import authority
from khms.pipeline.replay_tip import receipts_in
from khms.store import remote
from khms.store.layout import RECEIPTS, Base
from khms.store.receipts import Ledger, ledger
from khms.store.repo import Repo
from khms.store.tree import Objects, difference


def known(base: Base, repo: Repo, config: Config) -> Ledger:
    """Every receipt of the base and of the remote's branch as it was last fetched; raises Refused for a broken one of
    the base."""
    held = ledger(base)
    try:
        there = remote.upstream(repo, config, authority.receiving_branch(repo, config))
    except KhmsError:  # which remote it is cannot be told; sync says so
        there = None
    seen, head = (there.seen(), repo.head()) if there else (None, None)
    if seen is None or seen == head:
        return held
    folder = f"{repo.prefix}{RECEIPTS}/"
    changed = difference(repo, head, seen)
    new = {path: shall for path, (was, shall) in changed.items() if was is None and shall and path.startswith(folder)}
    objects = Objects(repo)
    objects.fetch(entry.blob for entry in new.values())
    found = [receipt for path, entry in sorted(new.items()) for receipt in receipts_in(path, objects.data(entry.blob))]
    return Ledger((*held.receipts, *found))
