"""Making a base and the settings around it: init, config, trust, version, completion."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from khms import __version__
from khms import config as configuration
from khms.cli.output import fold, one_line, print_json, table
from khms.cli.session import Session
from khms.errors import Refused, Unavailable, Usage
from khms.options import OPTIONS, Option

if TYPE_CHECKING:
    from khms.config import Config
    from khms.store.founding import Founded
    from khms.store.layout import Base
    from khms.store.siting import Plan


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--global", "for_user", is_flag=True, help="Make it your default base, used where no other is found.")
@click.option("--adopt", is_flag=True, help="Make a folder of notes itself the base; every note stays as it is.")
@click.option("--separate", is_flag=True, help="Make a base of its own beside the project, not inside it.")
@click.option("--agents-md", is_flag=True, help="Tell agents of it in a section of the project's AGENTS.md.")
@click.pass_obj
def init(session: Session, folder: Path | None, for_user: bool, adopt: bool, separate: bool, agents_md: bool) -> None:
    """Make a base in DIR (else here), with its first commit.

    An empty folder becomes a base. In a repository with other content the base is its folder .memory. A folder of notes
    becomes one with --adopt. With --separate the base stands beside the project, as <project>-memory. With --global and
    no DIR it stands in your own data folder. Running it again changes nothing.
    """
    from khms.render import views
    from khms.store import cards, siting, trust
    from khms.store.founding import complete, found
    from khms.store.repo import Repo

    if adopt and separate:
        raise Usage("--adopt and --separate exclude each other", hint="choose one")
    place = folder
    if for_user and folder is None and not adopt and not separate:
        held = configuration.load(None)["base.default"]
        place = Path(held) if held else configuration.user_data() / "base"
    where = session.cwd / (place or ".")
    mended = complete(where)
    if mended:
        session.note(mended)
    plan = siting.plan(where, named=place is not None, adopt=adopt, separate=separate)
    made = found(plan, lambda base: views.wanted(base, cards.shelf(base).cards))
    if made.commit:
        trust.record(made.base, Repo(made.base.root))
    _tell(session, plan, made)
    if for_user:
        _set_default(session, made.base)
    if adopt and made.kind != "there":
        _index(session, made.base)
    if agents_md:
        from khms.cli import plugins

        plugins.put_section(session, where)
    _next(session, plan, made, for_user)


_KINDS = {
    "new": "made a base in",
    "inside": "made a base in",
    "adopted": "this folder is a base now:",
    "older": "marked this base of the older tools as one of khms:",
    "there": "nothing to do, this is a base already:",
}


def _tell(session: Session, plan: "Plan", made: "Founded") -> None:
    if made.recovered:
        session.note(made.recovered)
    session.say(one_line(f"{_KINDS[made.kind]} {made.base.root}" + (f"  ({plan.because})" if plan.because else "")))
    if made.commit:
        session.say(fold(one_line(f"commit {made.commit[:12]}: {', '.join(_folded(made.written))}"), 2))
    for path, why in made.kept:
        session.note(one_line(f"{path}: {why}"))


def _folded(paths: tuple[str, ...]) -> list[str]:
    """Files of the base's top by name, all others by their folder with a count."""
    folders: dict[str, int] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        if folder:
            folders[folder] = folders.get(folder, 0) + 1
    return [path for path in paths if "/" not in path] + [f"{name}/ ({n})" for name, n in folders.items()]


def _set_default(session: Session, base: "Base") -> None:
    path = configuration.user_folder() / "config.toml"
    before = configuration.read(path).get("base.default", "")
    root = str(base.root)
    if before != root:
        _write_setting(path, "base.default", root)
        session.say(f"your default base is now {root}" + (f" (was {before})" if before else "") + f"; {path}")


def _index(session: Session, base: "Base") -> None:
    from khms.index import sync
    from khms.index.catchup import NEW

    report = sync.refresh(base, config=configuration.load(base.root), vectors=NEW)
    session.say(f"{report.docs} documents can be recalled")
    for skipped in report.skipped:
        session.note(f"cannot be read: {one_line(str(skipped))}")


