"""`khms hook install git|github|gitlab` and their opposites: what keeps unapproved changes out of a shared base."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from khms.cli.output import fold, one_line, print_json, table
from khms.cli.session import Session
from khms.errors import KhmsError, Usage

if TYPE_CHECKING:
    from khms.hosts.githooks import Hook, Report
    from khms.hosts.githooks import Status as HookStatus

GUARDS = ("git", "github", "gitlab")


def install(session: Session, guard: str, server: str | None) -> None:
    _demand_git(guard, server)
    if guard == "git":
        from khms.hosts import githooks

        hook = _hook(session, server)
        _tell(session, hook, githooks.install(hook))
        session.say("undo: khms hook uninstall git" + (f" --server {shlex.quote(server)}" if server else ""))
        return
    from khms.hosts import ciworkflows
    from khms.pipeline import authority

    repo, branch = session.repo, authority.receiving_branch(session.repo, session.config)
    done = ciworkflows.install(guard, repo.top, repo.prefix, branch or "main")
    for report in done:
        session.say(one_line(f"{repo.top / report.path}: {report.done}"))
    if guard == "gitlab" and not ciworkflows.is_included(repo.top):
        session.say(f"add to {ciworkflows.MAIN}, which is yours:\n\n{ciworkflows.INCLUDE}")
    if any(report.done != "unchanged" for report in done):
        session.say("next: read them, then commit them: git add " + " ".join(report.path for report in done))
    session.say(f"undo: khms hook uninstall {guard}")


def uninstall(session: Session, guard: str, server: str | None) -> None:
    _demand_git(guard, server)
    if guard == "git":
        from khms.hosts import githooks

        hook = _hook(session, server)
        _tell(session, hook, githooks.uninstall(hook))
        return
    from khms.hosts import ciworkflows

    top = session.repo.top
    for report in ciworkflows.uninstall(guard, top):
        told = "kept: it is not as khms wrote it" if report.done == "kept" else report.done
        session.say(one_line(f"{top / report.path}: {told}"))


def show(session: Session, guard: str, name: str) -> None:
    """Prints the script of a git hook, for a host on which khms cannot install it."""
    if guard != "git":
        raise Usage("--print shows the script of a git hook", hint=f"khms hook install git --print {name}")
    from khms.hosts import hookscript

    base = "."
    try:
        base = session.repo.prefix.rstrip("/") or base
    except KhmsError:
        session.note("khms: there is no base here, so the script names the work tree's top")
    bases = (base,) if name == "pre-commit" else ()
    print(hookscript.alone(hookscript.lines(name, bases, "")).decode(), end="")


Row = dict[str, Any]  # guard, what (a hook's name, a file of the CI), installed, path, command, problems


def status(session: Session, guard: str, server: str | None, as_json: bool) -> None:
    """How one of the guards stands."""
    _demand_git(guard, server)
    found = [_server_row(session, server)] if server else [row for row in rows(session) if row["guard"] == guard]
    if as_json:
        print_json({"schema": "khms.hook-status/1", "guards": found})
        return
    table(("guard", "what", "installed", "file"), shown(found))
    for problem in problems(found):
        session.say(fold(f"problem: {one_line(problem)}", 2))
    if not any(row["installed"] for row in found):
        session.say(f"next: khms hook install {guard}" + (f" --server {shlex.quote(server)}" if server else ""))


def rows(session: Session) -> list[Row]:
    """How each guard of the base here stands; none without a base in a repository."""
    from khms.hosts import ciworkflows, githooks

    try:
        repo = session.repo
        top = repo.top
    except KhmsError:
        return []
    try:
        found = [_row("git", githooks.status(githooks.of_base(repo)))]
    except KhmsError as error:
        found = [_missing("git", "pre-commit", repo.hooks / "pre-commit", error)]
    for host in ciworkflows.WORKFLOWS:
        try:
            reports = ciworkflows.status(host, top)
        except KhmsError as error:
            found.append(_missing(host, "", top, error))
            continue
        for report in reports:
            told = ["it is not as khms wrote it"] if report.done == "kept" else []
            if host == "gitlab" and report.done != "absent" and not ciworkflows.is_included(top):
                told.append(f"{ciworkflows.MAIN} does not include it: khms hook install gitlab shows the lines")
            there, name = report.done != "absent", report.path.rpartition("/")[2]
            found.append(_dict(host, name, there, str(top / report.path), "", told))
    return found


def shown(found: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    """The rows for a table."""
    return [(row["guard"], row["what"], "yes" if row["installed"] else "no", row["path"]) for row in found]


def problems(found: Sequence[Row]) -> list[str]:
    return [problem for row in found for problem in row["problems"]]


def _server_row(session: Session, server: str) -> Row:
    from khms.hosts import githooks

    return _row("git", githooks.status(_hook(session, server)))


def _row(guard: str, state: "HookStatus") -> Row:
    return _dict(guard, state.name, state.installed, str(state.path), state.command, list(state.problems))


def _missing(guard: str, what: str, path: Path, error: KhmsError) -> Row:
    return _dict(guard, what, False, str(path), "", [str(error).replace("\n", "; ")])


def _dict(guard: str, what: str, installed: bool, path: str, command: str, problems: list[str]) -> Row:
    return {
        "guard": guard,
        "what": what,
        "installed": installed,
        "path": path,
        "command": command,
        "problems": problems,
    }


def _demand_git(guard: str, server: str | None) -> None:
    if server and guard != "git":
        raise Usage("--server goes with git", hint="khms hook install git --server PATH")


def _hook(session: Session, server: str | None) -> "Hook":
    from khms.hosts import githooks

    if server:
        return githooks.of_server(session.cwd / Path(server).expanduser())
    return githooks.of_base(session.repo)


def _tell(session: Session, hook: "Hook", report: "Report") -> None:
    session.say(one_line(f"{report.path}: {report.note}"))
    if report.changed and hook.base and "taken" not in report.note and "removed" not in report.note:
        session.say("from now on a commit that touches the base is linted and audited first")
    for remark in report.remarks:
        session.note(f"but: {one_line(remark)}")
