"""Analysis must find a thing again however it was written, and never fail on whatever a text is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.index import text as analysis
from khms.index.text import LONGEST, Terms, content_words, fold, is_identifier, terms

HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def everything(text: str) -> set[str]:
    found = terms(text)
    return {*found.words, *found.parts, *found.grams, *found.identifiers, *found.symbols}


@given(st.text())
def test_any_text_has_terms_without_blanks(text: str) -> None:
    found = terms(text)
    for name in Terms.__match_args__:
        for term in getattr(found, name):
            assert term and len(term) <= 2 * LONGEST and not any(c.isspace() for c in term)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_composed_and_decomposed_texts_are_the_same_words(text: str) -> None:
    assert terms(unicodedata.normalize("NFD", text)).words == terms(unicodedata.normalize("NFC", text)).words


@given(st.text(alphabet=st.characters(max_codepoint=0x24F)))
def test_case_makes_no_difference_to_words(text: str) -> None:
    assert terms(text.casefold()).words == terms(fold(text)).words


@given(st.lists(st.text(alphabet="abcXYZ019_-./:é漢字", min_size=1, max_size=12), max_size=6))
def test_a_text_is_the_sum_of_its_pieces(pieces: list[str]) -> None:
    whole = terms("x " + " ".join(pieces))
    assert whole.words[1:] == tuple(word for piece in pieces for word in terms(f"x {piece}").words[1:])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("naïve", "naive"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("Ångström", "angstrom"),
        ("ﬁle", "file"),
        ("œuvre", "oeuvre"),
        ("Łódź", "lodz"),
        ("İzmir", "izmir"),
        ("ＦＵＬＬ", "full"),
        ("Ёлка", "елка"),
        ("שָׁלוֹם", "שלום"),
        ("so\u00adft", "soft"),
    ],
)
def test_folding(text: str, word: str) -> None:
    assert terms(text).words == (word,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("order_item_cache", {"order_item_cache", "order", "item", "cache"}),
        ("kebab-case-flag", {"kebab-case-flag", "kebab", "case", "flag"}),
        ("--no-cache-dir", {"no-cache-dir", "no", "cache", "dir"}),
        ("pool.conn.release()", {"pool.conn.release", "pool", "conn", "release"}),
        ("lib/web/main_view.py", {"lib/web/main_view.py", "main_view.py", "main_view", "lib", "view", "py"}),
        ("mod::inner::Kind", {"mod::inner::kind", "mod", "inner", "kind"}),
        ("HttpServerPool", {"httpserverpool", "http", "server", "pool"}),
        ("parseHTTPReply", {"parsehttpreply", "parse", "http", "reply"}),
        ("v2.11.3", {"v2.11.3", "v2", "11", "3"}),
        ("E-4711", {"e-4711", "e", "4711"}),
        (r"D:\data\new", {r"d:\data\new", "d", "data", "new"}),
        ("C++", {"c++", "c"}),
        ("C++17", {"c++", "c", "17"}),
        ("F#", {"f#", "f"}),
        (".NET", {".net", "net"}),
        (".github/workflows", {".github", "github/workflows", "github", "workflows"}),
        (HASH, {HASH}),
        ("sha256:" + HASH, {"sha256:" + HASH, "sha256", HASH}),
        ("GB/s", {"gb/s", "gb", "s"}),
        ("key=val_ue", {"key", "val_ue", "val", "ue"}),
        ("https://h.example/a?b=c#d", {"https://h.example/a", "h.example/a", "h.example", "https", "h", "example"}),
    ],
)
def test_names_whole_and_by_part(text: str, expected: set[str]) -> None:
    assert expected <= everything(text)
    assert expected <= everything(f"see ({text}), there")


def test_a_fragment_is_no_language() -> None:
    assert "c#" not in everything("page/b=c#d")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("我们决定使用缓存失效策略", "失效策略"),
        ("昨日は成語しりとりをした", "しりとり"),
        ("어제 끝말잇기 놀이를 했다", "끝말잇기"),
        ("การทดสอบแคชใหม่", "แคช"),
        ("ທົດສອບລາວ", "ລາວ"),
        ("K8s集群升级", "集群"),
    ],
)
def test_scripts_without_blanks_are_found_by_any_stretch(text: str, part: str) -> None:
    assert set(terms(part).words) <= set(terms(text).words)
    assert set(terms(part[0]).words) <= {*terms(text).words, *terms(text).grams}


def test_spaced_scripts_stay_whole() -> None:
    assert terms("अनीता ने यह तय किया।").words == ("अनीता", "ने", "यह", "तय", "किया")
    assert terms("Решили отключить кэш.").words == ("решили", "отключить", "кэш")


@pytest.mark.parametrize("text", ["*", ">>>", "?", "\\", '""""', "🚀", "🏳️‍🌈"])
def test_a_text_without_words_is_a_symbol(text: str) -> None:
    found = terms(text)
    assert not found.words and found.symbols


