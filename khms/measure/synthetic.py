"""Made-up bases of any size for measuring: the same seed gives the same bytes."""

import random
from collections.abc import Iterator
from pathlib import Path

from khms.model.card import TYPES
from khms.store import markdown

NOUNS = [
    "gateway",
    "ledger",
    "parser",
    "scheduler",
    "queue",
    "replica",
    "shard",
    "token",
    "cursor",
    "session",
    "cache",
    "buffer",
    "socket",
    "worker",
    "tenant",
    "invoice",
    "webhook",
    "migration",
    "snapshot",
    "manifest",
    "thermostat",
    "valve",
    "compressor",
    "antenna",
    "relay",
    "bootloader",
    "firmware",
    "partition",
    "inode",
    "mutex",
    "semaphore",
    "deadline",
    "retry",
    "backoff",
    "throttle",
    "quota",
    "certificate",
    "cipher",
    "nonce",
    "keyring",
    "registry",
    "resolver",
    "proxy",
]
VERBS = [
    "drops",
    "stalls",
    "repeats",
    "rejects",
    "reorders",
    "truncates",
    "duplicates",
    "leaks",
    "blocks",
    "starves",
    "expires",
    "corrupts",
    "ignores",
    "retries",
    "rounds",
    "overflows",
    "underruns",
    "flaps",
    "drifts",
    "desynchronises",
]
PLACES = [
    "at midnight",
    "under load",
    "after a restart",
    "when cold",
    "over IPv6",
    "on arm64",
    "behind the proxy",
    "in staging",
]


def card_text(number: int, rng: random.Random) -> str:
    """One card of about a kilobyte."""
    name = rng.choice(list(TYPES)[:5])
    noun, other, verb, place = rng.choice(NOUNS), rng.choice(NOUNS), rng.choice(VERBS), rng.choice(PLACES)
    code = f"{noun[:3].upper()}-{rng.randrange(1000, 9999)}"
    sentences = [
        f"The {rng.choice(NOUNS)} {rng.choice(VERBS)} the {rng.choice(NOUNS)} {rng.choice(PLACES)}." for _ in range(12)
    ]
    labels = TYPES[name].labels or ("NOTE",)
    body = "\n".join(f"{label}: {' '.join(sentences[i :: len(labels)])}" for i, label in enumerate(labels))
    day = f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
    meta = {
        "id": f"K-{number:05d}",
        "type": name,
        "level": "observation",
        "status": "active",
        "title": f"The {noun} {verb} the {other} {place}, error {code}",
        "tags": sorted({noun, rng.choice(NOUNS)}),
        "scope": "universal",
        "evidence": rng.choice(("measured", "observed", "reported")),
        "source": f"https://example.org/log/{number}",
        "date": day,
        "links": {"derived_from": [], "supports": [], "contradicts": [], "supersedes": None, "refuted_by": []},
    }
    return markdown.render(meta, f"{body}\n\nSeen as `{noun}_{other}_{number}` with {code}.\n")


def fill(root: Path, cards: int, seed: int = 1) -> None:
    """Writes `cards` cards into the base at `root`, without git."""
    rng = random.Random(seed)
    know = root / "memory" / "know"
    know.mkdir(parents=True, exist_ok=True)
    for number in range(1, cards + 1):
        (know / f"K-{number:05d}.md").write_text(card_text(number, rng), encoding="utf-8")


def fill_unit(root: Path, name: str, candidates: int, line: str) -> None:
    """An inbox unit whose candidates quote `line`, which must stand in the journal."""
    folder = root / "memory" / "inbox" / name
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(name)
    for i in range(1, candidates + 1):
        words = " ".join(rng.sample(NOUNS, 6))  # no numbers: those would have to stand in the quote
        meta = {
            "id": f"C{i}",
            "type": "fact",
            "level": "observation",
            "status": "active",
            "title": f"The {words}",
            "tags": ["bench"],
            "scope": "universal",
            "evidence": "reported",
            "source": "journal/2026-03-04.md line 3",
            "date": "2026-03-04",
            "links": {"derived_from": [], "supports": [], "contradicts": [], "supersedes": None, "refuted_by": []},
            "mark": f"M-{rng.getrandbits(48):012x}",
            "confidence": "0.5",
            "nearest": [],
            "relation": {"kind": "new"},
            "quotes": [{"source": "journal", "sha256": "", "text": line, "grade": "EXACT", "context": line}],
            "flags": [],
        }
        (folder / f"C{i}.md").write_text(markdown.render(meta, f"It was the {words}.\n"), encoding="utf-8")


def claims(count: int) -> Iterator[str]:
    """What somebody would jot down, each another claim."""
    rng = random.Random("claims")
    for number in range(count):
        noun, other = rng.sample(NOUNS, 2)
        yield (
            f"the {noun} {rng.choice(VERBS)} the {other} {rng.choice(PLACES)}, since {noun[:3].upper()}-{number + 1000}"
            f" came in with the {rng.choice(NOUNS)}"
        )


def question(number: int) -> str:
    """What somebody would ask of such a base; every number another question."""
    rng = random.Random(f"question {number}")
    noun, other = rng.sample(NOUNS, 2)
    return f"why does the {noun} lose the {other} {rng.choice(PLACES)} in the {rng.choice(NOUNS)}"
