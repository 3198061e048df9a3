"""`khms views`: writes the generated files."""

import click

from khms.cli.output import one_line, print_json
from khms.cli.session import Session
from khms.errors import Refused


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def views(ctx: click.Context, as_json: bool) -> None:
    """Write MEMORY.md and memory/views/ anew from the cards, in the work tree; committing them is yours.

    Beside them, in .khms/views for this machine alone: all cards by type and by scope, what could be condensed, the
    links.

    Only on the branch that receives approvals. What differs is overwritten; a MEMORY.md without our header is left
    alone. Exit 1 where a card could not be read and is therefore missing there.
    """
    from khms.model.belief import figures
    from khms.pipeline import authority
    from khms.render import views as pages
    from khms.render.overviews import overviews
    from khms.store import cards, files, local
    from khms.store.commit import exclusive

    session: Session = ctx.obj
    base, repo = session.base, session.repo
    with exclusive(repo, "views") as tx:
        if tx.recovered:
            session.note(str(tx.recovered))
        if not authority.on_receiving_branch(repo, session.config):
            raise Refused(
                f"generated files are written on {authority.receiving_branch(repo, session.config)} alone",
                where=f"HEAD is on {repo.branch() or 'no branch'}",
                hint=f"git switch {authority.receiving_branch(repo, session.config)}",
            )
        shelf = cards.shelf(base)
        wanted = pages.wanted(base, shelf.cards)
        changed = pages.changed(base, wanted)
        for path in changed:
            files.inside(base.root, base.path(path))
        for path, data in changed.items():
            if data is None:
                files.unlink(base.path(path))
            else:
                files.write_atomic(base.path(path), data)
        local.make(base)
        own = overviews(shelf.cards, figures(session.config))
        for path, data in own.items():
            files.inside(base.root, base.path(path))
            files.write_atomic(base.path(path), data)
    foreign = pages.foreign(base, wanted)
    written = [path for path, data in changed.items() if data is not None]
    removed = [path for path, data in changed.items() if data is None]
    if as_json:
        print_json(
            {
                "schema": "khms.views/1",
                "written": written,
                "removed": removed,
                "foreign": foreign,
                "local": sorted(own),
                "unreadable": [{"path": e.path, "line": e.line, "message": e.message} for e in shelf.unreadable],
            }
        )
    else:
        for path in written:
            session.say(one_line(f"wrote {path}"))
        for path in removed:
            session.say(one_line(f"removed {path}"))
        session.say(f"{len(wanted) - len(foreign)} generated files, {len(changed)} changed; {len(own)} in .khms/views")
    for path in foreign:
        session.note(one_line(f"{path} is not ours: it lacks the header of a generated file and was left alone"))
    for error in shelf.unreadable:
        session.note(one_line(f"cannot be read: {error.path}:{error.line}: {error.message} ({error.mend})"))
    if shelf.unreadable:
        ctx.exit(1)
