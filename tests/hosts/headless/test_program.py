"""Every agent that is a program, whatever the program does: one reply of a defined kind, and nothing of it left."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HOSTS = ("claude", "codex", "gemini", "command")
Make = Callable[[str], Any]
Form = Callable[..., str]
every_host = pytest.mark.parametrize("host", HOSTS)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@every_host
def test_the_answer_comes_as_it_was_given(host: str, scripted: Make, form: Form) -> None:
    agent = scripted(host)
    answers = (
        '{"answer": "j\u2028a\x85"}',
        '{"answer": "ja"}',
        '```json\n{"answer": "ja"}\n```',
        '{"answer": "a"} or {"answer": "b"}',
        '{"answer": "c',
    )
    for answer in answers:
        reply = agent.does(form(host, answer)).ask()
        assert (reply.kind, reply.text) == ("answer", answer)


@every_host
def test_the_text_arrives_byte_for_byte(host: str, scripted: Make, form: Form) -> None:
    agent = scripted(host).does(form(host, {"answer": "ja"}))
    text = "[khms-run 01JEX]\n\nWas heißt 測試?\r| “ground” \\n $HOME `x`\n\ttab \x7f\x1b[0m" + "x" * 300_000
    agent.ask(text=text)
    assert agent.given == (b"Answer with one JSON object.\n\n" if host == "command" else b"") + text.encode()
    agent.ask(text="one \udcff surrogate", system="")
    assert agent.given == b"one ? surrogate"


@every_host
def test_the_environment_holds_what_the_host_needs_and_nothing_else(
    host: str, scripted: Make, form: Form, monkeypatch: pytest.MonkeyPatch, own_environment: Path
) -> None:
    secrets = dict.fromkeys(
        ("SECRET_TOKEN", "KHMS_ROOT", "GIT_DIR", "CLAUDECODE", "PYTHONPATH", "GITHUB_TOKEN", "LD_LIBRARY_PATH"), "s"
    )
    keys = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY", "command": ""}
    for name in (*secrets, *filter(None, keys.values()), "HTTPS_PROXY", "LC_ALL", "XDG_RUNTIME_DIR", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, secrets.get(name, "C"))
    agent = scripted(host).does(form(host, {"answer": "ja"}))
    assert agent.ask().kind == "answer"
    env = agent.seen["env"]
    assert not set(secrets) & set(env)
    assert {name for name in keys.values() if name in env} == set(filter(None, [keys[host]]))
    assert {"PATH", "HTTPS_PROXY", "LC_ALL", "XDG_RUNTIME_DIR", "SSL_CERT_FILE"} <= set(env)
    own = {name: env[name] for name in env if name.startswith("KHMS_")}
    assert own == {"KHMS_HOOKS_OFF": "1", "KHMS_BACKGROUND": "1", "KHMS_RUN": "01JEX0000000000000000AGENT"}
    assert env["HOME"] == str(own_environment)


@every_host
def test_it_stands_in_an_empty_folder_that_goes_with_it(host: str, scripted: Make, form: Form) -> None:
    agent = scripted(host)
    writes = "open('left.txt', 'w').write('x'); os.mkdir('deep'); os.chmod('deep', 0)\n"
    writes += "open(os.environ['TMPDIR'] + '/report', 'w').write('x')"
    reply = agent.does(form(host, {"answer": "ja"}), do=writes).ask()
    assert reply.kind == "answer"
    assert agent.seen["inside"] == [] and not Path(agent.seen["folder"]).exists()


@every_host
def test_a_path_that_only_the_environment_could_name_stays_unwritten(
    host: str, scripted: Make, form: Form, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    monkeypatch.setenv("KHMS_ROOT", str(base))
    monkeypatch.setenv("PWD", str(base))
    monkeypatch.setenv("OLDPWD", str(base))
    monkeypatch.chdir(base)
    writes = f"[open(value + '/written', 'w') for value in os.environ.values() if value == {str(base)!r}]"
    assert scripted(host).does(form(host, {"answer": "ja"}), do=writes).ask().kind == "answer"
    assert list(base.iterdir()) == []


@every_host
@pytest.mark.parametrize(
    "out, err, code, kind, words",
    [
        ("", "", 0, "failed", "there is no answer"),
        ("", "Traceback: boom\n", 1, "failed", "boom"),
        ("garbage, no answer of this host \x00\n", "", 3, "failed", "garbage"),
        ("", "", 70, "failed", "exit code 70"),
    ],
)
def test_no_answer_is_a_failure_that_says_why(
    host: str, out: str, err: str, code: int, kind: str, words: str, scripted: Make
) -> None:
    reply = scripted(host).does(out, err, code).ask()
    assert reply.kind == kind and (words in reply.text or "exit code" in reply.text)


@every_host
def test_a_crash_is_a_failure(host: str, scripted: Make, form: Form) -> None:
    reply = scripted(host).does(form(host, {"answer": "ja"}), do="os.kill(os.getpid(), 9)").ask()
    assert (reply.kind, reply.text) == ("failed", "exit code 137")


@every_host
def test_a_model_that_declines_is_told_from_one_that_answers(host: str, scripted: Make, form: Form) -> None:
    agent = scripted(host)
    for words in (
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "I am unable to do so.",
    ):
        assert agent.does(form(host, words)).ask().kind == "refusal"
    for words in ('I cannot say more than {"answer": "ja"}', "It can't be told from the journal."):
        assert agent.does(form(host, words)).ask().kind == "answer"


@every_host
def test_more_than_the_limit_ends_it(host: str, scripted: Make, form: Form) -> None:
    agent = scripted(host)
    agent.settings["nightly.max_answer_bytes"] = 200_000
    reply = agent.does("x" * 1024, times=5 * 1024).ask()
    assert reply.kind == "oversize" and len(reply.text) < 100
    assert not alive(agent.seen["pid"])


@every_host
def test_errors_without_end_hold_nobody_up(host: str, scripted: Make, form: Form) -> None:
    reply = scripted(host).does(form(host, {"answer": "ja"}), err="progress\n" * 700_000).ask()
    assert reply.kind == "answer" and len(reply.said) <= 2000


@every_host
def test_a_program_that_reads_nothing_may_answer(host: str, scripted: Make, form: Form) -> None:
    reply = scripted(host).does(form(host, {"answer": "ja"}), deaf=True).ask(text="x" * 1_000_000)
    assert reply.kind == "answer"


HANGS = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pids = [subprocess.Popen(['sleep', '1000'], env=env, start_new_session=session).pid
        for env in (None, {}) for session in (False, True)]
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)  # its child is nobody's but the keeper's
    pids.append(os.getpid())
    json.dump(pids, open(here + '/pids', 'w'))
    os.open(here + '/ready', os.O_CREAT)
    time.sleep(1000)
"""