def _next(session: Session, plan: "Plan", made: "Founded", for_user: bool) -> None:
    from khms.store import layout, trust
    from khms.store.siting import INSIDE

    root = made.base.root
    if made.kind == "there":
        why = trust.why_not(type(made.base)(root))
        if why:
            session.note(f"hooks leave this base out: {why} (khms trust {root})")
        session.say('next: khms status, or khms mark decision "what was decided and why"')
        return
    seen = layout.walk(session.cwd)
    if not for_user and (seen is None or seen.root != root):
        inside = root.parent if root.name == INSIDE else root
        session.say(f"commands find it from inside {inside}; elsewhere: khms --root {root} …, or KHMS_ROOT={root}")
    session.say('next: khms mark decision "what was decided and why", then khms nightly; khms hook install claude-code')


@click.group()
def config() -> None:
    """Show and change settings."""


@config.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def list_settings(session: Session, as_json: bool) -> None:
    """Every setting: its value, its default, what it means and where the value comes from."""
    held, _ = _settings(session)
    if as_json:
        rows = [_row(option, held) for option in OPTIONS]
        print_json({"schema": "khms.config/1", "settings": rows})
        return
    table(
        ("setting", "value", "default", "from", "meaning"),
        [(o.name, _brief(held[o.name]), _brief(o.default), held.origin(o.name), o.meaning) for o in OPTIONS],
    )


@config.command("get")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def get_setting(session: Session, name: str, as_json: bool) -> None:
    """The value of one setting."""
    option = _option(name)
    held, _ = _settings(session)
    if as_json:
        print_json({"schema": "khms.config/1", **_row(option, held)})
    else:
        print(_shown(held[name]))


@config.command("set", context_settings={"ignore_unknown_options": True})  # a value may be -1
@click.argument("name")
@click.argument("value")
@click.option("--user", is_flag=True, help="For all your bases: your own config.toml instead of the base's khms.toml.")
@click.pass_obj
def set_setting(session: Session, name: str, value: str, user: bool) -> None:
    """Set one setting in the base's khms.toml; comments and all other lines stay.

    Lists and tables are written as TOML: khms config set index.include '{notes = "../notes"}'
    """
    from khms.hosts.environment import agent_host

    option = _option(name)
    if option.needs_trust and agent_host():
        raise Refused(
            f"{name} is set by a person, and this is the environment of {agent_host()}", hint="use a terminal"
        )
    if name == "base.default" and not user:
        raise Usage("base.default is a setting of yours, not of a base", hint="add --user")
    if name == "base.id":
        raise Usage("base.id is given once, with the first signer", hint="khms signers add you@example.org KEY.pub")
    wanted = configuration.check(name, _parsed(option, value), name)
    if user:
        path = configuration.user_folder() / "config.toml"
        wrong = _write_setting(path, name, wanted)
    else:
        path = session.base.config
        wrong = _write_in_base(session, option, wanted)
    session.say(f"{name} = {_shown(wanted)}  ({path})")
    if wrong:
        session.note(one_line(wrong))


def _write_in_base(session: Session, option: Option, value: Any) -> str:
    from khms.store import trust
    from khms.store.layout import SIGNERS

    here = type(session.base)(session.base.root)
    trusted = trust.entry(here) is not None and not trust.why_not(here)
    if option.name.startswith("review.") and here.path(SIGNERS).exists():  # such a change needs a signer's word
        from khms.pipeline.signers import set_review

        set_review(session.base, session.repo, session.config, option.name, value)
        wrong = ""
    else:
        wrong = _write_setting(session.base.config, option.name, value)
    if trusted and option.needs_trust:
        trust.record(here, session.repo)
    return wrong


