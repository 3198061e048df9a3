"""The client's end: one question to the server of a base, and either its whole answer or why there is none.

Nothing is raised and nothing is written before the answer is complete, so whoever asks can always go on without.
"""

from time import monotonic

from khms.server import address, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    env: "Env", root: bytes, kind: bytes, blocks: "Sequence[bytes]", until: float, *, default: bool = True
) -> tuple[list[bytes] | None, str]:
    """The answer's blocks, or None and one word why. `root` is the base as `address.root` tells it; without one, or
    where it has no server, the user's own base is asked if `default`. `until` is a time of `monotonic`."""
    if address.switched_off(env):
        return None, OFF
    why = NONE
    try:
        place = address.folder(env)
        unsafe = address.why_not(place)
        if unsafe:
            return None, NONE if not address.exists(place) else UNSAFE
        for real in _bases(root, default):
            answer, found = _exchange(place + b"/" + address.name(env, real) + address.SOCKET, kind, blocks, until)
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


def _exchange(path: bytes, kind: bytes, blocks: "Sequence[bytes]", until: float) -> tuple[list[bytes] | None, str]:
    import _socket

    import khms

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(max(until - monotonic(), 0.001))
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
        wire.send(connection, wire.message(words, blocks), until)
        (status, _), answer = wire.receive(connection, 2, until, wire.LARGEST_ANSWER)
    finally:
        connection.close()
    return (answer, "") if status == wire.OK else (None, status.decode("ascii", "replace"))


def cwd_of(raw: bytes) -> bytes:
    """The folder that an event names, where that can be seen without reading it as JSON; a quoted name is a key, for
    within a text quotes are escaped."""
    at = raw.find(b'"cwd"')
    if at < 0:
        return b""
    start = raw.find(b'"', raw.find(b":", at) + 1) + 1
    value = raw[start : raw.find(b'"', start)]
    return value if value.startswith(b"/") and b"\\" not in value else b""
