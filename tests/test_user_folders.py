"""The user's folders are those that platformdirs names, without its import where the environment tells."""

import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from khms import config
from khms.errors import Unavailable

NAMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "KHMS_CONFIG_HOME", "KHMS_DATA_HOME")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "values",
    [
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada/"},
        {"HOME": "/"},
        {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/cfg", "XDG_DATA_HOME": "/data/"},
        {"HOME": "/home/ada", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "relative"},
        {"HOME": "relative"},
        {"HOME": ""},
        {},
    ],
)
def test_they_are_those_of_platformdirs(environment: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        environment.setenv(name, value)
    assert config.user_folder() == Path(platformdirs.user_config_dir("khms", appauthor=False))
    assert config.user_data() == Path(platformdirs.user_data_dir("khms", appauthor=False))


def test_they_can_be_moved(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("KHMS_CONFIG_HOME", "/a")
    environment.setenv("KHMS_DATA_HOME", "/b")
    assert (config.user_folder(), config.user_data()) == (Path("/a"), Path("/b"))


def test_a_user_without_a_home_has_no_settings_and_a_clear_error(environment: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> str:
        raise RuntimeError

    environment.setattr(platformdirs, "user_config_dir", nowhere)
    environment.setattr(platformdirs, "user_data_dir", lambda *_, **__: "~/.local/share/khms")
    with pytest.raises(Unavailable, match="home"):
        config.user_folder()
    with pytest.raises(Unavailable, match="KHMS_DATA_HOME"):
        config.user_data()
    assert config.load(None)["hooks.cards"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs is asked")
def test_on_linux_a_hook_does_not_pay_for_platformdirs() -> None:
    program = "import sys; from khms import config; config.user_data(); config.load(None); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert "platformdirs" not in done.stdout.split() and "tomllib" not in done.stdout.split()
