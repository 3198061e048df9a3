"""A server in this process, and clients of every kind."""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from khms.hooks import run, sessions
from khms.hooks.budget import SessionState
from khms.index import sync
from khms.server import address, asking, launch, service, wire
from khms.server.service import Server
from khms.store import lock as locking
from khms.store.layout import Base

Ask = Callable[..., tuple[list[bytes] | None, str]]
Hook = Callable[..., str | None]
Inside = Callable[..., Server]
PATIENCE = 30.0


def path_of(base: Base) -> bytes:
    place, _ = launch.made()
    return launch.lock_path(place, str(base.root)).removesuffix(launch.LOCK) + address.SOCKET


def connected(base: Base) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(PATIENCE)
    client.connect(path_of(base))
    return client


def until(true: Callable[[], object]) -> None:
    """Waits for what another thread brings about."""
    limit = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < limit


def test_a_hook_is_answered_by_meaning_and_logged(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], logged: Callable[..., Any]
) -> None:
    inside(stocked)
    text = hook(stocked, event())
    assert text and "K-00001" in text and str(stocked.root) in text
    (line,) = logged(stocked)
    assert (line["decision"], line["server"], line["channel"]) == ("inject", True, "hybrid")
    assert hook(stocked, event()) == "", "the session was told already"
    assert logged(stocked)[1]["reason"] == "same-query"


def test_the_clients_environment_counts_and_not_the_servers(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], logged: Callable[..., Any]
) -> None:
    inside(stocked)
    root = os.fsencode(stocked.root)
    assert hook(stocked, event(session="s1"), {b"KHMS_ROOT": root, b"KHMS_INCOGNITO": b"1"}) == ""
    assert hook(stocked, event(session="s2"), {b"KHMS_ROOT": b".." + root})
    assert [line["reason"] for line in logged(stocked)] == ["incognito", ""]
    assert sessions.is_off("s1") and not sessions.is_off("s2")


def test_an_event_of_another_base_is_left_to_the_client(
    stocked: Base, inside: Inside, ask: Ask, event: Callable[..., bytes], logged: Callable[..., Any], tmp_path: Path
) -> None:
    inside(stocked)
    told = asking.told({b"KHMS_ROOT": os.fsencode(tmp_path / "none")})
    for env, cwd in ((told, "/"), (b"", "/"), (b"", str(stocked.root))):  # the last is not trusted
        assert ask(stocked, b"hook", (b"claude-code", b"/", env, event(cwd=cwd), b"1.5")) == (None, "elsewhere")
    assert logged(stocked) == []


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0" * 100_000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"khms/1 hook x 5 99999999999\n",
        b"khms/1 hook x y 0 0 0 0\n",
        b"khms/1 hook BUILD y 0 0 0 0\n",
        b"khms/1 nothing BUILD 5\n",
        b"khms/1 hook BUILD 5 1\nx",
        b"khms/1 hook BUILD 5000 1 1 1 100\nx/",
        b"khms/1 hook BUILD 5000 1 1 1 1 1\n\xff\xff\xff\xff1",
        b"khms/1 run BUILD 5000 1 1 1 1\n\xff\xff\xff\xff",
    ],
)
def test_garbage_is_passed_over(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], sent: bytes
) -> None:
    server = inside(stocked)
    with connected(stocked) as client:
        client.sendall(sent.replace(b"BUILD", server.build))
        client.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):  # it was not read to its end
            while part := client.recv(4096):
                answer += part
    answer = answer.removeprefix(wire.ALIVE)
    assert answer == b"" or answer.startswith((b"khms/1 elsewhere ", b"khms/1 old "))
    if not answer.startswith(b"khms/1 old "):
        assert hook(stocked, event()), "the next one is served"


def test_clients_that_dawdle_or_leave_hinder_nobody(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes]
) -> None:
    server = inside(stocked)
    slow = [connected(stocked) for _ in range(8)]
    for client in slow[:4]:
        client.sendall(b"khms/1 hook ")
    for client in slow[4:]:
        client.close()
    assert hook(stocked, event())
    for client in slow[:4]:
        assert client.recv(10) == b"", "what does not arrive in time is not waited for"
        client.close()
    until(lambda: server._active == 0)


def test_more_than_it_takes_at_once_are_sent_away(
    stocked: Base, inside: Inside, ask: Ask, hook: Hook, event: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST", 2)
    server = inside(stocked)
    slow = [connected(stocked) for _ in range(2)]
    until(lambda: server._active == 2)
    assert ask(stocked, b"status")[1] in ("busy", "cut-off")
    for client in slow:
        client.close()
    until(lambda: server._active == 0)
    assert hook(stocked, event())


def test_many_clients_at_once(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], logged: Callable[..., Any]
) -> None:
    inside(stocked)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: hook(stocked, event(session=f"s{n}")), range(36)))
    assert all(text and "K-00001" in text for text in answers), [
        str(line) for line in logged(stocked) if line["decision"] != "inject"
    ]


def test_one_session_is_told_once_by_many_hooks_at_once(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes]
) -> None:
    inside(stocked)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: hook(stocked, event(f"checksum keeps failing on deploy {n}")), range(8)))
    assert sum(bool(text) for text in answers) == 1


