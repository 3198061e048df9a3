"""`khms hook`: connect an agent host, see what it would be told, switch it off; guard a shared base."""

import os
from typing import TYPE_CHECKING, cast

import click

from khms.cli import guards, plugins
from khms.cli.output import clean, fold, one_line, print_json, table
from khms.cli.session import Session
from khms.errors import No, Unavailable, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from khms.hooks.handlers import Decision
    from khms.hooks.places import Place
    from khms.hosts.base import Event, Host, Scope
    from khms.hosts.settings import Status

MOMENTS = {
    "prompt": "prompt",
    "shell": "pre-shell",
    "edit": "pre-edit",
    "failure": "after-failure",
    "start": "session-start",
    "subagent": "subagent-start",
}
THRESHOLDS = ("prompt", "shell", "edit")
DOES = {
    "SessionStart": "what awaits review, what is overdue",
    "SubagentStart": "the same in one line",
    "UserPromptSubmit": "cards about the prompt",
    "PreToolUse": "warnings before risky commands; cards about commands and edits",
    "PostToolUseFailure": "cards about the error",
    "PreCompact": "keeps where the transcript lies, for the nightly run",
    "SessionEnd": "keeps where the transcript lies, for the nightly run",
    "BeforeAgent": "cards about the prompt",
    "AfterTool": "warnings and cards right after commands and edits; cards about errors",
}
# Events of other hosts that are one of these by another name.
ALIKE = {
    **dict.fromkeys(("sessionStart", "session.created", "agent:bootstrap"), "SessionStart"),
    **dict.fromkeys(("beforeSubmitPrompt", "chat.message", "pre_llm_call"), "UserPromptSubmit"),
    **dict.fromkeys(("postToolUseFailure", "tool.failed"), "PostToolUseFailure"),
    "preToolUse": "PreToolUse",
    "tool.execute.after": "PreToolUse",
    "preCompact": "PreCompact",
    "sessionEnd": "SessionEnd",
}
# The log's words for silence, in a sentence.
REASONS = {
    "off": "hooks are switched off",
    "no-base": "there is no base here or above, and no default base",
    "untrusted": "the base found here is not trusted, and there is no default base",
    "empty": "no question is left without host text, pastes and everyday commands",
    "short": "the question is too short",
    "nothing-found": "nothing on record has its words",
    "threshold": "the best match is below the threshold",
    "no-room": "the frame leaves no room within hooks.chars",
    "incognito": "KHMS_INCOGNITO is set here",
    "switched-off": "this moment is switched off",
    "nothing-waits": "nothing waits for a person, and nothing is overdue",
}


@click.group()
def hook() -> None:
    """Connect an agent host, see and test what it is told; guard a shared base.

    HOST is an agent host (claude-code, codex, gemini, copilot, …), git (its hooks), github or gitlab (their CI), or
    agents-md (a project's AGENTS.md).
    """


hook.add_command(plugins.plugin)


def _hosts(name: str | None) -> list["Host"]:
    from khms.hosts import registry

    if name is not None and name not in registry.HOSTS:
        known = ", ".join([*registry.HOSTS, *guards.GUARDS, plugins.SECTION])
        raise Usage(f"unknown host: {name}", hint=f"known: {known}")
    return [registry.host(each) for each in ([name] if name else registry.HOSTS)]


def _one(name: str | None) -> "Host":
    """The host named, or the only one there is."""
    hosts = _hosts(name)
    if len(hosts) > 1:
        raise Usage("which host?", hint="known hosts: " + ", ".join(host.ID for host in hosts))
    return hosts[0]


