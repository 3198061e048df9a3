"""Analysis of text into search terms, the same for a document and for a question about it.

Nothing here knows the index. A text is cut at white space; each piece is analysed by itself and remembered, since a
base uses the same words over and over. Out of a piece come

- words: what stands between punctuation, folded: `db.pool.acquire()` gives db, pool, acquire;
- parts: the humps of a camelCase word: `NoneType` gives none, type;
- grams: the single characters of scripts written without blanks, whose words are the pairs of neighbours;
- identifiers: every joined name, whole and by its levels: `src/app/main_test.py` gives itself, main_test.py and
  main_test; also names that punctuation completes, such as C++, C#, .NET;
- symbols: pictographs, and pieces that hold no word at all, such as `*` or `>>>`.

Folding is NFKC, full case folding, and plain letters for accented ones: Café is cafe, Straße is strasse, ﬁle is file.
"""

from collections.abc import Iterable
from itertools import chain

from khms.values import dataclass

LONGEST = 200  # characters of one term; a longer one is cut, in the index and in the question alike
JOINERS = "_-./\\:@"
_LEVELS = (":@", "/\\", ".", "-", "_")  # how a joined name comes apart, outermost first
# What stands between names, as a blank, in text that is ASCII.
_APART = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in JOINERS)}
_EDGES = "\"'`()[]{}<>,;:!?*|=$^~%&."
_REMEMBERED = 100_000  # pieces kept analysed: some 30 MB at the most

# Letters that Unicode does not decompose, and Russian yo, which is written e more often than not.
_PLAIN = {
    "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i", "ŋ": "n",
    "ŧ": "t", "ĸ": "k", "ſ": "s", "ə": "e", "ɨ": "i", "ƀ": "b", "ɓ": "b", "ƒ": "f", "ǝ": "e",
    "’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "‒": "-", "−": "-", "ـ": "",
}  # fmt: skip
# Marks that are left out: European accents, Hebrew points, Arabic vowel signs, variation selectors.
_MARKS = ((0x0300, 0x036F), (0x0591, 0x05C7), (0x064B, 0x065F), (0x0670, 0x0670), (0xFE00, 0xFE0F))
# Scripts written without blanks between words: Thai to Lao, Myanmar, Khmer, Han, kana, Hangul.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3031, 0x318F),
    (0x31A0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)  # fmt: skip

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been before being below between
    both but by can cannot could couldn d did didn do does doesn doing don down during each either else ever every few
    for from further get gets got had hadn has hasn have haven having he her here hers herself him himself his how i if
    in into is isn it its itself just ll m me more most much must my myself neither no nor not of off on once
    one only or other ought our ours ourselves out over own please re s same shall she should shouldn so some still such
    t than that the their theirs them themselves then there these they this those though through to too under until up
    upon us ve very was wasn we were weren what when where whether which while who whom whose why will with would
    wouldn yet you your yours yourself yourselves
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a text is searched by, in the text's order, repetitions kept."""

    words: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    grams: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


class _Memory(dict[str, tuple[str, ...]]):
    """The words of every piece that was ever analysed; `odd` holds the other terms of those that have any. A text is
    then two passes of the interpreter's own loops."""

    def __init__(self) -> None:
        super().__init__()
        self.odd: dict[str, Terms] = {}

    def __missing__(self, raw: str) -> tuple[str, ...]:
        found = _analyse(raw)
        if isinstance(found, str):
            words: tuple[str, ...] = (found,)
        else:
            words = found.words
            if found.parts or found.grams or found.identifiers or found.symbols:
                self.odd[raw] = found
        self[raw] = words
        return words

    def make_room(self) -> None:
        if len(self) >= _REMEMBERED:
            self.clear()
            self.odd.clear()


_memory = _Memory()


def terms(text: str) -> Terms:
    """The search terms of `text`; never raises, whatever the text is."""
    pieces: list[str] = []
    for line in text.splitlines():
        pieces += _unmarked(line.split())
    _memory.make_room()
    words = tuple(chain.from_iterable(map(_memory.__getitem__, pieces)))
    odd = _memory.odd
    others = [odd[raw] for raw in filter(odd.__contains__, pieces)]
    if not others:
        return Terms(words)
    return Terms(
        words,
        tuple([part for one in others for part in one.parts]),
        tuple([gram for one in others for gram in one.grams]),
        tuple([name for one in others for name in one.identifiers]),
        tuple([symbol for one in others for symbol in one.symbols]),
    )


def _unmarked(pieces: list[str]) -> list[str]:
    """The pieces of a line without Markdown's own bullet, quote, heading and table marks, which would otherwise be
    symbols that every document holds."""
    if len(pieces) > 1 and not pieces[0].strip("-*+>#|"):
        bar = pieces[0] == "|"
        return [p for p in pieces[1:] if p != "|"] if bar else pieces[1:]
    return pieces


def content_words(words: Iterable[str], stop: frozenset[str] = STOP_WORDS) -> list[str]:
    """`words` without stop words and repetitions; all of them where nothing else is there."""
    once = list(dict.fromkeys(words))
    return [word for word in once if word not in stop] or once


def fold(text: str) -> str:
    """`text` in the one form that is compared: NFKC, case-folded, accents taken off. Idempotent."""
    if text.isascii():
        return text.lower()
    for _ in range(3):  # what NFKC makes of a case-folded letter is now and then a letter with a case again
        folded = _fold(text)
        if folded == text:
            break
        text = folded
    return text


def _fold(text: str) -> str:
    from unicodedata import normalize

    text = normalize("NFKD", normalize("NFKC", text).casefold())
    kept = [_PLAIN.get(c, c) for c in text if c.isascii() or not (_within(ord(c), _MARKS) or _invisible(c))]
    return normalize("NFKC", "".join(kept))


