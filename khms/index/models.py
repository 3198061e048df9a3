"""Which embedding model is in force, and whether it is the one that it should be.

The shipped one unless `recall.model` names another. Files are hashed before they are first used; what was found is
remembered by size, time and inode, so that it costs nothing later. Only a model named as `hub:owner/name` is ever
looked for outside this machine.
"""

from __future__ import annotations

import os
from pathlib import Path

from khms import resources
from khms.errors import Unavailable
from khms.index import embedding
from khms.index.current import SWITCHED_OFF
from khms.index.embedding import FILES, SHIPPED, SUMS, Model, Unfit
from khms.index.manifest import Mark, mark
from khms.store import files
from khms.store.layout import Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OFF = "none"
HUB = "hub:"
_MEMORY = "models.json"


@dataclass(frozen=True, slots=True)
class Chosen:
    """`id` is the hash of its files; empty for one on a hub, which is known only once it is loaded."""

    folder: Path | None
    hub: str
    id: str


_loaded: dict[Chosen, Model] = {}


def chosen(base: Base, config: Mapping[str, Any]) -> Chosen:
    """The model that the settings name. Raises Unavailable, with the reason, where there is none that can be used."""
    name = str(config["recall.model"])
    if name == OFF:
        raise Unavailable(SWITCHED_OFF)
    if name.startswith(HUB):
        return Chosen(None, name.removeprefix(HUB), "")
    if name:
        folder = base.root / Path(name).expanduser()
        if not folder.is_dir():
            raise Unavailable(
                f"there is no folder {name}", hint="recall.model is a folder, or hub:owner/name for one from a hub"
            )
    else:
        folder = resources.folder("embedding") / SHIPPED
    return Chosen(folder, "", _identity(base, folder, shipped=not name))


def load(choice: Chosen) -> Model:
    """The model, the last one kept for the next call. Raises Unavailable."""
    try:
        import khms.index.arrays  # noqa: F401
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed", hint="pip install numpy numkong") from error
    found = _loaded.get(choice)
    if found is None:
        found = _read(choice)
        _loaded.clear()
        _loaded[choice] = found
    return found


def _read(choice: Chosen) -> Model:
    if choice.folder is None:
        return _by_library(choice.hub, "", offline=False)
    try:
        return embedding.load(choice.folder, choice.id)
    except Unfit:
        return _by_library(str(choice.folder), choice.id, offline=True)


def _by_library(name: str, identity: str, *, offline: bool) -> Model:
    """A model of any kind that model2vec reads."""
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        from model2vec import StaticModel
    except ImportError as error:
        raise Unavailable(f"model2vec is needed to read {name}", hint="pip install 'khms[models]'") from error
    try:
        found = StaticModel.from_pretrained(name)
    except Exception as error:  # whatever the library, the network or the files say
        raise Unavailable(f"the model {name} cannot be loaded: {type(error).__name__}") from error
    return adopted(found, identity)


def adopted(found: Any, identity: str) -> Model:
    """A model2vec model as ours; the vector of each token as its weight makes it."""
    import hashlib

    from khms.index.arrays import np

    tokens = len(found.tokens)
    at = np.arange(tokens) if found.token_mapping is None else found.token_mapping
    table = found.embedding[at]
    if found.weights is not None:
        table = table * found.weights[:, None]
    if not identity:
        identity = hashlib.sha256(table.tobytes() + found.tokenizer.to_str().encode()).hexdigest()

    def cut(text: str) -> list[int]:
        longest = found.max_length
        ids: list[int] = found.tokenize([text if longest is None else text[: longest * found.median_token_length]])[0]
        return ids

    return Model(identity, table, cut)


def _identity(base: Base, folder: Path, *, shipped: bool) -> str:
    """The hash of the files, from memory where they are as they were then."""
    place, key = base.index / _MEMORY, str(folder)
    now = {name: mark(folder / name) for name in FILES}
    memory = _remembered(place)
    known = memory.get(key)
    if known and {name: tuple(at) for name, at in known[1].items()} == now:
        return str(known[0])
    if shipped:
        _as_shipped(folder)
    found = embedding.identity(folder)
    _remember(place, memory, key, found, now)
    return found


def _as_shipped(folder: Path) -> None:
    import hashlib

    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        try:
            same = hashlib.sha256(files.read(folder / name)).hexdigest() == digest
        except OSError:
            same = False
        if not same:
            raise Unavailable(f"{name} of the embedding model is not as it was shipped", hint="install khms again")


def _remembered(place: Path) -> dict[str, Any]:
    try:
        value = files.read_json(place)
        return {str(key): (str(found), dict(at)) for key, (found, at) in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(place: Path, memory: dict[str, Any], key: str, found: str, now: Mapping[str, Mark]) -> None:
    import contextlib
    import json

    with contextlib.suppress(Unavailable):  # it is hashed again next time
        text = json.dumps({**memory, key: (found, now)})
        files.write_atomic(place, text.encode())
