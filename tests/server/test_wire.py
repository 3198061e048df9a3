"""What comes over the socket is whole, or it is nothing."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from khms.server import wire

SOON = 30.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        yield left, right


def read(right: socket.socket, words: int = 2, largest: int = 1000, seconds: float = SOON) -> object:
    return wire.receive(right, words, time.monotonic() + seconds, largest)


@pytest.mark.parametrize("blocks", [[], [b""], [b"a", b"", b"\n\0 5"], [b"x" * 900]])
def test_what_is_sent_arrives(pair: tuple[socket.socket, socket.socket], blocks: list[bytes]) -> None:
    left, right = pair
    wire.send(left, wire.message((b"ok", b"1-2-3"), blocks), time.monotonic() + SOON)
    assert read(right) == ([b"ok", b"1-2-3"], blocks)


def test_a_large_message_in_many_parts(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    data = bytes(range(256)) * 20_000
    sender = threading.Thread(
        target=wire.send, args=(left, wire.message((b"a", b"b"), [data]), time.monotonic() + SOON)
    )
    sender.start()
    assert read(right, largest=len(data)) == ([b"a", b"b"], [data])
    sender.join()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"khms/1 ok 1-2-3 4\nabc",
        b"khms/1 ok 1-2-3 1\nabc",
        b"khms/1 ok\n",
        b"khms/2 ok 1-2-3\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"khms/1 ok 1-2-3 -1\n",
        b"khms/1 ok 1-2-3 x\n",
        b"khms/1 ok 1-2-3 1001\n",
        b"khms/1 ok 1-2-3 500 501\n",
        b"khms/1 ok 1-2-3 99999999999999999999999999\n",
        b"khms/1 ok 1-2-3" + b" 0" * 9 + b"\n",
        b"\xff" * 5000,
        b"x" * 300 + b"\n",
    ],
)
def test_anything_else_is_refused(pair: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    left, right = pair
    left.sendall(sent)
    left.shutdown(socket.SHUT_WR)
    with pytest.raises(wire.Garbled):
        read(right)


def test_what_does_not_come_is_not_waited_for(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    left.sendall(b"khms/1 ok 1-2-3 10\nabc")
    with pytest.raises(TimeoutError):
        read(right, seconds=0.05)
    with pytest.raises(TimeoutError):
        read(right, seconds=-1)


@pytest.mark.parametrize("texts", [[], [b"a"], [b"a", b""], [b"", b"a b", b"\n"]])
def test_texts_in_one_block(texts: list[bytes]) -> None:
    assert wire.unpacked(wire.packed(texts)) == texts