@pytest.mark.parametrize("text", ["", "   ", "\t\n", "\u200b", "\ufeff"])
def test_nothing_visible_has_no_terms(text: str) -> None:
    assert terms(text) == Terms()


def test_markdown_marks_at_a_line_start_are_no_symbols() -> None:
    assert terms("* one\n- two\n> three\n## four\n| five | six |").symbols == ()


def test_zero_width_blank_separates() -> None:
    assert terms("one\u200btwo").words == ("one", "two")


def test_stop_words_go_only_where_others_stay() -> None:
    assert content_words(["how", "is", "the", "cache", "cache"]) == ["cache"]
    assert content_words(["to", "be", "or", "not", "to", "be"]) == ["to", "be", "or", "not"]


def test_a_long_term_is_cut_alike_on_both_sides() -> None:
    assert terms("x" * 5000).words == terms("X" * 9000).words == ("x" * LONGEST,)


def test_machine_names_and_prose() -> None:
    assert is_identifier("a_b") and is_identifier("k-00042") and is_identifier("c++")
    assert not is_identifier("well-known")


ODD = [
    "Wort",
    "WORT",
    "wOrT",
    "wort.",
    "(.net)",
    ".net",
    "..a",
    "c++",
    "C#,",
    "a#b",
    "x.y",
    "*",
    "Größe",
    "漢字b",
    "a" * 300,
]
some_texts = st.text(alphabet="abXY1_-./:@+#*\"'(),é漢🚀 \n\u200b", max_size=30) | st.lists(
    st.sampled_from(ODD), max_size=6
).map(" ".join)


@given(st.text(alphabet=[chr(code) for code in range(33, 127)], min_size=1, max_size=12) | st.sampled_from(ODD[:-3]))
def test_a_plain_word_is_read_at_once_as_it_would_be_letter_by_letter(piece: str) -> None:
    """A plus sign behind a blank says nothing by itself, and keeps the long way from being cut short."""
    found = analysis._analyse(piece)
    at_once = Terms((found,)) if isinstance(found, str) else found
    slowly = analysis._Reading(f"{piece} +").terms()
    for name in ("words", "parts", "grams", "identifiers"):
        assert getattr(at_once, name) == getattr(slowly, name), name
    assert bool(at_once.symbols) == (not at_once.words)


@given(st.lists(some_texts, max_size=4))
def test_what_is_remembered_changes_no_terms(asked: list[str]) -> None:
    """Each text alone in a memory that holds nothing, then all of them in one, twice, then in one that overflows."""
    with pytest.MonkeyPatch.context() as patch:
        alone = []
        for text in asked:
            patch.setattr(analysis, "_memory", analysis._Memory())
            alone.append(terms(text))
        patch.setattr(analysis, "_memory", analysis._Memory())
        assert [terms(text) for text in asked * 2] == alone * 2
        patch.setattr(analysis, "_REMEMBERED", 2)
        assert [terms(text) for text in asked * 2] == alone * 2


def test_a_full_memory_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_memory", analysis._Memory())
    monkeypatch.setattr(analysis, "_REMEMBERED", 3)
    for text in ("x.y NoneType", "a b", "c", "x.y"):
        terms(text)
    assert set(analysis._memory) == {"c", "x.y"} and set(analysis._memory.odd) == {"x.y"}
