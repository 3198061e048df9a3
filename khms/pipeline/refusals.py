"""What reviewers refused, so that nobody has to refuse it twice.

The memory is computed from the review receipts alone: each refusal carries its claim, which outlives the candidate's
file, travels with the repository and merges without conflict. Receipts that are older than that are completed from the
unit, as long as it is there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from khms.errors import KhmsError
from khms.model.claim import claim, normalised
from khms.model.receipt import REJECTED
from khms.model.redact import redact
from khms.pipeline.duplicates import Bodies
from khms.store import files, inbox, markdown
from khms.store.layout import Base
from khms.store.receipts import Ledger


@dataclass(frozen=True, slots=True)
class Refusal:
    """One claim that a reviewer refused: the unit's base path, the label there, and the reason."""

    unit: str
    label: str
    why: str

    @property
    def name(self) -> str:
        return f"{unit_name(self.unit)}/{self.label}"

    def __str__(self) -> str:
        return f"{self.name} said this and was refused: {self.why}"


@dataclass
class Refusals:
    """Every refusal in force, to be asked which of them a claim repeats. Sameness is told by words, as for duplicates;
    whatever else comes to tell it is asked in `same`, and no caller changes."""

    _bodies: Bodies = field(default_factory=Bodies)
    _held: dict[str, Refusal] = field(default_factory=dict)

    def add(self, refusal: Refusal, words: str) -> None:
        name = f"{refusal.unit}\0{refusal.label}"
        self._held[name] = refusal
        self._bodies.add(name, words)

    def same(self, body: str, least: float) -> list[Refusal]:
        """The refusals of claims that say what `body` says, the surest first."""
        return [self._held[found.id] for found in self._bodies.same(said(body), least)]

    def __len__(self) -> int:
        return len(self._held)


def unit_name(unit: str) -> str:
    return unit.rpartition("/")[2].removesuffix(".md")


def said(body: str) -> str:
    """What of a refused body its receipt keeps. A key in it would be kept for ever, so known shapes are taken out."""
    return normalised(redact(claim(body)))


def refusals(base: Base, ledger: Ledger) -> Refusals:
    """The refusals that stand. One whose claim is in no receipt and no file any more says nothing."""
    found = Refusals()
    for (unit, label), receipt in ledger.reviewed().items():
        if receipt.verdict == REJECTED:
            words = receipt.claim or next((said(body) for body in _bodies(base, unit, label)), "")
            if words:
                found.add(Refusal(unit, label, receipt.reason), words)
    return found


def _bodies(base: Base, unit: str, label: str) -> Iterable[str]:
    """The refused candidate's body as it lies in its unit; nothing where it cannot be read."""
    if unit.endswith(".md"):
        try:
            whole = inbox.single(files.read_inside(base.root, unit), unit_name(unit), unit)
        except OSError:
            return
        yield from (candidate.body for candidate in whole.candidates if candidate.label == label)
        return
    for path in (f"{unit}/dropped/{label}.md", f"{unit}/{label}.md"):
        try:
            yield markdown.parse(files.read_inside(base.root, path), path).body
        except (OSError, KhmsError):
            continue
