"""The signatures of an audit, and the state that says whose count."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from khms.check.audited import Trust, trust_from
from khms.check.auditing import Step
from khms.model.approval import Approval
from khms.store import history, signing
from khms.store.layout import CONFIG, SIGNERS
from khms.store.repo import Repo
from khms.store.signing import CI, Claim, Verifier


def claim(record: Approval) -> Claim:
    """What a record's signature says, to be verified: the reviewer signed, or a job that signs for them."""
    names = tuple(name for name in (signing.email_of(record.reviewer), CI) if name)
    return Claim(record.signed_bytes(), record.signature or "", names, record.at)


@dataclass
class Court:
    """The signatures of one audit: verified together where they can be, each once."""

    verifier: Verifier
    _done: dict[tuple[str, str, bytes], bool] = field(default_factory=dict)

    def verify(self, record: Approval, signers: bytes) -> bool:
        key = (record.id, record.signature or "", signers)
        if key not in self._done:
            self.hear([record], signers)
        return self._done[key]

    def hear(self, records: Sequence[Approval], signers: bytes) -> None:
        for record, good in zip(records, self.verifier.verify([claim(r) for r in records], signers), strict=True):
            self._done[record.id, record.signature or "", signers] = good

    def prepare(self, steps: Iterable[Step]) -> None:
        """Verifies at once what each step asks of the signers before it."""
        asked: defaultdict[bytes, list[Approval]] = defaultdict(list)
        for step in steps:
            if step.before.signed:
                held = (f.record for arrival in step.arrivals for f in arrival.records)
                asked[step.before.signers] += [record for record in held if record and record.signature]
        for signers, records in asked.items():
            self.hear(records, signers)

    @staticmethod
    def owners(record: Approval, signers: bytes) -> Sequence[str]:
        return signing.principals(record.signature or "", signers)


def court(repo: Repo) -> Court:
    return Court(Verifier(repo.folder / "khms"))


def trusts_at(repo: Repo, prefix: str, commits: Sequence[str]) -> dict[str, Trust]:
    names = [f"{commit}:{prefix}{path}" for commit in commits for path in (SIGNERS, CONFIG)]
    places = history.at(repo, names)
    data = history.blobs(repo, places.values())

    def held(commit: str, path: str) -> bytes | None:
        return data.get(places.get(f"{commit}:{prefix}{path}", ""))

    return {commit: trust_from(held(commit, SIGNERS), held(commit, CONFIG)) for commit in commits}
