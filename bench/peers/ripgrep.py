"""ripgrep, the floor: any of the question's words, files ordered by how many of them they hold."""

import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

NAME, VERSION, LICENCE = "ripgrep", "", "MIT"
HOW = "rg -o -i -w -e WORD …, the words of the question of three letters or more; files by distinct words, then by hits"


def install(place: Path) -> None:
    if not shutil.which("rg"):
        raise FileNotFoundError("rg is not on PATH")


def python(place: Path) -> Path:
    return Path(sys.executable)


def environment(place: Path, state: Path) -> Mapping[str, str]:
    return {}


def opened(documents: Path, state: Path, place: Path, mode: str) -> Callable[[str], list[str]]:
    def ask(question: str) -> list[str]:
        done = subprocess.run(command(place, state, documents, question, mode), capture_output=True, encoding="utf-8")
        words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line in done.stdout.splitlines():
            name, _, word = line.partition(".md:")
            words[f"{name}.md"][word.lower()] += 1
        return sorted(words, key=lambda name: (-len(words[name]), -words[name].total(), name))

    return ask


def command(place: Path, state: Path, documents: Path, question: str, mode: str) -> list[str]:
    words = dict.fromkeys(re.findall(r"\w{3,}", question.lower())) or {question: None}
    chosen = [part for word in words for part in ("-e", re.escape(word))]
    return ["rg", "--no-heading", "--with-filename", "-N", "-o", "-i", "-w", *chosen, str(documents)]


def closing(documents: Path) -> list[str]:
    return []