def is_identifier(term: str) -> bool:
    """Whether a joined name looks like one of a machine's, and not like hyphenated prose."""
    return any(c in "_./\\:@+#" or c.isdigit() for c in term)


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _invisible(char: str) -> bool:
    from unicodedata import category

    return category(char) in ("Cf", "Cs")


def _analyse(raw: str) -> "str | Terms":
    """What one piece without white space is searched by."""
    if raw.isascii():
        bare = raw.strip(_EDGES)
        plain = bare.isalpha() and (bare[1:].islower() or bare.isupper() or len(bare) == 1)
        if plain and f".{bare}" not in raw:
            return bare.lower()[:LONGEST]
        text = raw
    else:
        from unicodedata import normalize

        # A zero-width blank separates; other invisible characters only shape what is seen.
        text = normalize("NFKC", raw.replace("\u200b", " "))
        text = "".join([c if c.isascii() else _PLAIN.get(c, c) for c in text if c.isascii() or not _invisible(c)])
    return _Reading(text).terms()


class _Reading:
    """One pass over a piece: gathers names of word characters and joiners, and takes each apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        self.parts: list[str] = []
        self.grams: list[str] = []
        self.identifiers: list[str] = []
        self.symbols: list[str] = []

    def terms(self) -> Terms:
        text, start, end = self.text, 0, len(self.text)
        if text.isascii() and "+" not in text and "#" not in text:  # nothing that completes a name
            for run in text.translate(_APART).split():
                self._name(run, "")
            start = end
        while start < end:
            stop = start
            while stop < end and (text[stop] in JOINERS or _is_word(text[stop])):
                stop += 1
            if stop > start:
                self._name(text[start:stop], text[stop : stop + 3])
                start = stop
            else:
                if _is_pictograph(text[start]):
                    self.symbols.append(text[start])
                start += 1
        if not self.words and not self.symbols:
            whole = "".join(fold(text).split())[:LONGEST]
            self.symbols += [whole] if whole else []
        return Terms(
            tuple(self.words), tuple(self.parts), tuple(self.grams), _once(self.identifiers), tuple(self.symbols)
        )

    def _name(self, run: str, after: str) -> None:
        """A run of word characters and joiners, with what follows it (for C++ and C#)."""
        name = run.strip(JOINERS)
        if not name:
            return
        before = len(self.words)
        self._take_apart(name, 0)
        first = self.words[before] if len(self.words) > before else ""
        at = run.index(name)
        if at and run[at - 1] == "." and name[0].isalpha() and (at == 1 or run[at - 2] in "/\\"):
            self.identifiers.append("." + first)
        if name.isalpha() and len(name) <= 2 and run.endswith(name):
            if after[:2] == "++":
                self.identifiers.append(fold(name) + "++")
            elif after[:1] == "#" and not after[1:2].isalnum():
                self.identifiers.append(fold(name) + "#")

    def _take_apart(self, name: str, level: int) -> None:
        """Emits `name` and, level by level, what it is joined from."""
        name = name.strip(JOINERS)
        if not name:
            return
        if name.isalnum():
            level = len(_LEVELS)
        while level < len(_LEVELS) and not any(joiner in name for joiner in _LEVELS[level]):
            level += 1
        if level == len(_LEVELS):
            self._word(name)
            return
        self.identifiers.append(fold(name)[:LONGEST])
        first, others = _LEVELS[level][0], _LEVELS[level][1:]
        for other in others:
            name = name.replace(other, first)
        for part in name.split(first):
            self._take_apart(part, level + 1)

    def _word(self, word: str) -> None:
        """A word without joiners: cut where a script without blanks begins or ends."""
        if word.isascii():
            self._spaced(word)
            return
        start = 0
        for index in range(1, len(word) + 1):
            if index == len(word) or _is_unspaced(word[index]) != _is_unspaced(word[start]):
                run = word[start:index]
                start = index
                if _is_unspaced(run[0]):
                    self._unspaced(fold(run))
                else:
                    self._spaced(run)

    def _unspaced(self, run: str) -> None:
        if len(run) < 2:
            self.words.extend(run)
        else:
            self.words.extend([run[i : i + 2] for i in range(len(run) - 1)])
            self.grams.extend(run)

    def _spaced(self, run: str) -> None:
        whole = fold(run)[:LONGEST]
        if not whole:
            return
        self.words.append(whole)
        if run[1:] != whole[1:] and any(c.islower() for c in run):
            humps = _humps(run)
            if len(humps) > 1:
                self.parts.extend([part for hump in humps if (part := fold(hump)[:LONGEST])])


def _once(items: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _is_word(char: str) -> bool:
    if char.isalnum():
        return True
    if char.isascii():
        return False
    from unicodedata import category

    return category(char)[0] == "M"


def _is_unspaced(char: str) -> bool:
    return char > "\u0dff" and _within(ord(char), _UNSPACED)


def _is_pictograph(char: str) -> bool:
    if char.isascii():
        return False
    from unicodedata import category

    return category(char) == "So"


def _humps(word: str) -> list[str]:
    """The humps of a camelCase word: MaxRAMPercentage is Max, RAM, Percentage. Digits stay with what they follow."""
    cuts = [0]
    for i in range(1, len(word)):
        here, last = word[i].isupper(), word[i - 1].isupper()
        ends_acronym = here and last and i + 1 < len(word) and word[i + 1].islower()
        if (here and not last) or ends_acronym:
            cuts.append(i)
    return [word[a:b] for a, b in zip(cuts, [*cuts[1:], len(word)], strict=True)]
