"""Which texts were found clean, kept from run to run as a row of digests.

`.khms/state/cleared` is this machine's alone and can be deleted at any time. Nothing in it needs belief: a digest is
made with a secret that lies in the user's own folder, outside every base, so a file that is damaged, or that came with
somebody else's repository, holds no digest of any text and clears nothing.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from khms.config import user_data
from khms.errors import KhmsError
from khms.store import files, local
from khms.store.layout import Base

SIZE = 32  # bytes of a digest, of a key and of the secret


def place(base: Base) -> Path:
    return base.state / "cleared"


def key(judge: bytes) -> bytes | None:
    """What digests are made with: this user's secret and `judge`, which stands for all that decides what is clean. None
    where there is no place for a secret; then nothing is kept."""
    try:
        secret = _secret(user_data() / "cleared.key")
    except (OSError, KhmsError):
        return None
    return hashlib.blake2b(judge, key=secret, digest_size=SIZE).digest()


def _secret(file: Path) -> bytes:
    """The user's secret. Of two processes that make one at once the second wins, and what the first kept is lost."""
    try:
        secret = files.read(file)
    except FileNotFoundError:
        secret = b""
    if len(secret) != SIZE:
        secret = os.urandom(SIZE)
        files.write_atomic(file, secret, mode=0o600)
    return secret


def digest(key: bytes, data: bytes, manner: bytes) -> bytes:
    """`data` as looked at in one of several manners, of which each is named in at most 16 bytes."""
    return hashlib.blake2b(data, key=key, person=manner, digest_size=SIZE).digest()


def load(base: Base) -> frozenset[bytes]:
    try:
        data = files.read(place(base))
    except OSError:
        return frozenset()
    return frozenset(data[at : at + SIZE] for at in range(0, len(data), SIZE))


def keep(base: Base, digests: Iterable[bytes]) -> None:
    """Keeps these and no others; where that fails, the next run looks again. Nothing is written through a link that
    leads out of the base: this runs over bases of strangers too."""
    try:
        files.inside(base.root, place(base))
        local.make(base)
        files.write_atomic(place(base), b"".join(sorted(digests)))
    except KhmsError:
        pass
