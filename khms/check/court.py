"""The signatures of an audit, and the state that says whose count."""

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from khms.check.audited import Trust, trust_from
from khms.check.seals import Step
from khms.model.approval import Approval
from khms.model.ulid import is_ulid, ulid_milliseconds
from khms.store import history, signing
from khms.store.history import Commit
from khms.store.layout import CONFIG, SIGNERS
from khms.store.repo import Repo
from khms.store.signing import CI, Claim, Verifier


def claim(record: Approval) -> Claim:
    """What a record's signature says, to be verified: the reviewer signed, or a job that signs for them."""
    names = tuple(name for name in (signing.email_of(record.reviewer), CI) if name)
    return Claim(record.signed_bytes(), record.signature or "", names, record.at)


_DAY = 86_400.0


def times(record: Approval) -> list[str]:
    """The times at which its signature has to hold: the one that it names, and where its id was made on another day
    that one too. An id sorts behind all records that were there, so it is not as easily set back."""
    made = ulid_milliseconds(record.id) / 1000 if is_ulid(record.id) else 0.0
    made = min(made, datetime.datetime.max.replace(tzinfo=datetime.UTC).timestamp() - _DAY)
    try:
        said = datetime.datetime.fromisoformat(record.at)
        near = abs((said if said.tzinfo else said.replace(tzinfo=datetime.UTC)).timestamp() - made) < _DAY
    except (ValueError, OverflowError):
        near = False
    return [record.at] if near else [record.at, datetime.datetime.fromtimestamp(made, datetime.UTC).isoformat()]


def _timed(signers: bytes) -> bool:
    """Whether any signer counts at some times only."""
    return b"valid-" in signers.lower() or b"cert-authority" in signers.lower()


@dataclass
class Court:
    """The signatures of one audit: verified together where they can be, each once. Of the records in `arriving`, by
    their ids, the signature has to hold now too: whoever's key has ended can still write a time of before. What came in
    once stays good, whatever ends later."""

    verifier: Verifier
    arriving: Collection[str] = ()
    _done: dict[tuple[str, str, bytes], bool] = field(default_factory=dict)

    def verify(self, record: Approval, signers: bytes) -> bool:
        key = (record.id, record.signature or "", signers)
        if key not in self._done:
            self.hear([record], signers)
        return self._done[key]

    def hear(self, records: Sequence[Approval], signers: bytes) -> None:
        asked = [(record, replace(claim(record), at=at)) for record in records for at in times(record)]
        held = self.verifier.verify([one for _, one in asked], signers)
        bad = {id(record) for (record, _), good in zip(asked, held, strict=True) if not good}
        late = [r for r in records if _timed(signers) and r.id in self.arriving and id(r) not in bad]
        now = datetime.datetime.now(datetime.UTC).isoformat()
        present = Verifier().verify([replace(claim(r), at=now) for r in late], signers) if late else []
        bad |= {id(record) for record, good in zip(late, present, strict=True) if not good}
        for record in records:
            self._done[record.id, record.signature or "", signers] = id(record) not in bad

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
        return signing.principals(record.signature or "", signers, record.at)


def court(repo: Repo, arriving: Collection[str] = ()) -> Court:
    return Court(Verifier(repo.folder / "khms"), arriving)


def trusts_at(repo: Repo, prefix: str, commits: Sequence[str]) -> dict[str, Trust]:
    names = [f"{commit}:{prefix}{path}" for commit in commits for path in (SIGNERS, CONFIG)]
    places = history.at(repo, names)
    data = history.blobs(repo, places.values())

    def held(commit: str, path: str) -> bytes | None:
        return data.get(places.get(f"{commit}:{prefix}{path}", ""))

    return {commit: trust_from(held(commit, SIGNERS), held(commit, CONFIG)) for commit in commits}


def settled(repo: Repo, prefix: str, commit: str, trust: Trust) -> Trust:
    """What counts at a commit whose settings cannot be read: what they said when they last could."""
    if not trust.fault:
        return trust
    for older in reversed(history.log(repo, prefix, commit).mainline()):
        found = trusts_at(repo, prefix, [older.id])[older.id] if _sets(older) else trust
        if not found.fault:
            return trust.after(found)
    return trust.after(Trust())


def _sets(commit: Commit) -> bool:
    """Whether it may have other settings than its first parent: a merge may take either side's."""
    return len(commit.parents) != 1 or any(change.path == CONFIG for change in commit.changes)
