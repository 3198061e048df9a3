"""`khms mcp`: the server for agent hosts, and its entry in their settings."""

import sys
from typing import TYPE_CHECKING, cast

import click

from khms.cli.output import one_line
from khms.cli.session import Session

if TYPE_CHECKING:
    from khms.hosts.base import Scope


@click.group(invoke_without_command=True)
@click.pass_context
def mcp(ctx: click.Context) -> None:
    """Serve an agent host over the Model Context Protocol, on standard input and output.

    A host starts this by itself once it is in its settings. The tools ask, note and propose; none approves.

    \b
    khms mcp install claude-code
    khms --root ~/notes mcp install codex     always that base
    khms doctor --mcp                         does every server answer?
    """
    if ctx.invoked_subcommand is not None:
        return
    from khms.mcp_server import serving

    session: Session = ctx.obj
    if sys.stdin.isatty():
        session.note("an agent host speaks here; to set one up: khms mcp install HOST (Ctrl-D ends this)")
    serving.run(session.root or "", session.cwd)


_scope = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Your own settings, or those of the folder you are in.",
)


@mcp.command()
@click.argument("host")
@_scope
@click.pass_obj
def install(session: Session, host: str, scope: str) -> None:
    """Put khms's server into the settings of HOST; nothing else in them changes.

    \b
    khms mcp install claude-code
    khms mcp install opencode --scope project
    """
    from khms.hosts import servers
    from khms.mcp_server import serving

    serving.needed()
    root = str(session.base.root) if session.root else ""
    report = servers.install(host, cast("Scope", scope), session.cwd, root)
    session.say(one_line(f"{report.path}: {report.note}"))
    if report.backup:
        session.say(one_line(f"as it was: {report.backup}"))
    session.say("next: khms doctor --mcp asks the server as the host will")
    session.say(f"undo: khms mcp uninstall {host}" + (" --scope project" if scope == "project" else ""))


@mcp.command()
@click.argument("host")
@_scope
@click.pass_obj
def uninstall(session: Session, host: str, scope: str) -> None:
    """Take khms's server out of the settings of HOST.

    \b
    khms mcp uninstall claude-code
    """
    from khms.hosts import servers

    report = servers.uninstall(host, cast("Scope", scope), session.cwd)
    session.say(one_line(f"{report.path}: {report.note}"))
