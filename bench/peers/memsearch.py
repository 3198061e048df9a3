"""memsearch: Markdown in, dense and BM25 in Milvus Lite, fused by rank."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

NAME, VERSION, LICENCE = "memsearch", "0.4.23", "MIT"
MINILM = True  # it needs the model of bench/models
HOW = (
    "pip install 'memsearch[local]==0.4.23'; memsearch index DOCS -p local; memsearch search QUERY -k 20 -j -p local; "
    "its `local` provider with that provider's own default model, all-MiniLM-L6-v2, from a folder. Its first choice, "
    "bge-m3, is on a hub that was out of reach"
)


def install(place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    subprocess.run([str(python(place)), "-m", "pip", "install", "-q", f"memsearch[local]=={VERSION}"], check=True)


def python(place: Path) -> Path:
    return place / "venv" / "bin" / "python"


def environment(place: Path, state: Path) -> Mapping[str, str]:
    return {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def opened(documents: Path, state: Path, place: Path, mode: str) -> Callable[[str], list[str]]:
    import asyncio

    from memsearch import MemSearch

    model = str(place.parent / "minilm")
    memory = MemSearch(
        [str(documents)], embedding_provider="local", embedding_model=model, milvus_uri=str(state / "milvus.db")
    )
    loop = asyncio.new_event_loop()
    loop.run_until_complete(memory.index())

    def ask(question: str) -> list[str]:
        return [hit["source"] for hit in loop.run_until_complete(memory.search(question, top_k=20))]

    return ask


def command(place: Path, state: Path, documents: Path, question: str, mode: str) -> list[str]:
    settings = ["-p", "local", "-m", str(place.parent / "minilm"), "--milvus-uri", str(state / "milvus.db")]
    return [str(place / "venv" / "bin" / "memsearch"), "search", question, "-k", "20", "-j", *settings]


def closing(documents: Path) -> list[str]:
    return []
