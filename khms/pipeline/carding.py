"""A candidate's text becomes a card's text: ids for labels, links for the relation, the body kept.

Pure text work. Only structured mentions of a label are rewritten (links, `[[C1]]`, SUPERSEDES and LINKS lines), never a
quote, and nothing inside a code fence.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from khms.errors import Refused
from khms.model.candidate import CANDIDATE_KEYS, Candidate, Relation
from khms.model.card import RELATIONS, Links, is_card_id, links_of
from khms.model.cardhash import stray
from khms.store import markdown

LINKING = ("supports", "contradicts", "supersedes")
_LABEL = re.compile(r"C\d+")
_WIKILINK = re.compile(r"\[\[(C\d+)(?=[\]|#])")
_STRUCTURED = re.compile(r"(?:SUPERSEDES |\*\*LINKS:\*\*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Made:
    """A card made of a candidate; `links` are its final edges."""

    id: str
    label: str
    title: str
    text: str
    links: Links

    @property
    def data(self) -> bytes:
        return self.text.encode("utf-8")


def is_label(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None


def settled(candidate: Candidate, said: str | None, why: str = "") -> Relation:
    """The relation that counts: the reviewer's word (`new`, `supports:K-00003`) and reason, or its own."""
    if said is None:
        return candidate.relation
    kind, _, target = said.partition(":")
    held = candidate.relation
    own = held.target if kind in LINKING else ""
    return Relation(kind, target or own, held.nearest, why or held.because)


def make(candidate: Candidate, card_id: str, relation: Relation, ids: Mapping[str, str]) -> Made:
    """The card of `candidate` under `card_id`. `ids` maps the unit's labels to ids, earlier approvals included; raises
    Refused where a label has none, and where something else than their values stands on the lines that may change
    later: the card's hash leaves those out."""
    text = candidate.text if candidate.text.endswith("\n") else candidate.text + "\n"
    text = markdown.remove_keys(text, [key for key in CANDIDATE_KEYS if key in candidate.meta])
    text = markdown.set_key(text, "id", card_id)
    if "title" not in markdown.parse(text, candidate.path).meta and candidate.title:
        text = _with_title(text, candidate)
    links = _edges(candidate, relation, ids)
    text = _write_links(text, candidate, links)
    head, body = _split(text)
    body = rewrite(body, ids, candidate)
    if relation.kind == "supersedes" and not _says_supersedes(body, relation.target):
        body = f"SUPERSEDES {relation.target} BECAUSE: {' '.join(relation.because.split())}\n{body}"
    _demand_plain(head, candidate)
    return Made(card_id, candidate.label, candidate.title, head + body, links)


def _demand_plain(head: str, candidate: Candidate) -> None:
    for line, said in stray(head.encode("utf-8")):
        row = head.split("\n")[line - 1].strip()
        raise Refused(
            f"{said} (`{row}`): what stands there could change later without a word of approval",
            where=candidate.path,
            hint="leave the plain value there (status: active, contradicts: [K-00002]); a remark belongs in the body",
        )


def _with_title(text: str, candidate: Candidate) -> str:
    """Puts the heading's title of an older inbox file after the status (or the id), where cards have it."""
    page = markdown.parse(text, candidate.path)
    at = page.lines.get("status") or page.lines["id"]
    lines = text.split("\n")
    lines.insert(at, f"title: {markdown.scalar(candidate.title)}")
    return "\n".join(lines)


def _edges(candidate: Candidate, relation: Relation, ids: Mapping[str, str]) -> Links:
    """The candidate's own links with labels resolved, and the relation's edge."""
    own = links_of(candidate.meta.get("links"))
    edges = {name: [_resolve(target, ids, candidate) for target in getattr(own, name)] for name in RELATIONS}
    if relation.kind in LINKING and relation.target:
        target = _resolve(relation.target, ids, candidate)
        if target not in edges[relation.kind]:
            edges[relation.kind].append(target)
    return Links(**{name: tuple(targets) for name, targets in edges.items()})


def _resolve(target: str, ids: Mapping[str, str], candidate: Candidate) -> str:
    if is_card_id(target) or not is_label(target):
        return target
    if target in ids:
        return ids[target]
    raise Refused(
        f"{candidate.label} names {target}, which is not approved with it",
        where=f"{candidate.path}:{candidate.body_line}",
        hint=f"approve both: khms approve UNIT {candidate.label} {target}" if target != candidate.label else "",
    )


def _write_links(text: str, candidate: Candidate, links: Links) -> str:
    """Writes the edges that differ from what the file says, each key in place."""
    value = candidate.meta.get("links")
    own = links_of(value)
    for name in RELATIONS:
        wanted = getattr(links, name)
        if wanted == getattr(own, name):
            continue
        single = name == "supersedes" and len(wanted) <= 1
        text = markdown.set_key(text, f"links.{name}", (wanted[0] if wanted else None) if single else list(wanted))
    return text


def _split(text: str) -> tuple[str, str]:
    """(frontmatter with its fences, body)."""
    page = markdown.parse(text, "")
    return text[: len(text) - len(page.body)], page.body


def _says_supersedes(body: str, target: str) -> bool:
    return any(line.startswith(f"SUPERSEDES {target} BECAUSE:") for line in body.splitlines())


def rewrite(body: str, ids: Mapping[str, str], candidate: Candidate) -> str:
    """`body` with labels in structured places replaced by ids; code fences and quotes stay as they are."""
    lines = body.split("\n")
    fence = ""
    for i, line in enumerate(lines):
        run = _FENCE.match(line)
        if run and not fence:
            fence = run[1]
        elif run and fence and run[1][0] == fence[0] and len(run[1]) >= len(fence):
            fence = ""
        elif not fence:
            lines[i] = _line(line, ids, candidate)
    return "\n".join(lines)


def _line(line: str, ids: Mapping[str, str], candidate: Candidate) -> str:
    def by_id(match: re.Match[str]) -> str:
        return "[[" + _resolve(match[1], ids, candidate)

    parts = line.split("`")
    if len(parts) % 2:  # code spans are the odd parts
        parts[::2] = [_WIKILINK.sub(by_id, part) for part in parts[::2]]
        line = "`".join(parts)
    if _STRUCTURED.match(line):
        return re.sub(r"\bC\d+\b", lambda m: ids.get(m[0], m[0]), line)
    return line
