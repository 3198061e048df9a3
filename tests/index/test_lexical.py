"""A question is only text: it finds what holds it, and never the whole base."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from khms.errors import Refused
from khms.index.fields import day, pack, unpack
from khms.index.lexical import BY_ID, BY_NAME, BY_WORDS, Damaged, Reader
from khms.model.document import Document, Query

Build = Callable[..., Reader]
Ask = Callable[..., list[str]]
FILLER = {f"K-{n:05d}": f"station {n} logs wind and rain every hour, filler {n}" for n in range(100, 130)}
TROUBLE = (
    "Error: queue is full (limit=25)",
    '"never closed',
    'ask "who',
    "cache:warm",
    "https://h.invalid/x?y=z#w",
    "D:\\spool\\old",
    "-quiet",
    "--fail-on-notice",
    "NOT",
    "this AND",
    "OR",
    "x OR OR y",
    "conn.pool.release()",
    "(ruby",
    "isn't",
    "MB/s",
    "[y]",
    "{a TO z}",
    ">>>",
    "*",
    "wo*",
    "?",
    "b:(^",
    "body:*",
    "body: IN [c d]",
    "word^99999999999",
    '"c d"~',
    "dash-joined-name",
    "snake_case_name",
    "v3.20.1",
    "2031.5.20",
    "G++",
    "F#",
    ".NET",
    "E-4711",
    "of",
    "to be or not to be",
    "z",
    "🦔",
    "ValueError: 'Nothing' object is not iterable",
    "fatal: this is not a work tree (nor any parent): .hg",
    "${PATH}",
    "'; DROP TABLE hits; --",
    "\\",
    '""""',
    "row " * 5000,
)


def check_trouble(build: Build, ask: Ask, texts: list[str]) -> None:
    """Each text in a card of its own: it is found, first or among equals, and nothing brings the whole base."""
    cards = {f"K-{n:05d}": f"{text}\n" for n, text in enumerate(texts, 1)}
    reader = build({**cards, **FILLER})
    for (key, _), text in zip(cards.items(), texts, strict=True):
        found = ask(reader, text)
        if text.strip("\u200b \t\n"):
            assert key in found[:5], (text[:60], found[:5])
            assert len(found) < reader.documents / 2, (text[:60], len(found))
        else:
            assert found == []


def test_trouble_makers_are_only_text(indexed: Build, ask: Ask) -> None:
    check_trouble(indexed, ask, list(TROUBLE))


def test_the_shared_queries_are_only_text(indexed: Build, ask: Ask, shared: Callable[[str], Path]) -> None:
    check_trouble(indexed, ask, json.loads(shared("cases/28-queries.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("text", ["-foo", "--fail-on-notice", "*", "**", "?*", "", "   ", "\u200b", "NOT foo"])
def test_no_text_brings_the_whole_base(indexed: Build, ask: Ask, text: str) -> None:
    assert ask(indexed(FILLER), text) == []


def test_a_bullet_is_no_star(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "* one\n* two\n", "K-00002": "any file matches * here\n"})
    assert ask(reader, "*") == ["K-00002"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=300))
def test_no_text_raises(small: Reader, text: str) -> None:
    small.search(Query(text, (text,)), depth=5)
    small.search(Query(text, (), (("tag", text or "x"), ("after", text))), depth=5)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    from khms.index.writer import writing

    folder = tmp_path_factory.mktemp("small")
    with writing(folder, "english") as writer:
        writer.add(tuple(Document(key, "card", f"{key}.md", 1, "title", body) for key, body in FILLER.items()))
    return Reader(folder, "english")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10000,
        '"' * 10000,
        "a:(" * 3000,
        "x" * 100000,
        "a b " * 5000,
        "\n".join(f"at frame_{n}()" for n in range(3000)),
    ],
)
def test_length_and_nesting_do_no_harm(small: Reader, text: str) -> None:
    small.search(Query(text), depth=5)


SCRIPTS = """我们决定使用缓存失效策略避免脏读。
昨日は成語しりとりをした。
어제 끝말잇기 놀이를 했다.
Решили отключить кэш.
अनीता ने यह तय किया।
בדיקה של המטמון.
การทดสอบแคช
"""


