"""What may befall a real server, and what its clients see of it: an answer all the same, once and whole."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms import cli
from khms.cli import server as command
from khms.hooks import sessions
from khms.hosts import claude_code
from khms.hosts.settings import hook_command
from khms.server import address, launch, service, wire
from khms.server.service import Server
from khms.store.layout import Base

Ask = Callable[..., tuple[list[bytes] | None, str]]
Running = Callable[[Base], dict[str, Any]]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
PATIENCE = 60.0
RECALL = [sys.executable, "-m", "khms", "recall", "checksum deploy"]


def seat(base: Base) -> bytes:
    return launch.lock_path(launch.made()[0], str(base.root))


def path_of(base: Base) -> bytes:
    return seat(base).removesuffix(launch.LOCK) + address.SOCKET


def until(true: Callable[[], object]) -> None:
    """Waits for what another process brings about."""
    limit = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < limit


def ended(base: Base) -> bool:
    return not launch.claimed(seat(base))


def long_ago(base: Base) -> None:
    """As if the last server had begun some time ago, so that the next may."""
    os.utime(os.fsdecode(seat(base)), (1.0, 1.0))


def connections(base: Base) -> int:
    """How many sockets of the base's server the kernel shows: its own, and one for each client, noticed or not."""
    shown = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
    return shown.count(f" {os.fsdecode(path_of(base))}\n")


def stopped(number: int) -> bool:
    return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


@pytest.fixture
def given(stocked: Base, run_khms: Run, running: Running) -> dict[str, Any]:
    """A server that runs for a base its user trusts; what it says of itself."""
    assert run_khms("trust").returncode == run_khms("server", "start").returncode == 0
    return running(stocked)


@pytest.fixture
def plain(run_khms: Run) -> Callable[..., bytes]:
    """What `khms recall` prints without a server."""

    def run(*words: str) -> bytes:
        done = run_khms("recall", *(words or ("checksum deploy",)), env={"KHMS_SERVER_OFF": "1"})
        assert done.returncode == 0 and done.stderr == ""
        return done.stdout.encode()

    return run