@every_host
def test_at_the_limit_it_ends_with_all_that_came_from_it(host: str, scripted: Make) -> None:
    """Also what left its session, emptied its environment or was orphaned."""
    agent = scripted(host).does(do=HANGS + "time.sleep(1000)")
    reply = agent.ask(seconds=3)
    assert reply.kind == "timeout" and "3 seconds" in reply.text
    pids = json.loads((agent.folder / "pids").read_text(encoding="utf-8"))
    assert len(pids) == 5
    assert not any(map(alive, (*pids, agent.seen["pid"])))


def test_what_it_leaves_behind_ends_with_the_answer(scripted: Make) -> None:
    """A hook's process, a server, a child that holds the output open: the answer is not held up by them."""
    waits = HANGS + "\nwhile not os.path.exists(here + '/ready'): time.sleep(0.01)"
    agent = scripted("command").does("ja", do=waits)
    assert agent.ask().kind == "answer"
    pids = json.loads((agent.folder / "pids").read_text(encoding="utf-8"))
    assert not any(map(alive, pids))


def test_it_ends_when_khms_is_killed(scripted: Make, tmp_path: Path) -> None:
    """kill -9 on the asking process, which can do nothing about it any more."""
    agent = scripted("command").does(do=HANGS + "time.sleep(1000)")
    child = os.fork()
    if child == 0:
        try:
            agent.ask(seconds=600)
        finally:
            os._exit(0)
    until = time.monotonic() + 60
    while not (agent.folder / "ready").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pids = [agent.seen["pid"], *json.loads((agent.folder / "pids").read_text(encoding="utf-8"))]
    while any(map(alive, pids)):
        assert time.monotonic() < until, "it lives on without the process that asked"
        time.sleep(0.01)
    for folder in (tmp_path / "temporary").iterdir():  # nobody was left to remove it
        folder.rename(tmp_path / folder.name)
