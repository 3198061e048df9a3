"""Whether a text names a document: by its id, by its path, or by its title word for word."""

from dataclasses import dataclass

LEAST_WORDS = 3  # of a title; a shorter one stands in a text by chance
_JOINING = "-_"  # besides letters and digits: what makes a longer name of a name


@dataclass(frozen=True, slots=True)
class Names:
    """What a document goes by. `kind` is empty where the index does not know it."""

    id: str
    path: str = ""
    title: str = ""
    kind: str = ""


def flat(text: str) -> str:
    """A text as `naming` wants it: on one line, in small letters."""
    return " ".join(text.split()).casefold()


def naming(text: str, names: Names) -> str:
    """By what the flat `text` names the document: `id`, `path` or `title`; empty where it does not. An id that is an
    everyday word, as a note's can be, counts with its path alone."""
    own = names.id.casefold()
    if not own.isalpha() and _stands(text, own):
        return "id"
    if names.path and _stands(text, names.path.casefold()):
        return "path"
    title = flat(names.title)
    return "title" if title.count(" ") >= LEAST_WORDS - 1 and _stands(text, title) else ""


def _stands(text: str, name: str) -> bool:
    """Whether `name` stands in `text` as a name of its own and not as a part of a longer one."""
    at = text.find(name) if name else -1
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not _joins(before) and not _joins(after):
            return True
        at = text.find(name, at + 1)
    return False


def _joins(char: str) -> bool:
    return char.isalnum() or (char != "" and char in _JOINING)
