"""Who has to wait for another's look at the base does not look again where one began after it came."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Busy
from khms.index import current, sync
from khms.index.catchup import ALL, LATER, NEW
from khms.index.looks import Looks
from khms.store.layout import Base
from khms.store.lock import hold

Add = Callable[..., Path]


def test_only_a_look_that_began_later_counts(tmp_path: Path) -> None:
    first = Looks(tmp_path / "looks")
    first.begin()
    while_it_looks = Looks(tmp_path / "looks")
    first.end()
    assert first.done_since() and not while_it_looks.done_since()
    first.begin()
    assert not while_it_looks.done_since()
    first.end()
    assert while_it_looks.done_since()


def test_a_look_that_was_killed_counts_for_nobody(tmp_path: Path) -> None:
    Looks(tmp_path / "looks").begin()
    after = Looks(tmp_path / "looks")
    assert not after.done_since()
    after.begin()
    after.end()
    assert after.done_since() and not Looks(tmp_path / "looks").done_since()


@pytest.mark.parametrize("data", [b"", b"1", b"x" * 16, b"\xff" * 16, b"\xff" * 40])
def test_a_count_that_cannot_be_read_means_to_look(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "looks").write_bytes(data)
    waiting = Looks(tmp_path / "looks")
    assert not waiting.done_since()
    waiting.begin()
    waiting.end()


def waited(base: Base, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None], mode: str) -> list[bool]:
    """What one refresh does that has to wait for the lock while `meanwhile` happens: whether it looked itself."""
    looked: list[bool] = []
    came = threading.Event()
    plain_hold, plain_run = sync.hold, sync._Refresh.run

    def held(*args: object, **how: object) -> object:
        came.set()
        return plain_hold(*args, **{**how, "wait": 60})  # type: ignore[arg-type]

    def run(self: sync._Refresh) -> sync.Report:
        looked.append(threading.current_thread() is asking)
        return plain_run(self)

    asking = threading.Thread(target=lambda: sync.refresh(base, vectors=mode))
    with hold(base.locks / sync.LOCK, "a test"):
        with monkeypatch.context() as patched:
            patched.setattr(sync, "hold", held)
            asking.start()
            assert came.wait(60)
        monkeypatch.setattr(sync._Refresh, "run", run)
        monkeypatch.setattr(sync, "hold", lambda *args, **how: plain_hold(base.locks / "another.lock", "a test"))
        meanwhile()
    asking.join(60)
    return looked


@pytest.mark.parametrize("mode", [NEW, LATER])
def test_another_did_it(base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    sync.refresh(base)

    def meanwhile() -> None:
        add_card(base, "K-00007", body="lampdrift\n")
        sync.refresh(base)

    assert waited(base, monkeypatch, meanwhile, mode) == [False]
    reader, _ = current.opened(base)
    assert {document.id for document in reader.everything()} >= {"K-00007"}


def test_nobody_did_it(base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    sync.refresh(base)
    assert waited(base, monkeypatch, lambda: None, NEW) == [True]


def test_another_left_the_vectors_for_later(base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    sync.refresh(base)

    def meanwhile() -> None:
        add_card(base, "K-00007", body="lampdrift\n")
        sync.refresh(base, vectors=LATER)

    assert waited(base, monkeypatch, meanwhile, NEW) == [False, True]


def test_who_wants_all_looks_for_itself(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    sync.refresh(base)
    assert waited(base, monkeypatch, lambda: sync.refresh(base) and None, ALL) == [False, True]


def test_what_another_did_is_seen_without_a_turn(base: Base) -> None:
    """The next one has the lock already, and the one after it."""
    sync.refresh(base)
    reports: list[sync.Report] = []
    waiting = threading.Event()

    class Counted(Looks):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            waiting.set()

    with hold(base.locks / sync.LOCK, "a test"), pytest.MonkeyPatch.context() as patched:
        patched.setattr(sync, "Looks", Counted)
        asking = threading.Thread(target=lambda: reports.append(sync.refresh(base, vectors=NEW, wait=60)))
        asking.start()
        assert waiting.wait(60)
        another = Looks(base.locks / sync.LOOKS)
        another.begin()
        another.end()
        asking.join(60)
        assert [report.docs for report in reports] == [1]


def test_who_waits_too_long_says_who_holds_it(base: Base) -> None:
    sync.refresh(base)
    with hold(base.locks / sync.LOCK, "a test"), pytest.raises(Busy, match="a test"):
        sync.refresh(base, wait=0)
