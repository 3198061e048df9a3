"""What can be checked word for word stands in the candidate's own quotes, or is named."""

import pytest

from khms.model.candidate import Candidate
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.pipeline import specifics
from khms.pipeline.rules import cut

QUOTE = (
    "the pool (max=10) raised `PoolTimeout` after 30 s, see src/db/pool.py and --pool-size; v2.4.1 of db_client, "
    "errno ECONNRESET at https://example.org/a?b=1; tested twice with 600 frames: none lost"
)


def check(body: str, *texts: str, title: str = "") -> Outcome:
    held = [{"source": "journal", "text": text} for text in texts]
    return specifics.check(Candidate("C1", {"title": title, "date": "2026-03-04", "quotes": held}, body))


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
    body = "SUPERSEDES K-00008 BECAUSE: it was wrong\nRULE: wait 9 s\n\n**QUOTES:**\n- src=journal :: it took 9 s\n"
    assert check(body).state == PASS
    assert check(body, "poll as it is configured there").state == FAIL
    assert check("RULE: poll\n\n**QUOTES:**\nand it ran 9 s\n", "poll as it is configured there").state == FAIL


@pytest.mark.parametrize(
    "text",
    [
        "99 C", "141 C", "41 F", "41 K", "41", "41 rpm", "99", "5 C", "-41 C", "1.41 C", "41.5 C", "41 widgets and 7",
        "python3.12", "2026-03-05", "at 10:46", "9 9", "9\u200b9 C", "４１ C", "½ of it", "K-00042 took 3 tries",
        "error: connection refused by peer", "git: fatal: not a repository", "SYMPTOM: error: no such host. More.",
        "error: " + "at a frame " * 40, "BadThingException", "OSError: [Errno 5] no such device", "3. it was so",
    ],
)  # fmt: skip
def test_invented_figures_and_errors_fail_in_body_and_title(text: str) -> None:
    quote = "at 10:45 it read 41 C with python3.11, and error: connection refused stood in the log"
    if text not in ("41", "41 widgets and 7"):
        assert check(text, quote).state == FAIL
        assert check("plain words", quote, title=f"Why {text}").state == FAIL
    assert check("41 widgets and 7", quote).state == FAIL


@pytest.mark.parametrize(
    "text",
    [
        "41 C", "41C", "at 10:45", "Python3.11", "error: connection refused", "SYMPTOM: error: connection refused",
        "on 2026-03-04", "as K-00042, C3 and M-0123456789ab say", "1. this\n2. that", "- 1) this\n- 2) that", "−5 V",
        "-5V", "2 retries, 1 retry", "1,000 rows", "温度は41度です", "30-second waits", "30 seconds", "2-5 ms",
        "the last 60",
    ],
)  # fmt: skip
def test_figures_that_a_quote_holds_pass(text: str) -> None:
    quote = (
        "at 10:45 it read 41 C with python3.11, error: connection refused; -5 V, 2 retries, 1 retry, 1,000 rows; "
        "昨日の温度は41度でした; 30 seconds, 2-5 ms, 60 s"
    )
    assert check(text, quote).state == PASS, check(text, quote).message
    assert check("words", quote, title=text).state == PASS


def test_words_that_a_label_parts_in_the_quote_are_joined_in_the_body() -> None:
    quote = "copying ended with OSError: no space left FIX: empty /var/tmp/khms first"
    assert check("FIX: copying ended with OSError: no space left empty /var/tmp/khms first", quote).state == PASS


def test_a_title_cut_from_the_quote_passes() -> None:
    long = "see https://example.org/" + "a/" * 60 + "9.log"
    words = "it waited 30 s, and ValueError: bad frame 7 came " + "again " * 20 + "until `the pump ran` at 41 C"
    for text in (long, words, "x" * 100 + "9", words[10:]):
        for limit in (30, 40, 52, 80):
            assert check(text, text, title=cut(text, max(limit, 61) if " " not in text else limit)).state == PASS


@pytest.mark.parametrize("piece", ["a.", "a/", "a-", "a_", "1.", "::a", "aB", '"a', "`a", "VERIFIED: ", "Error: "])
def test_a_long_hostile_body_comes_to_an_end(piece: str) -> None:
    """60 kB of a repeated piece take milliseconds; a pattern that is quadratic in them takes minutes."""
    assert check(piece * (60_000 // len(piece)), "a quote of some length").check == "specifics"
