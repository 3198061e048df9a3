"""`khms signers`: who may sign approvals, and whether a signature is required. Each change is one commit with its
record, sealed by a signer of the state before; the first signer of a base is taken at their word.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from khms.check.audited import file_sha256, review_table
from khms.config import Config
from khms.errors import Refused, Usage
from khms.hosts.environment import agent_host
from khms.model.approval import Approval, Transition
from khms.model.ulid import new_ulid
from khms.pipeline import authority, seal
from khms.pipeline.record import next_id, now
from khms.store import cards, files, signing, tomltext
from khms.store.commit import exclusive
from khms.store.layout import CONFIG, SIGNERS, Base
from khms.store.repo import Repo
from khms.store.signing import NAMESPACE

REQUIRE = "review.require_signed"
ID = "base.id"


@dataclass(frozen=True, slots=True)
class Changed:
    """`commit` is None where it already was so; `signed` says whether the record carries a signature."""

    commit: str | None
    record: str = ""
    signed: bool = False
    recovered: str = ""


@dataclass(frozen=True, slots=True)
class _Edit:
    """What becomes of a file (None removes it), and what the record says of it."""

    path: str
    data: bytes | None
    change: Transition
    title: str


def add(base: Base, repo: Repo, config: Config, email: str, key: str, *, here: bool = False) -> Changed:
    """Lets the signatures of a public key count as those of `email`. Raises Usage for what is no public key."""
    if not email or any(char in email for char in ' \t\n,"*?!#'):
        raise Usage(f"{email!r} is no e-mail address", hint="khms signers add you@example.org ~/.ssh/khms.pub")
    held = signing.public_key(key)
    if held is None:
        private = "PRIVATE KEY" in key
        raise Usage(
            "this is a private key: it must never lie in a base" if private else "this is no SSH public key",
            hint="name the file that ends in .pub (ssh-keygen -t ed25519 -f ~/.ssh/khms makes one)",
        )

    def edit(old: bytes) -> _Edit | None:
        if any(line.key == held[1] and line.names(email) for line in signing.signers(old)):
            return None
        text = _text(old)
        row = f'{email} namespaces="{NAMESPACE}" {held[0]} {held[1]} {held[2]}'.rstrip()
        between = "" if not text or text.endswith("\n") else "\n"
        return _signers(old, f"{text}{between}{row}\n", f"Add signer {email}")

    return _change(base, repo, config, SIGNERS, edit, here)


def remove(base: Base, repo: Repo, config: Config, email: str, *, here: bool = False) -> Changed:
    """Lets no key count as that of `email` any more. What was signed before stays valid. Raises Refused where nobody
    would be left while signatures are required."""

    def edit(old: bytes) -> _Edit | None:
        lines = {held.line: held for held in signing.signers(old)}
        kept = []
        for number, row in enumerate(_text(old).split("\n")[: -1 if old.endswith(b"\n") else None], 1):
            held = lines.get(number)
            if held is None or email not in held.principals:
                kept.append(row)
            elif len(held.principals) > 1:
                names = ",".join(name for name in held.principals if name != email)
                kept.append(names + row[len(",".join(held.principals)) :])
        text = "".join(row + "\n" for row in kept)
        if text.encode() == old:
            return None
        if config[REQUIRE] and not signing.signers(text.encode()):
            raise Refused(
                f"{email} is the last signer, and signatures are required",
                where=SIGNERS,
                hint="add another one first, or: khms signers require off",
            )
        return _signers(old, text, f"Remove signer {email}")

    return _change(base, repo, config, SIGNERS, edit, here)


def require(base: Base, repo: Repo, config: Config, on: bool, *, here: bool = False) -> Changed:
    """Requires a signature of every later approval, or no longer. Raises Refused where the reviewer's own key is none
    of the signers', so that nobody locks themselves out."""
    if on and not signing.signers(repo.blob("HEAD", SIGNERS)):
        raise Refused(
            "nobody's signature would count yet", where=SIGNERS, hint="khms signers add you@example.org ~/.ssh/khms.pub"
        )
    return set_review(base, repo, config, REQUIRE, on, here=here)


