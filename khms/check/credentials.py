"""Secrets in a text: the known shapes first, then detect-secrets and entropy, only where something looks like one."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from khms.model.redact import key_shapes, known_prefix

ENTROPY_BITS = 4.2  # bits a character: 40 random base64 characters reach 4.6 ± 0.15, words run together stay under 4
ENTROPY_CHARS = 28  # shorter random strings are ids more often than keys

# Plugins of detect-secrets whose hits are keys by their form; those that fire on plain words, host names or any quoted
# string (KeywordDetector, IPPublicDetector, the high entropy ones) are left out: 34 of 200 real notes had hits there.
_PLUGINS = (
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("cloudant", "CloudantDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("ibm_cloud_iam", "IbmCloudIamDetector"),
    ("ibm_cos_hmac", "IbmCosHmacDetector"),
    ("mailchimp", "MailchimpDetector"),
    ("sendgrid", "SendGridDetector"),
    ("slack", "SlackDetector"),
    ("softlayer", "SoftlayerDetector"),
    ("square_oauth", "SquareOAuthDetector"),
    ("twilio", "TwilioKeyDetector"),
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9+/=_.%#@-])[A-Za-z0-9+/_=-]{20,400}(?![A-Za-z0-9+/_-])")
_DIGEST = re.compile(r"(?i)[0-9a-f]{7,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9A-HJKMNP-TV-Z]{26}")
# What stands before a long string that is public by nature: digests, public keys, fingerprints, data, addresses.
_PUBLIC = re.compile(
    r"(?i)(?:sha(?:1|224|256|384|512)?|md5|blake2b?|digest|integrity|checksum|fingerprint|hash|etag|nonce|base64,|"
    r"ssh-(?:rsa|ed25519|dss)|ecdsa-\S{1,30}|public[ _-]key|certificate|-----begin [a-z ]{0,30}|commit|revision|uuid|"
    r"h1|://\S{0,200}|\]\(\S{0,200}|href=\S{0,200}|src=\S{0,200})[\s:=\"'`(,-]{0,4}$"
)

Secret = tuple[int, int, str, bool]
_detectors: list[tuple[str, Any]] = []


def secrets(text: str, longest: int, config: Mapping[str, Any] | None = None) -> list[Secret]:
    """(start, end, id, known prefix) of each secret, in order. `longest`: the length of the longest word of letters
    and digits; where it is short, only the known shapes are looked for."""
    found = [(start, end, name, known_prefix(name)) for start, end, name in key_shapes(text)]
    if longest >= 16:
        bits = ENTROPY_BITS if config is None else config.get("screening.entropy_bits", ENTROPY_BITS)
        chars = ENTROPY_CHARS if config is None else config.get("screening.entropy_chars", ENTROPY_CHARS)
        for match in _TOKEN.finditer(text):
            if any(start < match.end() and match.start() < end for start, end, _, _ in found):
                continue
            name = _looked_at(text, match, bits, chars)
            if name:
                found.append((match.start(), match.end(), name, False))
    return sorted(found)


def _looked_at(text: str, match: "re.Match[str]", bits: float, chars: int) -> str:
    """The id of what a long string is, nothing for a harmless one."""
    token = match.group().strip("=_-")
    if not any(c.isdigit() for c in token) or not any(c.isalpha() for c in token):
        return ""
    line = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end()) % (len(text) + 1)]
    if _suspicious(line):
        for name in _detected(line, token):
            return name
    before = text[max(0, match.start() - 240) : match.start()].rpartition("\n")[2]
    if _DIGEST.fullmatch(token) or _PUBLIC.search(before) or not _random(token, bits, chars):
        return ""
    return "high-entropy"


_WORTH = re.compile(
    r"(?i)account|azure|cloudant|discord|bot|ibm|cos|api|key|token|secret|softlayer|twilio|[MNO][\w-]{23}\."
)


def _suspicious(line: str) -> bool:
    """True where one of the plugins can fire: they all need a vendor's or a secret's name beside the string."""
    return len(line) < 4000 and _WORTH.search(line) is not None


def _detected(line: str, token: str) -> Iterator[str]:
    """Ids of the detect-secrets plugins that find `token`, or a string with it, in `line`."""
    if not _detectors:
        import importlib

        for module, plugin in _PLUGINS:
            made = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), plugin)()
            _detectors.append((module.replace("_", "-"), made))
    for name, detector in _detectors:
        for value in detector.analyze_string(line):
            if isinstance(value, str) and (value in token or token in value):
                yield name


def _random(token: str, bits: float, chars: int) -> bool:
    """True for strings that no person wrote: all three kinds of characters, in no order, near the top of entropy."""
    if len(token) < chars or not any(c.isupper() for c in token) or not any(c.islower() for c in token):
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "s" for c in token]
    turns = sum(a != b for a, b in zip(kinds, kinds[1:], strict=False)) / (len(token) - 1)
    if turns < 0.4 or token.count("/") > len(token) / 12 or token.count("-") + token.count("_") > len(token) / 8:
        return False  # names run together, paths, slugs
    counts = Counter(token)
    entropy = -sum(n / len(token) * math.log2(n / len(token)) for n in counts.values())
    return entropy >= min(bits, 0.88 * math.log2(len(token)))
