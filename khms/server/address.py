"""Where the server of a base is reached: a Unix socket in a folder that nobody else can enter.

The folder is `khms` in XDG_RUNTIME_DIR, else `khms-<uid>` in the temporary folder. The name is a number made of the
base's real path, which may be longer than a socket's path can be, and of the variables that say where the user's own
settings lie: clients with other settings have another server. Two bases with one number would only do without one,
because a server answers for its own base alone.

Everything is bytes and system calls: a hook pays for this before it knows whether there is a server.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Env = Mapping[bytes, bytes]

if sys.platform == "win32":  # loopback and a token would stand here; until then there is no server
    system = None
else:
    import posix as system

# What decides which settings, which trust and which switches count.
SETTINGS = (b"HOME", b"KHMS_CONFIG_HOME", b"KHMS_DATA_HOME", b"XDG_CONFIG_HOME", b"XDG_DATA_HOME")
SOCKET = b".sock"
LONGEST = 100  # bytes of a socket's path; systems take 103 to 107
CONFIG, HIDDEN, OLDER = b"/khms.toml", b"/.memory", b"/memory/know"
_FORMAT, _FOLDER, _FILE, _OTHERS = 0o170000, 0o040000, 0o100000, 0o077
_PRIME = (1 << 89) - 1


def switched_off(env: "Env") -> bool:
    """Whether no server is to be asked or started: KHMS_SERVER_OFF is set, or this system has none."""
    return system is None or env.get(b"KHMS_SERVER_OFF", b"") not in (b"", b"0")


def root(env: "Env", cwd: bytes, named: bytes = b"") -> bytes:
    """The folder of the base that a process in the folder `cwd` (without links) works on, as far as stats tell; empty
    where they tell nothing. The server asked then decides by the rules themselves whether it is its own."""
    said = named or env.get(b"KHMS_ROOT", b"")
    if said:
        folder = joined(cwd, said)
        for place in (folder, folder + HIDDEN):
            if _is(place + CONFIG, _FILE) or _is(place + OLDER, _FOLDER):
                return place
        return b""
    folder = cwd.rstrip(b"/")
    while True:
        if _is(folder + CONFIG, _FILE):
            return folder or b"/"
        if _is(folder + HIDDEN + CONFIG, _FILE):
            return folder + HIDDEN
        if not folder:
            return cwd if _is(cwd + OLDER, _FOLDER) else b""
        folder = folder[: folder.rfind(b"/")]


def joined(cwd: bytes, path: bytes) -> bytes:
    return path if path.startswith(b"/") else cwd.rstrip(b"/") + b"/" + path


def name(env: "Env", real: bytes) -> bytes:
    """What the server of the base at the path `real` (without links) is called."""
    parts = (real, *(env.get(variable, b"") for variable in SETTINGS))
    return b"%x" % (int.from_bytes(b"\0".join(parts), "big") % _PRIME)


def folder(env: "Env") -> bytes:
    """The folder of this user's sockets, whether it is there or not; empty where there is no room for one."""
    runtime = env.get(b"XDG_RUNTIME_DIR", b"")
    if runtime.startswith(b"/") and not _not_ours(runtime) and len(runtime) < LONGEST - 40:
        return runtime.rstrip(b"/") + b"/khms"
    temporary = env.get(b"TMPDIR", b"")
    if not temporary.startswith(b"/") or len(temporary) >= LONGEST - 50:
        temporary = b"/tmp"
    return temporary.rstrip(b"/") + b"/khms-%d" % system.geteuid()


def why_not(place: bytes) -> str:
    """Why nothing in the folder `place` may be believed; empty where it is this user's, and closed to all others."""
    try:
        found = system.lstat(place)
    except OSError as error:
        return error.strerror or "it cannot be looked at"
    if found.st_mode & _FORMAT != _FOLDER:
        return "it is not a folder"
    if found.st_uid != system.geteuid():
        return "it belongs to another user"
    return "others may enter it" if found.st_mode & _OTHERS else ""


def _not_ours(place: bytes) -> bool:
    """Whether a folder is missing or somebody else's, as after `su`; its own mode is the system's affair."""
    try:
        found = system.stat(place)
    except OSError:
        return True
    return found.st_mode & _FORMAT != _FOLDER or found.st_uid != system.geteuid() or bool(found.st_mode & 0o022)


def exists(place: bytes) -> bool:
    try:
        system.lstat(place)
    except OSError:
        return False
    return True


def _is(path: bytes, kind: int) -> bool:
    try:
        return system.stat(path).st_mode & _FORMAT == kind
    except (OSError, ValueError):
        return False


def build(init: str) -> bytes:
    """What tells two installed versions apart: the file `khms/__init__.py` as it stands."""
    found = system.stat(init)
    return b"%d-%d-%d" % (found.st_mtime_ns, found.st_size, found.st_ino)


def real(path: bytes) -> bytes:
    """`path` without links; the system tells it of the folder that a process stands in. Only for a process with one
    thread: for a moment it stands there."""
    here = system.open(b".", system.O_RDONLY)
    try:
        system.chdir(path)
        return system.getcwdb()
    finally:
        system.fchdir(here)
        system.close(here)


def standing(path: bytes, here: bytes) -> bytes:
    """`path` without links, as the folder `here` that a process stands in is; as it is where it is gone."""
    try:
        return path if path == here else real(path)
    except OSError:
        return path


def user() -> int:
    return system.geteuid()


def peer(connection: object) -> int:
    """The uid of the process at the other end of a connected socket, -1 where the system does not tell."""
    import _socket

    ask: Callable[[int, int, int], bytes] = connection.getsockopt  # type: ignore[attr-defined]
    if sys.platform == "linux":
        return int.from_bytes(ask(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    if sys.platform == "darwin" or "freebsd" in sys.platform:
        found = ask(0, 1, 76)  # LOCAL_PEERCRED gives a struct xucred: version, uid, groups
        return int.from_bytes(found[4:8], sys.byteorder) if len(found) >= 8 else -1
    return -1
