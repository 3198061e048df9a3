"""khms itself, measured the way the others are: a folder of Markdown taken over as it is, asked through its library.

The modes are its channels: hybrid is what `khms recall` does, lexical the same by words alone, dense the bare nearness
of vectors; and minilm, which is hybrid with the model of khms[quality].
"""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from khms import __version__

NAME, VERSION, LICENCE = "khms", __version__, "MIT"
MINILM = "minilm"
HOW = "khms init --adopt DOCS; khms index; khms recall QUERY -n 10"
_KHMS = str(Path(sys.executable).with_name("khms"))


def install(place: Path) -> None:
    """It is what runs this."""


def python(place: Path) -> Path:
    return Path(sys.executable)


def environment(place: Path, state: Path) -> Mapping[str, str]:
    return {
        "KHMS_CONFIG_HOME": str(state / "config"),
        "KHMS_DATA_HOME": str(state / "data"),
        "XDG_RUNTIME_DIR": str(state),
    }


def opened(documents: Path, state: Path, place: Path, mode: str) -> Callable[[str], list[str]]:
    from khms.config import load
    from khms.index import current
    from khms.measure.evaluation import CHANNELS, askers_of
    from khms.store.layout import Base

    if mode not in (*CHANNELS, MINILM):
        raise ValueError(f"there is no channel {mode!r}")
    channel, model = ("hybrid", MINILM) if mode == MINILM else (mode, "")
    for words in (("init", "--adopt", "."), ("config", "set", "recall.model", model), ("index",)):
        done = subprocess.run([_KHMS, *words], cwd=documents, capture_output=True, encoding="utf-8", check=False)
        if done.returncode not in (0, 1):  # 1: a file was left out, as an empty one is
            raise RuntimeError(f"khms {' '.join(words)}: {done.stderr}")
    current.keep()  # as the server does
    ask = askers_of(Base(documents), load(documents), (channel,), False)[0][channel]
    return lambda question: [f"{name}.md" for name in ask(question, 10)]


def command(place: Path, state: Path, documents: Path, question: str, mode: str) -> list[str]:
    return [_KHMS, "--root", str(documents), "recall", question, "-n", "10"]


def closing(documents: Path) -> list[str]:
    """A server that `khms recall` left running."""
    return [_KHMS, "--root", str(documents), "server", "stop"]
