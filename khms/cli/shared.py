"""What the review commands say of the remote: what came in before the decision, and whether the decision is out."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from khms.cli.output import one_line
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.pipeline.approve import Result
    from khms.pipeline.sharing import Sharing


def begin(session: Session, named: Iterable[str] = ()) -> "Sharing | None":
    """Takes in what others published, where this base shares at once. `named` are the ids that the user typed."""
    from khms.cli.sync import told
    from khms.pipeline.sharing import sharing
    from khms.render import views

    found = sharing(
        session.base,
        session.repo,
        session.config,
        views.for_tree,
        say=lambda text: session.note(one_line(text)) if session.verbose else None,
        named=named,
    )
    if found is not None and found.before is not None:
        if found.before.recovered:
            session.note(found.before.recovered)
        for line in told(found.before.ids, found.before.left):
            session.note(line)
    return found


def finish(session: Session, shared: "Sharing | None", *, changed: bool) -> None:
    """Publishes what was decided, if anything was, and says what became of it."""
    from khms.cli.sync import told

    if shared is None or not changed:
        return
    shared.publish()
    for line in told(shared.ids, shared.left):
        session.note(line)
    if shared.unpublished:
        session.note(one_line(f"not published: {shared.unpublished}; ids may still change at khms sync"))


def published(session: Session, shared: "Sharing | None", result: "Result") -> "Result":
    """Publishes an approval and returns what it came to: others may have been faster, and then its ids are new."""
    finish(session, shared, changed=bool(result.commit))
    return result if shared is None or not result.commit else shared.published(result)
