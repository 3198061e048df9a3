"""What can be checked word for word stands in the candidate's own quotes, or is named."""

import pytest

from khms.model.candidate import Candidate
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.pipeline import specifics

QUOTE = (
    "the pool (max=10) raised `PoolTimeout` after 30 s, see src/db/pool.py and --pool-size; v2.4.1 of db_client, "
    "errno ECONNRESET at https://example.org/a?b=1; tested twice with 600 frames: none lost"
)


def check(body: str, *texts: str) -> Outcome:
    return specifics.check(Candidate("C1", {"quotes": [{"source": "journal", "text": text} for text in texts]}, body))


@pytest.mark.parametrize(
    "body",
    [
        "It raised `PoolTimeout`.",
        "It waits 30 s.",
        "It waits 30s.",
        "See src/db/pool.py.",
        "Use --pool-size.",
        "It is v2.4.1 of db_client.",
        "The answer was ECONNRESET.",
        "See https://example.org/a?b=1.",
        "It counted 600 frames.",
        "plain words that hold nothing to be looked up",
        "FIX: it was so\nVERIFIED: tested twice with 600 frames: none lost",
        "VERIFIED: Tested twice with 600 frames: none lost.",
    ],
)
def test_what_a_quote_holds_passes(body: str) -> None:
    assert check(body, QUOTE) == Outcome("specifics", "C1", PASS)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("It raised `PoolError`.", "PoolError"),
        ("It waits 3 s.", "3 s"),
        ("It waits 30 ms.", "30 ms"),
        ("It waits 130 s.", "130 s"),
        ("It used 4 GiB.", "4 GiB"),
        ("See src/db/pools.py.", "src/db/pools.py"),
        ("See /var/log/app.log there.", "/var/log/app.log"),
        (r"See C:\temp\x.log there.", r"C:\temp\x.log"),
        ("Use --pool-max.", "--pool-max"),
        ("It is v2.4.2.", "v2.4.2"),
        ("It was poolSize.", "poolSize"),
        ("Call db.close() first.", "db.close()"),
        ("commit 9fceb02 broke it", "9fceb02"),
        ("ValueError: bad frame", "ValueError: bad frame"),
        ('It said "no route to host".', "no route to host"),
        ("It said “no route to host”.", "no route to host"),
        ("See https://example.org/other.", "https://example.org/other"),
        ("FIX: x\nVERIFIED: a week of production data", "a week of production data"),
        ("VERIFIED: tested twice with 600 frames: none lost. Also on the weekend.", "Also on the weekend."),
    ],
)
def test_what_no_quote_holds_fails_and_is_named(body: str, named: str) -> None:
    outcome = check(body, QUOTE)
    assert outcome.state == FAIL
    assert f"“{named}”" in outcome.message


def test_several_quotes_hold_it_together() -> None:
    assert check("It took 5 s and 7 s.", "it took 5 s once", "and 7 s the other time").state == PASS


def test_without_a_quote_it_was_not_run_and_with_nothing_to_check_it_passes() -> None:
    assert check("It took 5 s.").state == NOT_RUN
    assert check("It took long.").state == PASS


def test_what_belongs_to_the_card_and_not_to_its_claim_is_left_out() -> None:
    body = (
        "SUPERSEDES K-00008 BECAUSE: it was wrong\nRULE: poll as configured\n\n**QUOTES:**\n- src=journal :: took 9 s\n"
    )
    assert check(body, "poll as it is configured there").state == PASS


@pytest.mark.parametrize("piece", ["a.", "a/", "a-", "a_", "1.", "::a", "aB", '"a', "`a", "VERIFIED: ", "Error: "])
def test_a_long_hostile_body_comes_to_an_end(piece: str) -> None:
    """60 kB of a repeated piece take milliseconds; a pattern that is quadratic in them takes minutes."""
    assert check(piece * (60_000 // len(piece)), "a quote of some length").check == "specifics"