def killed_meanwhile(base: Base, number: int, words: list[str], sent: bytes = b"") -> tuple[int, bytes, bytes]:
    """Runs a client whose server is killed after the client connected; its exit code, standard output and error."""
    os.kill(number, signal.SIGSTOP)
    until(lambda: stopped(number))
    before = connections(base)
    process = subprocess.Popen(
        words, cwd=base.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin
    with process:
        process.stdin.write(sent)
        process.stdin.close()
        until(lambda: connections(base) > before or process.poll() is not None)
        os.kill(number, signal.SIGKILL)
        assert process.stdout and process.stderr
        return process.wait(PATIENCE), process.stdout.read(), process.stderr.read()


def test_killed_while_recall_waits_for_it(stocked: Base, given: dict[str, Any], plain: Callable[..., bytes]) -> None:
    assert killed_meanwhile(stocked, given["pid"], RECALL) == (0, plain(), b"")


def test_killed_while_a_hook_waits_for_it(
    stocked: Base, given: dict[str, Any], event: Callable[..., bytes], logged: Callable[[Base], list[dict[str, Any]]]
) -> None:
    words = ["sh", "-c", f"exec {hook_command(claude_code)}"]
    status, out, err = killed_meanwhile(stocked, given["pid"], words, event(cwd=str(stocked.root)))
    assert (status, err) == (0, b"")
    assert "K-00001" in json.loads(out)["hookSpecificOutput"]["additionalContext"], "one document and no more"
    (line,) = logged(stocked)
    assert (line["decision"], line["server"]) == ("inject", False) and line["without"] in ("cut-off", "late")


@pytest.mark.parametrize("part", [b"khms/1 o", b"khms/1 ok b 40 0 1\n 1  K-00009  Half", b"khms/1 ok b 3 0\nabc"])
def test_of_an_answer_that_is_cut_off_nothing_is_printed(
    stocked: Base, run_khms: Run, plain: Callable[..., bytes], part: bytes
) -> None:
    lock = launch.claim(seat(stocked))
    assert lock is not None
    os.truncate(lock, 0)  # nobody is to be ended for it
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path_of(stocked))
        listener.listen(1)
        process = subprocess.Popen(RECALL, cwd=stocked.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            connection, _ = listener.accept()
            with connection:
                wire.receive(connection, 3, time.monotonic() + PATIENCE, wire.LARGEST)
                connection.sendall(part)
            out, err = process.communicate(timeout=PATIENCE)
    os.close(lock)
    assert (process.returncode, out, err) == (0, plain(), b"")


def test_what_a_killed_server_did_not_write_down_its_client_does(
    stocked: Base, event: Callable[..., bytes], logged: Callable[[Base], list[dict[str, Any]]], tmp_path: Path
) -> None:
    words = shlex.split(hook_command(claude_code))
    text = Path(words[2]).read_text(encoding="utf-8")
    assert "DEADLINE_MS = 800 " in text
    patient = tmp_path / "client.py"  # a busy machine does not reach its deadline
    patient.write_text(text.replace("DEADLINE_MS = 800 ", "DEADLINE_MS = 60000 "), encoding="utf-8")
    words[2] = str(patient)
    env = {**os.environ, "KHMS_ROOT": str(stocked.root)}
    launch.made()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path_of(stocked))
        listener.listen(1)
        process = subprocess.Popen(
            words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with process:
            assert process.stdin and process.stdout and process.stderr
            process.stdin.write(event())
            process.stdin.close()
            connection, _ = listener.accept()
            with connection:
                wire.receive(connection, 3, time.monotonic() + PATIENCE, wire.LARGEST)
                connection.sendall(wire.message((wire.OK, b"b"), (b"an answer\n",)))
                assert wire.word(connection, time.monotonic() + PATIENCE) == wire.TAKEN
            assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")
            assert process.stdout.read() == b"an answer\n"
    (line,) = logged(stocked)
    assert (line["decision"], line["reason"], line["server"]) == ("inject", "cut-off", True)


def test_one_that_hangs_is_named_and_ended(
    stocked: Base, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ASKING", 0.2)
    monkeypatch.setattr(command, "SECONDS", 600.0)  # it is known to hang: there is nothing to wait for
    named = ["--root", str(stocked.root), "server"]
    os.kill(given["pid"], signal.SIGSTOP)
    for word in ("status", "start"):
        assert cli.run([*named, word]) == 4
        told = capsys.readouterr().err
        assert "does not answer" in told and f"kill -9 {given['pid']}" in told, word
    assert cli.run([*named, "status", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["running"], found["answers"], found["pid"]) == (True, False, given["pid"])
    assert cli.run([*named, "stop"]) == 0
    out, err = capsys.readouterr()
    assert f"stopped: {stocked.root}" in out and str(given["pid"]) in err
    assert ended(stocked)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is ended")
def test_only_the_process_with_the_lock_is_ended(stocked: Base, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        lock = launch.claim(seat(stocked))
        assert lock is not None
        os.close(lock)
        assert not launch.end(other.pid, seat(stocked), 0.1) and other.poll() is None
        other.kill()
    code = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); f = open(sys.argv[1]); print(flush=True)"
    words = [sys.executable, "-c", f"{code}; signal.pause()", os.fsdecode(seat(stocked))]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout and deaf.stdout.readline()
        assert launch.end(deaf.pid, seat(stocked), 0.1)
        assert deaf.wait(PATIENCE) == -signal.SIGKILL, "it would not listen"
    assert not launch.end(deaf.pid, seat(stocked), 0.1)


def test_recall_leaves_one_that_hangs(
    stocked: Base, given: dict[str, Any], plain: Callable[..., bytes], run_khms: Run
) -> None:
    expected = plain()
    os.kill(given["pid"], signal.SIGSTOP)
    done = run_khms("recall", "checksum deploy", env={"KHMS_SERVER_OFF": "0"})
    assert (done.returncode, done.stdout.encode()) == (0, expected)
    assert "does not answer" in done.stderr and "khms server stop" in done.stderr


def test_a_hook_whose_server_hangs_leaves_one_line(
    stocked: Base,
    given: dict[str, Any],
    status: Callable[[Base], dict[str, Any] | None],
    client: Callable[..., str],
    event: Callable[..., bytes],
    logged: Callable[[Base], list[dict[str, Any]]],
) -> None:
    os.kill(given["pid"], signal.SIGSTOP)
    assert "K-00001" in client(event(), {"KHMS_ROOT": str(stocked.root)})
    os.kill(given["pid"], signal.SIGCONT)
    until(lambda: status(stocked))  # it has come upon the question by now, and upon the farewell
    assert "K-00001" in client(event(session="s2"), {"KHMS_ROOT": str(stocked.root)})
    lines = [line for line in logged(stocked) if line["session"] == sessions.key("s1")]
    assert [(line["decision"], line["server"], line["without"]) for line in lines] == [("inject", False, "late")]


def test_a_client_that_sends_byte_by_byte_is_not_waited_for(
    stocked: Base, inside: Callable[..., Server], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "READING", 0.2)
    server = inside(stocked)
    message = wire.message((b"status", server.build, b"9000"), [b"x" * 1_000_000])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path_of(stocked))
        sent = 0
        with pytest.raises(OSError):  # the other end closed it long before the end
            while sent < len(message):
                sent += client.send(message[sent : sent + 1])
    assert sent < len(message)
    until(lambda: ask(stocked, b"status")[1] == "")


@pytest.mark.parametrize("size", [wire.LARGEST + 1, 99_999_999_999])
def test_too_large_a_question_is_refused_before_it_is_read(
    stocked: Base, inside: Callable[..., Server], ask: Ask, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "READING", 600.0)  # it is the size that ends it
    server = inside(stocked)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(PATIENCE)
        client.connect(path_of(stocked))
        client.sendall(b"khms/1 run %b 5000 %d\n" % (server.build, size))
        assert client.recv(100) == b"", "it is not waited for"
    assert ask(stocked, b"status")[1] == ""


def test_a_base_that_is_deleted_ends_it(stocked: Base, given: dict[str, Any]) -> None:
    place = seat(stocked), path_of(stocked)
    while stocked.root.exists():  # the server may be writing there
        shutil.rmtree(stocked.root, ignore_errors=True)
    until(lambda: not launch.claimed(place[0]))
    assert not os.path.lexists(place[1]) and not stocked.root.exists(), "nor is the folder made again"


def test_another_version_takes_its_place(
    stocked: Base, given: dict[str, Any], running: Running, client: Callable[..., str], event: Callable[..., bytes]
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as newer:
        newer.settimeout(PATIENCE)
        newer.connect(path_of(stocked))
        newer.sendall(b"khms/1 status 1-2-3 5000\n")
        assert newer.recv(100).startswith(b"khms/1 old ")
    until(lambda: ended(stocked))
    long_ago(stocked)
    assert "K-00001" in client(event(), {"KHMS_ROOT": str(stocked.root)})
    assert running(stocked)["pid"] != given["pid"]


def test_a_session_that_starts_has_it_there_for_its_first_prompt(
    stocked: Base, running: Running, client: Callable[..., str], event: Callable[..., bytes]
) -> None:
    env = {"KHMS_ROOT": str(stocked.root)}
    client(event(hook_event_name="SessionStart", source="startup"), env)
    assert running(stocked)["base"] == str(stocked.root)


def test_without_a_runtime_folder(
    stocked: Base, sockets: Path, running: Running, run_khms: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("TMPDIR", str(sockets))
    place = sockets / f"khms-{os.geteuid()}"
    (sockets / "other").mkdir(mode=0o700)
    place.symlink_to(sockets / "other")
    assert launch.start(str(stocked.root)) is False and run_khms("recall", "checksum deploy").returncode == 0
    assert list((sockets / "other").iterdir()) == [], "a link that was put there leads nowhere"
    place.unlink()
    assert launch.start(str(stocked.root))
    assert running(stocked)["base"] == str(stocked.root)
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_base_that_cannot_be_written_is_answered_for(
    stocked: Base, run_khms: Run, running: Running, plain: Callable[..., bytes], event: Callable[..., bytes]
) -> None:
    bare = [] if os.geteuid() else ["setpriv", "--bounding-set", "-dac_override"]  # root may write anywhere
    if bare and shutil.which(bare[0]) is None:
        pytest.skip("runs as root, and setpriv is not there to give up its rights")
    assert run_khms("trust").returncode == 0
    expected = plain()
    subprocess.run(["chmod", "-R", "a-w", str(stocked.root)], check=True)
    before = sorted(stocked.root.rglob("*"))
    try:
        for words in (["server", "start"], ["recall", "checksum deploy"]):
            done = subprocess.run(
                [*bare, sys.executable, "-m", "khms", *words], cwd=stocked.root, capture_output=True, timeout=PATIENCE
            )
            assert done.returncode == 0, done
        assert done.stdout == expected
        hook = [*bare, "sh", "-c", f"exec {hook_command(claude_code)}"]
        told = subprocess.run(hook, input=event(cwd=str(stocked.root)), capture_output=True, timeout=PATIENCE)
        assert (told.returncode, told.stderr) == (0, b"")
        assert running(stocked)["answered"] == 2 and sorted(stocked.root.rglob("*")) == before
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(stocked.root)], check=True)


def test_what_was_approved_elsewhere_is_told_at_once(
    stocked: Base,
    given: dict[str, Any],
    run_khms: Run,
    hook: Callable[..., str | None],
    event: Callable[..., bytes],
    logged: Callable[[Base], list[dict[str, Any]]],
) -> None:
    def approved(text: str) -> str:
        assert run_khms("mark", "solved", text).returncode == 0
        unit = json.loads(run_khms("nightly", "--json").stdout)["unit"]
        done = run_khms("approve", unit, "--all", "--unjudged", "--json")
        assert done.returncode == 0, done
        return str(json.loads(done.stdout)["cards"][-1]["id"])

    first = approved("the quibblewick of the tide gauge leaks because its gasket was never greased")
    asked = run_khms("recall", "--json", "quibblewick tide gauge gasket", env={"KHMS_SERVER_OFF": "0"})
    assert first in [hit["id"] for hit in json.loads(asked.stdout)["hits"]], "the very next question"
    second = approved("the marzipan oven trips its breaker because the heater draws 19 amperes at start")
    prompt = "why does the marzipan oven trip its breaker when the heater starts?"
    until(lambda: second in str(hook(stocked, event(prompt, session=f"s{time.monotonic_ns()}"))))
    assert all(line["server"] for line in logged(stocked))