@pytest.mark.parametrize(
    "text", ["失效策略", "しりとり", "끝말잇기", "кэш", "КЭШ", "अनीता", "המטמון", "แคช", "失", "り", "避免脏读。"]
)
def test_scripts(indexed: Build, ask: Ask, text: str) -> None:
    assert ask(indexed({"K-00001": SCRIPTS, **FILLER}), text) == ["K-00001"]


def test_the_shared_scripts(indexed: Build, ask: Ask, shared: Callable[[str], Path]) -> None:
    text = shared("cases/30-cjk-and-scripts.md").read_text(encoding="utf-8")
    body, _, comment = text.partition("<!--")
    reader = indexed({"K-00001": body, **FILLER})
    queries = re.sub(r".*?:|-->", "", comment).split("|")
    assert len(queries) == 7
    for query in queries:
        assert ask(reader, query) == ["K-00001"], query


ZOO = """digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
class RemarkablyLongGeneratedControllerNameForInvoiceReconciliation
call conn.pool.release() in order_item_cache, flag --no-check-certs, env WEB_DB_URL
version 2031.5.20, code E-4711, file lib/web/main_view.py, UI runs Go and F#
Café naïve Straße Ångström ﬁle
"""


@pytest.mark.parametrize(
    "text",
    [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08",
        "RemarkablyLongGeneratedControllerNameForInvoiceReconciliation",
        "remarkablylonggeneratedcontrollernameforinvoicereconciliation",
        "invoice reconciliation",
        "conn.pool.release",
        "conn.pool",
        "order_item_cache",
        "item_cache",
        "order item",
        "--no-check-certs",
        "no-check-certs",
        "WEB_DB_URL",
        "2031.5.20",
        "2031.5",
        "E-4711",
        "4711",
        "lib/web/main_view.py",
        "main_view.py",
        "main_view",
        "UI",
        "Go",
        "F#",
        "Café",
        "cafe",
        "Cafe\u0301",
        "strasse",
        "STRASSE",
        "angstrom",
        "naive",
        "file",
        "ﬁle",
    ],
)
def test_identifiers_whole_by_part_and_folded(indexed: Build, ask: Ask, text: str) -> None:
    assert ask(indexed({"K-00001": ZOO, **FILLER}), text)[:1] == ["K-00001"]


def test_the_shared_identifiers(indexed: Build, ask: Ask, shared: Callable[[str], Path]) -> None:
    body = shared("cases/31-identifiers.md").read_text(encoding="utf-8").rpartition("---\n")[2]
    reader = indexed({"K-00001": body, **FILLER})
    names = [
        *("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "db.pool.acquire", "user_profile_cache"),
        *("VeryLongGeneratedHandlerNameForPaymentsReconciliationJob", "--no-verify-ssl", "APP_DB_URL", "2026.4.10"),
        *(
            "E-1234",
            "src/app/main_test.py",
            "CI",
            "Go",
            "C#",
            "pool",
            "profile",
            "reconciliation",
            "db_url",
            "main_test",
        ),
        *("cafe", "strasse", "ﬁle", "file", "angstrom", "naive"),
    ]
    for name in names:
        assert ask(reader, name)[:1] == ["K-00001"], name


def test_a_word_is_no_part_of_another(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "we concatenate both lists", "K-00002": "the cat sat"})
    assert ask(reader, "cat") == ["K-00002"]


def test_words_are_found_in_every_form(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "the policy covers polling"})
    assert ask(reader, "policies") == ask(reader, "polled") == ["K-00001"]


def test_another_language_stems_and_drops_its_own_stop_words(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "die Straßen sind nass", "K-00002": "die Sonne"}, language="german")
    assert ask(reader, "die Straße") == ["K-00001"]


def test_no_language_at_all(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "two policies"}, language="none")
    assert ask(reader, "policies") == ["K-00001"] and ask(reader, "policy") == []


def test_an_unknown_language_is_refused_by_name(indexed: Build) -> None:
    with pytest.raises(Refused, match="klingon"):
        indexed({}, language="klingon")


