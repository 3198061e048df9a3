"""The seal: signed where it is due, refused with the way out where it cannot be, no prompt where nobody is asked."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.errors import KhmsError, Refused, Unavailable
from khms.model.approval import Approval
from khms.model.ulid import new_ulid
from khms.pipeline import seal, signers
from khms.pipeline.approve import approve
from khms.pipeline.record import now
from khms.pipeline.ruling import Wish
from khms.pipeline.status import change
from khms.store import signing
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
ADA = "Ada Tester <ada@example.org>"
UNIT = "2026-03-05-nightly"


def make_key(folder: Path, name: str, passphrase: str = "") -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", str(path)], check=True)
    return path


def record(reviewer: str = ADA) -> Approval:
    return Approval(new_ulid(), "", reviewer, now(), None)


def allow(base: Base, commit: Any, email: str, key: Path) -> None:
    public = Path(f"{key}.pub").read_text(encoding="utf-8")
    base.path("memory/signers").write_text(f"{email} {public}", encoding="utf-8")
    commit(base)


def use(git: Any, base: Base, key: Path | str) -> None:
    git(base, "config", "user.signingkey", str(key))


def demand(base: Base, commit: Any) -> None:
    base.config.write_text("[review]\nrequire_signed = true\n", encoding="utf-8")
    commit(base)


def sealed(base: Base, held: Approval | None = None, **how: Any) -> Approval:
    return seal.sealed(base, Repo(base.root), config.load(base.root), held or record(), **how)


def test_without_signers_nothing_is_signed(base: Base, tmp_path: Path, git: Any) -> None:
    use(git, base, make_key(tmp_path, "ada"))
    assert sealed(base).signature is None


def test_signed_where_the_signers_name_the_reviewer(base: Base, tmp_path: Path, git: Any, commit: Any) -> None:
    key = make_key(tmp_path, "ada")
    allow(base, commit, "ada@example.org", key)
    assert sealed(base).signature is None, "no key is named yet"
    use(git, base, key)
    done = sealed(base)
    assert seal.holds(done, base.path("memory/signers").read_bytes())
    assert sealed(base, record("Bob <bob@example.org>")).signature is None
    assert sealed(base, record("agent:claude-code")).signature is None


def test_the_settings_key_goes_before_gits(base: Base, tmp_path: Path, git: Any, commit: Any) -> None:
    own, other = make_key(tmp_path, "own"), make_key(tmp_path, "other")
    allow(base, commit, "ada@example.org", own)
    use(git, base, other)
    assert sealed(base).signature is None, "a key that is not the one registered proves nothing"
    folder = config.user_folder()
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'[review]\nsigning_key = "{own}"\n', encoding="utf-8")
    assert sealed(base).signature


def test_an_openpgp_key_is_none(base: Base, tmp_path: Path, git: Any, commit: Any) -> None:
    allow(base, commit, "ada@example.org", make_key(tmp_path, "ada"))
    use(git, base, "0123456789ABCDEF")
    assert sealed(base).signature is None


def test_signers_that_nobody_committed_do_not_count(base: Base, tmp_path: Path, git: Any) -> None:
    key = make_key(tmp_path, "ada")
    use(git, base, key)
    base.path("memory/signers").write_text(f"ada@example.org {Path(f'{key}.pub').read_text(encoding='utf-8')}")
    assert sealed(base).signature is None


def test_required_and_no_key_names_the_commands(base: Base, commit: Any, tmp_path: Path) -> None:
    demand(base, commit)
    with pytest.raises(Unavailable) as caught:
        sealed(base)
    assert caught.value.exit_code == 4
    for words in ("ssh-keygen -t ed25519", "git config --global user.signingkey", "khms signers add ada@example.org"):
        assert words in caught.value.hint


def test_required_and_not_among_the_signers(base: Base, commit: Any, tmp_path: Path, git: Any) -> None:
    demand(base, commit)
    key, other = make_key(tmp_path, "ada"), make_key(tmp_path, "other")
    use(git, base, key)
    with pytest.raises(Refused, match="does not name ada@example") as caught:
        sealed(base)
    assert f"khms signers add ada@example.org {key}.pub" in caught.value.hint
    allow(base, commit, "ada@example.org", other)
    with pytest.raises(Refused, match="is not the one that memory/signers has"):
        sealed(base)
    with pytest.raises(Refused, match="has none to give"):
        sealed(base, record("agent:claude-code"))


def test_a_locked_key_fails_at_once_where_nobody_is_asked(
    base: Base, commit: Any, tmp_path: Path, git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "askpass"
    program.write_text(f"#!/bin/sh\ntouch {asked}\nsleep 60\n", encoding="utf-8")
    program.chmod(0o755)
    for name, value in {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}.items():
        monkeypatch.setenv(name, value)
    key = make_key(tmp_path, "locked", "a passphrase")
    allow(base, commit, "ada@example.org", key)
    use(git, base, key)
    demand(base, commit)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="did not sign") as caught:
        sealed(base, ask=False)
    assert "ssh-add" in caught.value.hint and not asked.exists()
    assert time.monotonic() - began < signing._SECONDS


def test_a_key_that_wants_a_touch_is_not_waited_for(tmp_path: Path) -> None:
    key = tmp_path / "token"
    key.write_text("x", encoding="utf-8")
    Path(f"{key}.pub").write_text("sk-ssh-ed25519@openssh.com AAAA token\n", encoding="utf-8")
    with pytest.raises(Unavailable, match="touch"):
        signing.sign(b"x", signing.Key(str(key)), ask=False)


def test_without_ssh_keygen_it_says_what_to_install(
    base: Base, commit: Any, tmp_path: Path, git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key(tmp_path, "ada")
    allow(base, commit, "ada@example.org", key)
    use(git, base, key)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(subprocess.run(["which", "git"], capture_output=True, text=True).stdout.strip())
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(Unavailable, match="ssh-keygen was not found") as caught:
        sealed(base)
    assert "openssh" in caught.value.hint.lower()


def test_a_key_held_by_an_agent_signs(base: Base, commit: Any, tmp_path: Path, git: Any, monkeypatch: Any) -> None:
    key = make_key(tmp_path, "ada")
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    values = dict(part.split("=", 1) for part in started.replace("\n", " ").split(";") if "=" in part)
    values = {name.strip(): value for name, value in values.items()}
    monkeypatch.setenv("SSH_AUTH_SOCK", values["SSH_AUTH_SOCK"])
    try:
        subprocess.run(["ssh-add", "-q", str(key)], check=True, env={**os.environ}, capture_output=True)
        allow(base, commit, "ada@example.org", key)
        use(git, base, "key::" + Path(f"{key}.pub").read_text(encoding="utf-8").strip())
        key.unlink()
        assert sealed(base, ask=False).signature
    finally:
        os.kill(int(values["SSH_AGENT_PID"]), 15)


def test_approve_and_status_seal_their_records(
    base: Base, add_candidate: Make, commit: Any, git: Any, tmp_path: Path
) -> None:
    key = make_key(tmp_path, "ada")
    allow(base, commit, "ada@example.org", key)
    use(git, base, key)
    demand(base, commit)
    add_candidate(base)
    commit(base)
    repo, settings = Repo(base.root), config.load(base.root)
    approve(base, repo, settings, UNIT, Wish(everything=True), lambda base, cards: {})
    change(base, repo, settings, "K-00001", "challenged", by=None, why="seen", views=lambda base, cards: {})
    signed = [json.loads(path.read_text(encoding="utf-8"))["signature"] for path in base.approvals.glob("*.json")]
    assert len(signed) == 2 and all(signed)


def test_an_approval_that_cannot_be_signed_changes_nothing(
    base: Base, add_candidate: Make, commit: Any, git: Any
) -> None:
    demand(base, commit)
    add_candidate(base)
    head = commit(base)
    with pytest.raises(KhmsError):
        settings = config.load(base.root)
        approve(base, Repo(base.root), settings, UNIT, Wish(everything=True), lambda base, cards: {})
    assert git(base, "rev-parse", "HEAD") == head and git(base, "status", "--porcelain") == ""


def test_signers_are_a_persons_to_name(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where agents may approve: who counts is not theirs to say."""
    public = Path(f"{make_key(tmp_path, 'ada')}.pub").read_text(encoding="utf-8")
    base.config.write_text("[review]\nallow_agents = true\n", encoding="utf-8")
    monkeypatch.setenv("CLAUDECODE", "1")
    for act in (
        lambda repo, held: signers.add(base, repo, held, "ada@example.org", public),
        lambda repo, held: signers.remove(base, repo, held, "ada@example.org"),
    ):
        with pytest.raises(Refused, match="a person says whose signature counts"):
            act(Repo(base.root), config.load(base.root))
    monkeypatch.delenv("CLAUDECODE")
    monkeypatch.setenv("KHMS_BACKGROUND", "1")
    with pytest.raises(Refused, match="background"):
        signers.add(base, Repo(base.root), config.load(base.root), "ada@example.org", public)
