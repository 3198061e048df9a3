"""Real server processes: one a base however many start it, and the next one after whatever ended the last."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from khms.index import sync
from khms.server import launch
from khms.store import trust
from khms.store.layout import Base
from khms.store.repo import Repo

Ask = Callable[..., tuple[list[bytes] | None, str]]
Khms = Callable[..., "subprocess.CompletedProcess[str]"]
PATIENCE = 60.0


def seat(base: Base) -> bytes:
    return launch.lock_path(launch.made()[0], str(base.root))


def ended(base: Base) -> bool:
    until = time.monotonic() + PATIENCE
    while launch.claimed(seat(base)):
        assert time.monotonic() < until
        time.sleep(0.01)
    return True


def test_of_many_starts_one_does_it(stocked: Base, running: Callable[[Base], dict[str, Any]]) -> None:
    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(lambda _: launch.start(str(stocked.root)), range(16)))
    assert started.count(True) == 1
    first = running(stocked)
    assert launch.start(str(stocked.root)) is False
    code = "import sys; from khms.server import launch; sys.exit(launch.start(sys.argv[1]))"
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", code, str(stocked.root)], timeout=60).returncode == 0
    assert running(stocked)["pid"] == first["pid"]


def test_one_that_was_killed_is_followed_by_the_next(
    stocked: Base, running: Callable[[Base], dict[str, Any]], ask: Ask, sockets: Path
) -> None:
    launch.start(str(stocked.root))
    first = running(stocked)
    os.kill(first["pid"], signal.SIGKILL)
    assert ended(stocked) and ask(stocked, b"status") == (None, "dead")
    assert launch.start(str(stocked.root)) is False, "one that ends at once is not started for ever"
    assert launch.start(str(stocked.root), pause=0.0)
    assert running(stocked)["pid"] != first["pid"]


def test_told_to_it_goes_and_takes_its_socket_along(
    stocked: Base, running: Callable[[Base], dict[str, Any]], ask: Ask, sockets: Path
) -> None:
    for end in (b"stop", b""):
        launch.start(str(stocked.root), pause=0.0)
        found = running(stocked)
        assert found["base"] == str(stocked.root)
        if end:
            assert ask(stocked, end) == ([], "")
        else:
            os.kill(found["pid"], signal.SIGTERM)
        assert ended(stocked) and list((sockets / "khms").glob("*.sock")) == []


def test_it_keeps_nothing_of_the_session_that_started_it(
    stocked: Base, running: Callable[[Base], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "KHMS_ROOT", "KHMS_INCOGNITO", "NO_COLOR", "API_TOKEN", "GIT_DIR"):
        monkeypatch.setenv(name, str(stocked.root))
    launch.start(str(stocked.root))
    number = running(stocked)["pid"]
    held = {pair.partition(b"=")[0] for pair in Path(f"/proc/{number}/environ").read_bytes().split(b"\0")}
    assert held.isdisjoint({b"CLAUDECODE", b"KHMS_ROOT", b"KHMS_INCOGNITO", b"NO_COLOR", b"API_TOKEN", b"GIT_DIR"})
    assert {b"PATH", b"HOME", b"KHMS_DATA_HOME"} <= held
    assert Path(f"/proc/{number}/cwd").readlink() == Path("/"), "no folder is held on to"
    assert os.getsid(number) == number


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_nothing_is_started_into_a_folder_that_others_may_enter(stocked: Base, sockets: Path, mode: int) -> None:
    (sockets / "khms").mkdir()
    (sockets / "khms").chmod(mode)
    assert launch.start(str(stocked.root)) is False
    assert list((sockets / "khms").iterdir()) == []


def test_a_lock_that_is_a_link_is_not_followed(stocked: Base, tmp_path: Path, sockets: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    Path(os.fsdecode(seat(stocked))).symlink_to(target)
    with pytest.raises(OSError):
        launch.start(str(stocked.root))
    assert target.read_bytes() == b"mine"


def test_the_first_hook_does_without_and_starts_it_for_the_next(
    stocked: Base,
    event: Callable[..., bytes],
    client: Callable[..., str],
    running: Callable[[Base], dict[str, Any]],
    logged: Callable[[Base], Any],
) -> None:
    env = {"KHMS_ROOT": str(stocked.root)}
    assert "K-00001" in client(event(session="a"), env)
    running(stocked)
    until = time.monotonic() + PATIENCE
    while logged(stocked)[-1]["server"] is False:
        assert time.monotonic() < until
        assert "K-00001" in client(event(session=f"b{time.monotonic_ns()}"), env)
    first, last = logged(stocked)[0], logged(stocked)[-1]
    assert (first["server"], first["without"], first["channel"]) == (False, "none", "lexical")
    assert (last["server"], last["channel"]) == (True, "hybrid")


def test_a_storm_of_first_hooks_starts_one(
    stocked: Base, event: Callable[..., bytes], client: Callable[..., str], running: Callable[[Base], dict[str, Any]]
) -> None:
    env = {"KHMS_ROOT": str(stocked.root)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: client(event(session=f"s{n}"), env), range(8)))
    number = str(running(stocked)["pid"])
    assert Path(os.fsdecode(seat(stocked))).read_text(encoding="ascii").strip() == number


@pytest.mark.parametrize("way", ["KHMS_HOOKS_OFF", "KHMS_SERVER_OFF", "option", "untrusted"])
def test_where_it_is_not_wanted_none_is_started(
    stocked: Base, event: Callable[..., bytes], client: Callable[..., str], write: Callable[..., Path], way: str
) -> None:
    env = {"KHMS_ROOT": str(stocked.root)}
    given = event()
    if way == "option":
        write(stocked, "khms.toml", '[server]\nenabled = "off"\n')
    elif way == "untrusted":
        env, given = {}, event(cwd=str(stocked.root))
    else:
        env[way] = "1"
    client(given, env)
    assert not launch.claimed(seat(stocked))


def test_a_trusted_base_that_was_found_and_the_users_own_one(
    stocked: Base,
    event: Callable[..., bytes],
    client: Callable[..., str],
    running: Callable[[Base], dict[str, Any]],
    logged: Callable[[Base], Any],
    write: Callable[..., Path],
    own_environment: Path,
) -> None:
    trust.record(stocked, Repo(stocked.root))
    write(own_environment, "config/config.toml", f'[base]\ndefault = "{stocked.root}"\n')
    launch.start(str(stocked.root))
    running(stocked)
    for number, cwd in enumerate((stocked.root, stocked.know, own_environment, Path("/"))):
        assert "K-00001" in client(event(session=f"s{number}", cwd=str(cwd)), {})
    assert [line["server"] for line in logged(stocked)] == [True] * 4


def test_a_base_deep_down(
    tmp_path: Path, stocked: Base, running: Callable[[Base], Any], event: Callable[..., bytes], client: Any
) -> None:
    deep = tmp_path.joinpath(*["d" * 60] * 5)
    deep.mkdir(parents=True)
    moved = Base(stocked.root.rename(deep / "base"), named=True)
    sync.refresh(moved)
    assert len(bytes(moved.root)) > 300
    launch.start(str(moved.root))
    running(moved)
    assert "K-00001" in client(event(), {"KHMS_ROOT": str(moved.root)})


def test_what_was_written_meanwhile_is_found(
    stocked: Base,
    add_card: Callable[..., Path],
    commit: Callable[..., str],
    running: Callable[[Base], Any],
    event: Callable[..., bytes],
    hook: Callable[..., str | None],
    run_khms: Khms,
) -> None:
    launch.start(str(stocked.root))
    running(stocked)
    asked = "which resistor does the lighthouse lamp driver need"
    until = time.monotonic() + PATIENCE
    while hook(stocked, event(asked, session="a")) is None:  # it is not ready to answer yet
        assert time.monotonic() < until
    path = add_card(stocked, "K-00004", title="The lighthouse lamp driver needs a resistor of 47 ohms")
    commit(stocked, "one more")
    while "K-00004" not in str(hook(stocked, event(asked, session=f"b{time.monotonic_ns()}"))):
        assert time.monotonic() < until
    path.write_text(path.read_text(encoding="utf-8").replace("lighthouse lamp", "submarine horn"), encoding="utf-8")
    told = run_khms("recall", "submarine horn")
    assert "K-00004" in told.stdout, told.stderr
    path.write_text(path.read_text(encoding="utf-8").replace("submarine horn", "tractor wiper"), encoding="utf-8")
    while "K-00004" not in str(hook(stocked, event("tractor wiper driver", session=f"c{time.monotonic_ns()}"))):
        assert time.monotonic() < until