def test_the_exact_id_comes_first_whoever_names_it_more_often(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "short", "K-00002": "K-00001 K-00001 K-00001", "K-00003": "K-00001 again"})
    assert ask(reader, "K-00001")[0] == ask(reader, "k-00001")[0] == "K-00001"
    assert ask(reader, "what does K-00001 say about K-00001")[0] == "K-00001"
    hit = reader.search(Query("K-00001"), depth=5).hits[0]
    assert hit.exact & BY_ID and hit.coverage == 1.0


def test_the_id_of_a_note_is_its_path(indexed: Build, ask: Ask) -> None:
    note = Document("docs/set up", "note", "docs/set up.md", 1, "Install", "first steps")
    reader = indexed([note, Document("other", "note", "other.md", 1, "docs/set up", "docs/set up " * 5)])
    assert ask(reader, "docs/set up")[0] == ask(reader, "docs/set up.md")[0] == "docs/set up"


def test_a_text_that_stands_there_word_for_word_comes_first(indexed: Build, ask: Ask) -> None:
    line = "error: could not lock the config file"
    reader = indexed(
        {
            "K-00001": f"a long report about many things, {'padding words here ' * 60}\n{line}\n",
            "K-00002": "config lock error file could config lock error file",
            "K-00003": "lock file error, config",
        }
    )
    assert ask(reader, line)[0] == "K-00001"
    assert reader.search(Query(line), depth=5).hits[0].exact & BY_WORDS


def test_a_rare_name_comes_before_many_of_its_parts(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "sets retry_count_max once " + "x y z " * 80, "K-00002": "retry count max " * 20})
    found = reader.search(Query("retry_count_max"), depth=5).hits
    assert found[0].document.id == "K-00001" and found[0].exact & BY_NAME


def test_a_phrase_must_stand_there(indexed: Build, ask: Ask) -> None:
    reader = indexed({"K-00001": "a loose ground wire", "K-00002": "the wire is loose, the ground is wet"})
    assert ask(reader, "", phrases=("loose ground",)) == ["K-00001"]
    assert ask(reader, "wire", phrases=("loose ground",)) == ["K-00001"]
    assert sorted(ask(reader, "", phrases=("loose",))) == ["K-00001", "K-00002"]
    assert ask(reader, "", phrases=("looses",)) == []
    assert sorted(ask(reader, "wire", phrases=("", "***"))) == ["K-00001", "K-00002"]


ONE: dict[str, Any] = {"type": "policy", "status": "active", "scope": "universal", "date": "2026-01-05"}
TWO: dict[str, Any] = {"type": "fact", "status": "challenged", "scope": "project:vane", "date": "2026-02-01"}
FILTERED = [
    Document("K-1", "card", "memory/know/K-1.md", 1, "one", "wind", ("Sensors", "gotcha"), **ONE),
    Document("K-2", "card", "memory/know/K-2.md", 1, "two", "wind", ("sensors",), **TWO),
    Document("N", "note", "N.md", 1, "three", "wind", date="2026-03"),
    Document("M", "note", "M.md", 1, "four", "wind"),
]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"tag": "sensors"}, {"K-1", "K-2"}),
        ({"tag": "GOTCHA"}, {"K-1"}),
        ({"type": "policy"}, {"K-1"}),
        ({"kind": "note"}, {"N", "M"}),
        ({"status": "challenged"}, {"K-2"}),
        ({"scope": "project:vane"}, {"K-2"}),
        ({"after": "2026-02-01"}, {"K-2", "N"}),
        ({"before": "2026-02-01"}, {"K-1"}),
        ({"after": "2026", "before": "2026-03"}, {"K-1", "K-2"}),
        ({"tag": "sensors", "type": "fact"}, {"K-2"}),
        ({"tag": "none"}, set()),
    ],
)
def test_filters(indexed: Build, ask: Ask, filters: dict[str, str], ids: set[str]) -> None:
    reader = indexed(FILTERED)
    assert set(ask(reader, "wind", **filters)) == set(ask(reader, "", **filters)) == ids
    assert ask(reader, "absent", **filters) == []


def test_tags_add_up_and_other_values_are_alternatives(indexed: Build) -> None:
    reader = indexed(FILTERED)

    def ids(*filters: tuple[str, str]) -> set[str]:
        return {hit.document.id for hit in reader.search(Query("", (), filters), depth=9).hits}

    assert ids(("tag", "sensors"), ("tag", "gotcha")) == {"K-1"}
    assert ids(("type", "policy"), ("type", "fact")) == {"K-1", "K-2"}


