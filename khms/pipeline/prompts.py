"""The prompts of the proposers: files under `templates/prompts`, each version known by the hash of its bytes."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from khms import resources
from khms.model.frame import run_marker

EVALUATE, GENERATE, REPAIR = "evaluate", "generate", "repair"
NAMES = (EVALUATE, GENERATE, REPAIR)


@dataclass(frozen=True, slots=True)
class Prompt:
    """`system` is the template's text, `text` the matter, which begins with the run's marker: a transcript of this very
    call must never be read as a source."""

    system: str
    text: str
    run: str

    def again(self, wrong: str) -> str:
        """The text for another try, with what was wrong."""
        return f"{self.text}\n\n# Your last answer does not count\n\n{wrong}\n\nAnswer again, with one JSON object.\n"

    def repair(self, answer: str, wrong: str, schema: Mapping[str, Any] | None) -> "Prompt":
        """The prompt that asks for the form alone to be mended."""
        form = f"# The form\n\n{json.dumps(schema, ensure_ascii=False)}\n\n" if schema else ""
        bars = "\n".join(f"| {line}" for line in answer.split("\n"))
        text = f"{form}# What is wrong with it\n\n{wrong}\n\n# The text\n\n{bars}\n"
        return made(REPAIR, text, self.run)


def made(name: str, text: str, run: str) -> Prompt:
    return Prompt(template(name), f"{run_marker(run)}\n\n{text}", run)


@cache
def template(name: str) -> str:
    return (resources.folder("templates") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def version(name: str) -> str:
    """The template's SHA-256, as a unit records it."""
    return hashlib.sha256(template(name).encode("utf-8")).hexdigest()
