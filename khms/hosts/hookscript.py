"""khms's lines in a git hook's script: made, put in, found, taken out. No file is touched here.

They stand right after the `#!` line, so that no later `exec` or `exit` of the hook's own passes them by, and taking
them out gives back the bytes that were there.
"""

import re
import shlex
from dataclasses import dataclass

from khms.resources import folder

NAMES = ("pre-commit", "pre-receive")
SHEBANG = b"#!/bin/sh\n"
START, END = b"# >>> khms >>>", b"# <<< khms <<<"
OWN = b"# This file was made by khms.\n"
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
# What makes the file a program of another language, which the shell only starts: `exec tclsh "$0"`, a Python string.
_DISGUISE = re.compile(
    rb"""\A\s*(?:'''|""|"true"|"exec"|: ?(?:'''|""))|\bexec\s+[^\s$(`'"]+\s+(?:-\S+\s+)*"?\$\{?0\b""", re.MULTILINE
)
_BASES = re.compile(rb"^  for base in (.*?); do$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(rb"^  run_khms\(\) \{ (.*?) \"\$@\"; \}$", re.MULTILINE | re.DOTALL)


class Unsafe(Exception):
    """The script cannot be edited safely; the message says why, `mend` what to do about it."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend


@dataclass(frozen=True, slots=True)
class Block:
    """khms's lines in a script: its bytes from `start` to `end`. `bases` are the folders that it checks, below the work
    tree's top; `python` the interpreter that it runs, empty where it takes khms from PATH; `own` that the whole file is
    khms's."""

    start: int
    end: int
    text: bytes
    bases: tuple[str, ...] = ()
    python: str = ""
    own: bool = False


def lines(name: str, bases: tuple[str, ...], python: str) -> bytes:
    """The block for the hook `name`. With `python` it runs that interpreter, which ignores a folder `khms` in the work
    tree; without, the khms on PATH."""
    words = [python, "-P"]
    run = shlex.join([*words, "-m", "khms"]) if python else "khms"
    there = shlex.join([*words, "-c", "import khms"]) if python else "command -v khms >/dev/null"
    text = (folder("templates") / "git" / f"{name}.sh").read_text(encoding="utf-8")
    listed = " ".join(map(shlex.quote, bases))
    for mark, value in (("@KHMS@", run), ("@THERE@", f"{there} 2>/dev/null"), ("@BASES@", listed)):
        text = text.replace(mark, value)
    return text.encode("utf-8", "surrogateescape")


def alone(block: bytes) -> bytes:
    """A script of nothing but khms's lines."""
    return SHEBANG + OWN + block


def find(script: bytes) -> Block | None:
    """khms's lines in `script`, None where there are none. Raises Unsafe where their marks do not pair up."""
    starts = [found.start() for found in re.finditer(rb"^" + START, script, re.MULTILINE)]
    ends = [found.end() for found in re.finditer(rb"^" + END + rb"$", script, re.MULTILINE)]
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        line = script.count(b"\n", 0, min(starts + ends)) + 1
        raise Unsafe(f"line {line}: the marks around khms's lines do not pair up", "take khms's lines out by hand")
    start, end = starts[0], ends[0]
    if script[end : end + 1] == b"\n":
        end += 1
    elif start and script[start - 1 : start] == b"\n":
        start -= 1  # put behind a last line that had no line break
    text = script[start:end]
    bases, run = _BASES.search(text), _RUN.search(text)
    words = _words(run[1]) if run else []
    own = script[:start] == SHEBANG + OWN and end == len(script)
    return Block(start, end, text, tuple(_words(bases[1])) if bases else (), words[0] if len(words) > 2 else "", own)


def _words(text: bytes) -> list[str]:
    try:
        return shlex.split(text.decode("utf-8", "surrogateescape"))
    except ValueError:
        return []


def put(script: bytes, block: bytes) -> bytes:
    """`script` with `block` in place of khms's lines, or after the `#!` line. Raises Unsafe for what is no shell script
    that would bear it."""
    found = find(script)
    if found:
        head = b"\n" if found.text.startswith(b"\n") else b""
        tail = block.removesuffix(b"\n") if head else block
        return script[: found.start] + head + tail + script[found.end :]
    demand_shell(script)
    if not script.startswith(b"#!"):
        return block + script
    first, newline, rest = script.partition(b"\n")
    return first + b"\n" + block + rest if newline else first + b"\n" + block.removesuffix(b"\n")


def without(script: bytes, block: Block) -> bytes | None:
    """`script` less khms's lines, None where nothing else is in a file that khms made."""
    head, tail = script[: block.start], script[block.end :]
    return None if block.own else head.removesuffix(OWN) + tail


def demand_shell(script: bytes) -> None:
    """Raises Unsafe unless `script` is a shell script that takes further lines after its first."""
    own_way = "let it run khms itself; the lines are those of"
    if b"\0" in script:
        raise Unsafe("the hook is a program, not a script", own_way)
    if script.startswith(b"\xef\xbb\xbf"):
        raise Unsafe("the hook starts with a byte-order mark, so no shell runs it", "save it without one")
    if b"\r\n" in script:
        raise Unsafe("the hook has Windows line ends, which a shell stumbles over", "save it with LF line ends")
    if not script.startswith(b"#!"):
        return
    first, _, rest = script.partition(b"\n")
    name = interpreter(first)
    if name not in SHELLS:
        raise Unsafe(f"the hook is written for {name or 'an unknown interpreter'}, not for a shell", own_way)
    if _DISGUISE.search(rest):
        raise Unsafe("the hook hides a program of another language in a shell script", own_way)


def interpreter(shebang: bytes) -> str:
    """The program that a `#!` line names, without its folder; what `env` or `busybox` would start."""
    words = shebang[2:].decode("utf-8", "replace").split()
    while words:
        name = words.pop(0).rpartition("/")[2]
        if name not in ("env", "busybox") and not name.startswith("-") and "=" not in name:
            return name
    return ""