def set_review(base: Base, repo: Repo, config: Config, name: str, value: Any, *, here: bool = False) -> Changed:
    """Sets a setting of `[review]` in the base, with its record."""

    def edit(old: bytes) -> _Edit | None:
        text = tomltext.set_value(old.decode("utf-8"), name, value, CONFIG)
        before, after = review_table(old), review_table(text.encode())
        if text.encode() == old:
            return None
        title = f"Set {name} = {tomltext.literal(value)}"
        return _Edit(CONFIG, text.encode(), Transition(CONFIG, "review", before, after, title), title)

    return _change(base, repo, config, CONFIG, edit, here)


def _text(data: bytes) -> str:
    """The file of signers as text; raises Refused where it holds what ssh reads and nobody sees."""
    odd = signing.unseen(data)
    if odd:
        raise Refused(f"this file holds {odd}, which ssh reads as part of a name", where=SIGNERS, hint=signing.UNSEEN)
    return data.decode("utf-8")


def _signers(old: bytes, text: str, title: str) -> _Edit:
    data = text.encode() if text.strip() else None
    change = Transition(SIGNERS, "sha256", file_sha256(old), file_sha256(data or b""), title)
    return _Edit(SIGNERS, data, change, title)


def demand_person() -> None:
    """Raises Refused in an agent host's environment, whatever the settings allow an agent to approve."""
    if agent_host():
        raise Refused(
            f"this is the environment of {agent_host()}: a person says whose signature counts",
            hint="run it in a terminal of your own",
        )


def _change(
    base: Base, repo: Repo, config: Config, path: str, edit: Callable[[bytes], _Edit | None], here: bool
) -> Changed:
    demand_person()
    with exclusive(repo, "signers") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        reviewer = authority.reviewer(repo, config)
        authority.demand_branch(repo, config, here=here)
        authority.demand_calm(repo)
        wanted = edit(_bytes(base, repo, path))
        if wanted is None:
            return Changed(None, recovered=recovered)
        named = _named(base, repo, wanted)
        record = Approval(
            id=next_id(cards.approvals(base)),
            unit="",
            reviewer=reviewer,
            at=now(),
            parent=repo.head(),
            transitions=tuple(edit.change for edit in (wanted, *named)),
            base=named[0].change.new if named else seal.base_of(repo),
        )
        allowed = repo.blob("HEAD", SIGNERS) or b""
        if signing.signers(allowed):
            record = seal.signed(repo, config, record, allowed)
        changes = {edit.path: edit.data for edit in (wanted, *named)}
        changes[cards.approval_path(record.id)] = record.file_bytes()
        message = f"{wanted.title}\n\nKhms-Reviewer: {reviewer}\n"
        commit = tx.commit(changes, message, what=wanted.title.lower(), user_hooks=True)
    return Changed(commit, record.id, bool(record.signature), recovered)


def _named(base: Base, repo: Repo, wanted: _Edit) -> list[_Edit]:
    """With the first signer a base gets its id: what is signed for it counts in no other one."""
    if wanted.path != SIGNERS or not wanted.data or seal.base_of(repo):
        return []
    old = _bytes(base, repo, CONFIG)
    fresh = new_ulid()
    text = tomltext.set_value(old.decode("utf-8"), ID, fresh, CONFIG)
    title = "Give the base its id"
    return [_Edit(CONFIG, text.encode(), Transition(CONFIG, "base", None, fresh, title), title)]


def _bytes(base: Base, repo: Repo, path: str) -> bytes:
    """The file as it is committed; raises Refused where the work tree has it otherwise."""
    if repo.head() is not None and repo.dirty(path):
        raise Refused(
            "this file holds changes that are not committed",
            where=path,
            hint=f"look at them (git diff {path}), then commit them or put them back (git checkout -- {path})",
        )
    try:
        return files.read(base.path(path))
    except FileNotFoundError:
        return b""
