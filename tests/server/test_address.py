"""Where a server is looked for: the same base in every spelling, and never in a folder that another user can enter."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.server import address
from khms.store import layout
from khms.store.layout import Base

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
STRANGER = 54321


def found(cwd: Path, root: str = "") -> bytes:
    env = {b"KHMS_ROOT": os.fsencode(root)} if root else {}
    return address.root(env, address.standing(os.fsencode(cwd), b"/"))


def test_the_base_is_the_one_that_the_rules_name(tmp_path: Path, write: Callable[..., Path]) -> None:
    for path in ("a/khms.toml", "b/.memory/khms.toml", "c/memory/know/K-1.md", "c/deep/x", "d/khms.toml/x", "e/x"):
        write(tmp_path, path, "")
    (tmp_path / "a/deep/er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "deep")
    for place in ("a", "a/deep/er", "b", "c", "c/deep", "d", "e", "link", "gone"):
        here = tmp_path / place
        base = layout.walk(here)
        told = found(here)
        assert (os.path.realpath(told) if told else b"") == (os.fsencode(base.root) if base else b""), place
    for named in ("a", "b", "c", "d", "e", "gone", str(tmp_path / "a")):
        told = found(tmp_path, named)
        try:
            root = os.fsencode(layout.named(tmp_path / named).root)
        except Exception:
            root = b""
        assert (os.path.realpath(told) if told else b"") == root, named
    assert found(Path("/")) == b"" and found(tmp_path) == b""


def test_the_name_is_that_of_the_real_folder_and_the_users_settings(base: Base, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(base.root)
    real = address.real(os.fsencode(tmp_path / "link"))
    assert real == os.fsencode(base.root)
    names = {address.name(env, real) for env in ({}, {b"HOME": b"/a"}, {b"KHMS_DATA_HOME": b"/a"}, {b"PATH": b"/a"})}
    assert len(names) == 3
    assert address.name({}, real) != address.name({}, real + b"x")


def test_to_look_for_the_real_path_moves_nobody(base: Base) -> None:
    here = Path.cwd()
    address.real(os.fsencode(base.root))
    with pytest.raises(FileNotFoundError):
        address.real(b"/no/such/folder")
    assert Path.cwd() == here


def test_a_long_path_has_a_short_name(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a" * 50] * 6)
    deep.mkdir(parents=True)
    assert len(bytes(deep)) > 300
    path = address.folder(os.environb) + b"/" + address.name(os.environb, address.real(bytes(deep))) + address.SOCKET
    assert len(path) <= address.LONGEST


def test_the_folder(tmp_path: Path, sockets: Path) -> None:
    own = b"/khms-%d" % os.geteuid()
    assert address.folder({b"XDG_RUNTIME_DIR": bytes(sockets)}) == bytes(sockets) + b"/khms"
    assert address.folder({}) == b"/tmp" + own
    assert address.folder({b"TMPDIR": b"/var/tmp/"}) == b"/var/tmp" + own
    for odd in (b"", b"relative", b"/no/such/folder", b"/" + b"x" * 200, bytes(tmp_path / "home" / ".gitconfig")):
        assert address.folder({b"XDG_RUNTIME_DIR": odd, b"TMPDIR": odd if len(odd) > 99 else b""}) == b"/tmp" + own
    sockets.chmod(0o777)
    assert address.folder({b"XDG_RUNTIME_DIR": bytes(sockets)}) == b"/tmp" + own, "anybody could move it away"


@root_only
def test_a_runtime_folder_of_another_user_is_none(sockets: Path) -> None:
    os.chown(sockets, STRANGER, STRANGER)
    assert address.folder({b"XDG_RUNTIME_DIR": bytes(sockets)}).startswith(b"/tmp/khms-")


def test_only_a_folder_of_ones_own_that_is_closed_to_others(tmp_path: Path) -> None:
    place = tmp_path / "place"
    assert address.why_not(bytes(place)) and not address.exists(bytes(place))
    place.mkdir(mode=0o700)
    assert address.why_not(bytes(place)) == ""
    for mode in (0o701, 0o710, 0o770, 0o755, 0o777, 0o1777):
        place.chmod(mode)
        assert address.why_not(bytes(place)) == "others may enter it", oct(mode)
    place.chmod(0o700)
    (tmp_path / "link").symlink_to(place)
    (tmp_path / "file").write_bytes(b"")
    assert (
        address.why_not(bytes(tmp_path / "link")) == address.why_not(bytes(tmp_path / "file")) == "it is not a folder"
    )


@root_only
def test_a_folder_that_another_user_put_there(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    os.chown(place, STRANGER, STRANGER)
    assert address.why_not(bytes(place)) == "it belongs to another user"


def test_who_is_at_the_other_end() -> None:
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        assert address.peer(left) == address.peer(right) == os.geteuid()


def test_another_build_is_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "__init__.py"
    file.write_text("__version__ = '1'\n", encoding="utf-8")
    first = address.build(str(file))
    assert address.build(str(file)) == first
    file.unlink()
    file.write_text("__version__ = '10'\n", encoding="utf-8")
    assert address.build(str(file)) != first
