"""SHA-256 without `hashlib`, which loads OpenSSL: 0.3 starts of a bare interpreter on the way of a hook and of
`khms mark`. The interpreter's own implementation gives the same digests."""

try:
    from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from hashlib import sha256


def sha256_hex(data: bytes) -> str:
    return str(sha256(data).hexdigest())


def session_key(session: str) -> str:
    """The name of an agent host's session in file names and logs, which never show its id."""
    return sha256_hex(session.encode("utf-8", "surrogatepass"))[:32]


NOBODY = session_key("")  # of an event whose host named no session
