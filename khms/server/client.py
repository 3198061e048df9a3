"""One event of a host, from standard input to standard output: asked of the base's server, else answered in-process.

The shipped client (hooks/client.py) is compiled at every run, so all it does is to come here. Nothing is imported that
a bare interpreter does not hold: `os` and `signal` would cost 0.2 and 0.7 times its start. The deadline is kept by a
thread and not by a timer signal, because Python handles a signal between two of its own steps only, so not before a
call into a library has come back.
"""

import sys
from _thread import start_new_thread
from time import monotonic, sleep, time

if sys.platform == "win32":
    import nt as system
else:
    import posix as system

LIMIT = 1024 * 1024
RESERVE = 0.1  # seconds of the deadline that are kept for the log line about it
SHARE = 0.5  # of the deadline that a server has; what is left is enough without one


def main(host: str, deadline_ms: int) -> None:
    """Answers the event. `deadline_ms` holds until khms.hooks.run knows the base's own figure, its `deadline_ms`."""
    started, at = monotonic(), time()
    doing = ["the event on standard input had no end"]
    start_new_thread(_watch, (host, started, deadline_ms, doing))
    raw = _read()
    doing.append("deadline")
    answer, why = _asked(host, raw, started + deadline_ms / 1000 * SHARE, at)
    if answer is not None and not why:
        return
    import khms.hooks.run as run

    if answer is not None:
        from khms.server import asking

        run.unwritten(host, answer, asking.cwd_of(raw).decode("utf-8", "surrogateescape"))
        return
    base = run.main(host, raw, why, at)
    sys.stdout.flush()
    if base and why != "off":
        from khms.server import launch

        launch.start(base)


def _asked(host: str, raw: bytes, until: float, at: float) -> tuple[bytes | None, str]:
    """What the server said, which then is put out, and why it could not write that down; else None and why there was
    no answer."""
    try:
        from khms.server import address, asking

        here = system.getcwdb()
        env = system.environ
        if address.switched_off(env) or not raw.strip() or len(raw) > LIMIT:
            return None, "off" if address.switched_off(env) else "no-event"
        root = address.root(env, address.standing(asking.cwd_of(raw) or here, here))
        blocks = (host.encode(), here, asking.told(env), raw, repr(at).encode())
        answer, why = asking.ask(env, root, b"hook", blocks, until, take=_put)
        return answer[0] if answer else None, why
    except BaseException as error:
        return None, type(error).__name__


def _put(answer: bytes) -> None:
    """To standard output. Where nobody reads that, the process ends, and the server notes that it was not heard."""
    try:
        while answer:
            answer = answer[system.write(1, answer) :]
    except OSError:
        system._exit(0)


def _read() -> bytes:
    """Standard input to its end. Beyond the limit it is read, so that the host can write it, but not kept."""
    parts, size = [], 0
    try:
        while part := system.read(0, 65536):
            if size <= LIMIT:
                parts.append(part)
                size += len(part)
    except OSError:
        return b""
    return b"".join(parts)


def _watch(host: str, started: float, deadline_ms: int, doing: list[str]) -> None:
    """Ends the process at the deadline, after a line in the log if that can be had in time."""
    try:
        while (left := started + _deadline(deadline_ms) / 1000 - RESERVE - monotonic()) > 0:
            sleep(min(left, 0.05))
        start_new_thread(_end, ())
        import khms.hooks.run as run

        run.late(host, doing[-1])
    finally:
        system._exit(0)


def _deadline(known: int) -> int:
    run = sys.modules.get("khms.hooks.run")
    return getattr(run, "deadline_ms", known)


def _end() -> None:
    sleep(RESERVE)
    system._exit(0)
