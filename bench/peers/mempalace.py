"""mempalace: drawers of verbatim text in Chroma, nearest by MiniLM, then ranked again with BM25."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

NAME, VERSION, LICENCE = "mempalace", "3.11.0", "MIT"
MINILM = True  # it needs the model of bench/models
HOW = (
    "pip install mempalace==3.11.0; mempalace init --yes --no-llm DOCS; mempalace mine DOCS; mempalace search QUERY "
    "--results 10; its default model all-MiniLM-L6-v2, with int8 weights in place of the file it would fetch. Its mine "
    "leaves out files below 50 characters"
)
_MODEL = Path(".cache") / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"


def install(place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    subprocess.run([str(python(place)), "-m", "pip", "install", "-q", f"mempalace=={VERSION}"], check=True)


def python(place: Path) -> Path:
    return place / "venv" / "bin" / "python"


def environment(place: Path, state: Path) -> Mapping[str, str]:
    return {"HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False"}


def opened(documents: Path, state: Path, place: Path, mode: str) -> Callable[[str], list[str]]:
    held = Path.home() / _MODEL
    if not held.exists():
        shutil.copytree(place.parent / "minilm-onnx", held)
    tool = str(place / "venv" / "bin" / "mempalace")
    palace = str(state / "palace")
    for words in (("init", "--yes", "--no-llm"), ("mine",)):
        command = [tool, "--palace", palace, *words, str(documents)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    from mempalace.searcher import search_memories

    def ask(question: str) -> list[str]:
        found = search_memories(question, palace_path=palace, n_results=10)
        return [hit["source_file"] for hit in found["results"]]

    return ask


def command(place: Path, state: Path, documents: Path, question: str, mode: str) -> list[str]:
    tool = str(place / "venv" / "bin" / "mempalace")
    return [tool, "--palace", str(state / "palace"), "search", question, "--results", "10"]


def closing(documents: Path) -> list[str]:
    return []
