"""Hermes: its hook payloads and answers, and khms's lines in its configuration.

Not run here. As documented in 2026: shell hooks stand in `config.yaml` below `hooks`, each event with a list of
`{matcher, command, timeout}`; the command is split into words, no shell runs it. What a hook prints reaches the model
at pre_llm_call only, as `{"context": …}` before the user's message. Each pair of event and command needs the user's
consent once, at a terminal; without a terminal a hook that has none is passed over in silence.
"""

from __future__ import annotations

import json

from khms.hosts.base import Event, Watch, home, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from khms.hosts.base import Moment, Scope
    from khms.hosts.entries import Entry
    from khms.hosts.textfile import Form

ID = "hermes"
TITLE = "Hermes"
STRICT = False
SCOPES = ("user",)
ANSWERS = frozenset({"pre_llm_call"})
WATCHES: tuple[Watch, ...] = (Watch("pre_llm_call", "", 5),)
NOTES = (
    "Hermes lets a hook tell the model something at a prompt only: nothing is said at a session's start or before a"
    " command",
)

_MOMENTS: dict[str, Moment] = {"pre_llm_call": "prompt", "on_session_start": "session-start"}


def event(payload: object) -> Event | None:
    """The event in a hook's payload; None for anything that Hermes does not send."""
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    given = payload.get("extra")
    if not name or not isinstance(given, dict):
        return None
    moment = _MOMENTS.get(name, "other")
    source = "startup" if moment == "session-start" else ""
    return told(payload, ID, name, moment)._replace(prompt=string(given.get("user_message")), source=source)


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, that adds `text` to the user's message; "" where it cannot or need not."""
    return json.dumps({"context": text}) if text and event.name in ANSWERS else ""


def settings_path(scope: Scope, project: Path) -> Path:
    """`~/.hermes/config.yaml` (HERMES_HOME moves it); a project has none."""
    return _home() / "config.yaml"


def form() -> Form:
    from khms.hosts import yamltext

    return yamltext.Hooks(ID, WATCHES)


def pending(path: Path, found: list[Entry]) -> Iterator[str]:
    """The consent that is left to the user. It is never written here."""
    always = b"hooks_auto_accept: true" in path.read_bytes()
    if not always and not all(_consented(entry) for entry in found):
        yield (
            "Hermes runs it after your consent: start hermes at a terminal and say yes to it; where there is no"
            " terminal, hermes --accept-hooks"
        )


def _consented(entry: Entry) -> bool:
    try:
        held = json.loads((_home() / "shell-hooks-allowlist.json").read_bytes())
        given = {(one.get("event"), one.get("command")) for one in held["approvals"] if isinstance(one, dict)}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False
    return (entry.event, entry.command) in given


def _home() -> Path:
    return home("HERMES_HOME", ".hermes")
