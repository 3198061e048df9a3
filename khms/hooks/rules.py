"""`[hooks.rules]`: words that the base's owner tied to a card or a note, which is then named wherever somebody uses
them. A rule is a short cut for recall, not a way around the budget."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from khms.config import Config
    from khms.model.document import Hit
    from khms.store.layout import Base


def named(config: Config, asked: Sequence[str]) -> list[str]:
    """The ids and paths whose words, all of them side by side, stand in what is asked; in the rules' order."""
    rules = config["hooks.rules"]
    if not rules:
        return []
    said = _plain(" ".join(asked))
    return [
        name
        for words, name in rules.items()
        if isinstance(name, str) and _plain(words).strip() and _plain(words) in said
    ]


def hits(base: Base, config: Config, asked: Sequence[str]) -> Iterator[Hit]:
    """The documents that the rules name, as sure hits; what stands in the place of one that was superseded comes with
    it. One that is not in the base is passed over."""
    from khms.index.lexical import BY_ID
    from khms.recall.search import recall

    for name in named(config, asked):
        found = recall(base, name, config=config, limit=3, as_text=True, snippets=False, by_meaning=False)
        yield from (hit for hit in found if hit.exact >= BY_ID)


def _plain(text: str) -> str:
    from khms.index.text import terms

    return f" {' '.join(terms(text).words)} "
