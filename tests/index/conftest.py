"""What the index's tests share: an index of a few documents, and a process that may not do everything."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from khms.index.lexical import Reader
from khms.index.writer import writing
from khms.model.document import Document, Query
from khms.store.layout import Base

NOBODY = 65534


@pytest.fixture
def indexed(tmp_path: Path) -> Callable[..., Reader]:
    """indexed({"K-00001": "body", …}) or indexed([Document, …]): a reader of an index of these."""

    def build(documents: dict[str, str] | list[Document], language: str = "english") -> Reader:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        with writing(folder, language) as writer:
            if isinstance(documents, dict):
                documents = [
                    Document(key, "card", f"memory/know/{key}.md", 1, "untitled", body)
                    for key, body in documents.items()
                ]
            writer.add(tuple(documents))
        return Reader(folder, language)

    return build


@pytest.fixture
def ask() -> Callable[..., list[str]]:
    """ask(reader, "text", tag="x", phrases=(…)): the ids that are found, best first."""

    def find(reader: Reader, text: str, *, phrases: tuple[str, ...] = (), **filters: str) -> list[str]:
        query = Query(text, phrases, tuple(filters.items()))
        return [hit.document.id for hit in reader.search(query, depth=50).hits]

    return find


@pytest.fixture
def as_nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """as_nobody(base, prepare, act): makes a copy of the base, lets `prepare` change it, and calls `act(copy)` as a
    user without special rights: root, who may do anything, becomes another user for that time. `act` is called once
    before, so that nothing is left to import."""
    place = Path(tempfile.mkdtemp(prefix="khms-nobody-"))
    place.chmod(0o755)
    for name in ("HOME", "KHMS_CONFIG_HOME", "KHMS_DATA_HOME"):
        monkeypatch.setenv(name, str(place))

    def run(base: Base, prepare: Callable[[Base], None], act: Callable[[Base], Any]) -> Any:
        first, copy = Base(place / "first"), Base(place / "copy")
        for made in (first, copy):
            shutil.copytree(base.root, made.root, symlinks=True)
        act(first)
        root = os.geteuid() == 0
        if root:
            for path in (copy.root, *copy.root.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        prepare(copy)
        try:
            if root:
                os.seteuid(NOBODY)
            return act(copy)
        finally:
            if root:
                os.seteuid(0)
            subprocess.run(["chmod", "-R", "u+rwX", str(copy.root)], check=True)

    yield run
    shutil.rmtree(place)
