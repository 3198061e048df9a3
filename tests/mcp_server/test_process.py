"""The process itself: only the protocol on its standard output, an end when its input ends, and no hurt from what is
sent to it or done beside it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Unavailable
from khms.store.layout import Base

Serve = Callable[..., Any]
# A tool in place of `show` (which reads) or `mark` (which writes): it says that it was begun, and waits for a file.
WAITS = """
import os, time
def wait(place, said, name):
    pathlib.Path(name + "-begun").touch()
    while not pathlib.Path(name + "-go").exists():
        time.sleep(0.01)
    pathlib.Path(name + "-done").touch()
    return {"id": "x", "path": "x", "line": 1, "kind": "x", "body": ""}
tools.TOOLS["show"] = replace(tools.TOOLS["show"], run=lambda place, said: wait(place, said, "show"))
tools.TOOLS["mark"] = replace(tools.TOOLS["mark"], run=lambda place, said: wait(place, said, "mark"))
"""
LOUD = """
import os, subprocess, warnings, logging
def loud(place, said):
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["sh", "-c", "echo of a child; echo of its error >&2"])
    warnings.warn("a warning")
    logging.warning("logged")
    raise RuntimeError("a fault")
tools.TOOLS["show"] = replace(tools.TOOLS["show"], run=loud)
"""


def until(path: Path) -> None:
    gate = threading.Event()
    for _ in range(6000):
        if path.exists():
            return
        gate.wait(0.01)
    raise AssertionError(f"{path} never came")


def test_nothing_but_the_protocol_reaches_standard_output(served: Serve, base: Base, tmp_path: Path) -> None:
    peer = served(LOUD, root=base)
    peer.hello()
    peer.call(1, "show", id="x")
    result = peer.answer(1)["result"]
    assert result["isError"] and result["content"][0]["text"].startswith("this is a bug of khms: RuntimeError\n")
    assert "a fault" not in json.dumps(result)
    assert peer.end() == (b"", 0)
    said = (tmp_path / "stderr.txt").read_text(encoding="utf-8")
    for word in ("printed", "written", "of a child", "of its error", "a warning", "logged", "RuntimeError: a fault"):
        assert word in said


def test_the_end_of_input_is_the_end_of_the_process(served: Serve, base: Base, tmp_path: Path) -> None:
    """Even before a word was said, and while a question is worked on that nobody will hear."""
    assert served(root=base).end() == (b"", 0)
    peer = served(WAITS, root=base)
    peer.hello()
    peer.call(1, "show", id="x")
    until(tmp_path / "show-begun")
    assert peer.end()[1] == 0
    assert not (tmp_path / "show-done").exists()


def test_what_is_written_is_finished_first(served: Serve, base: Base, tmp_path: Path) -> None:
    peer = served(WAITS, root=base)
    peer.hello()
    peer.call(1, "mark", kind="x", text="x")
    until(tmp_path / "mark-begun")
    peer.process.stdin.close()
    (tmp_path / "mark-go").touch()
    assert peer.process.wait(60) == 0
    assert (tmp_path / "mark-done").exists()


def test_a_cancelled_call_is_left_alone_and_never_answered(served: Serve, base: Base, tmp_path: Path) -> None:
    peer = served(WAITS, root=base)
    peer.hello()
    for number in range(8):  # more than are worked on at once
        peer.call(number, "show", id="x")
    until(tmp_path / "show-begun")
    for number in range(8):
        peer.send(method="notifications/cancelled", params={"requestId": number, "reason": "enough"})
    peer.call("after", "mark", kind="x", text="x")
    until(tmp_path / "mark-begun")
    (tmp_path / "mark-go").touch()
    assert not peer.answer("after")["result"].get("isError")
    (tmp_path / "show-go").touch()  # what was left alone comes to its end, and makes room
    peer.call("next", "show", id="x")
    assert not peer.answer("next")["result"].get("isError")
    rest, status = peer.end()
    assert rest == b"" and status == 0
    assert not [message for message in peer.heard if "result" in message]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"\x00\x01\xff\xfe",
        b'{"jsonrpc": "2.0"',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001,
        b'{"jsonrpc":"2.0","id":1,"method":"no/such/method"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"query":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"khms://card/' + b"x" * 100_000 + b'"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mark","arguments":{"kind":"x","text":"'
        + b"y" * 5_000_000
        + b'"}}}',
    ],
)
def test_it_outlives_whatever_line_is_sent(served: Serve, base: Base, line: bytes) -> None:
    peer = served(root=base)
    peer.hello()
    peer.raw(line + b"\n")
    peer.call("after", "inbox_status")
    assert peer.answer("after")["result"]["structuredContent"]["units"] == []
    assert peer.end()[1] == 0
    assert sorted(path.name for path in base.journal.iterdir()) == ["2026-03-04.md"]


def test_thousands_of_calls_at_once_are_each_answered_once(served: Serve, indexed: Base) -> None:
    peer = served(root=indexed)
    peer.hello()
    count = 3000
    calls = [("precheck", {"command": "ls"}), ("show", {"id": "nothing"}), ("nothing", {}), ("recall", {"query": 1})]

    def send() -> None:
        for number in range(count):
            name, said = calls[number % len(calls)]
            peer.call(number, name, **said)

    sender = threading.Thread(target=send)
    sender.start()
    answers = [peer.answer(number) for number in range(count)]
    sender.join()
    errors = sum(answer["result"].get("isError", False) for answer in answers)
    assert errors == count * 3 // 4 and not peer.heard
    assert peer.end() == (b"", 0)


def test_two_servers_write_to_one_base_and_nothing_is_lost(served: Serve, base: Base, git: Callable[..., str]) -> None:
    peers = [served(root=base), served(root=base)]
    count = 6
    for name, peer in zip("ab", peers, strict=True):
        peer.hello()
        for number in range(count):
            peer.call(f"mark {number}", "mark", kind="solved", text=f"{name} found {number}")
            said = {"title": f"Claim {name} {number}", "body": f"RULE: what {name} says about {number * 7}\n"}
            peer.call(f"card {number}", "propose_card", type="fact", **said, evidence="measured", source="a test")
    for peer in peers:
        for number in range(count):
            assert not peer.answer(f"mark {number}")["result"].get("isError")
            answer = peer.answer(f"card {number}")["result"]
            assert not answer.get("isError"), answer
        assert peer.end()[1] == 0
    journal = "".join(path.read_text(encoding="utf-8") for path in base.journal.iterdir())
    assert journal.count(" found ") == 2 * count
    titles = {line for path in base.inbox.glob("*/C1.md") for line in path.read_text().splitlines() if "Claim" in line}
    assert len(list(base.inbox.iterdir())) == len(titles) == 2 * count
    git(base, "fsck", "--strict")


def test_a_base_that_goes_away_is_an_error_and_one_that_comes_back_answers(served: Serve, indexed: Base) -> None:
    peer = served(root=indexed)
    peer.hello()
    for number, there in enumerate((True, False, True)):
        aside = indexed.root.with_name("aside")
        if not there:
            indexed.root.rename(aside)
        elif aside.exists():
            aside.rename(indexed.root)
        for name, said in (("recall", {"query": "checksum"}), ("show", {"id": "K-00001"}), ("inbox_status", {})):
            peer.call(f"{name} {number}", name, **said)
            result = peer.answer(f"{name} {number}")["result"]
            assert result.get("isError", False) is not there, result
            if not there:
                assert "there is no base here" in result["content"][0]["text"]
    assert peer.end()[1] == 0


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from khms.mcp_server import serving

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable) as caught:
        serving.run("", Path("/"))
    assert "khms[mcp]" in caught.value.hint


def test_nothing_of_the_library_is_loaded_by_other_commands(base: Base) -> None:
    code = "import sys, khms.cli.group, khms.cli.protocol, khms.mcp_server.tools; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", env=os.environ, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"
