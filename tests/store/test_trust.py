"""Trust is given by a person, for one folder and the settings that were there then."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused, Unavailable
from khms.store import trust
from khms.store.layout import Base
from khms.store.repo import Repo

Write = Callable[..., Path]


@pytest.fixture
def found(base: Base) -> Base:
    """The base as it is found by walking up, which nobody named."""
    return Base(base.root)


def test_a_named_base_is_the_users_own_word(base: Base) -> None:
    assert trust.why_not(base) == ""


def test_a_found_base_is_trusted_from_the_record_on(found: Base) -> None:
    assert trust.why_not(found) == trust.UNKNOWN
    trust.record(found, Repo(found.root))
    assert trust.why_not(found) == ""
    assert trust.forget(found) and not trust.forget(found)
    assert trust.why_not(found) == trust.UNKNOWN


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ("# a remark\n", True),
        ("[hooks]\ncards = 1\n[recall]\nlimit = 9\n", True),
        ('[nightly]\nproposer = "other"\n', False),
        ('[index.include]\nnotes = "/home/ada/notes"\n', False),
        ("[review]\nallow_agents = true\n", False),
    ],
)
def test_only_settings_that_need_trust_end_it(found: Base, write: Write, text: str, trusted: bool) -> None:
    trust.record(found, Repo(found.root))
    write(found, "khms.toml", text)
    assert trust.why_not(found) == ("" if trusted else trust.CHANGED)
    trust.record(found, Repo(found.root))
    assert trust.why_not(found) == ""
    assert len(json.loads(trust.place().read_bytes())) == 1


def test_the_order_of_settings_does_not_matter(found: Base, write: Write) -> None:
    write(found, "khms.toml", '[nightly]\nproposer = "x"\n[index.include]\na = "1"\nb = "2"\n')
    before = trust.config_sha256(found)
    write(found, "khms.toml", '[index.include]\nb = "2"\na = "1"\n[nightly]\nproposer = "x"\n')
    assert trust.config_sha256(found) == before


def test_the_record_holds_path_root_commit_and_hash(found: Base, git: Callable[..., str]) -> None:
    trust.record(found, Repo(found.root))
    entry = trust.entry(found)
    assert entry is not None and set(entry) == {"path", "root_commit", "config_sha256", "at"}
    assert entry["path"] == str(found.root)
    assert entry["root_commit"] == git(found, "rev-list", "--max-parents=0", "HEAD")
    assert trust.entry(Base(found.root / "memory")) is None


def test_a_repository_without_a_commit_has_no_root(tmp_path: Path, git: Callable[..., str], write: Write) -> None:
    write(tmp_path, "fresh/khms.toml", "")
    git(tmp_path / "fresh", "init", "--quiet")
    base = Base(tmp_path / "fresh")
    trust.record(base, Repo(base.root))
    assert trust.why_not(base) == ""
    assert (trust.entry(base) or {})["root_commit"] == ""


def test_a_link_to_a_trusted_base_is_that_base_and_a_copy_is_not(found: Base, tmp_path: Path) -> None:
    trust.record(found, Repo(found.root))
    link = tmp_path / "link"
    link.symlink_to(found.root)
    assert trust.why_not(Base(link)) == ""
    assert trust.why_not(Base(tmp_path / "base2")) == trust.UNKNOWN


def test_other_bases_stay(found: Base, tmp_path: Path, write: Write, git: Callable[..., str]) -> None:
    write(tmp_path, "second/khms.toml", "")
    git(tmp_path / "second", "init", "--quiet")
    second = Base(tmp_path / "second")
    trust.record(found, Repo(found.root))
    trust.record(second, Repo(second.root))
    assert trust.why_not(found) == trust.why_not(second) == ""
    trust.forget(found)
    assert (trust.why_not(found), trust.why_not(second)) == (trust.UNKNOWN, "")


def test_the_file_is_the_users_alone(found: Base) -> None:
    before = os.umask(0)
    try:
        trust.record(found, Repo(found.root))
        assert stat.S_IMODE(trust.place().stat().st_mode) == 0o600
        trust.place().chmod(0o666)
        trust.record(found, Repo(found.root))
        assert stat.S_IMODE(trust.place().stat().st_mode) == 0o600
        assert stat.S_IMODE(trust.place().parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"{}", b"[5]", b'[{"path": "/x"}]', b"[" * 100_000])
def test_a_damaged_file_trusts_nobody_and_is_never_overwritten(found: Base, content: bytes) -> None:
    trust.place().parent.mkdir(parents=True)
    trust.place().write_bytes(content)
    with pytest.raises(Unavailable):
        trust.why_not(found)
    with pytest.raises(Unavailable):
        trust.record(found, Repo(found.root))
    assert trust.place().read_bytes() == content


def test_settings_that_cannot_be_read_are_an_error(found: Base, write: Write) -> None:
    trust.record(found, Repo(found.root))
    write(found, "khms.toml", "[nightly\n")
    with pytest.raises(Refused):
        trust.why_not(found)
