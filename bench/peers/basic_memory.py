"""basic-memory: Markdown notes in SQLite, full text and vectors, fused."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

NAME, VERSION, LICENCE = "basic-memory", "0.24.1", "AGPL-3.0"
MINILM = True  # it needs the model of bench/models
HOW = (
    "pip install basic-memory==0.24.1 (Python 3.12 or later); basic-memory project add docs DOCS --default; "
    "basic-memory reindex; basic-memory tool search-notes QUERY --hybrid --json; with all-MiniLM-L6-v2 (int8), which "
    "its embedder knows by name, since its first choice, bge-small, is on a hub that was out of reach"
)
_EXTENSIONS = (
    'import sys, pysqlite3; sys.modules["sqlite3"] = pysqlite3; sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2\n'
)


def install(place: Path) -> None:
    """With a SQLite that loads extensions, which not every Python has and its vectors need."""
    maker = next(filter(None, map(shutil.which, ("python3.14", "python3.13", "python3.12"))), None)
    if maker is None:
        raise FileNotFoundError("no Python of 3.12 or later on PATH")
    subprocess.run([maker, "-m", "venv", str(place / "venv")], check=True)
    wanted = [f"basic-memory=={VERSION}", "pysqlite3-binary"]
    subprocess.run([str(python(place)), "-m", "pip", "install", "-q", *wanted], check=True)
    packages = next((place / "venv").glob("lib/python*/site-packages"))
    (packages / "sqlite_with_extensions.pth").write_text(_EXTENSIONS, encoding="utf-8")


def python(place: Path) -> Path:
    return place / "venv" / "bin" / "python"


def environment(place: Path, state: Path) -> Mapping[str, str]:
    return {
        "HF_HUB_OFFLINE": "1",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL": "sentence-transformers/all-MiniLM-L6-v2",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_CACHE_DIR": str(place.parent / "fastembed"),
    }


def opened(documents: Path, state: Path, place: Path, mode: str) -> Callable[[str], list[str]]:
    import asyncio

    tool = str(place / "venv" / "bin" / "basic-memory")
    for words in (("project", "add", "docs", str(documents), "--default"), ("reindex",)):
        subprocess.run([tool, *words], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    os.environ |= {"BASIC_MEMORY_FORCE_LOCAL": "true", "BASIC_MEMORY_EXPLICIT_ROUTING": "true"}
    from basic_memory.mcp.tools import search_notes

    loop = asyncio.new_event_loop()

    def ask(question: str) -> list[str]:
        search = search_notes(query=question, project="docs", search_type="hybrid", output_format="json", page_size=10)
        found = loop.run_until_complete(search)
        return [hit["file_path"] for hit in found["results"]] if isinstance(found, dict) else []

    return ask


def command(place: Path, state: Path, documents: Path, question: str, mode: str) -> list[str]:
    tool = str(place / "venv" / "bin" / "basic-memory")
    return [tool, "tool", "search-notes", question, "--hybrid", "--json", "--local"]


def closing(documents: Path) -> list[str]:
    return []