_scope = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Your own settings, or those of the folder you are in.",
)
_server = click.option("--server", metavar="PATH", help="With git: a repository that is pushed to, on its server.")
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@hook.command()
@click.argument("host", required=False)
@_scope
@_server
@click.option("--print", "shown", type=click.Choice(["pre-commit", "pre-receive"]), help="With git: show that script.")
@click.pass_obj
def install(session: Session, host: str | None, scope: str, server: str | None, shown: str | None) -> None:
    """Put khms into the settings of HOST; nothing else in them changes.

    With git, a pre-commit hook lints and audits what a commit brings into the base (on a server: a pre-receive hook
    audits what a push brings). With github or gitlab, the files of their CI are written, for you to commit. With
    agents-md, a section of the project's AGENTS.md tells every agent how to use khms.

    \b
    khms hook install claude-code
    khms hook install git
    khms hook install git --server /srv/git/project.git
    khms hook install git --print pre-receive > pre-receive
    khms hook install github
    khms hook install agents-md
    """
    from khms.hosts import settings

    if shown:
        guards.show(session, host or "", shown)
        return
    if server or host in guards.GUARDS:
        guards.install(session, host or "", server)
        return
    if host == plugins.SECTION:
        plugins.put_section(session, session.cwd)
        return
    chosen = _one(host)
    report = settings.install(chosen, cast("Scope", scope), session.cwd)
    session.say(one_line(f"{report.path}: {report.note}"))
    if report.backup:
        session.say(one_line(f"as it was: {report.backup}"))
    found = settings.status(chosen, cast("Scope", scope), session.cwd)
    for problem in (*found.problems, *_obstacles(_place(session))):
        session.note(f"but: {one_line(problem)}")
    for note in _notes(chosen):
        session.note(f"note: {one_line(note)}")
    session.say('next: khms hook test "a question" shows what a session would be told')
    session.say(f"undo: khms hook uninstall {chosen.ID}" + (" --scope project" if scope == "project" else ""))


@hook.command()
@click.argument("host", required=False)
@_scope
@_server
@click.pass_obj
def uninstall(session: Session, host: str | None, scope: str, server: str | None) -> None:
    """Take khms out of the settings of HOST, of git's hooks (git), of a repository's CI (github, gitlab), of AGENTS.md
    (agents-md).

    \b
    khms hook uninstall claude-code
    khms hook uninstall git
    """
    from khms.hosts import settings

    if server or host in guards.GUARDS:
        guards.uninstall(session, host or "", server)
        return
    if host == plugins.SECTION:
        plugins.take_section(session)
        return
    report = settings.uninstall(_one(host), cast("Scope", scope), session.cwd)
    session.say(one_line(f"{report.path}: {report.note}"))


@hook.command()
@click.argument("host", required=False)
@_server
@_json
@click.pass_obj
def status(session: Session, host: str | None, server: str | None, as_json: bool) -> None:
    """Show where khms is installed, from which base it answers here, and what keeps it from doing so."""
    from khms.hosts import settings

    if server or host in guards.GUARDS:
        guards.status(session, host or "", server, as_json)
        return
    if host == plugins.SECTION:
        plugins.show_section(session, as_json)
        return
    pairs = [(each, scope) for each in _hosts(host) for scope in settings.scopes(each)]
    found = [(each, scope, settings.status(each, scope, session.cwd)) for each, scope in pairs]
    place = _place(session)
    obstacles = _obstacles(place)
    guarded = [] if host else [row for row in guards.rows(session) if row["installed"] or row["guard"] == "git"]
    if as_json:
        rows = [
            {
                "events": list(state.events),
                "host": each.ID,
                "scope": scope,
                "installed": state.installed,
                "path": str(state.path),
                "command": state.command,
                "problems": list(state.problems),
                "notes": list(_notes(each)),
            }
            for each, scope, state in found
        ]
        base = str(place.base.root) if place.base else None
        value: dict[str, object] = {"schema": "khms.hook-status/1", "hosts": rows, "base": base, "problems": obstacles}
        value |= {"moments": _moments(found, place), "incognito": _incognito()}
        print_json(value | ({} if host else {"guards": guarded}))
        return
    shown = [(h.ID, str(scope), "yes" if state.installed else "no", str(state.path)) for h, scope, state in found]
    table(("host", "scope", "installed", "settings"), shown + guards.shown(guarded))
    if any(state.installed for _, _, state in found):
        print()
        table(("host", "event", "runs", "what it does"), [tuple(row.values()) for row in _moments(found, place)])
    if place.base:
        session.say(one_line(f"answers here come from {place.base.root}"))
    for problem in (*(p for _, _, state in found for p in state.problems), *obstacles, *guards.problems(guarded)):
        session.say(fold(f"problem: {one_line(problem)}", 2))
    for each in dict.fromkeys(each for each, _, state in found if state.installed):
        for note in _notes(each):
            session.say(fold(f"note: {one_line(note)}", 2))
    if not any(state.installed for _, _, state in found):
        session.say(f"next: khms hook install {found[0][0].ID}")


def _notes(host: "Host") -> tuple[str, ...]:
    """What the host cannot do, or wants of a person."""
    return tuple(getattr(host, "NOTES", ()))


