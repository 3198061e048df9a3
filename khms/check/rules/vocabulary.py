"""Tags: registered, by their own name."""

from collections import Counter
from collections.abc import Iterator

from khms.check.context import Context
from khms.check.subject import Fault, Subject
from khms.model.card import as_list
from khms.model.tags import registry_from
from khms.store.yamltext import Unreadable


def registered(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH011 for pages: each tag is registered and goes by its own name. A base without a registry has no rule."""
    registry = context.registry
    if not registry.tags:
        return
    for tag in subject.card.tags:
        name = registry.canonical(tag)
        if name != tag:
            yield Fault(subject.line("tags"), f"the tag `{tag}` is an alias of `{name}`", f"write {name}")
        elif tag not in registry.tags:
            yield Fault(subject.line("tags"), f"the tag `{tag}` is not registered", "add it to memory/tags.yaml")


def registry(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH011 for memory/tags.yaml: an alias means one tag."""
    from khms.store.strict import StrictHandler

    try:
        meta, places = StrictHandler(subject.path).read(subject.text)
    except Unreadable:
        return
    held = registry_from(meta)
    count = Counter(alias for tag in held.tags.values() for alias in tag.aliases)
    for name, about in meta.items():
        for alias in as_list(about.get("aliases")) if isinstance(about, dict) else ():
            line = places[name].key[0] + 1
            if alias in held.tags:
                yield Fault(line, f"`{alias}` is a tag of its own and an alias of `{name}`", "keep one of them")
            elif count[alias] > 1:
                yield Fault(line, f"`{alias}` is an alias of more than one tag", "keep one of them")
