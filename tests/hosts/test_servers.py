"""khms's server in hosts' settings: only its own entry changes, and taking it out gives the bytes back."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from khms.errors import KhmsError, Refused, Unavailable, Usage
from khms.hosts import servers, servertext
from khms.hosts.servers import PLACES

HOSTS = list(PLACES)
PLAIN = ("claude-code", "commented")  # it takes no comment
WORDS = [sys.executable, "-I", "-m", "khms", "mcp"]


def file_of(host: str, home: Path) -> Path:
    path = PLACES[host].user()
    assert path.is_relative_to(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def entry_in(host: str, path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    if host == "codex":
        return dict(tomllib.loads(text)["mcp_servers"]["khms"])
    key = "mcp" if host == "opencode" else "mcpServers"
    return dict(json.loads(text)[key]["khms"])


OTHERS = {
    "codex": '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"  # [mcp_servers.khms]\n\n[tui]\ntheme = "d"\n',
    "json": '{\n\t"theme": "dark",\n\t"KEY": {"other": {"command": "x", "args": ["khms", "mcp"]}}, "n": 1.50\n}\n',
    "commented": '// mine\n{\n  "a": 1, /* b */\n  "KEY": {\n    // none yet\n  },\n}',
}


def text_for(host: str, kind: str) -> str:
    if host == "codex":
        return OTHERS["codex"] if kind == "json" else OTHERS["codex"].replace("\n", "\r\n").rstrip()
    return OTHERS[kind].replace("KEY", "mcp" if host == "opencode" else "mcpServers")


@pytest.mark.parametrize("host", HOSTS)
def test_into_nothing_and_out_again(host: str, own_environment: Path, tmp_path: Path) -> None:
    before = sorted(own_environment.rglob("*"))
    done = servers.install(host, "user", tmp_path)
    assert done.changed and done.path.is_relative_to(own_environment)
    held = entry_in(host, done.path)
    assert servers.ours(held) and (held["command"] if host == "opencode" else [held["command"], *held["args"]]) == WORDS
    written = done.path.read_bytes()
    assert servers.install(host, "user", tmp_path).note == "already installed" and done.path.read_bytes() == written
    assert servers.uninstall(host, "user", tmp_path).changed
    left = [path for path in sorted(own_environment.rglob("*")) if "data" not in path.parts]
    assert left == before
    assert not servers.uninstall(host, "user", tmp_path).changed


@pytest.mark.parametrize(
    ("host", "kind"), [(host, kind) for host in HOSTS for kind in ("json", "commented") if (host, kind) != PLAIN]
)
def test_beside_what_is_there(host: str, kind: str, own_environment: Path, tmp_path: Path) -> None:
    path = file_of(host, own_environment)
    data = text_for(host, kind).encode()
    path.write_bytes(data)
    path.chmod(0o640)
    servers.install(host, "user", tmp_path)
    changed = path.read_bytes()
    assert changed != data and path.stat().st_mode & 0o777 == 0o640
    if kind == "json":
        assert servers.ours(entry_in(host, path))
    servers.uninstall(host, "user", tmp_path)
    assert path.read_bytes() == data
    # The same where the file was changed since, so that the earlier bytes do not help.
    servers.install(host, "user", tmp_path)
    path.write_bytes(b"\n" + path.read_bytes())
    assert "what else had changed stays" in servers.uninstall(host, "user", tmp_path).note
    left = path.read_bytes()
    assert left[1:] == data if host != "codex" else left[1:].rstrip() == data.rstrip()


def test_another_base_takes_the_place_of_the_first(own_environment: Path, tmp_path: Path) -> None:
    for host in HOSTS:
        path = file_of(host, own_environment)
        path.write_text(text_for(host, "json"), encoding="utf-8")
        before = path.read_bytes()
        servers.install(host, "user", tmp_path)
        assert servers.install(host, "user", tmp_path, "/some/base").changed
        assert servers._words(entry_in(host, path))[-3:] == ["--root", "/some/base", "mcp"]
        servers.uninstall(host, "user", tmp_path)
        assert path.read_bytes() == before


BROKEN = [
    ("gemini", "{", Refused),
    ("gemini", "[]", Refused),
    ("gemini", '{"mcpServers": []}', Refused),
    ("gemini", '{"mcpServers": {}, "mcpServers": {}}', Refused),
    ("gemini", '{"mcpServers": {"khms": 5}}', Refused),
    ("gemini", '{"mcpServers": {"khms": {"command": "other"}}}', Refused),
    ("claude-code", '{"a": 1,}', Refused),
    ("codex", "a = ", Refused),
    ("codex", "mcp_servers = {}\n", Refused),
    ("codex", "mcp_servers = 5\n", Refused),
    ("codex", '[mcp_servers]\nkhms = "x"\n', Refused),
    ("codex", '[mcp_servers.khms]\nurl = "https://example.org"\n', Refused),
    ("codex", b"\xff\xfe", Refused),
    ("cursor", b'{"a": "\xff"}', Refused),
]


@pytest.mark.parametrize(("host", "text", "error"), BROKEN)
def test_what_cannot_be_changed_is_left_untouched(
    host: str, text: str | bytes, error: type[KhmsError], own_environment: Path, tmp_path: Path
) -> None:
    path = file_of(host, own_environment)
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(data)
    with pytest.raises(error) as caught:
        servers.install(host, "user", tmp_path)
    assert caught.value.hint and str(path) in caught.value.where
    assert path.read_bytes() == data
    assert [path.name for path in path.parent.iterdir() if path.name.startswith(".khms")] == []


def test_a_read_only_file_a_folder_and_a_link(own_environment: Path, tmp_path: Path) -> None:
    path = file_of("cursor", own_environment)
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o444)
    with pytest.raises(Unavailable):
        servers.install("cursor", "user", tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(Refused):
        servers.install("cursor", "user", tmp_path)
    path.rmdir()
    real = tmp_path / "dotfiles.json"
    real.write_text("{}\n", encoding="utf-8")
    path.symlink_to(real)
    assert servers.install("cursor", "user", tmp_path).path == real and path.is_symlink()
    servers.uninstall("cursor", "user", tmp_path)
    assert path.is_symlink() and real.read_text(encoding="utf-8") == "{}\n"
    project = tmp_path / "project"
    project.mkdir()
    (project / ".mcp.json").symlink_to(real)
    with pytest.raises(Refused):
        servers.install("claude-code", "project", project)
    with pytest.raises(Usage):
        servers.install("emacs", "user", tmp_path)


def test_hooks_in_the_same_file_stay(own_environment: Path, tmp_path: Path) -> None:
    """The two keep their earlier bytes apart, in whichever order they come and go."""
    path = file_of("gemini", own_environment)
    path.write_text('{"hooks": {}}\n', encoding="utf-8")
    servers.install("gemini", "user", tmp_path)
    with_server = path.read_text(encoding="utf-8")
    path.write_text(with_server.replace('"hooks": {}', '"hooks": {"BeforeAgent": []}'), encoding="utf-8")
    servers.uninstall("gemini", "user", tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == {"hooks": {"BeforeAgent": []}}


def test_a_table_with_tables_of_its_own_goes_whole(tmp_path: Path) -> None:
    form, rest = servertext.Toml("Codex"), '# kept\n[a]\nb = """\n[mcp_servers.khms]\n"""\n'
    inner = '[mcp_servers.khms]\ncommand = "x"\n\n[mcp_servers.khms.env]\nA = "1"\n\n# of the next\n[z]\n'
    with pytest.raises(Refused):  # a text that looks like the table: by hand
        form.drop(rest + inner, tmp_path, ())
    plain = "# kept\n[a]\nb = 1\n\n"
    assert form.drop(plain + inner, tmp_path, ()) == "# kept\n[a]\nb = 1\n\n# of the next\n[z]\n"


def test_what_is_configured(own_environment: Path, tmp_path: Path) -> None:
    servers.install("codex", "user", tmp_path)
    servers.install("opencode", "project", tmp_path)
    hostile = {"mcpServers": {"khms": {"command": str(tmp_path / "khms"), "args": ["mcp"]}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(hostile), encoding="utf-8")
    file_of("gemini", own_environment).write_text("{", encoding="utf-8")
    file_of("cursor", own_environment).write_text('{"mcpServers": {"khms": {"url": "http://x"}}}', encoding="utf-8")
    found = {(entry.host, entry.scope): entry for entry in servers.configured(tmp_path)}
    assert list(found[("codex", "user")].words) == WORDS and found[("codex", "user")].problem == ""
    assert list(found[("opencode", "project")].words) == WORDS
    assert "not run from here" in found[("claude-code", "project")].problem
    assert "not JSON" in found[("gemini", "user")].problem
    assert "is not this one" in found[("cursor", "user")].problem
    assert len(found) == 5
