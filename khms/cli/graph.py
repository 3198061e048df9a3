"""`khms graph`: how the cards are linked."""

import click

from khms.cli.output import clean, one_line, print_json
from khms.cli.session import Session
from khms.errors import Usage


@click.command()
@click.option("--dot", is_flag=True, help="For Graphviz.")
@click.option("--mermaid", is_flag=True, help="For Mermaid, which Markdown pages of git hosts draw.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def graph(ctx: click.Context, dot: bool, mermaid: bool, as_json: bool) -> None:
    """How the cards are linked: what supports, contradicts, supersedes or refutes what. Reads the cards, no index.

    Exit 1 where a card could not be read and is therefore missing.

    \b
    khms graph
    khms graph --dot | dot -Tsvg > graph.svg
    khms graph --mermaid > graph.mmd
    """
    from khms.model.belief import figures
    from khms.render import graph as drawn
    from khms.store import cards

    session: Session = ctx.obj
    if dot + mermaid + as_json > 1:
        raise Usage("--dot, --mermaid and --json are one form each", hint="name one of them")
    shelf = cards.shelf(session.base)
    found = drawn.graph(shelf.cards.values(), figures(session.config))
    if as_json:
        problems = [{"path": e.path, "line": e.line, "message": e.message} for e in shelf.unreadable]
        print_json({**drawn.as_json(found), "unreadable": problems})
    elif dot or mermaid:
        lines = drawn.dot(found) if dot else drawn.mermaid(found)
        print(clean("\n".join(lines)))
    else:
        for line in drawn.text(found):
            print(one_line(line).rstrip() if not line.startswith(" ") else "    " + one_line(line.strip()))
        session.say(drawn.counts(found))
    for error in shelf.unreadable:
        session.note(one_line(f"cannot be read: {error.path}:{error.line}: {error.message} ({error.mend})"))
    if shelf.unreadable:
        ctx.exit(1)
