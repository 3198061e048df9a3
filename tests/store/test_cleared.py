"""What is kept as clean clears just that, and nothing where it was damaged, or made by somebody else."""

import os
from pathlib import Path

import pytest

from khms.store import cleared
from khms.store.layout import Base

TEXT = b"what was looked at"


def made(judge: bytes = b"rules", data: bytes = TEXT, manner: bytes = b"text") -> bytes:
    key = cleared.key(judge)
    assert key is not None
    return cleared.digest(key, data, manner)


def test_what_is_kept_clears_the_same_text_under_the_same_rules_alone(base: Base) -> None:
    cleared.keep(base, [made(), made(data=b"another")])
    kept = cleared.load(base)
    assert kept == {made(), made(data=b"another")}
    assert kept.isdisjoint({made(b"other rules"), made(data=TEXT + b"!"), made(manner=b"ledger")})


def test_git_does_not_see_it(base: Base, git) -> None:  # type: ignore[no-untyped-def]
    (base.root / ".gitignore").unlink()
    cleared.keep(base, [made()])
    assert cleared.place(base).exists()
    assert git(base, "status", "--porcelain").split("\n") == ["D .gitignore"]


def test_another_user_s_file_clears_nothing(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared.keep(base, [made()])
    monkeypatch.setenv("KHMS_DATA_HOME", str(tmp_path / "other"))
    assert made() not in cleared.load(base)
    secret = tmp_path / "other" / "cleared.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    mine = made()
    assert made() == mine
    secret.write_bytes(b"cut")  # a damaged secret is made anew
    assert made() != mine


def test_damage_clears_nothing(base: Base) -> None:
    cleared.keep(base, [made(), made(data=b"another")])
    whole = cleared.place(base).read_bytes()
    for damage in (b"", b"\0" * 4096, whole[1:], whole[:31], b"x" + whole):
        cleared.place(base).write_bytes(damage)
        assert made() not in cleared.load(base) and made(data=b"another") not in cleared.load(base)
    cleared.place(base).unlink()
    os.mkfifo(cleared.place(base))  # which a plain read would wait for
    assert cleared.load(base) == frozenset()


def test_nothing_is_written_through_a_link_out_of_the_base(base: Base, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    base.local.symlink_to(outside)
    cleared.keep(base, [made()])
    assert list(outside.iterdir()) == []


def test_without_a_place_for_the_secret_there_is_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("KHMS_DATA_HOME", str(tmp_path / "file" / "data"))
    assert cleared.key(b"rules") is None
