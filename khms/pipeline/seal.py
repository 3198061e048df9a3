"""The seal of an approval record: the reviewer's SSH signature, where the base asks for one or can check one."""

from dataclasses import replace

from khms.check.audited import base_id
from khms.config import Config
from khms.errors import Refused, Unavailable
from khms.model.approval import Approval
from khms.store import signing
from khms.store.layout import CONFIG, SIGNERS, Base
from khms.store.repo import Repo
from khms.store.signing import CI, Claim, Key, Verifier

MAKE = (
    "make one: ssh-keygen -t ed25519 -f ~/.ssh/khms\n"
    "name it: git config --global user.signingkey ~/.ssh/khms\n"
    "have it allowed: khms signers add {email} ~/.ssh/khms.pub"
)


def sealed(base: Base, repo: Repo, config: Config, record: Approval, *, ask: bool = True) -> Approval:
    """`record` for this base, with a signature where one is due: always where `review.require_signed` is on, else
    where the base's signers name the reviewer (or `ci`) and their key is at hand. The signers are those of HEAD: what
    this record changes about them counts from the next one on.

    With `ask` a person may be asked to unlock the key. Raises Unavailable where a signature is required and there is no
    key, and where the key did not sign; Refused where the key is none of the signers'."""
    record = record if record.base else replace(record, base=base_of(repo))
    required = bool(config["review.require_signed"])
    if not required and not base.path(SIGNERS).is_file():
        return record
    allowed = repo.blob("HEAD", SIGNERS) or b""
    return signed(repo, config, record, allowed, ask=ask) if required else _offered(repo, config, record, allowed, ask)


def base_of(repo: Repo) -> str:
    """The base's id as it is committed; empty where it has none."""
    return base_id(repo.blob("HEAD", CONFIG))


def signed(repo: Repo, config: Config, record: Approval, allowed: bytes, *, ask: bool = True) -> Approval:
    """`record` with a signature that holds under the signers `allowed`; raises as `sealed` does."""
    email = signing.email_of(record.reviewer)
    if not email:
        raise Refused(
            f"a signature is required here, and {record.reviewer} has none to give",
            hint="a person approves, at a terminal of their own",
        )
    key = signing_key(repo, config)
    if key is None:
        raise Unavailable(
            "a signature is required here, and there is no SSH key to sign with",
            where=str(repo.root),
            hint=MAKE.format(email=email),
        )
    if not _named(allowed, email):
        raise Refused(
            f"a signature is required here, and {SIGNERS} does not name {email}",
            where=str(repo.root),
            hint=f"ask a signer to add you: khms signers add {email} {_public(key)}",
        )
    done = _with_signature(record, key, ask)
    if not holds(done, allowed):
        raise Refused(
            f"the key that signed is not the one that {SIGNERS} has for {email}",
            where=key.shown,
            hint="name the right one: git config user.signingkey FILE  (khms signers list shows which is known)",
        )
    return done


def _offered(repo: Repo, config: Config, record: Approval, allowed: bytes, ask: bool) -> Approval:
    """The record signed where that can be checked, else as it is."""
    key = signing_key(repo, config) if _named(allowed, signing.email_of(record.reviewer)) else None
    if key is None:
        return record
    done = _with_signature(record, key, ask)
    return done if holds(done, allowed) else record


def holds(record: Approval, allowed: bytes) -> bool:
    """Whether the record's signature is the reviewer's, or that of a job that signs as `ci`."""
    return Verifier().verify([claim(record)], allowed)[0]


def claim(record: Approval) -> Claim:
    """What the record's signature says, to be verified."""
    names = tuple(name for name in (signing.email_of(record.reviewer), CI) if name)
    return Claim(record.signed_bytes(), record.signature or "", names, record.at)


def signing_key(repo: Repo, config: Config) -> Key | None:
    """The reviewer's key: that of the settings, else git's own where it is an SSH key."""
    said = str(config["review.signing_key"]) or repo.text("config", "--get", "user.signingkey", ok=(0, 1))
    return signing.key_from(said)


def _named(allowed: bytes, email: str) -> bool:
    return any(line.names(name) for line in signing.signers(allowed) for name in (email, CI) if name)


def _public(key: Key) -> str:
    return (key.path if key.path.endswith(".pub") else key.path + ".pub") if key.path else "KEY.pub"


def _with_signature(record: Approval, key: Key, ask: bool) -> Approval:
    return replace(record, signature=signing.sign(record.signed_bytes(), key, ask=ask))
