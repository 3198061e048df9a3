"""A review in a base that others work on too: what they published is taken in first, and what is decided goes out at
once, so that the ids a reviewer is told are those that everybody will know.

Where the remote cannot be reached the decision stands here, unpublished, and that is said. Nightly shares nothing: it
only proposes, and what it commits goes along with the next review or `khms sync`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from khms.config import Config
from khms.errors import Busy, Refused, Unavailable
from khms.pipeline import authority
from khms.pipeline.approve import Result
from khms.pipeline.replay import Left, Views
from khms.pipeline.sync import Crowded, Say, Synced, sync
from khms.store import cards
from khms.store.layout import Base
from khms.store.repo import Repo


@dataclass
class Sharing:
    """One review act with the remote before and behind it. `before` is what the first sync did, `unpublished` why the
    remote does not have the decision, empty where it has."""

    base: Base
    repo: Repo
    config: Config
    views: Views
    say: Say
    before: Synced | None = None
    unpublished: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    left: tuple[Left, ...] = ()

    def publish(self) -> None:
        """Publishes what was decided; made again first where others were faster. Where the remote cannot be reached,
        or its own rules or what others did do not let it in, the decision stands here and `unpublished` says why."""
        if self.unpublished:
            return
        try:
            done = sync(self.base, self.repo, self.config, self.views, say=self.say)
        except (Unavailable, Busy, Refused) as error:
            self.unpublished = "; ".join(part for part in (error.message, error.where, error.hint) if part)
        else:
            self.ids, self.left = done.ids, done.left

    def published(self, result: Result) -> Result:
        """An approval's result as it was published: others may have been faster, and then ids and record are new."""
        if not self.ids and not self.left:
            return result
        if not result.cards:  # changes alone: no id is new
            return replace(result, commit=self.repo.head())
        lost = {left.id for left in self.left}
        made = []
        for label, old, _ in result.cards:
            new = self.ids.get(old, old)
            path = cards.find(self.base, new)
            if old not in lost and path is not None:
                made.append((label, new, self.base.relative(path)))
        kept = {card_id for _, card_id, _ in made}
        records = [r for r in cards.approvals(self.base) if kept & {card.id for card in r.cards}]
        last = records[-1] if records else None
        return replace(
            result,
            commit=self.repo.head(),
            cards=tuple(made),
            transitions=last.transitions if last else (),
            record=last.id if last else "",
        )


def sharing(
    base: Base,
    repo: Repo,
    config: Config,
    views: Views,
    *,
    say: Say,
    named: Iterable[str] = (),
) -> Sharing | None:
    """Takes in what others published before something is decided; None where this base does not share at once, or HEAD
    is not on the branch that is shared. `named` are the cards that the reviewer named: where one of them gets another
    id on the way they are asked again, since that id may mean another card now. Raises Refused for whoever may not
    review, and where a person must act first."""
    authority.reviewer(repo, config)
    if not shares(repo, config) or not authority.on_receiving_branch(repo, config):
        return None
    held = Sharing(base, repo, config, views, say)
    try:
        held.before = sync(base, repo, config, views, say=say)
    except (Unavailable, Crowded) as error:
        held.unpublished = error.message
        return held
    changed = {name: held.before.ids[name] for name in named if name in held.before.ids}
    if changed:
        raise Refused(
            "; ".join(f"{old} became {new}" for old, new in changed.items()) + " when others' cards came in",
            where="nothing was decided",
            hint="say it again with the new id",
        )
    return held


def shares(repo: Repo, config: Mapping[str, object]) -> bool:
    """Whether a review fetches and pushes by itself: as the settings say, else where the base is the whole of a
    repository that has a remote."""
    said = config["git.sync"]
    return said == "on" or (said == "auto" and repo.prefix == "" and repo.has_remote())