def test_filters_alone_answer_with_the_newest(indexed: Build, ask: Ask) -> None:
    assert ask(indexed(FILTERED), "", tag="sensors") == ["K-2", "K-1"]


def test_a_hidden_shelf_stays_hidden(indexed: Build) -> None:
    reader = indexed([*FILTERED, Document("journal/2026-01-01", "journal", "journal/2026-01-01.md", 1, "day", "wind")])
    found = reader.search(Query("wind"), depth=9, hidden=("unreviewed",)).hits
    assert {hit.document.id for hit in found} == {"K-1", "K-2", "N", "M"}
    assert len(reader.search(Query("wind"), depth=9).hits) == 5


def coverage(reader: Reader, text: str) -> dict[str, float]:
    return {hit.document.id: hit.coverage for hit in reader.search(Query(text), depth=50).hits}


def test_the_score_is_the_share_of_rarity_that_is_covered(indexed: Build) -> None:
    reader = indexed({"K-00001": "checksum firmware baudrate parity", "K-00002": "checksum", **FILLER})
    shares = coverage(reader, "checksum firmware baudrate parity")
    assert shares["K-00001"] == 1.0 and 0.1 < shares["K-00002"] < 0.4
    assert coverage(reader, "checksum firmware baudrate parity unheard unseen")["K-00001"] < 0.75
    assert coverage(reader, "please of the checksum firmware baudrate parity")["K-00001"] == 1.0


def test_a_common_word_covers_less_than_a_rare_one(indexed: Build) -> None:
    reader = indexed({"K-00001": "checksum", **FILLER})
    shares = coverage(reader, "checksum rain")
    assert shares["K-00001"] > 2 * shares["K-00100"]


def test_few_words_prove_little(indexed: Build) -> None:
    assert coverage(indexed({"K-00001": "checksum", **FILLER}), "checksum")["K-00001"] == pytest.approx(1 / 3, abs=0.01)


def test_the_score_does_not_grow_with_the_base(indexed: Build) -> None:
    body = "checksum firmware baudrate"
    few = indexed({"K-00001": body, "K-00002": "rain"})
    many = indexed({"K-00001": body, **{f"K-{n:05d}": f"rain {n}" for n in range(100, 2100)}})
    text = "why did the checksum of the firmware fail at this baudrate"
    assert coverage(few, text)["K-00001"] == pytest.approx(coverage(many, text)["K-00001"], abs=0.05)


def test_neighbours_in_the_graph(indexed: Build) -> None:
    old = Document("K-1", "card", "K-1.md", 1, "old", "x")
    new = Document("K-2", "card", "K-2.md", 1, "new", "y", links=(("supersedes", "K-1"),))
    reader = indexed([old, new])
    assert [d.id for d in reader.referring("supersedes", "K-1")] == ["K-2"]
    assert reader.referring("contradicts", "K-1") == ()
    assert [d.title for d in reader.by_id("K-2")] == ["new"]
    assert reader.by_id("k-2") == () and reader.by_id("K-3") == ()


@given(
    st.builds(
        Document,
        *[st.text(min_size=1)] * 3,
        st.integers(min_value=1, max_value=10**6),
        st.text(),
        st.just(""),
        st.lists(st.text(min_size=1)).map(tuple),
    )
)
def test_a_record_comes_back_as_it_went_in(document: Document) -> None:
    texts = (document.id, document.kind, document.path, document.title, *document.tags)
    if not any(c in text for c in "\x1e\x1f" for text in texts):
        assert unpack(pack(document)) == document


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2026-03-04", 20260304),
        ("2026-03-04T10:00:00Z", 20260304),
        ("2026-03", 20260301),
        ("2026", 20260101),
        ("2026-13-01", None),
        ("2026-02-30", 20260230),
        ("yesterday", None),
        ("", None),
        ("20260304", None),
        ("２０２６-03-04", None),
    ],
)
def test_days(text: str, number: int | None) -> None:
    assert day(text) == number


def test_no_index_is_damage_and_not_an_empty_answer(tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        Reader(tmp_path / "nothing", "english")
    (tmp_path / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(Damaged):
        Reader(tmp_path, "english")
