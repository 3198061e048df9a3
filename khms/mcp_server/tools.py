"""What an agent can call. Each tool is a row of TOOLS: its form, its answer's, whether it only reads, its function.

There is none that approves, rejects, defers, trusts or sets: these are a person's. Who said a thing is not an argument
either: what is proposed here is an agent's, whatever it says.
"""

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from khms.errors import Busy, No, Refused, Unavailable, Usage
from khms.hosts.environment import agent_host, session
from khms.mcp_server import forms, warm
from khms.mcp_server.forms import Form
from khms.mcp_server.places import Place
from khms.model.card import EVIDENCE
from khms.store import jotting

MOST = 50  # hits of one answer
AGENT = "mcp"  # who proposes where the environment does not tell which host it is


@dataclass(frozen=True, slots=True)
class Tool:
    """`reads` tells that it changes nothing, so that a call that nobody waits for any more can be left alone."""

    name: str
    title: str
    description: str
    takes: Form
    gives: Form
    reads: bool
    run: Callable[[Place, Mapping[str, Any]], dict[str, Any]]


def checked(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments, if they are of the tool's form. Raises Usage naming each one that is not."""
    from khms.store import schema

    wrong = schema.problems_under(tool.takes, dict(arguments))
    if not wrong and _nul(arguments):
        wrong = [("", "a text holds a NUL character")]
    if wrong:
        told = [words for _, words in wrong[:5]]
        known = ", ".join(tool.takes["properties"]) or "none"
        raise Usage("; ".join(told), where=f"the arguments of {tool.name}", hint=f"it takes: {known}")
    return arguments


def _nul(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_nul, value.values()))
    return "\0" in value if isinstance(value, str) else isinstance(value, list) and any(map(_nul, value))


def _recall(place: Place, said: Mapping[str, Any]) -> dict[str, Any]:
    from khms.recall import bases

    text: str = said["query"]
    if not text.strip():
        raise Usage("there is no question", where="query", hint="say what you want to know, in plain words")
    limit, unreviewed, archive = said.get("limit"), said.get("unreviewed", False), said.get("archive", False)
    words = [*(("--limit", str(limit)) if limit else ()), *(("--unreviewed",) if unreviewed else ())]
    whole, alone = bases.together(place.base, place.config)
    told = warm.recall(place.base, place.here, [*words, *(("--all",) if archive else ()), "--", text])
    if told is not None:
        value, remarks = told
        return {**value, "remarks": remarks if value.get("hits") else [*remarks, *bases.unmet(whole, text)]}
    found = bases.ask(
        whole,
        text,
        limit=limit,
        include_fog=archive,
        unreviewed=unreviewed or archive,
        refresh=True,
        strict=True,
        here=place.here,
    )
    warm.start(place.base, place.config["server.enabled"])
    remarks = [*filter(None, [alone]), *(() if found.hits else bases.unmet(whole, text))]
    return {**found.as_json(), "query": text, "remarks": remarks}


def _show(place: Place, said: Mapping[str, Any]) -> dict[str, Any]:
    from khms.recall import bases

    try:
        return bases.look_up(place.base, place.config, said["id"]).as_json()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise No("there is no document by so long a name", hint="recall gives the ids") from error


def _precheck(place: Place, said: Mapping[str, Any]) -> dict[str, Any]:
    from khms.index import catchup, sync
    from khms.recall.precheck import names_of, precheck

    tags, command = names_of(place.base, said.get("tags", ())), said.get("command", "")
    if not tags and not command.strip():
        raise Usage(
            "there is no tag and no command", where="tags, command", hint="give the command you are about to run"
        )
    remarks = []
    try:
        sync.refresh(place.base, config=place.config, vectors=catchup.LATER)
    except (Busy, Unavailable) as error:  # what the index holds is said all the same
        remarks.append(f"the index could not be brought up to date: {error.message}")
    found = precheck(place.base, place.config, tags=tags, command=command, limit=said.get("limit"), snippets=True)
    if not found.tags:
        remarks.append("this command is of no risky class, and there was no tag")
    return {**found.as_json(), "remarks": remarks}


def _mark(place: Place, said: Mapping[str, Any]) -> dict[str, Any]:
    done = jotting.write(place.base, said["kind"], said["text"], session(os.environ))
    return {
        "schema": "khms.mark/1",
        "id": done.mark.id,
        "kind": done.mark.kind,
        "text": done.mark.text,
        "path": place.base.relative(done.path),
        "line": done.mark.line,
        "redacted": done.redacted,
    }


def _propose_card(place: Place, said: Mapping[str, Any]) -> dict[str, Any]:
    from khms.pipeline import manual
    from khms.store.repo import Repo

    repo = Repo(place.base.root)
    repo.top  # noqa: B018  raises where there is no repository
    draft = manual.Draft(
        type=said["type"],
        title=said["title"],
        body=said["body"],
        tags=tuple(said.get("tags", ())),
        scope=said.get("scope", ""),
        evidence=said.get("evidence", ""),
        source=said.get("source", ""),
        derived_from=tuple(said.get("derived_from", ())),
    )
    made = manual.propose(place.base, repo, place.config, draft, agent=agent_host() or AGENT)
    told = f"it is no knowledge yet: a person decides about it (khms review {made.unit})"
    return {**made.as_json(), "next": told}


