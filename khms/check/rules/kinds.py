"""What kind of claim a body makes, beside the type that the card says it has.

Only what is sure is told. A typed card may leave labels out (approval flags that as thin), add labels of its own, and a
free type takes any text. Measured: of 8 cards of an example base none is told of; of 60 engineering cards taken as
facts 3, each of which ends with an order ("Do not copy …").
"""

import re
from collections.abc import Iterator

from khms.check.context import Context
from khms.check.prose import prose
from khms.check.subject import Fault, Subject
from khms.model.card import TYPES, CardType

DESCRIPTIVE = ("fact", "action-outcome", "problem-solution")
NORMATIVE = ("decision-rationale", "policy", "requirement", "goal-method", "principle")
# The labels that make a card one of its kind; the others (WHY, WHAT, VERIFIED, LIMITS …) are of use in any card.
TELLING = {
    "RULE": "policy",
    "HOLDS": "principle",
    "DECIDED": "decision-rationale",
    "SYMPTOM": "problem-solution",
    "FIX": "problem-solution",
    "THEN": "action-outcome",
}
_RULES, _EVENTS = ("RULE", "HOLDS", "DECIDED"), ("SYMPTOM", "FIX", "THEN")
FOREIGN = dict.fromkeys(DESCRIPTIVE, _RULES) | dict.fromkeys(NORMATIVE, _EVENTS)
_NEEDLES = {label: f"{label}:" for kind in TYPES.values() for label in (*kind.labels, *TELLING)}
_WHO = r"(?:[Yy]ou|[Ww]e|[Aa]gents|[Ee]verybody|[Ee]veryone|[Nn]obody|[Dd]evelopers)"
_MUST = r"must(?: always| never| not| only)?"
_ACTS = (
    r"(?:ask|call|check|commit|copy|create|delete|deploy|disable|edit|enable|keep|leave|log|make|merge|open|pass|push|put|"
    r"read|remove|rename|restart|return|run|set|share|start|store|test|trust|update|use|wait|write)"
)
_ORDER = re.compile(
    rf"(?:^|[.!?:;]\s+)(?P<said>{_WHO} {_MUST} (?!have\b|be\b|feel\b)[a-z]+|(?:Always|Never) {_ACTS}\b|"
    r"(?:Do not|Don't) (?!know\b|see\b|remember\b|worry\b|forget\b|be\b|feel\b|merely\b)[a-z]+)",
    re.MULTILINE,
)
_PROBES = (" must ", "Never ", "Do not ")
_LABEL = re.compile(r"^([A-Z][A-Z-]+):", re.MULTILINE)


def labels(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH012: a card's labels are those of its type, and a rule and a description are two cards. A card that a record
    names was looked at when it came in, and cannot be mended any more."""
    if subject.name in context.proofs:
        return
    kind = context.types.get(subject.card.type)
    if kind is None:
        return
    body = subject.page.body
    if _odd(kind, body):
        yield from _labels(subject, kind)
    if kind.name in DESCRIPTIVE:
        for probe in _PROBES:
            if probe in body:
                yield from _orders(subject, body)
                break


def _odd(kind: CardType, body: str) -> bool:
    """Whether a body may have labels that do not fit its type, or none that do: a quick look."""
    for label in FOREIGN.get(kind.name, ()):
        if _NEEDLES[label] in body:
            return True
    for label in kind.labels:
        if f"{label}:" in body:
            return False
    return bool(kind.labels)


def _labels(subject: Subject, kind: CardType) -> Iterator[Fault]:
    text = prose(subject.page.body)
    found = {match[1]: text.count("\n", 0, match.start()) for match in reversed([*_LABEL.finditer(text)])}
    first = subject.page.body_line
    for label in FOREIGN.get(kind.name, ()):
        if label in found:
            said = f"`{label}:` makes it a {TELLING[label]} too, and it is a {kind.name}"
            yield Fault(first + found[label], said, f"make two cards of it, one of them a {TELLING[label]}")
    if kind.labels and found.keys().isdisjoint(kind.labels):
        wanted = ", ".join(kind.labels)
        yield Fault(first, f"a {kind.name} says what it says under {wanted}", "put the text under one of these labels")


def _orders(subject: Subject, body: str) -> Iterator[Fault]:
    """A description that tells somebody what to do. What stands under FIX says what was done, whatever its mood."""
    text = prose(body)
    for order in _ORDER.finditer(text):
        at = order.start("said")
        under = [match[1] for match in _LABEL.finditer(text, 0, at)]
        if not (under and under[-1] in ("FIX", "VERIFIED")):
            mend = "make the rule a policy of its own, derived from this card"
            said = f"this tells somebody what to do (`{order['said']} …`), and the card is a description"
            yield Fault(subject.page.body_line + text.count("\n", 0, at), said, mend)
            return
