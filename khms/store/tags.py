"""memory/tags.yaml, read strictly."""

from khms.model.tags import Registry, registry_from
from khms.store import files
from khms.store.layout import TAGS, Base
from khms.store.yamltext import Unreadable


def registry(base: Base) -> Registry:
    """The base's tag registry, empty where it has none; raises Unreadable where the file cannot be read."""
    try:
        data = files.read(base.path(TAGS))
    except (FileNotFoundError, NotADirectoryError):
        return Registry()
    except OSError as error:
        raise Unreadable(
            f"the tag registry cannot be read: {error.strerror}", path=TAGS, mend="check the file and its permissions"
        ) from error
    return parse(data)


def parse(data: bytes) -> Registry:
    """The registry in a file's bytes; raises Unreadable."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable("the tag registry is not UTF-8", path=TAGS, mend="save it as UTF-8") from error
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.split("\n")):
        return Registry()
    from khms.store.strict import StrictHandler

    return registry_from(StrictHandler(TAGS).read(text)[0])
