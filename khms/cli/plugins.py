"""What hosts install and teams share: `khms hook plugin`, and khms's section in a project's AGENTS.md."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from khms.cli.output import fold, one_line, print_json
from khms.cli.session import Session
from khms.errors import Usage

if TYPE_CHECKING:
    from khms.hosts.plugins.sharing import Written

SECTION = "agents-md"  # where `khms hook` takes a host
_FOLDER = Path("khms-plugin")
_SKILLS = (".claude/skills", ".agents/skills")


@click.command()
@click.argument("host", metavar="HOST")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def plugin(session: Session, host: str, folder: Path | None) -> None:
    """Write khms as a plugin of HOST into FOLDER (else ./khms-plugin), to install from or to share.

    HOST is claude-code, codex or gemini; one folder can be for all three. It holds hooks, the skill and the MCP server,
    and calls khms by its name, so it works wherever khms is on the PATH; elsewhere it is silent. HOST skills is the
    skill alone, in a folder of skills such as .claude/skills or .agents/skills. Written again, it is brought up to
    date.

    \b
    khms hook plugin claude-code
    khms hook plugin gemini ~/src/our-plugins
    khms hook plugin skills .claude/skills
    """
    from khms.hosts.plugins import contents, sharing

    if host not in contents.KINDS:
        raise Usage(f"no plugin for {host}", hint=f"known: {', '.join(contents.KINDS)}")
    if host == contents.SKILL and folder is None:
        raise Usage("which folder of skills?", hint=f"khms hook plugin skills {_SKILLS[0]}  (or {_SKILLS[1]})")
    named = (folder or _FOLDER).expanduser()
    place = session.cwd / (named / contents.NAME if host == contents.SKILL else named)
    written = sharing.write(host, place)
    for path in written.changed:
        session.say(one_line(f"{written.folder / path}"))
    session.say(one_line(f"{written.folder}: {_what(written)}"))
    for line in _steps(host, written.folder):
        session.say(fold(one_line(line), 2))


def _what(written: "Written") -> str:
    if not written.changed:
        return "nothing to do, it is as khms writes it"
    count = len(written.changed)
    return f"{count} {'file' if count == 1 else 'files'} changed; it is for {', '.join(written.kinds)}"


def _steps(host: str, folder: Path) -> list[str]:
    """How a person goes on with it, in the host's own commands."""
    from khms.hosts.plugins.contents import MARKET, NAME

    place = shlex.quote(str(folder))
    if host == "claude-code":
        return [
            f"next: claude plugin marketplace add {place}, then claude plugin install {NAME}@{MARKET}",
            f"for one session: claude --plugin-dir {shlex.quote(str(folder / NAME))}",
        ]
    if host == "codex":
        return [
            f"next: codex plugin marketplace add {place}, then codex plugin add {NAME}@{MARKET}",
            "Codex runs its hooks only after you trusted them: start codex, type /hooks",
        ]
    if host == "gemini":
        return [f"next: gemini extensions link {place}  (or install, from a repository that holds it)"]
    return ["next: the agent finds it from its next session on", f"undo: rm -r {place}"]


def put_section(session: Session, where: Path) -> None:
    """Puts khms's section into the AGENTS.md of the project that holds `where`."""
    from khms.hosts.plugins import section

    report = section.install(_project(where))
    if report.done == "own":
        session.say(one_line(f"{report.path}: it is khms's own, and says all of it already"))
        return
    session.say(one_line(f"{report.path}: khms's section: {report.done}"))
    for line in _unread(report.path.parent):
        session.note(fold(f"but: {one_line(line)}", 2))
    if report.done != "unchanged":
        session.say("next: read it, then commit it with your project")
    session.say(f"undo: khms hook uninstall {SECTION}")


def take_section(session: Session) -> None:
    from khms.hosts.plugins import section

    report = section.uninstall(_project(session.cwd))
    told = "khms's section was taken out" if report.done == "taken out" else "there is no section of khms's"
    session.say(one_line(f"{report.path}: {told}"))


def show_section(session: Session, as_json: bool) -> None:
    from khms.hosts.plugins import section

    report = section.status(_project(session.cwd))
    there = report.done in ("unchanged", "updated", "own")
    problems = ["it is not what khms writes today: install again"] if report.done == "updated" else []
    problems += _unread(report.path.parent) if there else []
    if as_json:
        row = {"guard": SECTION, "what": section.NAME, "installed": there, "path": str(report.path), "command": ""}
        print_json({"schema": "khms.hook-status/1", "guards": [row | {"problems": problems}]})
        return
    session.say(one_line(f"{report.path}: {'khms stands in it' if there else 'nothing of khms'}"))
    for problem in problems:
        session.say(fold(f"problem: {one_line(problem)}", 2))
    if not there:
        session.say(f"next: khms hook install {SECTION}")


def _project(where: Path) -> Path:
    """The top of the work tree that holds the folder, else the folder."""
    from khms.store import siting

    tree = siting.work_tree(where.absolute())
    return tree.top if tree else where.absolute()


def _unread(project: Path) -> list[str]:
    """Claude Code reads AGENTS.md only where no CLAUDE.md is."""
    from khms.hosts.plugins.section import NAME

    for name in ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"):
        path = project / name
        try:
            if path.is_file() and not path.samefile(project / NAME) and NAME not in path.read_text("utf-8", "replace"):
                return [f"Claude Code reads {name} here, and {NAME} only if it says so: add the line @{NAME} to it"]
        except OSError:
            continue
    return []