def _write_setting(path: Path, name: str, value: Any) -> str:
    """Sets it and returns what is still wrong with the file: a value out of range does not keep others, nor itself,
    from being set. Raises Refused for a file that cannot be read at all."""
    from khms.store import files, tomltext

    before = _fault(path)
    try:
        text = files.read(path).decode("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError):
        raise before or Unavailable("this configuration cannot be read", where=str(path)) from None
    files.write_atomic(path, tomltext.set_value(text, name, value, str(path)).encode("utf-8"))
    after = _fault(path)
    return f"still wrong there: {after.message}" + (f" ({after.hint})" if after.hint else "") if after else ""


def _fault(path: Path) -> Refused | None:
    try:
        configuration.read(path)
    except Refused as error:
        return error
    return None


def _settings(session: Session) -> tuple["Config", "Base | None"]:
    """The settings in force here; outside of any base, the user's own."""
    try:
        return session.config, session.base
    except Unavailable:
        if session.root:
            raise
        return configuration.load(None), None


def _option(name: str) -> Option:
    found = next((option for option in OPTIONS if option.name == name), None)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, [option.name for option in OPTIONS], n=1)
        hint = f"did you mean {near[0]}?" if near else "khms config list shows every setting"
        raise Usage(f"there is no setting {name}", hint=hint)
    return found


def _parsed(option: Option, value: str) -> Any:
    """`value` as the option's type; raises Usage where it cannot be read as one."""
    import tomllib

    if isinstance(option.default, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise Usage(f"{value!r} cannot be read: {error}", hint=f"default: {_shown(option.default)}") from error


def _shown(value: Any) -> str:
    from khms.store.tomltext import literal

    return value if isinstance(value, str) else literal(value)


def _brief(value: Any) -> str:
    """The value for a cell: of a large table its names alone, which `config get` shows whole."""
    shown = _shown(value)
    return shown if len(shown) <= 80 or not isinstance(value, dict) else f"{{{', '.join(value)}}}"


def _row(option: Option, held: "Config") -> dict[str, Any]:
    return {
        "name": option.name,
        "value": held[option.name],
        "default": option.default,
        "meaning": option.meaning,
        "origin": held.origin(option.name),
        "needs_trust": option.needs_trust,
    }


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--list", "as_list", is_flag=True, help="Show what you trust.")
@click.option("--remove", is_flag=True, help="Take the trust back.")
@click.option("--json", "as_json", is_flag=True, help="With --list: one JSON document.")
@click.pass_obj
def trust(session: Session, folder: Path | None, as_list: bool, remove: bool, as_json: bool) -> None:
    """Let hooks use the base in DIR (else the one found here), with its settings as they are now.

    A base that came with a repository may be a stranger's: hooks leave it out until you say so. A later change of
    settings that name programs, addresses or outside paths asks again.
    """
    from khms.hosts.environment import agent_host
    from khms.store import layout
    from khms.store import trust as trusted

    if as_list:
        entries = trusted.entries()
        if as_json:
            print_json({"schema": "khms.trust/1", "bases": entries})
        elif entries:
            table(("base", "since"), [(entry["path"], entry["at"]) for entry in entries])
        return
    base = layout.named(session.cwd / folder) if folder else session.base
    if remove:
        gone = trusted.forget(base)
        session.say(f"{base.root} " + ("is not trusted any more" if gone else "was not trusted"))
        return
    if agent_host():
        raise Refused(f"a person trusts a base, and this is the environment of {agent_host()}", hint="use a terminal")
    from khms.store.repo import Repo

    repo = Repo(base.root)
    repo.top  # noqa: B018  raises where there is no repository
    trusted.record(base, repo)
    session.say(f"hooks may use {base.root}")
    for name, value in configuration.needing_trust(configuration.read(base.config)).items():
        session.say(f"  with {name} = {one_line(_shown(value))}")


@click.command()
def version() -> None:
    """Print the version."""
    print(f"khms {__version__}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the shell's completion script.

    \b
    bash: eval "$(khms completion bash)"           in ~/.bashrc
    zsh:  eval "$(khms completion zsh)"            in ~/.zshrc
    fish: khms completion fish | source            in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    print(kind(ctx.find_root().command, {}, "khms", "_KHMS_COMPLETE").source())
