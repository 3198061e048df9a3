"""How a reviewer answers: single keys at a terminal, whole lines from a pipe. The review gets the same of both."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from khms.cli.output import block, one_line


@dataclass(frozen=True, slots=True)
class Key:
    """What may be done: the key, its whole word, and how the row of keys shows it."""

    key: str
    word: str
    shown: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The key that was chosen, and what was said with it in the same line (always empty at a terminal)."""

    key: str
    rest: str = ""


class Lines:
    """Answers read line by line: `a`, or `drop was never measured`. Ends with EOFError."""

    optional = False  # what may be left out is not asked for: the next line is an answer already

    def choose(self, keys: Sequence[Key]) -> Answer:
        """One of the keys; an empty line is the key with an empty name, where there is one."""
        while True:
            print("\n".join(block(" ".join(key.shown for key in keys if key.shown), "")))
            line = self.line("")
            said, _, rest = line.strip().partition(" ")
            for key in keys:
                if said.lower() in (key.key, key.word):
                    return Answer(key.key, rest.strip())
            print(one_line(f"there is no {said!r} here" if said else "nothing was said"))

    def line(self, prompt: str) -> str:
        if prompt:
            print(prompt)
        sys.stdout.flush()
        read = sys.stdin.buffer.readline()
        if not read:
            raise EOFError
        said = one_line(read.decode("utf-8", "replace")).strip()
        if not sys.stdin.isatty():  # so that the answers stand in what a pipe gives back
            print(f"> {said}")
        return said

    def fresh(self) -> None:
        """What was said before this moment counts too: a pipe was written with the end in mind."""


class Keys:
    """Answers at a terminal. Keys that arrive faster than they are asked for wait their turn."""

    optional = True

    def __init__(self) -> None:
        import contextlib

        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  makes a line that is asked for one that can be edited
        self._ahead = ""

    def choose(self, keys: Sequence[Key]) -> Answer:
        print("\n".join(block(" ".join(key.shown for key in keys if key.shown), "")))
        print("> ", end="", flush=True)
        while True:
            pressed = self._pressed()
            for key in keys:
                if pressed.lower() == key.key or (pressed in "\r\n" and not key.key):
                    print(key.word, flush=True)
                    return Answer(key.key)

    def _pressed(self) -> str:
        while not self._ahead:
            read = _read()
            if not read:
                raise EOFError  # the terminal is gone
            self._ahead = read.partition("\x1b")[0]  # what an arrow sends, and a paste, is no answer
        pressed, self._ahead = self._ahead[0], self._ahead[1:]
        if pressed in "\x03\x04":
            raise KeyboardInterrupt if pressed == "\x03" else EOFError
        return pressed

    def line(self, prompt: str) -> str:
        ahead, self._ahead = self._ahead, ""
        for end in "\r\n":
            if end in ahead:
                line, _, self._ahead = ahead.partition(end)
                print(f"{prompt} {one_line(line)}")
                return one_line(line).strip()
        try:
            read = input(f"{prompt} {one_line(ahead)}")
        except UnicodeDecodeError:  # another encoding's bytes: nothing was said that could be kept
            read = ""
        return one_line(ahead + read).encode("utf-8", "replace").decode("utf-8").strip()

    def fresh(self) -> None:
        """Forgets what was typed ahead: the last word is said by someone who has read what it is about."""
        self._ahead = ""
        try:
            import termios
        except ImportError:
            return
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _read() -> str:
    """The keys that were pressed, at least one. Unlike click's, this switches the terminal without throwing away what
    was typed a moment before."""
    try:
        import termios
        import tty
    except ImportError:
        import click

        return click.getchar()
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number, termios.TCSADRAIN)
        return os.read(number, 64).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
