"""Experiments: some sessions are told nothing, so that what the others do with what they are told can be compared.

A session's arm follows from its name alone: it is the same at each of its events, in every process, and anyone who
has the log can work it out again. On the path of every hook: nothing is imported but a hash.
"""

from __future__ import annotations

from khms.model.digest import NOBODY, sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

INJECTION, CONTROL = "injection", "control"
WITHHELD = "control"  # the log's reason for a silence that an experiment made
_DIGITS = 13  # hexadecimal digits of the hash that count: what a float holds exactly


def arm(config: Mapping[str, Any], session: str) -> str:
    """The arm of the session with this key (`model.digest.session_key`); "" where there is no experiment, or where the
    host names no session, which could not be kept in one arm."""
    name = config["experiment.name"]
    if not name or session in ("", NOBODY):
        return ""
    drawn = sha256_hex(f"{name}\0{config['experiment.salt']}\0{session}".encode("utf-8", "surrogatepass"))
    share = int(drawn[:_DIGITS], 16) / 16**_DIGITS
    return CONTROL if share < config["experiment.control"] else INJECTION


def stamp(config: Mapping[str, Any], session: str) -> dict[str, object]:
    """What a line of the log says of the experiment; nothing outside of one."""
    drawn = arm(config, session)
    return {"experiment": config["experiment.name"], "arm": drawn} if drawn else {}


def heard(record: dict[str, object], answer: str) -> str:
    """What a session gets of an answer: nothing in a control session, whose `record` then tells what was withheld. The
    budget counts it as said, so that the arms differ in nothing but what reaches the model. A warning before a risky
    command (`classes`) reaches everyone: to measure is no reason to let somebody delete what they would have kept."""
    if not answer or record.get("arm") != CONTROL or record.get("classes"):
        return answer
    record.update(decision="silent", reason=WITHHELD, withheld=record.pop("cards", []))
    return ""
