"""What is spoken on the socket: one question, one answer, both a line of words and then so many blocks of bytes.

    khms/1 hook <build> <patience in ms> <length> <length> …     khms/1 ok <build> <length> …

The line is the hello: a server that was built otherwise than the client ends itself, and its answer is OLD. The lengths
come first, so that either side knows whether it has all, and refuses what is too large before it is read. Before an
answer that may take its time comes a dot, as a sign of life.

The answer to a hook counts only once its client has put it out. Then that says TAKEN, and the server, when it has
written all down, DONE. A client that waits no longer says ALONE: whatever comes of the event is then its own to write
down (a question that comes with this word is refused like any that is longer than it says). So there is one line in the
log; two only where a server is killed in the microseconds between its line and DONE.
"""

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PROTOCOL = b"khms/1"
LONGEST_LINE = 256
MOST_BLOCKS = 8
LARGEST = 4 * 1024 * 1024  # bytes of a question: a hook's event has up to one million
LARGEST_ANSWER = 64 * 1024 * 1024
# What a server answers with: all is done; the question is not one for it; it is another version and goes; too many ask.
OK, ELSEWHERE, OLD, BUSY = b"ok", b"elsewhere", b"old", b"busy"

TAKEN, ALONE, DONE, ALIVE = b"t", b"a", b"d", b"."


class Garbled(Exception):
    """What came is not of this protocol, too large, or cut off."""


def message(words: "Sequence[bytes]", blocks: "Sequence[bytes]" = ()) -> bytes:
    lengths = (b"%d" % len(block) for block in blocks)
    return b" ".join((PROTOCOL, *words, *lengths)) + b"\n" + b"".join(blocks)


def receive(
    connection: "Any", words: int, until: float, largest: int, alive: float | None = None
) -> tuple[list[bytes], list[bytes]]:
    """One message with so many words before the lengths. Raises Garbled, OSError (a TimeoutError at the monotonic time
    `until`, or at `alive` if nothing at all has come by then)."""
    held = _some(connection, alive or until).removeprefix(ALIVE)
    while b"\n" not in held:
        if len(held) > LONGEST_LINE:
            raise Garbled("a line without end")
        held += _some(connection, until)
    line, _, rest = held.partition(b"\n")
    protocol, *said = line.split(b" ")
    if protocol != PROTOCOL or len(said) < words or len(said) > words + MOST_BLOCKS or len(line) > LONGEST_LINE:
        raise Garbled("not of this protocol")
    lengths = [int(word) if word.isdigit() and len(word) < 12 else -1 for word in said[words:]]
    whole = sum(lengths)
    if whole > largest or min(lengths, default=0) < 0:
        raise Garbled("too large")
    parts, size = [rest], len(rest)
    while size < whole:
        parts.append(_some(connection, until))
        size += len(parts[-1])
    if size != whole:
        raise Garbled("more than was announced")
    data, at, blocks = b"".join(parts), 0, []
    for length in lengths:
        blocks.append(data[at : at + length])
        at += length
    return said[:words], blocks


def send(connection: "Any", data: bytes, until: float) -> None:
    """Raises OSError, a TimeoutError at the monotonic time `until`."""
    connection.settimeout(_left(until))
    connection.sendall(data)


def word(connection: "Any", until: float) -> bytes:
    """The single letter that comes next, empty where the other end is gone. Raises OSError, a TimeoutError at the
    monotonic time `until`."""
    connection.settimeout(_left(until))
    said: bytes = connection.recv(1)
    return said


def _some(connection: "Any", until: float) -> bytes:
    connection.settimeout(_left(until))
    part: bytes = connection.recv(65536)
    if not part:
        raise Garbled("cut off")
    return part


def _left(until: float) -> float:
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def packed(pairs: "Sequence[bytes]") -> bytes:
    """Texts that hold no NUL (arguments, variables) as one block."""
    return b"\0".join(pairs)


def unpacked(block: bytes) -> list[bytes]:
    return block.split(b"\0") if block else []
