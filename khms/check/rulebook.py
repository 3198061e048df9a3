"""The rules of lint, by code: how grave each is, what it holds, and the functions that look."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from khms.check.context import Context
from khms.check.rules import (
    claims,
    content,
    documents,
    form,
    graph,
    grounds,
    kinds,
    proof,
    references,
    spelling,
    vocabulary,
)
from khms.check.subject import (
    APPROVAL,
    CANDIDATE,
    CARD,
    CHANGE,
    DAY,
    NOTE,
    OTHER,
    PART,
    RECEIPT,
    SETTINGS,
    SINGLE,
    TAG_FILE,
    UNIT,
    WITHHELD,
    Fault,
    Subject,
)

Judge = Callable[[Subject, Context], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class Rule:
    """`checks` are the rule's functions, each with the kinds of file that it looks at."""

    severity: str
    what: str
    checks: tuple[tuple[frozenset[str], Judge], ...]


def _on(judge: Judge, *kinds: str) -> tuple[frozenset[str], Judge]:
    return frozenset(kinds), judge


_DOCUMENTS = (APPROVAL, RECEIPT, UNIT, TAG_FILE, SETTINGS)
_ALL = (CARD, CANDIDATE, CHANGE, PART, WITHHELD, SINGLE, DAY, NOTE, OTHER, *_DOCUMENTS)
_FILES = tuple(kind for kind in _ALL if kind != PART)

RULES: dict[str, Rule] = {
    "KH001": Rule(
        "error",
        "the frontmatter is one YAML mapping that its schema accepts; other files parse and validate",
        (_on(form.frontmatter, CARD, CANDIDATE, CHANGE, PART, NOTE), _on(documents.readable, DAY, *_DOCUMENTS)),
    ),
    "KH002": Rule(
        "error",
        "the file name is the id; an id is unique and never used again",
        (_on(form.name, CARD, CANDIDATE, CHANGE, PART), _on(proof.record, APPROVAL), _on(form.ending, NOTE, OTHER)),
    ),
    "KH003": Rule(
        "error",
        "observations have evidence and a source that can be found",
        (_on(grounds.evidence, CARD, CANDIDATE, PART),),
    ),
    "KH004": Rule(
        "error", "derived cards name what they follow from", (_on(grounds.derivation, CARD, CANDIDATE, PART),)
    ),
    "KH005": Rule(
        "error",
        "every id in links and every [[K-…]] in a body exists",
        (_on(references.targets, CARD, CANDIDATE, PART), _on(references.changed, CHANGE)),
    ),
    "KH006": Rule("error", "links lie under links:", (_on(form.stray_links, CARD, CANDIDATE, PART),)),
    "KH007": Rule(
        "error",
        "a card says why it supersedes another; supersedes and derived_from do not go round",
        (_on(graph.order, CARD, CANDIDATE, PART),),
    ),
    "KH008": Rule(
        "error",
        "a card that says it corrects something has the link for it",
        (_on(claims.corrections, CARD, CANDIDATE, PART),),
    ),
    "KH009": Rule("error", "the status is what the links say", (_on(graph.status, CARD),)),
    "KH010": Rule(
        "error",
        "a card is what was approved",
        (_on(proof.approved, CARD), _on(proof.present, APPROVAL)),
    ),
    "KH011": Rule(
        "warning",
        "tags are registered, by their own names",
        (_on(vocabulary.registered, CARD, CANDIDATE, PART), _on(vocabulary.registry, TAG_FILE)),
    ),
    "KH012": Rule(
        "warning",
        "labels fit the type; a rule and a description are two cards",
        (_on(kinds.labels, CARD, CANDIDATE, PART),),
    ),
    "KH013": Rule("error", "no secret stands in a tracked file", (_on(content.secrets, *_FILES),)),
    "KH014": Rule(
        "error", "no words that would steer an agent", (_on(content.injection, CARD, CANDIDATE, CHANGE, SINGLE),)
    ),
    "KH015": Rule(
        "error",
        "no conflict marker, no content file over the limit, no link out of the base or where cards lie",
        (_on(content.whole, *_FILES),),
    ),
    "KH016": Rule("warning", "a generated file is as khms writes it", ()),
    "KH017": Rule("warning", "no two names differ by case only", (_on(spelling.twin, *_FILES),)),
}

Rules = dict[str, list[tuple[str, Judge]]]
_SCREENING = frozenset({"KH013", "KH014"})


def _by_kind(codes: Collection[str]) -> Rules:
    return {
        kind: [(code, judge) for code in codes for kinds, judge in RULES[code].checks if kind in kinds] for kind in _ALL
    }


# The rules by kind of file, those apart that wait for what screening says.
BY_KIND = _by_kind([code for code in RULES if code not in _SCREENING])
SCREENED = _by_kind(sorted(_SCREENING))
# What counts as a warning in a card without an approval record: it is older than the records.
OLDER = frozenset({"KH003", "KH009", "KH010"})
# What counts as a warning in a candidate: a reviewer sees it, and approval asks again.
PROPOSAL = frozenset({"KH003", "KH004", "KH005", "KH006", "KH007", "KH008", "KH014"})
# What is asked of a file that cannot be read, one with a merge conflict, and a candidate that was decided long ago.
UNREADABLE = frozenset({"KH001", "KH013", "KH015"})
CONFLICT = DECIDED = frozenset({"KH013", "KH015"})
# What is asked of a link and of another repository: there are no bytes to judge.
BODILESS = frozenset({"KH015", "KH017"})
