"""Which sentences cannot both hold."""

import pytest

from khms.model.card import Card
from khms.pipeline.weekly.statements import clashes


def kinds(one: str, other: str, *, scopes: tuple[str, str] = ("universal", "universal")) -> list[str]:
    cards = [
        Card(f"K-0000{n}", "fact", title=text, scope=s)
        for n, (text, s) in enumerate(zip((one, other), scopes, strict=True))
    ]
    return [clash.kind for clash in clashes(cards)]


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("The upload limit of the gateway is 3 MB", "The gateway's upload limit is now 5 MB", "number"),
        ("The meter is read every 15 s.", "The meter is read every 20 s", "number"),
        ("The exporter listens on port 9100", "The exporter listens on port 9200", "number"),
        ("The certificate of the mail host is valid until: 2026-03-01",
         "The certificate of the mail host is valid until: 2026-09-01", "number"),
        ("The default branch of the site repository is master", "The default branch of the site repository is `trunk`",
         "name"),
        ("The report database runs on db-1.lan", "The report database runs on db-2.lan", "name"),
        ("The night exporter retries failed uploads", "The night exporter does not retry failed uploads", "yes or no"),
        ("Rotating the key needs a restart of the broker", "Rotating the key never needs a restart of the broker",
         "yes or no"),
    ],
)  # fmt: skip
def test_what_cannot_both_hold(one: str, other: str, kind: str) -> None:
    assert kinds(one, other) == [kind]
    assert kinds(other, one) == [kind]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The upload limit of the gateway is 3 MB", "The upload limit of the mirror is 5 MB"),
        ("The upload limit of the gateway is 3 MB", "The upload limit of the gateway is 3 seconds"),
        ("Relay 7 clicks twice at dusk", "Relay 8 clicks twice at dusk"),
        ("The build of the icons works on arm64", "The build of the icons works on amd64"),
        ("The cache blocks the queue for 5 s", "The queue blocks the cache for 7 s"),
        ("The upload worker is slow", "The upload worker is idempotent"),
        ("The upload worker is slow", "The upload worker is in the cellar"),
        ("It is 5", "It is 7"),
        ("The night exporter retries failed uploads", "The night exporter does not retry failed downloads"),
    ],
)
def test_what_only_looks_like_it(one: str, other: str) -> None:
    assert kinds(one, other) == []


def test_another_scope_is_another_subject() -> None:
    pair = "The poll interval of the meter is 15 s", "The poll interval of the meter is 20 s"
    assert kinds(*pair, scopes=("project:shed", "project:barn")) == []
    assert kinds(*pair, scopes=("project:shed", "Project:Shed")) == ["number"]


def test_a_card_that_gives_two_values_itself_tells_of_a_change() -> None:
    both = Card("K-00001", "fact", title="Change of the limit",
                body="The limit of the gate is 3 MB.\nThe limit of the gate is 5 MB.\n")  # fmt: skip
    assert clashes([both, Card("K-00002", "fact", title="The limit of the gate is 3 MB")]) == []


def test_code_labels_and_what_a_card_replaces_are_no_statements() -> None:
    body = "SUPERSEDES K-00009 BECAUSE: The limit of the gate is 9 MB\n```\nThe limit of the gate is 8 MB\n```\n"
    one = Card("K-00001", "fact", title="A", body=body + "FIX: The limit of the gate is 5 MB\n")
    (clash,) = clashes([one, Card("K-00002", "fact", title="The limit of the gate is 3 MB")])
    assert (clash.one.text, clash.one.shown, clash.other.shown) == ("The limit of the gate is 5 MB", "5 MB", "3 MB")
