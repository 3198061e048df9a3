"""What the index's tests share: an index of a few documents, and a process that may not do everything."""

import json
import os
import shutil
import subprocess
import sys
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
                    Document(key, "card", f"memory/know/{key}.md", 1, f"card {number}", body)
                    for number, (key, body) in enumerate(documents.items())
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
def as_nobody() -> Iterator[Callable[[Base, str], Any]]:
    """as_nobody(base, code): a copy of the base, handed to a user without rights over it where the tests run as root;
    `code` sees it as `base` and prints JSON. A line of `code` that begins with `#!` is a shell command that runs first,
    as the present user, in the copy."""
    place = Path(tempfile.mkdtemp(prefix="khms-nobody-"))
    place.chmod(0o755)

    def run(base: Base, code: str) -> Any:
        root = place / "base"
        shutil.copytree(base.root, root, symlinks=True)
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            for path in (root, *root.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
            user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        lines = code.strip().splitlines()
        for line in lines:
            if line.startswith("#!"):
                subprocess.run(line[2:], shell=True, cwd=root, check=True)
        head = f"import json\nfrom pathlib import Path\nfrom khms.store.layout import Base\nbase = Base(Path({str(root)!r}))"
        done = subprocess.run(
            [sys.executable, "-c", "\n".join([head, *lines])],
            cwd=root,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env={**os.environ, "HOME": str(place), "KHMS_CONFIG_HOME": str(place), "GIT_CONFIG_GLOBAL": "/dev/null"},
            **user,
        )
        subprocess.run(["chmod", "-R", "u+rwX", str(root)], check=False)
        if done.returncode and "Permission denied" in done.stderr and "khms" not in done.stderr:
            pytest.skip("the interpreter cannot be run by another user here")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    yield run
    shutil.rmtree(place, ignore_errors=True)
