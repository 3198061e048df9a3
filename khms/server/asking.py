"""The client's end: one question to the server of a base, and either its whole answer or why there is none.

Nothing is raised and nothing is put out before the answer is complete, so whoever asks can always go on without.
"""

from time import monotonic

from khms.server import address, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from khms.server.address import Env

# The variables that a server is told of: the user's word on khms, and by what an agent host is known.
TOLD = (
    b"KHMS_", b"CLAUDE", b"COPILOT_", b"GEMINI_", b"CURSOR_", b"CODEX_", b"OPENCODE", b"KIRO_", b"HERMES_",
    b"OPENCLAW_", b"AI_AGENT",
)  # fmt: skip
NONE, DEAD, UNSAFE, FOREIGN, LATE, CUT, OFF = "none", "dead", "unsafe", "foreign", "late", "cut-off", "off"


def told(env: "Env") -> bytes:
    return wire.packed([b"%b=%b" % pair for pair in env.items() if pair[0].startswith(TOLD)])


def ask(
    env: "Env",
    root: bytes,
    kind: bytes,
    blocks: "Sequence[bytes]",
    until: float,
    *,
    default: bool = True,
    alive: float | None = None,
    take: "Callable[[bytes], None] | None" = None,
) -> tuple[list[bytes] | None, str]:
    """The answer's blocks, or None and one word why. `root` is the base as `address.root` tells it; without one, or
    where it has no server, the user's own base is asked if `default`. `until` is a time of `monotonic`, `alive` an
    earlier one at which a server that has given no sign of life is left. `take` puts out the answer to a hook; the word
    beside such an answer says why the server did not write down what came of the event, and is empty where it did."""
    if address.switched_off(env):
        return None, OFF
    why = NONE
    try:
        place = address.folder(env)
        unsafe = address.why_not(place)
        if unsafe:
            return None, NONE if not address.exists(place) else UNSAFE
        for real in _bases(root, default):
            answer, found = _exchange(
                place + b"/" + address.name(env, real) + address.SOCKET, kind, blocks, until, alive or until, take
            )
            if found not in (NONE, DEAD):
                return answer, found
            why = DEAD if DEAD in (why, found) else NONE
        return None, why
    except (OSError, ValueError, wire.Garbled) as error:
        return None, LATE if isinstance(error, TimeoutError) else CUT


def _bases(root: bytes, default: bool) -> "Iterator[bytes]":
    if root:
        yield address.real(root)
    if default:
        yield b""


def _exchange(
    path: bytes,
    kind: bytes,
    blocks: "Sequence[bytes]",
    until: float,
    alive: float,
    take: "Callable[[bytes], None] | None",
) -> tuple[list[bytes] | None, str]:
    import _socket

    import khms

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(max(alive - monotonic(), 0.001))
        try:
            connection.connect(path)
        except FileNotFoundError:
            return None, NONE
        except ConnectionRefusedError:
            return None, DEAD
        if address.peer(connection) != address.user():
            return None, FOREIGN
        patience = b"%d" % max(int((until - monotonic()) * 1000), 1)
        words = (kind, address.build(khms.__file__), patience)
        try:
            wire.send(connection, wire.message(words, blocks), alive)
            (status, _), answer = wire.receive(connection, 2, until, wire.LARGEST_ANSWER, alive)
        except TimeoutError:
            if take is not None:
                _tell(connection, wire.ALONE)
            raise
        if take is not None and status == wire.OK:
            return answer, _taken(connection, answer, take, until)
    finally:
        connection.close()
    return (answer, "") if status == wire.OK else (None, status.decode("ascii", "replace"))


def _taken(connection: "Any", answer: list[bytes], take: "Callable[[bytes], None]", until: float) -> str:
    """Puts the answer out and waits until the server has written that down; else, in one word, why it has not."""
    take(answer[0])
    try:
        _tell(connection, wire.TAKEN)
        return "" if wire.word(connection, until) == wire.DONE else CUT
    except OSError as error:
        return LATE if isinstance(error, TimeoutError) else CUT


def _tell(connection: "Any", word: bytes) -> None:
    """Sends one letter, which never has to wait for room unless the other end has read nothing for long."""
    connection.settimeout(0.0)
    try:  # noqa: SIM105 - contextlib would cost a hook a tenth of a bare interpreter start
        connection.send(word)
    except OSError:
        pass


def cwd_of(raw: bytes) -> bytes:
    """The folder that an event names, where that can be seen without reading it as JSON; a quoted name is a key, for
    within a text quotes are escaped."""
    at = raw.find(b'"cwd"')
    if at < 0:
        return b""
    start = raw.find(b'"', raw.find(b":", at) + 1) + 1
    value = raw[start : raw.find(b'"', start)]
    return value if value.startswith(b"/") and b"\\" not in value else b""
