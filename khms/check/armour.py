"""Signatures of approval records, as OpenSSH armours them, told from what only looks like one."""

import base64
import binascii
import re
from collections.abc import Iterator

NAMESPACE = b"khms-approval"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_ARMOUR = re.compile(rf"{_BEGIN}((?:[A-Za-z0-9+/=\s]|\\[nr]){{1,20000}}+){_END}")  # never tried another way
_BREAK = re.compile(r"\\[nr]|\s")
_FIELDS = {  # of a public key behind its type: how many there are
    b"ssh-ed25519": 1,
    b"ssh-rsa": 2,
    b"sk-ssh-ed25519@openssh.com": 2,
    b"sk-ecdsa-sha2-nistp256@openssh.com": 3,
    **{b"ecdsa-sha2-nistp%d" % size: 2 for size in (256, 384, 521)},
}
_KEY, _SIGNATURE = 32, 64  # bytes of an ed25519 key and of what it makes
_TOUCH = 5  # bytes that a token adds: flags and a counter


def seals(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each well-formed signature of a record in `text`, its lines ended as in a file or as JSON writes
    it. Only what is one to the last byte counts: nothing else hides in it."""
    if _BEGIN not in text:
        return
    for match in _ARMOUR.finditer(text):
        try:
            data = base64.b64decode(_BREAK.sub("", match[1]), validate=True)
        except (binascii.Error, ValueError):
            continue
        if _well_formed(data):
            yield match.span()


def _well_formed(data: bytes) -> bool:
    """Whether this is an SSHSIG over a record: magic, version 1, key, namespace, nothing reserved, hash, signature."""
    if data[:10] != b"SSHSIG\0\0\0\1":
        return False
    fields = _strings(data[10:])
    if fields is None or len(fields) != 5:
        return False
    key, namespace, reserved, digest, signature = fields
    if namespace != NAMESPACE or reserved or digest not in (b"sha256", b"sha512"):
        return False
    return _is_made_by(signature, _strings(key))


def _is_made_by(signature: bytes, key: list[bytes] | None) -> bool:
    """Whether the signature has the form that such a public key's other half makes."""
    if not key or len(key) - 1 != _FIELDS.get(key[0]):
        return False
    kind = key[0]
    made = _strings(signature[:-_TOUCH] if kind.startswith(b"sk-") else signature)
    if made is None or len(made) != 2:
        return False
    if kind == b"ssh-rsa":
        return made[0] in (b"rsa-sha2-256", b"rsa-sha2-512") and len(made[1]) == len(key[2].lstrip(b"\0"))
    if kind.endswith((b"ssh-ed25519", b"ssh-ed25519@openssh.com")):
        return made[0] == kind and (len(key[1]), len(made[1])) == (_KEY, _SIGNATURE)
    return made[0] == kind and len(_strings(made[1]) or ()) == 2


def _strings(data: bytes) -> list[bytes] | None:
    """What an SSH blob is made of, each with its length before it; None where it is not made so to its end."""
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 or len(data) - 4 < size:
            return None
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found
