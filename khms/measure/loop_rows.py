"""What the loop and the review take: jotting, checking, approving, proving."""

from pathlib import Path

from khms.measure import chronicle, synthetic
from khms.measure.row import Figure, Measure, alone
from khms.measure.stand import KHMS, Stand, prepare
from khms.store import cleared
from khms.store.layout import Base

NIGHT_CARDS = 2000


def _mark(stand: Stand) -> float:
    return stand.ratio(lambda n: stand.time([*KHMS, "mark", "note", f"line {n}"]))


def _lint(stand: Stand) -> float:
    return stand.median(lambda n: stand.time([*KHMS, "lint", "--json"]))


def _lint_first(stand: Stand) -> float:
    """As in a fresh clone, where nothing is known of the files."""

    def once(_: int) -> float:
        cleared.place(Base(stand.base)).unlink(missing_ok=True)
        return stand.time([*KHMS, "lint", "--json"])

    return stand.median(once)


def _lint_staged(stand: Stand) -> float:
    for path in sorted((stand.base / "memory" / "know").glob("*.md"))[:10]:
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    stand.time(["git", "add", "--all"])
    took = stand.median(lambda n: stand.time([*KHMS, "lint", "--staged", "--json"], ok=(0, 1)))
    stand.time(["git", "reset", "--quiet", "--hard"])
    return took


def _approve(stand: Stand) -> float:
    return stand.median(lambda n: stand.time([*KHMS, "approve", f"2026-03-05-bench-{n}", "--all"]))


def _audited(stand: Stand, signed: bool) -> Stand:
    """A stand of its own, with a base whose every commit approved something; made once."""
    own = Stand(stand.folder / ("signed" if signed else "unsigned"), stand.runs)
    if own.base.exists():
        return own
    own.base.mkdir(parents=True)
    home = own.folder / "home"
    home.mkdir()
    cards = max(len(list((stand.base / "memory" / "know").glob("*.md"))), 50)
    held = list(chronicle.approvals(cards, max(cards // 5, 1)))
    signers = settings = ""
    if signed:
        key = own.folder / "key"
        own.time(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
        signers = "bench@example.org " + Path(f"{key}.pub").read_text(encoding="utf-8")
        settings = "[review]\nrequire_signed = true\n"
        held = chronicle.sealed(held, key)
    own.time(["git", "init", "--quiet", "--initial-branch=main"])
    story = own.folder / "story"
    story.write_bytes(b"".join(chronicle.stream(held, signers, settings)))
    own.time(["sh", "-c", 'git fast-import --quiet --done < "$0"', str(story)])
    own.time(["git", "reset", "--quiet", "--hard"])
    return own


def _audit(stand: Stand) -> float:
    own = _audited(stand, signed=False)
    return own.median(lambda n: own.time([*KHMS, "audit", "--json"]))


def _audit_signed(stand: Stand) -> float:
    """The signatures were verified by the run that warms up."""
    own = _audited(stand, signed=True)
    return own.median(lambda n: own.time([*KHMS, "audit", "--json"]))


def _audit_range(stand: Stand) -> float:
    own = _audited(stand, signed=False)
    return own.median(lambda n: own.time([*KHMS, "audit", "--range", "HEAD~1..HEAD", "--json"]))


def _nights(stand: Stand) -> tuple[float, float]:
    """The median of a run by rules over 200 MARKs, each with a claim of its own; then what one MARK of 10,000 takes
    against one of 200. The base is put back as it was before each run."""
    own = Stand(stand.folder / "night", stand.runs, cards=NIGHT_CARDS)
    prepare(own)
    start = own.run(["git", "rev-parse", "HEAD"])[1].strip()

    def night(marks: int) -> float:
        own.time(["git", "reset", "--quiet", "--hard", start])
        lines = "".join(f"MARK[fact] {claim}\n\n" for claim in synthetic.claims(marks))
        (own.base / "journal" / "2026-03-06.md").write_text(f"# 2026-03-06\n\n{lines}", encoding="utf-8")
        return own.time([*KHMS, "nightly", "--json"])

    few = own.median(lambda n: night(200))
    return few, night(10_000) / 10_000 / (few / 200)


MEASURES: tuple[Measure, ...] = (
    alone(Figure("mark", "khms mark", "P", 6.0), _mark),
    Measure(
        (
            Figure("nightly", "nightly by rules, 200 MARKs beside 2,000 cards", "s", 20.0),
            Figure("nightly-growth", "one MARK of 10,000 against one of 200", "×", 1.1),
        ),
        _nights,
    ),
    alone(Figure("lint", "lint of all cards", "s", 3.0), _lint),
    alone(Figure("lint-first", "lint of all cards, the first", "s", 3.0), _lint_first),
    alone(Figure("lint-staged", "lint --staged of ten", "s", 0.5), _lint_staged),
    alone(Figure("approve", "approve of a 12-card unit", "s", 1.2), _approve),
    alone(Figure("audit", "audit of all, 5 cards a commit", "s", 3.0), _audit),
    alone(Figure("audit-signed", "audit of all, signed, seen before", "s", 3.0), _audit_signed),
    alone(Figure("audit-range", "audit --range of one commit", "s", 0.5), _audit_range),
)
