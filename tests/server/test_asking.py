"""The client's end: whatever is or is not behind the socket, it goes on, and in time."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from khms.server import address, asking, launch, wire
from khms.store.layout import Base

Ask = Callable[..., tuple[list[bytes] | None, str]]


@pytest.fixture
def behind(base: Base, sockets: Path) -> Iterator[Callable[..., None]]:
    """A socket in the base's place, behind which the given function meets the first client."""
    started: list[tuple[threading.Thread, socket.socket]] = []

    def listen(meet: Callable[[socket.socket], object]) -> None:
        place, _ = launch.made()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(launch.lock_path(place, str(base.root)).removesuffix(launch.LOCK) + address.SOCKET)
        listener.listen(1)

        def work() -> None:
            connection, _ = listener.accept()
            with connection:
                meet(connection)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        started.append((thread, listener))

    yield listen
    for thread, listener in started:
        thread.join(30)
        listener.close()


def reader(connection: socket.socket) -> None:
    wire.receive(connection, 3, time.monotonic() + 30, wire.LARGEST)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "cut-off"),
        (b"khms/1 ok b 100\nhalf", "cut-off"),
        (b"khms/1 ok", "cut-off"),
        (b"<html>", "cut-off"),
        (b"\0" * 10_000, "cut-off"),
        (b"khms/1 ok b 99999999999\n", "cut-off"),
        (b"khms/1 ok b 3\nabcd", "cut-off"),
        (b"khms/1 old b\n", "old"),
        (b"khms/1 elsewhere b\n", "elsewhere"),
        (b"khms/1 busy b\n", "busy"),
    ],
)
def test_what_is_no_whole_answer_is_none(
    base: Base, ask: Ask, behind: Callable[..., None], answer: bytes, why: str
) -> None:
    def meet(connection: socket.socket) -> None:
        reader(connection)
        connection.sendall(answer)

    behind(meet)
    assert ask(base, b"hook", (b"x",)) == (None, why)


def test_a_whole_answer(base: Base, ask: Ask, behind: Callable[..., None]) -> None:
    def meet(connection: socket.socket) -> None:
        reader(connection)
        for part in (b"khms/1 ok b 5 0", b"\nhe", b"llo"):
            connection.sendall(part)

    behind(meet)
    assert ask(base, b"hook", (b"x",)) == ([b"hello", b""], "")


@pytest.mark.parametrize(
    ("said", "why"), [(wire.DONE, ""), (b"", "cut-off"), (wire.ALIVE, "cut-off")], ids=["done", "killed", "garbled"]
)
def test_the_answer_to_a_hook_is_put_out_before_it_is_said_to_be(
    base: Base, ask: Ask, behind: Callable[..., None], said: bytes, why: str
) -> None:
    order: list[bytes] = []

    def meet(connection: socket.socket) -> None:
        reader(connection)
        connection.sendall(wire.message((wire.OK, b"b"), (b"hello",)))
        order.append(wire.word(connection, time.monotonic() + 30))
        connection.sendall(said)

    behind(meet)
    assert ask(base, b"hook", (b"x",), take=order.append) == ([b"hello"], why)
    assert order == [b"hello", wire.TAKEN]


def test_a_server_that_is_left_is_told(base: Base, ask: Ask, behind: Callable[..., None]) -> None:
    order: list[bytes] = []
    over = threading.Event()

    def meet(connection: socket.socket) -> None:
        reader(connection)
        order.append(wire.word(connection, time.monotonic() + 30))
        over.set()

    behind(meet)
    assert ask(base, b"hook", (b"x",), seconds=0.1, take=order.append) == (None, "late")
    assert over.wait(30) and order == [wire.ALONE]


def test_one_without_a_sign_of_life_is_left_sooner(base: Base, ask: Ask, behind: Callable[..., None]) -> None:
    over = threading.Event()
    behind(lambda connection: over.wait(60))
    assert ask(base, b"run", (b"x",), seconds=600.0, alive=time.monotonic() + 0.1) == (None, "late")
    over.set()


