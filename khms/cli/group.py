"""The `khms` group: global options, and which module holds which command."""

from importlib import import_module
from pathlib import Path

import click

from khms import __version__
from khms.cli.session import Session

# command -> (its module in khms.cli, what `khms --help` says of it); the function there has the command's name.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "init": ("base", "make a base, or take over a folder of notes"),
        "demo": ("demo", "see the whole loop on an example, in a temporary folder"),
        "doctor": ("health", "find what is wrong with a base and mend it"),
        "status": ("health", "what waits, what is stale, what is broken"),
        "config": ("base", "show and change settings"),
        "trust": ("base", "let hooks use a base that was found by walking up"),
        "version": ("base", "print the version"),
        "completion": ("base", "print shell completion for bash, zsh or fish"),
    },
    "Capture": {
        "mark": ("capture", "jot one line into today's journal"),
        "journal": ("capture", "show the journal"),
    },
    "Propose": {
        "nightly": ("propose", "turn open MARKs into candidates"),
        "weekly": ("weekly", "propose what the cards say together"),
    },
    "Review": {
        "inbox": ("inbox", "list and show what awaits review"),
        "review": ("desk", "go through what awaits review, one candidate after the other"),
        "approve": ("approval", "let candidates in: all of them or none"),
        "reject": ("withholding", "refuse a candidate, with the reason"),
        "unreject": ("withholding", "take a refusal back"),
        "defer": ("withholding", "put a candidate off"),
    },
    "Cards": {
        "card": ("card", "make and list cards, show their links, change their status"),
        "show": ("card", "show one document whole"),
        "redact": ("redact", "take words out of a card for good"),
    },
    "Recall": {
        "recall": ("ask", "ask the base"),
        "precheck": ("precheck", "what to know before a risky action"),
        "index": ("ask", "bring the index up to date"),
        "views": ("views", "write the generated files"),
    },
    "Look": {"graph": ("graph", "how the cards are linked, to read or to draw")},
    "Check": {
        "lint": ("lint", "check the base's files"),
        "audit": ("audit", "check that every card came in through the review"),
        "signers": ("signers", "whose signatures count, and whether one is required"),
    },
    "Share": {
        "sync": ("sync", "share what was decided through the base's git remote"),
        "gc": ("gc", "remove what is no longer needed"),
    },
    "Hosts": {
        "hook": ("hook", "connect an agent host, guard a shared base"),
        "mcp": ("protocol", "serve an agent host's tools (Model Context Protocol)"),
        "server": ("server", "keep the index at hand for hooks and recall"),
    },
    "Automate": {"schedule": ("schedule", "have this machine run nightly and weekly by the clock")},
    "Measure": {
        "usage": ("usage", "what became of what hooks injected"),
        "debt": ("debt", "cards that nobody meets, tags without links"),
        "eval": ("evaluation", "measure recall by golden queries, and draft some"),
        "calibrate": ("calibrate", "from which score on hooks speak, from evidence"),
        "bench": ("bench", "time khms on this machine"),
    },
}
COMMANDS = {name: where for section in SECTIONS.values() for name, (where, _) in section.items()}

EXIT_CODES = (
    ("0", "done, or found"),
    ("1", "the answer is no: nothing on record, findings, a failed check"),
    ("2", "the call is wrong"),
    ("3", "refused: the input or the state is invalid, and nothing was changed"),
    ("4", "the environment failed: no base, git, disk or permission"),
    ("70", "a bug of khms; its log is named"),
    ("75", "busy: another khms holds the lock"),
    ("130", "stopped with Ctrl-C; the same command goes on"),
)


class Lazy(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = COMMANDS.get(cmd_name)
        if where is None:
            return None
        command: click.Command = getattr(import_module(f"khms.cli.{where}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else " See khms --help."
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl(EXIT_CODES)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--root", metavar="DIR", help="The base to work on; else KHMS_ROOT, the nearest parent, your default base."
)
@click.option("--quiet", "-q", is_flag=True, help="Say only what was asked for.")
@click.option("--verbose", "-v", is_flag=True, help="Say more.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
@click.version_option(__version__, prog_name="khms", message="%(prog)s %(version)s")
@click.pass_context
def khms(ctx: click.Context, root: str | None, quiet: bool, verbose: bool, debug: bool) -> None:
    """Long-term memory for coding agents that people review like code.

    \b
    khms mark decision "cache the price list for one hour: the vendor throttles"
    khms nightly            propose candidate cards from the journal
    khms inbox show         read them
    khms approve UNIT C1    let one in
    khms recall "price list"
    """
    ctx.obj = Session(root, _here(), quiet=quiet, verbose=verbose, debug=debug)


def _here() -> Path:
    """The folder that is worked in; the root folder, in which no base is looked for, where it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")