def _moments(found: "Sequence[tuple[Host, str, Status]]", place: "Place") -> list[dict[str, str]]:
    """What happens at each event that a host is watched for, and whether it does."""
    rows = []
    any_installed = any(state.installed for _, _, state in found)
    for host in dict.fromkeys(each for each, _, state in found if state.installed or not any_installed):
        events = {event for each, _, state in found if each is host for event in state.events}
        for watch in host.WATCHES:
            name = ALIKE.get(watch.event, watch.event)
            what = DOES.get(name, "")
            if name in ("PostToolUseFailure", "AfterTool") and not place.config["hooks.after_failure"]:
                what += " (off: khms config set hooks.after_failure true)"
            runs = "yes" if watch.event in events else "no"
            rows.append({"host": host.ID, "event": watch.event, "runs": runs, "what": what})
    return rows


def _incognito() -> bool:
    return os.environ.get("KHMS_INCOGNITO", "") not in ("", "0")


@hook.command()
@click.argument("prompt", default="")
@click.option("--event", type=click.Choice(list(MOMENTS)), default="prompt", show_default=True, help="The moment.")
@_json
@click.pass_obj
def test(session: Session, prompt: str, event: str, as_json: bool) -> None:
    """Show what a new session would be told about PROMPT here, or the gate that says no. Nothing is logged or kept.

    For the event shell PROMPT is a command, for edit a path, and after a blank the text that is put in, for failure
    what a command said; start and subagent need none.

    \b
    khms hook test "why does the checksum fail on deploy?"
    khms hook test --event shell "git push --force origin main"
    khms hook test --event edit "src/pool.py pool_size = 20"
    """
    from khms.hooks import handlers, sessions

    place = _place(session)
    for problem in () if as_json else _obstacles(place):  # said first: without an index the answer is an error
        session.note(f"note: {one_line(problem)}")
    if _incognito():
        decision = handlers.Decision(None, "incognito")
    elif sessions.is_off():
        decision = handlers.Decision(None, "off")
    else:
        decision = _decided(place, _event(event, prompt, str(session.cwd)))
    _tell(session, place, event, decision, as_json)
    if not decision.text:
        why = REASONS.get(decision.reason, decision.reason)
        raise No(f"nothing would be injected: {why}", hint=_way_out(decision.reason, event))


def _decided(place: "Place", event: "Event") -> "Decision":
    """What a new session would get; an index that is missing elsewhere than here is built with --root."""
    from khms.hooks import handlers, sessions

    try:
        return handlers.decide(place, event, sessions.Unkept())
    except Unavailable as error:
        if place.passed_over is None or place.base is None:
            raise
        hint = f"khms --root {place.base.root} index"
        raise Unavailable(error.message, where=error.where, hint=hint) from error


def _event(kind: str, prompt: str, cwd: str) -> "Event":
    from khms.hosts.base import Event

    if kind == "shell":
        return Event("pre-shell", cwd=cwd, command=prompt)
    if kind == "edit":
        path, _, text = prompt.partition(" ")
        return Event("pre-edit", cwd=cwd, path=path, text=text)
    if kind == "failure":
        return Event("after-failure", cwd=cwd, error=prompt)
    if kind in ("start", "subagent"):
        return Event("session-start" if kind == "start" else "subagent-start", cwd=cwd)
    return Event("prompt", cwd=cwd, prompt=prompt)


def _tell(session: Session, place: "Place", event: str, decision: "Decision", as_json: bool) -> None:
    threshold = 0.0 if decision.classes else place.config.get(f"hooks.{event}_threshold", _of_prompts(place))
    best: dict[str, float] = {}
    for pointer in decision.found:
        best[pointer.id] = max(pointer.score, best.get(pointer.id, 0.0))
    hits = sorted(best.items(), key=lambda pair: -pair[1])
    if as_json:
        value = {
            "schema": "khms.hook-test/1",
            "event": event,
            "decision": "inject" if decision.text else "silent",
            "reason": decision.reason or None,
            "base": str(place.base.root) if place.base else None,
            "passed_over": str(place.passed_over.root) if place.passed_over else None,
            "query": decision.query,
            "threshold": threshold,
            "classes": list(decision.classes),
            "channel": decision.channel or None,
            "hits": [{"id": i, "score": round(score, 3), "injected": i in decision.cards} for i, score in hits],
            "text": decision.text,
        }
        print_json(value)
        return
    if decision.text:
        print(clean(decision.text))
    if decision.query:
        session.note(f"asked: {one_line(' / '.join(decision.query.splitlines()))[:200]}")
    for card, score in hits:
        told = "injected" if card in decision.cards else "below the threshold" if score < threshold else "left out"
        session.note(f"  {score:.2f}  {one_line(card)}  {told}")
    if decision.classes:
        session.note(f"a risky command: {', '.join(decision.classes)}")
    elif hits:
        session.note(f"threshold {threshold}, for a second card {place.config['hooks.second_min']}")


