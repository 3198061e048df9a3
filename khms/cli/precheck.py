"""`khms precheck`: what is on record before a risky action."""

import shlex

import click

from khms.cli.output import clean, one_line, print_json
from khms.cli.session import Session
from khms.errors import Busy, Unavailable, Usage


@click.command()
@click.argument("tags", metavar="[TAG…]", nargs=-1)
@click.option("--command", "-c", default="", metavar="TEXT", help="A shell command instead of tags, or beside them.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Most cards shown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def precheck(ctx: click.Context, tags: tuple[str, ...], command: str, limit: int | None, as_json: bool) -> None:
    """What to know before a risky action: policies, gotchas, refuted and challenged cards. Exit 1 where nothing is.

    By tags, without a model. A command is told by its class; classes and their tags are the setting precheck.classes.

    \b
    khms precheck migration production
    khms precheck --command "git push --force origin main"
    """
    from khms.index import catchup, current, sync
    from khms.model.document import Query
    from khms.recall import near
    from khms.recall.precheck import names_of
    from khms.recall.precheck import precheck as ask

    session: Session = ctx.obj
    if not command.strip() and not any(tag.strip() for tag in tags):
        raise Usage("there is no tag and no command", hint='khms precheck deploy; khms precheck -c "rm -rf build"')
    under = [tag.strip() for tag in tags if tag.strip()]
    try:
        sync.refresh(session.base, config=session.config, vectors=catchup.LATER)
    except (Busy, Unavailable) as error:  # what the index holds is said all the same
        session.note(one_line(f"the index could not be brought up to date: {error.message}"))
    found = ask(
        session.base,
        session.config,
        tags=names_of(session.base, under),
        command=command,
        limit=limit,
        snippets=True,
    )
    if as_json:
        print_json(found.as_json())
    elif not found.tags:
        print("nothing on record: this command is of no risky class (khms config get precheck.classes)")
    elif not found.hits:
        print(clean(f"nothing on record under: {', '.join(found.tags)}"))
        reader = current.opened(session.base)[0]
        for line in near.unmet([reader], Query("", (), tuple(("tag", tag) for tag in under))):
            session.note(one_line(line))
    else:
        from khms.cli.ask import show

        for place, hit in enumerate(found.hits, 1):
            show(place, hit, session)
        if found.total > len(found.hits):
            asked = [*(("--command", command) if command else ()), *tags]
            whole = shlex.join(["khms", "precheck", "-n", str(found.total), *asked])
            print(one_line(f"{found.total - len(found.hits)} more: {whole}"))
    if found.behind:
        session.note(one_line(f"the index is behind: {found.behind}"))
    if found.classes and session.verbose:
        session.note(one_line(f"class: {', '.join(found.classes)}; tags: {', '.join(found.tags)}"))
    if not found.hits:
        ctx.exit(1)
