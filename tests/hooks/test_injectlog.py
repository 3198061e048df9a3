"""Every decision is one line, and no line tells what somebody wrote."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import user_data
from khms.hooks import injectlog
from khms.store.layout import Base


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_are_added_and_carry_the_time(base: Base) -> None:
    injectlog.write(base, {"reason": "one\nline"})
    injectlog.write(base, {"reason": "ü \ud800"})
    found = lines(base.log / "inject.jsonl")
    assert [line["reason"] for line in found] == ["one\nline", "ü \ud800"]
    assert all(str(line["at"]).endswith("Z") and str(line["at"])[10] == "T" for line in found)


def test_without_a_base_it_stands_with_the_user() -> None:
    injectlog.write(None, {"reason": "no-base"})
    assert lines(user_data() / "log" / "inject.jsonl")[0]["reason"] == "no-base"


@pytest.mark.parametrize("obstacle", [".khms", ".khms/log"])
def test_where_the_base_takes_no_log_it_stands_with_the_user(
    base: Base, write: Callable[..., Path], obstacle: str
) -> None:
    write(base, obstacle, "a file")
    injectlog.write(base, {"reason": "x"})
    assert lines(user_data() / "log" / "inject.jsonl")[0]["reason"] == "x"


def test_a_link_in_the_logs_place_is_not_followed(base: Base, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("", encoding="utf-8")
    base.log.mkdir(parents=True)
    (base.log / "inject.jsonl").symlink_to(target)
    injectlog.write(base, {"reason": "x"})
    assert target.read_text(encoding="utf-8") == ""


def test_with_no_place_at_all_it_is_silent(
    base: Base, monkeypatch: pytest.MonkeyPatch, write: Callable[..., Path]
) -> None:
    write(base, ".khms", "a file")
    monkeypatch.setenv("KHMS_DATA_HOME", str(base.root / ".khms" / "data"))
    injectlog.write(base, {"reason": "x"})


def test_it_never_grows_without_end(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injectlog, "LARGEST", 2000)
    for n in range(200):
        injectlog.write(base, {"n": n})
    held = sorted(base.log.iterdir())
    assert [path.name for path in held] == ["inject.jsonl", "inject.jsonl.1"]
    assert all(path.stat().st_size < 2200 for path in held)
    numbers = [line["n"] for path in reversed(held) for line in lines(path)]
    assert numbers == list(range(200 - len(numbers), 200))


def test_many_writers_lose_no_line(base: Base) -> None:
    program = (
        "import sys; from pathlib import Path; from khms.hooks import injectlog; from khms.store.layout import Base\n"
        "base = Base(Path(sys.argv[1]))\n"
        "for n in range(100): injectlog.write(base, {'who': sys.argv[2], 'n': n, 'more': 'x' * 300})\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(base.root), str(who)], stderr=subprocess.PIPE)
        for who in range(5)
    ]
    for writer in writers:
        assert writer.communicate(timeout=60)[1] == b""
    found = lines(base.log / "inject.jsonl")
    assert sorted((str(line["who"]), line["n"]) for line in found) == [
        (str(w), n) for w in range(5) for n in range(100)
    ]


def test_a_question_is_known_by_its_words() -> None:
    assert injectlog.digest("Why  does\nit fail") == injectlog.digest("why does it FAIL ")
    assert injectlog.digest("why does it fail") != injectlog.digest("why did it fail")
    assert len(injectlog.digest("\ud800")) == 16
