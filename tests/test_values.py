"""The light decorator makes what the standard library's would make of the same class."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import pytest

from khms import values
from khms.values import dataclass


@dataclass(frozen=True, slots=True)
class Light:
    """A value."""

    name: str
    at: float = 0.5
    more: tuple[int, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.name}!"

    @classmethod
    def named(cls, name: str) -> "Light":
        return cls(name)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """A value."""

    name: str
    at: float = 0.5
    more: tuple[int, ...] = ()


def test_it_is_built_shown_compared_and_hashed_alike() -> None:
    for given, named in ((("a",), {}), (("a", 1.0), {"more": (1,)}), ((), {"more": (), "name": "b"})):
        light, standard = Light(*given, **named), Standard(*given, **named)  # type: ignore[arg-type]
        assert repr(light) == repr(standard).replace("Standard", "Light")
        assert hash(light) == hash(standard)
        assert light == Light(*given, **named) and light != Light("z")  # type: ignore[arg-type]
        assert light != standard and light != tuple(dataclasses.astuple(standard))


def test_methods_docstring_and_names_stay() -> None:
    assert (Light.__doc__, Light.__name__, Light.__module__) == ("A value.", "Light", __name__)
    assert Light.named("a").shown == "a!" and isinstance(Light.named("a"), Light)
    match Light("a", 2.0):
        case Light(name, at):
            assert (name, at) == ("a", 2.0)


@pytest.mark.parametrize("name", ["name", "shown", "other", "__slots__"])
def test_nothing_can_be_set_or_removed(name: str) -> None:
    held: Any = Light("a")
    with pytest.raises(AttributeError):
        setattr(held, name, 1)
    with pytest.raises(AttributeError):
        delattr(held, name)
    assert held == Light("a") and not hasattr(held, "__dict__")


WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    (("a", 1.0, (), 5), {}),
    (("a",), {"unknown": 1}),
    (("a",), {"name": "b"}),
    (("a", 1.0, ()), {"at": 2.0}),
    ((), {"at": 1.0, "more": (), "unknown": 1}),
]


@pytest.mark.parametrize(("given", "named"), WRONG)
def test_a_wrong_call_names_the_class(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        name: str
        at: float = 0.5
        more: tuple[int, ...] = ()

    for _ in range(2):
        with pytest.raises(TypeError, match=r"Fresh\.__init__"):
            Fresh(*given, **named)


def test_the_first_and_the_many_are_made_alike() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        name: str
        at: float = 0.5

    first = Fresh.__init__
    made = [[Fresh("a"), Fresh(at=0.5, name="a"), Fresh("a", at=0.5)] for _ in range(values.MANY)]
    assert Fresh.__init__ is not first, "many of them are worth a function of their own"
    assert {one for some in made for one in some} == {Fresh("a")}


def test_the_functions_for_dataclasses_work_on_it() -> None:
    held = Light("a", 1.0, (1, 2))
    assert dataclasses.replace(held, name="b") == Light("b", 1.0, (1, 2))
    assert dataclasses.asdict(held) == {"name": "a", "at": 1.0, "more": (1, 2)}
    assert [field.name for field in dataclasses.fields(Light)] == ["name", "at", "more"]
    assert dataclasses.is_dataclass(held)


def test_it_can_be_copied_and_pickled() -> None:
    held = Light("a", 1.0, (1, 2))
    assert copy.copy(held) == copy.deepcopy(held) == pickle.loads(pickle.dumps(held)) == held


@pytest.mark.parametrize("module", ["khms.hooks.handlers", "khms.hooks.run", "khms.hooks.places", "khms.cli.jot"])
def test_what_a_hook_and_mark_load_stays_light(module: str) -> None:
    """The reason for it all: none of these loads what would cost a hook or `mark` a start of the interpreter."""
    heavy = {"dataclasses", "inspect", "typing", "hashlib", "click", "git", "yaml", "jsonschema", "platformdirs"}
    program = f"import sys; sys.path[:0] = {sys.path!r}; import {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-IS", "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert not heavy & set(done.stdout.split())