def _inbox_status(place: Place, said: Mapping[str, Any]) -> dict[str, Any]:
    from khms.pipeline import unreviewed
    from khms.store.repo import Repo

    rows = [(unit, waiting, "") for unit, waiting in unreviewed.rows(place.base) if waiting or unit.broken]
    try:
        beside, remarks = unreviewed.on_branches(place.base, Repo(place.base.root))
    except (Unavailable, Refused) as error:
        beside, remarks = [], [f"branches could not be looked at: {error.message}"]
    rows += [(unit, list(unit.candidates), branch) for unit, branch in beside]
    remarks += [f"{fault.path}:{fault.line}: {fault.message}" for unit, _, _ in rows for fault in unit.broken]
    return {
        "schema": "khms.inbox/1",
        "units": [
            {
                **unreviewed.row(unit, waiting, branch),
                "candidates": [{"id": f"{unit.name}/{one.label}", "title": one.title} for one in waiting],
            }
            for unit, waiting, branch in rows
        ],
        "remarks": remarks,
    }


_RECALL = Tool(
    "recall",
    "Ask the memory",
    "What is on record about a question, an error message, an identifier or a file: reviewed cards and notes, best"
    " first, each with its path and with what corrects it. An empty list means that nothing is on record. Open the"
    " file, or show the id, before you rely on a hit, and cite its id.",
    forms.takes(
        "query",
        query=forms.text(
            'plain text, an error message or a stack trace; "in quotes" is a phrase; tag:x type:y kind:z scope:s'
            " status:s after:2026-01-01 before:2026-02-01 are filters",
            20_000,
            shortest=1,
        ),
        limit=forms.count("most hits", MOST),
        unreviewed=forms.flag("also what nobody has reviewed, flagged UNREVIEWED"),
        archive=forms.flag("also the archive, and what nobody has reviewed"),
    ),
    forms.HITS,
    True,
    _recall,
)
_SHOW = Tool(
    "show",
    "Show one document",
    "One document whole, by the id or path that recall gives: a card with its links, what corrects it and how it came"
    " in; a MARK, a candidate (UNIT/C1), a journal day, a note.",
    forms.takes(
        "id", id=forms.text("K-00042, M-0123456789ab, 2026-03-04, UNIT/C1 or a path in the base", 1024, shortest=1)
    ),
    forms.DOCUMENT,
    True,
    _show,
)
_PRECHECK = Tool(
    "precheck",
    "Look before a risky action",
    "What must be known before a risky action: policies, gotchas, refuted and disputed cards. Ask it with the shell"
    " command that you are about to run, or with tags of what you are about to touch.",
    forms.takes(
        tags=forms.texts("such as migration, production", 32, 200),
        command=forms.text("the shell command, as it would be run", 20_000),
        limit=forms.count("most cards", MOST),
    ),
    forms.KNOWN,
    True,
    _precheck,
)
_MARK = Tool(
    "mark",
    "Note in the journal",
    "Notes one finding in today's journal, for a later review: a decision and why, a requirement, what failed, what"
    " solved it. One self-contained sentence or two; never a secret. It is no knowledge until a person approves a card"
    " made of it.",
    forms.takes(
        *("kind", "text"),
        kind=forms.text("one word, such as decision, req, failed or solved", 40, shortest=1),
        text=forms.text("what holds, and why", jotting.LONGEST, shortest=1),
    ),
    forms.MARKED,
    False,
    _mark,
)
_PROPOSE = Tool(
    "propose_card",
    "Propose a card",
    "Puts a candidate for a card into the inbox, marked as an agent's, in one commit of the base. Only a person can"
    " approve it. Recall first, so that what is on record is not proposed again.",
    forms.takes(
        *("type", "title", "body"),
        type=forms.text("its type, such as fact, problem-solution or decision; a wrong one names all", 40, shortest=1),
        title=forms.text("the claim in one line", 300, shortest=1),
        body=forms.text("Markdown, under the labels of the type", 100_000, shortest=1),
        tags=forms.texts("of what it is about", 32, 100),
        scope=forms.text("what it holds for; universal where nothing is said", 200),
        evidence=forms.text("how it is known", 20, enum=["", *EVIDENCE]),
        source=forms.text("where it stands: a path with its line, a URL, a commit; words in double quotes at its end"
                          " are looked up there", 2_000),
        derived_from=forms.texts("ids of the cards that it follows from", 32, 20),
    ),
    forms.PROPOSED,
    False,
    _propose_card,
)  # fmt: skip
_INBOX = Tool(
    "inbox_status",
    "What awaits review",
    "The units of the inbox with the candidates that nobody has decided. Show a candidate by its id. A person decides.",
    forms.takes(),
    forms.UNITS,
    True,
    _inbox_status,
)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in (_RECALL, _SHOW, _PRECHECK, _MARK, _PROPOSE, _INBOX)}
