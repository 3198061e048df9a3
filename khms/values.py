"""`dataclass(frozen=True, slots=True)` at the price of a plain class, for what a hook and `khms mark` load.

Measured on Python 3.11, in starts of a bare interpreter: that of the standard library costs 1.3 to import (it loads
`inspect`) and 0.1 for each class it makes; a hook needs twenty classes, which was three of its eight. Here the import
is free and a class costs 0.003. Type checkers see the standard decorator, and `replace`, `asdict` and `fields` of
`dataclasses` work on what this one makes.

Of the decorator's options there are these two, both needed. A default is an immutable value, never a factory, and a
class inherits no fields.
"""

TYPE_CHECKING = False
MANY = 100  # values of a class
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen, slots):
        """Makes a class with `__init__`, `__repr__`, `__eq__` and `__hash__` from its annotations, and no way to set an
        attribute later."""
        assert frozen and slots
        return _made

    def _made(cls):
        held = vars(cls)
        names = tuple(held.get("__annotations__") or cls.__annotations__)
        defaults = {name: held[name] for name in names if name in held}
        init = _init(f"{cls.__qualname__}.__init__", names, defaults)
        body = {"__repr__": _repr, "__eq__": _eq, "__hash__": _hash, **held}
        for name in (*names, "__dict__", "__weakref__"):
            body.pop(name, None)
        body |= {"__slots__": names, "__match_args__": names, "__qualname__": cls.__qualname__}
        body |= {"__init__": init, "__setattr__": _refuse, "__delattr__": _refuse}
        body |= {"__getstate__": _items, "__setstate__": _restore, "__dataclass_fields__": _Fields()}
        return type(cls)(cls.__name__, cls.__bases__, body)

    _set = object.__setattr__

    def _init(name, names, defaults):
        """What the decorator of the standard library writes as source and compiles: that takes 0.02 a class and spares
        each value one to three microseconds, so only a class of which many are made gets it."""
        made, known = 0, set(names)

        def __init__(self, *given, **named):
            nonlocal made
            made += 1  # threads may lose one, or compile twice: all the same
            told = dict(zip(names, given), **named)  # noqa: B905
            values = defaults | told
            if made >= MANY or values.keys() != known or len(told) != len(given) + len(named):
                type(self).__init__ = init = _compiled(name, names, defaults)
                init(self, *given, **named)  # knows best what is wrong with a call
                return
            for field in names:
                _set(self, field, values[field])

        return __init__

    def _compiled(name, names, defaults):
        given = [f"{field}=_held[{field!r}]" if field in defaults else field for field in names]
        lines = [f"def __init__(self, {', '.join(given)}):"]
        lines += [f"    _set(self, {field!r}, {field})" for field in names]
        scope = {"_held": defaults, "_set": _set}
        exec("\n".join(lines), scope)
        scope["__init__"].__qualname__ = name
        return scope["__init__"]

    class _Fields:
        """What the functions of `dataclasses` look for in a class; made when one of them asks, and then kept."""

        def __get__(self, held, cls):
            from dataclasses import make_dataclass

            cls.__dataclass_fields__ = make_dataclass(cls.__name__, cls.__match_args__).__dataclass_fields__
            return cls.__dataclass_fields__

    def _items(self):
        return tuple([getattr(self, name) for name in self.__match_args__])

    def _restore(self, items):
        for name, item in zip(self.__match_args__, items, strict=True):
            _set(self, name, item)

    def _repr(self):
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__match_args__])
        return f"{type(self).__qualname__}({shown})"

    def _eq(self, other):
        return _items(self) == _items(other) if type(other) is type(self) else NotImplemented

    def _hash(self):
        return hash(_items(self))

    def _refuse(self, name, *_):
        raise AttributeError(f"{name} of a {type(self).__qualname__} cannot be changed: it is a value")
