"""The tag registry: which tags a base has agreed on, what each means, and the other words for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from khms.model.card import as_list, as_text


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    group: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """Tags by name. An empty registry registers nothing and renames nothing."""

    tags: Mapping[str, Tag] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def canonical(self, tag: str) -> str:
        """The tag that `tag` stands for: itself, or the one it is an alias of."""
        return tag if tag in self.tags else self.aliases.get(tag, tag)


def registry_from(value: Mapping[str, Any]) -> Registry:
    """The registry that a parsed file holds; wrong-typed parts read as empty."""
    tags = {}
    for name, about in value.items():
        row = about if isinstance(about, Mapping) else {}
        tags[name] = Tag(name, as_text(row.get("group")), as_text(row.get("description")), as_list(row.get("aliases")))
    return Registry(tags, {alias: tag.name for tag in tags.values() for alias in tag.aliases})
