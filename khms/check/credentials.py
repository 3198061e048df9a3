"""Secrets in a text: the known shapes first, then detect-secrets and entropy, only where something looks like one."""

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from khms.check.armour import seals
from khms.model.redact import key_shapes, known_prefix

ENTROPY_BITS = 4.2  # bits a character; 40 random letters and digits have 4.8 ± 0.1, long names made of words under 4.2
ENTROPY_CHARS = 28  # shorter random strings are ids more often than keys
_MOST = 20  # secrets of the slow looks shown of one text; a text with more is withheld anyway

# The plugins of detect-secrets that know a form which `redact` does not. Left out are those that fire on any quoted or
# encoded string: of 200 notes without a secret its Base64HighEntropyString stops 51, of 1,873 technical ones 630.
# All of these need the name of their vendor on the line, or a Discord token's two dots: without, the library, whose
# import takes 0.2 s, is not even loaded.
_PLUGINS = (
    ("aws", "AWSKeyDetector"),
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("cloudant", "CloudantDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("ibm_cloud_iam", "IbmCloudIamDetector"),
    ("ibm_cos_hmac", "IbmCosHmacDetector"),
    ("softlayer", "SoftlayerDetector"),
)
_VENDORS = ("aws", "accountkey", "cloudant", "ibm", "cos_", "cos-", "hmac", "softlayer")
_DISCORD = re.compile(r"[MNO][\w-]{23,25}\.[\w-]{6}\.")
_TOKEN = re.compile(r"(?<![A-Za-z0-9+/=_.%#@-])[A-Za-z0-9+/_=-]{20,400}(?![A-Za-z0-9+/_-])")
_DIGEST = re.compile(r"(?i)[0-9a-f]{7,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9A-HJKMNP-TV-Z]{26}")
_SUM = re.compile(r"(?i)(?:sha|md)\d{1,3}-")
# What stands behind `session:` where a quote names a session of opencode, whose ids are of mixed letters.
_SESSION = re.compile(r"[a-z-]+/ses_[0-9A-Za-z]{26}(?:/[\d-]*)?")
# What stands before a string that is public by nature: digests, public keys, fingerprints, encoded data, proofs.
_PUBLIC = re.compile(
    r"(?i)(?:\bsha-?(?:1|224|256|384|512)|\bmd5|\bblake2?[bs]?|digest|integrity|checksum|fingerprint|hash|etag|nonce|base64,|"
    r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-[a-z0-9-]{1,20})(?:@openssh\.com)?|"
    r"public[ _-]key|certificate|commit|revision|uuid|\bh1|"
    r"\$2[abxy]\$\d\d\$|verification=)[\s:=\"'`(-]{0,4}$"
)

Secret = tuple[int, int, str, bool]
_detectors: list[tuple[str, Any]] = []


def secrets(text: str, longest: int, config: Mapping[str, Any] | None = None) -> list[Secret]:
    """(start, end, id, known prefix) of each secret, in order.

    `longest` is the length of the longest word of letters and digits; under 16 only the known shapes are looked for.
    """
    found = [(start, end, name, known_prefix(name)) for start, end, name in key_shapes(text)]
    if longest < 16:
        return found
    taken = [(start, end) for start, end, _, _ in found]
    read = _unsealed(text)
    slow = [(start, end, name, False) for start, end, name in (*_vendors(read), *_random(read, config))]
    for row in slow[: 2 * _MOST]:
        if not any(start < row[1] and row[0] < end for start, end in taken):
            found.append(row)
            taken.append((row[0], row[1]))
    return sorted(found)


def _unsealed(text: str) -> str:
    """`text` with a blank for each character of a signature of ours: what proves a record is public by nature."""
    for start, end in seals(text):
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text


def _vendors(text: str) -> Iterator[tuple[int, int, str]]:
    """What the plugins of detect-secrets find, on the lines that name a vendor."""
    if not _vendor(text):
        return
    at = shown = 0
    for line in text.split("\n"):
        if shown < _MOST and 20 < len(line) < 4000 and _vendor(line):
            for name, value in _detected(line):
                column = line.find(value)
                if column >= 0 and len(value) >= 20:
                    yield at + column, at + column + len(value), name
                    shown += 1
        at += len(line) + 1


def _vendor(text: str) -> bool:
    lower = text.lower()
    return any(name in lower for name in _VENDORS) or _DISCORD.search(text) is not None


def _detected(line: str) -> Iterator[tuple[str, str]]:
    if not _detectors:
        import importlib

        for module, plugin in _PLUGINS:
            made = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), plugin)()
            _detectors.append((module.replace("_", "-"), made))
    for name, detector in _detectors:
        for value in detector.analyze_string(line):
            yield name, value if isinstance(value, str) else "".join(value)


def _random(text: str, config: Mapping[str, Any] | None) -> Iterator[tuple[int, int, str]]:
    """Long strings that no person wrote and that nothing before them shows to be public."""
    settings = {} if config is None else config
    bits = settings.get("screening.entropy_bits", ENTROPY_BITS)
    chars = settings.get("screening.entropy_chars", ENTROPY_CHARS)
    at = shown = 0
    for word in text.split():
        if len(word) < chars:
            continue
        at = text.find(word, at)
        for match in _TOKEN.finditer(word):
            start, end = at + match.start(), at + match.end()
            token = match.group().strip("=_-")
            if len(token) >= chars and _entropic(token, bits) and not _known(text, token, start, end):
                yield start, end, "high-entropy"
                shown += 1
                if shown == _MOST:
                    return
        at += len(word)


def _known(text: str, token: str, start: int, end: int) -> bool:
    """True for digests, ids, parts of addresses and file names, encoded sentences and what is called public."""
    before = text[max(0, start - 2000) : start].rpartition("\n")[2]
    beside = before.split()[-1] if before and not before[-1].isspace() else ""
    named = re.match(r"\.\w{2,5}\b", text[end : end + 7]) is not None
    if beside.endswith("session:") and _SESSION.fullmatch(token):
        return True
    if _DIGEST.fullmatch(token) or _SUM.match(token) or "://" in beside or "](" in beside or named:
        return True
    try:
        said = base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode("ascii").replace("\n", " ")
    except (binascii.Error, UnicodeDecodeError):
        said = ""
    return (said != "" and said.isprintable()) or _PUBLIC.search(before[-60:]) is not None


def _entropic(token: str, bits: float) -> bool:
    """True where all three kinds of characters change places all the time and nearly each is another."""
    if not any(c.isdigit() for c in token) or token == token.lower() or token == token.upper():
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "s" for c in token]
    turns = sum(a != b for a, b in pairwise(kinds)) / (len(token) - 1)
    if turns < 0.4 or token.count("/") > len(token) / 12 or token.count("-") + token.count("_") > len(token) / 8:
        return False  # names run together, paths, slugs
    entropy = -sum(n / len(token) * math.log2(n / len(token)) for n in Counter(token).values())
    return entropy >= min(bits, 0.88 * math.log2(len(token)))
