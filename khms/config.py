"""Configuration: the settings in force, read from files and checked by the table in `options`.

Later wins: defaults, the user's config.toml, the base's khms.toml. A base's file holds differences
only, so that better defaults reach old bases. A base that is not trusted may set figures only (`needs_trust` keys are
ignored there).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from khms.errors import Refused, Unavailable
from khms.options import OPTIONS, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_BY_NAME = {option.name: option for option in OPTIONS}


class Config(Mapping[str, Value]):
    """The settings in force, by dotted name. `origin(name)` tells where a value comes from."""

    def __init__(self, layers: list[tuple[str, Mapping[str, Value]]]) -> None:
        self._values: dict[str, Value] = {option.name: option.default for option in OPTIONS}
        self._origins: dict[str, str] = {}
        for where, values in layers:
            for name, value in values.items():
                held = self._values[name]
                more = isinstance(held, dict) and _BY_NAME[name].default  # a table with entries of its own is added to
                self._values[name] = {**held, **value} if more else value
                self._origins[name] = where

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def origin(self, name: str) -> str:
        return self._origins.get(name, "default")


def flatten(table: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Dotted names and values of a parsed TOML file; raises Refused for a name that is not known or a wrong type."""
    found: dict[str, Value] = {}
    for section, body in table.items():
        if not isinstance(body, Mapping):
            raise Refused(f"{section} stands outside a section", where=where, hint="put it under its [section]")
        for key, value in body.items():
            name = f"{section}.{key}"
            found[name] = check(name, value, where)
    return found


def check(name: str, value: Value, where: str) -> Value:
    """`value` if it fits the option `name`; raises Refused else."""
    option = _BY_NAME.get(name)
    if option is None:
        import difflib

        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"did you mean {near[0]}?" if near else "khms config list shows every setting"
        raise Refused(f"there is no setting {name}", where=where, hint=hint)
    if isinstance(option.default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(option.default):
        kind = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a whole number"}
        need = kind.get(type(option.default), "a number")
        raise Refused(f"{name} must be {need}, not {value!r}", where=where, hint=f"default: {option.default!r}")
    if not option.takes(value):
        hint = f"{option.range}; default: {option.default!r}"
        raise Refused(f"{name} cannot be {value!r}", where=where, hint=hint)
    return value


def parse(text: str, where: str) -> dict[str, Value]:
    """Dotted names and values of a configuration text; raises Refused naming file and line."""
    import tomllib

    try:
        return flatten(tomllib.loads(text), where)
    except (ValueError, RecursionError) as error:  # a number of many thousand digits is a ValueError
        raise Refused(f"this configuration cannot be read: {error}", where=where, hint="mend the line named") from error


def read(path: Path) -> dict[str, Value]:
    """Dotted names and values of a configuration file, none where it is not there; raises Refused naming the line."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for, for ever
            raise Refused("this configuration is no file", where=str(path), hint="move it away")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"this configuration cannot be read: {error}", where=str(path), hint="") from error
    said = any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())
    return parse(text, str(path)) if said else {}


def user_folder() -> Path:
    """The user's configuration folder; KHMS_CONFIG_HOME moves it. Raises Unavailable for a user without a home."""
    return _user_folder("KHMS_CONFIG_HOME", "XDG_CONFIG_HOME", ".config")


def user_data() -> Path:
    """The user's data folder (trust, switched-off sessions, backups of host settings); KHMS_DATA_HOME moves it. Raises
    Unavailable for a user without a home."""
    return _user_folder("KHMS_DATA_HOME", "XDG_DATA_HOME", ".local/share")


def _user_folder(own: str, xdg: str, usual: str) -> Path:
    """The folder that platformdirs names. On Linux it is told from the environment by the same rules where that holds
    absolute paths, because a hook would pay a third of its time for the import."""
    moved = os.environ.get(own)
    if moved:
        return Path(moved)
    if sys.platform == "linux":
        for name, below in ((xdg, ""), ("HOME", usual)):
            folder = os.environ.get(name, "")
            if folder.startswith("/"):
                return Path(folder, below, "khms")
    import platformdirs

    ask = platformdirs.user_config_dir if own == "KHMS_CONFIG_HOME" else platformdirs.user_data_dir
    try:
        path = Path(ask("khms", appauthor=False))
    except RuntimeError:
        path = Path()
    if not path.is_absolute():
        raise Unavailable("your home folder cannot be told", hint=f"set HOME, or {own} to a folder for khms")
    return path


def needing_trust(values: Mapping[str, Value]) -> dict[str, Value]:
    """The part of a base's configuration that counts only where the base is trusted."""
    return {name: value for name, value in values.items() if _BY_NAME[name].needs_trust}


def load(root: Path | None, *, trusted: bool = True) -> Config:
    """The settings for the base at `root` (None: no base). Raises Refused where a file cannot be read."""
    layers: list[tuple[str, Mapping[str, Value]]] = []
    with contextlib.suppress(Unavailable):  # a user without a home has no settings of their own
        user = user_folder() / "config.toml"
        layers.append((str(user), {name: value for name, value in read(user).items() if name != "base.id"}))
    if root is not None:
        path = root / "khms.toml"
        values = read(path)
        if not trusted:
            held_back = needing_trust(values)
            values = {name: value for name, value in values.items() if name not in held_back}
        values.pop("base.default", None)
        layers.append((str(path), values))
    return Config(layers)
