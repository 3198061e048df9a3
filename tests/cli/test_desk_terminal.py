"""`khms review` in a real terminal: single keys, an editor, a resize, Ctrl-C, a kill, going on."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

pexpect = pytest.importorskip("pexpect")
UNIT = "2026-03-05-nightly"
KHMS = str(Path(sys.executable).parent / "khms")
Put = Callable[..., Path]
Git = Callable[..., str]
Sit = Callable[..., Any]


@pytest.fixture
def sit(base: Base) -> Iterator[Sit]:
    """sit("review", columns=80) -> a session in a terminal of that width."""
    open_ones = []

    def start(*args: str, columns: int = 80, **env: str) -> Any:
        child = pexpect.spawn(
            KHMS,
            list(args or ("review",)),
            cwd=str(base.root),
            dimensions=(24, columns),
            encoding="utf-8",
            timeout=30,
            env={**os.environ, "TERM": "xterm-256color", **env},
        )
        open_ones.append(child)
        return child

    yield start
    for child in open_ones:
        child.close(force=True)


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """editor("s/a/b/"): $EDITOR becomes a script that does this to the file."""

    def use(*commands: str) -> None:
        script = tmp_path / "an editor"
        rows = [f'sed -i {command!r} "$1"\n' for command in commands]
        script.write_text("#!/bin/sh\n" + "".join(rows), encoding="utf-8")
        script.chmod(0o755)
        monkeypatch.setenv("VISUAL", f"'{script}'")

    return use


def press(child: Any, key: str, then: str) -> str:
    """Waits for the row of keys, presses one and returns what came before `then`."""
    child.expect_exact("\r\n> ")
    child.send(key)
    child.expect_exact(then)
    return str(child.before)


def record(base: Base) -> dict[str, Any]:
    (path,) = base.approvals.glob("*.json")
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def receipts(base: Base) -> dict[str, tuple[str, str]]:
    rows = [json.loads(row) for file in base.receipts.glob("*.jsonl") for row in file.read_text().splitlines()]
    return {row["label"]: (row["verdict"], row["reason"]) for row in rows}


def test_a_whole_review_over_two_sittings(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, git: Git, sit: Sit, editor: Callable[..., None]
) -> None:
    add_card(base, "K-00001", title="A ground needs no tightening", body="A ground is never loose.\n")
    put_candidate(base, "C1")
    put_candidate(base, "C2", body="FIX: tighten the gruond\n")
    put_candidate(base, "C3", nearest=["K-00001"], relation={"kind": "unjudged"}, title="A ground needs tightening")
    put_candidate(base, "C4")
    put_candidate(base, "C5", flags=["thin"])
    before = commit(base)
    editor("s/gruond/ground twice/")

    child = sit()
    child.expect_exact("C5, 1 of 5")  # the flagged one comes first
    press(child, "x", "what is wrong with it?")
    child.sendline("was never measured")
    child.expect_exact("C5: drop (was never measured)")
    press(child, "a", "C1: approve\r\n")
    child.expect_exact("gruond")
    press(child, "e", "tighten the ground twice")
    child.expect_exact("[a]pprove")
    press(child, "q", "what you decided about 2 of 5 is kept")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert git(base, "rev-parse", "HEAD") == before and not list(base.approvals.glob("*.json"))

    child = sit()
    child.expect_exact("5 pending, 2 decided before")
    child.expect_exact("C2, 3 of 5")
    press(child, "a", "C2: approve\r\n")
    child.expect_exact("near: K-00001 A ground needs no tightening")
    press(child, "r", "s[u]persedes")
    press(child, "u", "which card? 1 K-00001:")
    child.sendline("1")
    child.expect_exact("because:")
    child.sendline("I saw a loose one")
    child.expect_exact("relation: supersedes K-00001 because I saw a loose one (settled by you)")
    child.expect_exact("against K-00001, word by word:")
    press(child, "a", "C3: approve, supersedes K-00001 because I saw a loose one")
    press(child, "s", "C4: skip")
    child.expect_exact("what will happen")
    child.expect_exact("\r\n> ")
    assert "comes in" in child.before and "supersedes K-00001 because I saw a loose one" in child.before
    child.send("y")
    child.expect_exact("K-00001 status: active -> superseded")
    child.expect_exact("1 left pending")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0

    made = record(base)
    assert [(card["label"], card["id"]) for card in made["cards"]] == [
        ("C1", "K-00002"),
        ("C2", "K-00003"),
        ("C3", "K-00004"),
    ]
    assert [(t["id"], t["field"], t["new"]) for t in made["transitions"]] == [("K-00001", "status", "superseded")]
    text = (base.know / "K-00004.md").read_text(encoding="utf-8")
    assert "SUPERSEDES K-00001 BECAUSE: I saw a loose one\n" in text
    assert "tighten the ground twice" in (base.know / "K-00003.md").read_text(encoding="utf-8")
    assert receipts(base)["C5"] == ("rejected", "was never measured") and "C4" not in receipts(base)
    assert git(base, "log", "--format=%s").splitlines()[0] == f"Approve 3 cards from {UNIT}"
    assert git(base, "status", "--porcelain") == ""
    assert not (base.state / "review" / UNIT).exists()


def test_a_kill_in_the_middle_loses_no_decision(base: Base, put_candidate: Put, commit: Git, sit: Sit) -> None:
    for label in ("C1", "C2", "C3"):
        put_candidate(base, label)
    commit(base)
    child = sit()
    press(child, "a", "C1: approve")
    press(child, "x", "what is wrong with it?")
    child.sendline("not so")
    child.expect_exact("C2: drop (not so)")
    child.expect_exact("\r\n> ")
    child.kill(signal.SIGKILL)
    child.close()
    assert child.signalstatus == signal.SIGKILL
    child = sit()
    child.expect_exact("3 pending, 2 decided before")
    press(child, "d", "why not now?")
    child.sendline("")
    press(child, "y", "C3 put off")
    child.expect(pexpect.EOF)
    assert {label: verdict for label, (verdict, _) in receipts(base).items()} == {
        "C1": "approved",
        "C2": "rejected",
        "C3": "deferred",
    }


@pytest.mark.parametrize(
    ("key", "words", "status"), [("\x03", "stopped; what you", 130), ("\x04", "no more answers", 0)]
)
def test_ctrl_c_and_ctrl_d_keep_what_was_decided(
    base: Base, put_candidate: Put, commit: Git, sit: Sit, key: str, words: str, status: int
) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2")
    commit(base)
    child = sit()
    press(child, "a", "C1: approve")
    press(child, key, words)
    child.expect_exact("1 of 2 is kept")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == status
    child = sit()
    child.expect_exact("2 pending, 1 decided before")
    press(child, "x", "what is wrong with it?")
    child.send(key)  # in the middle of a reason, too
    child.expect_exact("1 of 2 is kept")
    child.expect(pexpect.EOF)


def test_keys_in_a_hurry_wait_their_turn_but_confirm_nothing(
    base: Base, put_candidate: Put, commit: Git, sit: Sit
) -> None:
    for label in ("C1", "C2", "C3"):
        put_candidate(base, label)
    commit(base)
    child = sit()
    child.expect_exact("\r\n> ")
    child.send("axnot so\rayyyy")
    child.expect_exact("C2: drop (not so)")
    child.expect_exact("what will happen")
    child.expect_exact("\r\n> ")
    child.send("\x1b[B")  # an arrow says nothing
    child.send("b")
    child.expect_exact("C3, 3 of 3")
    child.expect_exact("decided: approve")
    assert not list(base.approvals.glob("*.json"))


def test_an_edit_that_breaks_the_file_can_be_taken_back(
    base: Base, put_candidate: Put, commit: Git, sit: Sit, editor: Callable[..., None]
) -> None:
    path = put_candidate(base, "C1")
    before = path.read_bytes()
    commit(base)
    editor("s/^title:.*/title: [a: b: c/")
    child = sit()
    press(child, "e", "cannot be read: memory/inbox/2026-03-05-nightly/C1.md:6")
    press(child, "u", "nothing was changed")
    child.expect_exact("C1, 1 of 1")
    assert path.read_bytes() == before


def test_an_editor_that_is_not_there_is_said(
    base: Base, put_candidate: Put, commit: Git, sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_candidate(base, "C1")
    commit(base)
    monkeypatch.setenv("VISUAL", "no-such-editor")
    child = sit()
    press(child, "e", "the editor did not work")
    child.expect_exact("C1, 1 of 1")


def rows_of(text: str) -> list[str]:
    return text.replace("\r", "").split("\n")


@pytest.mark.parametrize("columns", [80, 40])
def test_every_row_fits_the_terminal(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, sit: Sit, columns: int
) -> None:
    from rich.cells import cell_len

    long = "冷却水の温度が三十一度を超えると苗が萎れる。棚の下に板を置くと直る。" * 2
    add_card(base, "K-00001", title="The ground was never loose", body="The ground was found tight in every case.\n")
    put_candidate(
        base,
        "C1",
        title=f"{long} and words of a script with blanks to fill the row",
        body=f"FIX: {long}\nthe ground was found loose in every case, and one turn of the screw was enough\n",
        nearest=["K-00001"],
        relation={"kind": "contradicts", "target": "K-00001"},
    )
    commit(base)
    child = sit(columns=columns, NO_COLOR="1")
    child.expect_exact("\r\n> ")
    shown = str(child.before)
    words = (r for r in rows_of(shown) if "memory/inbox" not in r and "journal/2026" not in r)  # a path is never cut
    assert [row for row in words if cell_len(row) > columns] == []
    assert "\x1b" not in shown
    assert "[-" in shown and "{+" in shown


def test_colours_are_there_where_they_are_wanted(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, sit: Sit
) -> None:
    add_card(base, "K-00001", body="FIX: what C1 says, to loosen the ground\n", title="The claim of C0")
    put_candidate(base, "C1", relation={"kind": "supersedes", "target": "K-00001", "because": "it was the ground"})
    commit(base)
    child = sit()
    child.expect_exact("\r\n> ")
    assert "\x1b[31mloosen\x1b[0m" in child.before and "\x1b[32mtighten\x1b[0m" in child.before
    child = sit("review", "--plain")
    child.expect_exact("[?]")
    assert "\x1b" not in child.before and "[-loosen-]{+tighten+}" in child.before


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux, which is not here")
def test_a_terminal_that_is_resized(base: Base, put_candidate: Put, commit: Git, tmp_path: Path) -> None:
    body = "FIX: " + "a turn of the screw and the ground was tight again " * 4
    put_candidate(base, "C1", body=f"{body}\n")
    put_candidate(base, "C2", body=f"{body}and a last word\n")
    commit(base)
    socket = str(tmp_path / "tmux")
    env = dict(os.environ)  # and not what a library of this process may have put beside it, such as COLUMNS

    def tmux(*args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", socket, "-f", "/dev/null", *args],
            capture_output=True,
            encoding="utf-8",
            check=True,
            env=env,
        )
        return done.stdout

    def until(test: str, *args: str) -> None:
        script = f"while ! {test}; do :; done"
        subprocess.run(["sh", "-c", script, "sh", *args], check=True, timeout=30)

    def wait_for(words: str) -> list[str]:
        until('tmux -S "$1" capture-pane -p -S -200 -t r | grep -qF -- "$2"', socket, words)
        return tmux("capture-pane", "-p", "-S", "-200", "-t", "r").splitlines()

    tmux("new-session", "-d", "-s", "r", "-x", "80", "-y", "60", "-c", str(base.root), f"{KHMS} review; sleep 60")
    try:
        wait_for("C1, 1 of 2")
        wait_for("[?]")
        tmux("resize-window", "-t", "r", "-x", "40", "-y", "60")
        until('[ "$(stty size < "$1")" = "60 40" ]', tmux("display", "-p", "-t", "r", "#{pane_tty}").strip())
        tmux("send-keys", "-t", "r", "s")
        rows = wait_for("[b]ack")
        second = rows[next(i for i, row in enumerate(rows) if row.startswith("── C2, 2 of 2")) :]
        body_rows = [row for row in second if "screw" in row or "tight" in row]
        assert len(body_rows) >= 5 and all(row.startswith("  ") for row in body_rows)
        assert all(len(row) <= 40 for row in second)
    finally:
        tmux("kill-server")