def _of_prompts(place: "Place") -> float:
    """The threshold of moments that have none of their own."""
    return float(place.config["hooks.prompt_threshold"])


def _way_out(reason: str, event: str) -> str:
    return {
        "off": "khms hook on",
        "incognito": "unset KHMS_INCOGNITO",
        "switched-off": "khms config set hooks.after_failure true",
        "no-base": "make one: khms init",
        "untrusted": "khms trust",
        "threshold": f"khms config set hooks.{event if event in THRESHOLDS else 'prompt'}_threshold FIGURE lowers it",
        "nothing-found": "khms recall shows what is on record",
    }.get(reason, "")


@hook.command("off")
@click.option("--session", "session_id", metavar="ID", help="This session alone; - is the session you are in.")
@click.pass_obj
def switch_off(session: Session, session_id: str | None) -> None:
    """Switch hooks off, for every session or for one. KHMS_HOOKS_OFF=1 does the same for one process.

    A session that is switched off by its id is incognito: its transcript is no source of anything, as with
    KHMS_INCOGNITO=1.

    \b
    khms hook off
    khms hook off --session -
    """
    _switch(session, False, session_id)


@hook.command("on")
@click.option("--session", "session_id", metavar="ID", help="This session alone; - is the session you are in.")
@click.pass_obj
def switch_on(session: Session, session_id: str | None) -> None:
    """Switch hooks on again."""
    _switch(session, True, session_id)


def _switch(session: Session, on: bool, session_id: str | None) -> None:
    from khms.hooks import sessions
    from khms.hosts.environment import session as running

    name = (running(os.environ) if session_id == "-" else session_id) or ""
    if session_id is not None and not name:
        raise Usage("which session?", hint="this is not run by an agent host: name the session's id")
    changed = sessions.switch(on, name)
    what = f"for session {clean(name)}" if name else "for every session"
    session.say(f"hooks are {'' if changed else 'already '}{'on' if on else 'off'} {what}")
    if on and sessions.is_off():
        session.note("they are still off for every session: khms hook on")
    if not on:
        session.say("next: khms hook on" + (f" --session {clean(session_id or '')}" if name else ""))


@hook.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("--host", metavar="HOST", help="Whose event it is, such as claude-code.")
@click.pass_context
def run(ctx: click.Context, host: str | None) -> int:
    """Answer one event of HOST, read from standard input.

    This is what a host's settings run at each event. It prints one answer in the host's form or nothing, ends within
    hooks.deadline_ms, always with exit code 0, and writes each decision to .khms/log/inject.jsonl.

    \b
    khms hook run --host claude-code < event.json
    """
    from khms.hooks.run import command

    session: Session = ctx.obj
    if session.root:
        os.environ["KHMS_ROOT"] = session.root
    return command([*(("--host", host) if host else ()), *ctx.args])


def _place(session: Session) -> "Place":
    """The base that a hook in this folder would use; --root stands for KHMS_ROOT."""
    from khms.hooks import places

    env = {**os.environ, "KHMS_ROOT": session.root} if session.root else os.environ
    return places.choose(str(session.cwd), env)


def _obstacles(place: "Place") -> list[str]:
    """What keeps hooks from answering in this folder, each with what to do."""
    from khms.hooks import sessions
    from khms.hosts.environment import session as running

    found = []
    if sessions.is_off():
        found.append("hooks are switched off for every session: khms hook on")
    if os.environ.get("KHMS_HOOKS_OFF", "") not in ("", "0"):
        found.append("KHMS_HOOKS_OFF is set here")
    if _incognito():
        found.append("KHMS_INCOGNITO is set here: sessions started from here are told nothing and are no source")
    here = running(os.environ)
    if here and sessions.is_off(here):
        found.append("this session is incognito: khms hook on --session -")
    if place.passed_over:
        found.append(f"{place.passed_over.root} is not used: {place.why}: khms trust {place.passed_over.root}")
    elif not place.base:
        found.append("there is no base here or above, and no default base: khms init")
    if place.base:
        from khms.index.freshness import freshness

        state = freshness(place.base)
        if state.behind:
            command = "khms index" if place.passed_over is None else f"khms --root {place.base.root} index"
            found.append(f"{place.base.root}: {state.why}: {command}")
    return found
