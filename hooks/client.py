"""What a host runs at its events: `<python> -IS client.py <host> <folders>`, the event on standard input.

Hands the event to khms.hooks.run, which answers on standard output. Whatever goes wrong, the host sees exit code
0 and not a word; at the deadline the process ends, wherever it is. KHMS_HOOKS_OFF=1 ends it before anything else.

Runs before `site`, and imports only what the interpreter holds anyway: `os` and `signal` would cost 0.2 and 0.7
times a bare interpreter start. The deadline is kept by a thread and not by a timer signal, because Python handles
a signal between two of its own steps only, so not before a call into a library has come back.
"""

import sys
from _thread import start_new_thread
from time import monotonic, sleep

if sys.platform == "win32":
    import nt as system
else:
    import posix as system

LIMIT = 1024 * 1024
DEADLINE_MS = 800  # holds until khms.hooks.run knows the base's own figure, its `deadline_ms`
RESERVE = 0.1  # seconds of the deadline that are kept for the log line about it

started = monotonic()


def switched_off() -> bool:
    if sys.platform == "win32":
        return system.environ.get("KHMS_HOOKS_OFF", "") not in ("", "0")
    return system.environ.get(b"KHMS_HOOKS_OFF", b"") not in (b"", b"0")


def silence() -> None:
    """Sends nowhere what a library writes to standard error by itself."""
    nowhere = system.open("nul" if sys.platform == "win32" else "/dev/null", system.O_WRONLY)
    if nowhere != 2:
        system.dup2(nowhere, 2)


def read() -> bytes:
    """Standard input to its end. Beyond the limit it is read, so that the host can write it, but not kept."""
    parts, size = [], 0
    while part := system.read(0, 65536):
        if size <= LIMIT:
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def left() -> float:
    run = sys.modules.get("khms.hooks.run")
    return started + getattr(run, "deadline_ms", DEADLINE_MS) / 1000 - monotonic()


def end() -> None:
    sleep(RESERVE)
    system._exit(0)


def watch(host: str, why: list[str]) -> None:
    """Ends the process at the deadline, after a line in the log if that can be had in time."""
    try:
        while (rest := left() - RESERVE) > 0:
            sleep(min(rest, 0.05))
        start_new_thread(end, ())
        import khms.hooks.run as run

        run.late(host, why[-1])
    finally:
        system._exit(0)


def main(host: str, folders: str) -> None:
    silence()
    sys.path.extend(folders.split(";" if sys.platform == "win32" else ":"))
    why = ["the event on standard input had no end"]
    start_new_thread(watch, (host, why))
    try:
        raw = read()
    except OSError:
        raw = b""
    why.append("deadline")
    import khms.hooks.run as run

    run.main(host, raw)
    sys.stdout.flush()


try:
    if not switched_off():
        main(*sys.argv[1:3])
except BaseException:
    pass
finally:
    system._exit(0)