def test_another_user_is_not_heard(stocked: Base, inside: Inside, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    inside(stocked)
    real, here = address.peer, threading.current_thread()
    stranger = os.geteuid() + 1
    monkeypatch.setattr(
        address, "peer", lambda connection: os.geteuid() if threading.current_thread() is here else stranger
    )
    assert ask(stocked, b"status") == (None, "cut-off")
    monkeypatch.setattr(address, "peer", real)
    assert ask(stocked, b"status")[1] == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_real_other_user_is_not_heard(stocked: Base, inside: Inside, sockets: Path) -> None:
    server = inside(stocked)
    path = Path(os.fsdecode(path_of(stocked)))
    for place in (sockets, sockets / "khms", path):
        place.chmod(0o777)
    code = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode())\n"
        "try: print(s.makefile('rb').read())\n"
        "except ConnectionError: print(b'')\n"
    )
    words = ["/usr/bin/env", "python3", "-c", code, str(path)]
    for user in (0, 54321):
        said = f"khms/1 status {server.build.decode()} 5000\n"
        done = subprocess.run([*words, said], user=user, group=user, capture_output=True, timeout=60, check=False)
        assert (b"pid" in done.stdout) is (user == 0), done


def test_another_build_is_told_and_makes_room(stocked: Base, inside: Inside, ask: Ask) -> None:
    server = inside(stocked)
    with connected(stocked) as client:
        client.sendall(b"khms/1 status 1-2-3 5000\n")
        assert client.recv(100).startswith(b"khms/1 old ")
    until(server._over.is_set)


def test_it_ends_where_its_base_is_gone_or_nobody_asks(
    stocked: Base, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TICK", 0.01)
    server = inside(stocked)
    until(lambda: server._seat)
    assert not server._pointless()
    server._idle = -1.0
    assert server._pointless()
    server._idle = 60.0
    assert not server._pointless()
    seat, server._seat = server._seat, f"{server._seat}-gone"
    assert server._pointless(), "nobody can ask where the socket was taken away"
    server._seat = seat
    assert not server._pointless()
    moved = stocked.root.rename(stocked.root.with_name("moved"))
    assert server._pointless()
    stocked.root.mkdir()
    assert server._pointless(), "another folder in its place is another base"
    shutil.rmtree(moved)
    assert server._pointless()


def test_a_deleted_local_folder_is_made_again(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from khms.hooks import upkeep

    class Built:
        """The index built in this process: a test waits for what it starts."""

        def __init__(self, base: Base) -> None:
            sync.refresh(base)

        def wait(self) -> None:
            pass

    monkeypatch.setattr(upkeep, "refresh", Built)
    inside(stocked)
    assert hook(stocked, event())
    while stocked.local.exists():  # the server may be writing there
        shutil.rmtree(stocked.local, ignore_errors=True)
    until(lambda: hook(stocked, event(session=f"s{time.monotonic_ns()}")))
    assert ask(stocked, b"status")[1] == ""


def test_nothing_is_remembered_that_comes_too_late(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], logged: Callable[..., Any]
) -> None:
    inside(stocked)
    until(lambda: hook(stocked, event(session="first")))
    with locking.hold(sessions.Session(stocked, "s1").lock, "test"):
        assert hook(stocked, event(session="s1"), seconds=0.05) is None
        until(lambda: len(logged(stocked)) > 1)
    assert logged(stocked)[-1]["decision"] == "silent"
    assert hook(stocked, event(session="s1")), "it was told nothing, so it is told now"


def test_an_answer_that_nobody_took_is_not_counted_as_one(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], logged: Callable[..., Any]
) -> None:
    server = inside(stocked)
    told = asking.told({b"KHMS_ROOT": os.fsencode(stocked.root)})
    blocks = (b"claude-code", b"/", told, event(), b"1.5")
    with connected(stocked) as client:  # one that is killed once it has the answer
        client.sendall(wire.message((b"hook", server.build, b"30000"), blocks))
        assert b"K-00001" in b"".join(wire.receive(client, 2, time.monotonic() + PATIENCE, wire.LARGEST_ANSWER)[1])
    until(lambda: logged(stocked))
    assert [(line["decision"], line["reason"]) for line in logged(stocked)] == [("silent", "unheard")]
    assert "K-00001" in str(hook(stocked, event())), "the session was told nothing, so it is told now"


def test_a_client_that_goes_on_alone_writes_its_own_line(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], logged: Callable[..., Any]
) -> None:
    server = inside(stocked)
    told = asking.told({b"KHMS_ROOT": os.fsencode(stocked.root)})
    blocks = (b"claude-code", b"/", told, event(), b"1.5")
    with connected(stocked) as client:
        with locking.hold(sessions.Session(stocked, "s1").lock, "test"):  # so that it comes too late
            client.sendall(wire.message((b"hook", server.build, b"30000"), blocks))
            until(lambda: server.answered == 1)
            client.sendall(wire.ALONE)
        assert client.recv(1) == b"", "it closes without an answer"
    assert logged(stocked) == []
    assert sessions.Session(stocked, "s1").load() == SessionState()
    assert hook(stocked, event())


def test_what_a_killed_server_remembered_is_not_held_against_its_client(
    stocked: Base, inside: Inside, hook: Hook, event: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside(stocked)
    assert hook(stocked, event())
    (at,) = sessions.Session(stocked, "s1").load().injections
    monkeypatch.setenv("KHMS_ROOT", str(stocked.root))
    again = run.respond("claude-code", event(), env=os.environ, cwd="/", asker=run.Asker(at))
    assert b"K-00001" in again.answer, "the same event, asked again"
    assert sessions.Session(stocked, "s1").load().injections == (at,)
    other = run.respond("claude-code", event(), env=os.environ, cwd="/", asker=run.Asker())
    assert (other.answer, other.record["reason"]) == (b"", "same-query")
