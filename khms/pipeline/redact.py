"""`khms redact`: words leave a card, recorded like an approval, and every other place where they stand is named.

The card's new hash stands in the record beside the old one, so the proof of who let it in goes on. What git keeps of
the time before is another matter: only renewing a secret makes it harmless, only rewriting history takes it out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from khms.config import Config
from khms.errors import Refused, Usage
from khms.model.approval import Approval, Transition, card_sha256
from khms.model.card import Card, is_card_id
from khms.model.finding import Finding
from khms.model.ulid import new_ulid
from khms.pipeline import authority, traces
from khms.pipeline.record import now
from khms.pipeline.seal import sealed
from khms.pipeline.striking import FIXED, LEAST, forms, struck_page, words_at
from khms.pipeline.traces import Trace
from khms.store import cards, files
from khms.store.catalogue import catalogue
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.receipts import ledger, receipts_bytes, receipts_path
from khms.store.repo import Repo

Views = Callable[[Base, Mapping[str, Card]], dict[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Redacted:
    """`cards` are the base paths of all cards that changed, the one asked for first; `elsewhere` the other files that
    hold the words, and `changed` those of them that changed too. `record` is empty where nothing that was approved is
    among them. `still` is what looks like a secret in the card even
    now."""

    id: str
    commit: str
    record: str
    cards: tuple[str, ...]
    transitions: tuple[Transition, ...]
    elsewhere: tuple[Trace, ...]
    changed: tuple[str, ...]
    still: tuple[Finding, ...] = ()
    recovered: str = ""


def redact(
    base: Base,
    repo: Repo,
    config: Config,
    card_id: str,
    why: str,
    *,
    words: Sequence[str] = (),
    lines: Sequence[int] = (),
    everywhere: bool = False,
    here: bool = False,
    views: Views,
) -> Redacted:
    """Takes `words`, and what stands on `lines`, out of the card; with `everywhere` out of all other cards, candidates,
    journals, receipts and texts of the base too. Raises Usage for a call that makes no sense, Refused where the card
    does not hold them or would be wrong without; then nothing was changed."""
    _demand(why, words, lines)
    with exclusive(repo, f"redaction of {card_id}") as tx:
        reviewer = authority.reviewer(repo, config)
        receiving = authority.demand_branch(repo, config, here=here)
        authority.demand_calm(repo)
        path, text = _card(base, card_id)
        taken = (*words, *(words_at(text, line, path) for line in lines))
        if any(word in why for word in taken):
            raise Usage("the reason holds the very words, and it is kept for ever", hint="say it without them")
        found = traces.traces(base, repo, taken, path)
        others = [trace for trace in found if everywhere and trace.after is not None]
        fresh = _without(text, taken, path, card_id, needed=not others)
        fresh |= {t.path: t.after.decode("utf-8") for t in others if t.after is not None and t.is_card}
        still = _judged(base, config, fresh, path)
        records = cards.approvals(base)
        run, at = new_ulid(), now()
        transitions = [_transition(base, path, new, why) for path, new in fresh.items()]
        changes: dict[str, bytes | None] = {path: new.encode("utf-8") for path, new in fresh.items()}
        if everywhere:
            changes |= {trace.path: trace.after for trace in others}
            transitions += traces.candidates(others, records, why)
            kept = traces.marks(others, ledger(base), run, at)
            changes |= {receipts_path(run): receipts_bytes(kept)} if kept else {}
        if transitions:
            record = Approval(run, "", reviewer, at, repo.head(), (), tuple(transitions))
            changes[cards.approval_path(run)] = sealed(base, repo, config, record).file_bytes()
        if receiving:
            changes.update(views(base, {**catalogue(base).cards, **_read(fresh)}))
        names = ", ".join(t.id for t in transitions if t.field == "card_sha256") or f"traces of {card_id}"
        message = f"Redact {names}\n\n{why}\n\nKhms-Redacted: {names}\nKhms-Reviewer: {reviewer}\n"
        commit = tx.commit(changes, message, what=f"redaction of {card_id}", user_hooks=True)
        recovered = str(tx.recovered) if tx.recovered else ""
    changed = tuple(trace.path for trace in others)
    return Redacted(
        card_id,
        commit,
        run if transitions else "",
        tuple(fresh),
        tuple(transitions),
        tuple(found),
        changed,
        tuple(still),
        recovered,
    )


def _demand(why: str, words: Sequence[str], lines: Sequence[int]) -> None:
    if not why.strip():
        raise Usage("a redaction needs its reason", hint="--why 'a key stood there' (without the key)")
    if not words and not lines:
        raise Usage("what is to be taken out?", hint="--match, or --line N")
    if any(len(word.strip()) < LEAST for word in words):
        raise Usage(f"words of fewer than {LEAST} characters stand everywhere", hint="give more of it, or --line N")


def _card(base: Base, card_id: str) -> tuple[str, str]:
    path = cards.find(base, card_id) if is_card_id(card_id) else None
    if path is None:
        raise Refused(f"there is no card {card_id}", hint="khms card list shows what there is")
    return base.relative(path), _text(base, base.relative(path))


def _text(base: Base, path: str) -> str:
    return files.read_inside(base.root, path).decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")


def _without(text: str, words: Sequence[str], path: str, card_id: str, *, needed: bool) -> dict[str, str]:
    """The card without the words, by its path; nothing where it does not hold them, which is refused if they are
    `needed` there."""
    fresh = struck_page(text, forms(words), path)
    if fresh == text and needed:
        raise Refused(
            f"{card_id} does not hold these words",
            where=path,
            hint=f"khms show {card_id} shows it; labels, and words in {', '.join(FIXED)}, stay",
        )
    return {path: fresh} if fresh != text else {}


def _judged(base: Base, config: Config, fresh: Mapping[str, str], path: str) -> list[Finding]:
    """Raises Refused where a card has a fault that it did not have before; what still looks like a secret in the card
    itself is told."""
    from khms.check import lint

    def faults(texts: Mapping[str, str]) -> list[Finding]:
        found = lint.proposed(
            base, config, {p: text.encode("utf-8", "surrogateescape") for p, text in texts.items()}, ()
        )
        return [finding for finding in found if finding.severity == "error"]

    before = {(f.path, f.code, f.message) for f in faults({p: _text(base, p) for p in fresh})}
    after = faults(fresh)
    secrets = [finding for finding in after if finding.code == "KH013"]
    new = [f for f in after if f not in secrets and (f.path, f.code, f.message) not in before]
    if new:
        raise Refused(
            "without these words the card would not be sound; nothing was changed",
            where="\n".join(map(str, new)),
            hint="take less out, or supersede the card",
        )
    return [finding for finding in secrets if finding.path == path]


def _transition(base: Base, path: str, new: str, why: str) -> Transition:
    old = card_sha256(files.read_inside(base.root, path))
    identity = path.rpartition("/")[2].removesuffix(".md")
    return Transition(identity, "card_sha256", old, card_sha256(new.encode("utf-8")), why)


def _read(fresh: Mapping[str, str]) -> dict[str, Card]:
    """The cards as they shall be."""
    from khms.model.card import card_from
    from khms.store import markdown

    found = {}
    for path, text in fresh.items():
        page = markdown.parse(text, path)
        card = card_from(page.meta, page.body, path, page.body_line)
        found[card.id] = card
    return found