def test_a_sign_of_life_comes_before_the_answer(base: Base, ask: Ask, behind: Callable[..., None]) -> None:
    def meet(connection: socket.socket) -> None:
        reader(connection)
        for part in (wire.ALIVE, b"khms/1 ok b", b" 5\nhello"):
            connection.sendall(part)

    behind(meet)
    assert ask(base, b"run", (b"x",), alive=time.monotonic() + 30) == ([b"hello"], "")


def test_a_server_that_says_nothing_is_not_waited_for(base: Base, ask: Ask, behind: Callable[..., None]) -> None:
    over = threading.Event()
    behind(lambda connection: over.wait(30))
    assert ask(base, b"hook", (b"x",), seconds=0.1) == (None, "late")
    over.set()


def test_a_server_that_reads_nothing_is_not_waited_for(base: Base, ask: Ask, behind: Callable[..., None]) -> None:
    over = threading.Event()
    behind(lambda connection: over.wait(30))
    assert ask(base, b"hook", (b"x" * 3_000_000,), seconds=0.2) == (None, "late")
    over.set()


def test_the_answer_of_another_user_is_not_read(
    base: Base, ask: Ask, behind: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    behind(lambda connection: asked.append(connection.recv(100)))
    monkeypatch.setattr(address, "peer", lambda connection: os.geteuid() + 1)
    assert ask(base, b"hook", (b"what was asked",)) == (None, "foreign")
    assert asked in ([], [b""]), "nor is it told anything"


def test_no_server(base: Base, ask: Ask, sockets: Path) -> None:
    assert ask(base, b"hook") == (None, "none")
    launch.made()
    assert ask(base, b"hook") == (None, "none")
    assert ask(base, b"hook", env={b"KHMS_SERVER_OFF": b"1"}) == (None, "off")
    path = launch.lock_path(bytes(sockets / "khms"), str(base.root)).removesuffix(launch.LOCK) + address.SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
    assert ask(base, b"hook") == (None, "dead"), "killed, it leaves its socket behind"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o1777])
def test_a_folder_that_others_may_enter_is_not_used(base: Base, ask: Ask, sockets: Path, mode: int) -> None:
    (sockets / "khms").mkdir()
    (sockets / "khms").chmod(mode)
    assert ask(base, b"hook") == (None, "unsafe")


def test_a_folder_that_is_a_link_is_not_used(base: Base, ask: Ask, sockets: Path) -> None:
    (sockets / "other").mkdir(mode=0o700)
    (sockets / "khms").symlink_to(sockets / "other")
    assert ask(base, b"hook") == (None, "unsafe")


@pytest.mark.parametrize(
    ("raw", "folder"),
    [
        (b'{"cwd":"/a/b","prompt":"x"}', b"/a/b"),
        (b'{"prompt":"say \\"cwd\\":\\"/wrong\\"","cwd" : "/a b"}', b"/a b"),
        (b'{"cwd":"/quo\\"ted"}', b""),
        (b'{"cwd":null}', b""),
        (b'{"cwd":7,"x":"y"}', b""),
        (b'{"cwd":"relative"}', b""),
        (b'{"prompt":"x"}', b""),
        (b'{"cwd"', b""),
        (b"", b""),
        (b'"cwd":"', b""),
    ],
)
def test_the_folder_that_an_event_names(raw: bytes, folder: bytes) -> None:
    assert asking.cwd_of(raw) == folder


def test_only_what_concerns_khms_is_told() -> None:
    env = {b"KHMS_ROOT": b"/a", b"CLAUDECODE": b"1", b"API_TOKEN": b"secret", b"PATH": b"/bin", b"AI_AGENT": b"x"}
    assert wire.unpacked(asking.told(env)) == [b"KHMS_ROOT=/a", b"CLAUDECODE=1", b"AI_AGENT=x"]


def test_every_agent_host_is_told() -> None:
    from khms.hosts.environment import VARIABLES

    assert all(name.encode().startswith(asking.TOLD) for name in VARIABLES)
