"""`khms recall` asked of the base's server, before anything is imported that a bare interpreter does not hold.

The server runs the command itself (khms.cli.far) and gives back what it would have printed. Whatever it does not do,
the process does in the usual way, as if nothing had been asked.
"""

import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ALIVE = 0.5  # seconds in which a server that does not hang has given a sign of life
PATIENCE = 5.0  # seconds for the answer itself: milliseconds mostly, some more where the index has to catch up
LEFT = "khms: the server of this base does not answer; answering without it (khms server stop ends it)"
SWITCHES = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose"}
ALONE = ("--help", "-h", "--debug", "--at")  # what is never asked of a server


def recall(argv: "Sequence[str]") -> int | None:
    """The exit code once the answer is printed; None where there was none."""
    found = _split(argv)
    if found is None:
        return None
    root, quiet, verbose, words = found
    try:
        import posix as system

        from khms.server import address, asking, wire

        env = system.environ
        if address.switched_off(env):
            return None
        here = system.getcwdb()
        named = root.encode("utf-8", "surrogateescape")
        block = [text.encode("utf-8", "surrogateescape") for text in (root, quiet, verbose, *words)]
        blocks = (here, asking.told(env), wire.packed(block), wire.packed(_streams(env)))
        now, at = monotonic(), address.root(env, here, named)
        answer, why = asking.ask(env, at, b"run", blocks, now + PATIENCE, alive=now + ALIVE)
    except (ImportError, OSError, ValueError, AttributeError):
        return None
    if why == asking.LATE:
        print(LEFT, file=sys.stderr)
    if answer is None or len(answer) != 3:
        return None
    return _printed(*answer)


def _split(argv: "Sequence[str]") -> "tuple[str, str, str, Sequence[str]] | None":
    """The base that is named, "1" for quiet, for verbose, and recall's own words; None for any other command line."""
    root, on, at = "", set(), 0
    while at < len(argv) and argv[at] != "recall":
        if argv[at] in SWITCHES:
            on.add(SWITCHES[argv[at]])
        elif argv[at].startswith("--root="):
            root = argv[at][7:]
        elif argv[at] == "--root" and at + 1 < len(argv):
            at += 1
            root = argv[at]
        else:
            return None
        at += 1
    words = argv[at + 1 :]
    if at >= len(argv) or any(word in ALONE or word.startswith("--at=") for word in words):
        return None
    return root, "1" if "quiet" in on else "", "1" if "verbose" in on else "", words


def _streams(env: "dict[bytes, bytes]") -> list[bytes]:
    """Encoding and width of standard output and error (0 where it is no terminal), whether colours are welcome."""
    both = (sys.stdout, sys.stderr)
    encodings = [stream.encoding.encode("ascii") for stream in both]
    widths = [b"%d" % _width(env) if stream.isatty() else b"0" for stream in both]
    return [*encodings, *widths, b"0" if env.get(b"NO_COLOR") else b"1"]


def _width(env: "dict[bytes, bytes]") -> int:
    from khms.cli.output import terminal_width

    return terminal_width()


def _printed(out: bytes, err: bytes, status: bytes) -> int:
    """Writes the answer as the command would; says so where standard output does not take it."""
    from khms.cli import streams

    streams.secure()
    for stream, data in ((sys.stdout, out), (sys.stderr, err)):
        stream.buffer.write(data)
        stream.flush()
    why = streams.lost()
    if why:
        from khms.cli import UNWRITTEN, unwritten

        unwritten(why)
        return UNWRITTEN
    return int(status)
