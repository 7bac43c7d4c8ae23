"""What methods of plugins return, in addition to what the base of their list promises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache, wraps
from numbers import Real
from types import CoroutineType, UnionType
from typing import Any, TypeVar, get_origin, get_type_hints
from weakref import WeakSet

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.scenario_errors import BrokenOff

WIDER: dict[type, tuple[type, ...]] = {float: (Real,), int: (int, np.integer), bool: (bool, np.bool_)}
"""What does as well."""
_HELD: WeakSet[Callable[..., Any]] = WeakSet()
"""The methods whose answers are compared already."""
MOST = 3
"""Values of a list or an array that are shown, the first ones."""
F = TypeVar("F", bound=Callable[..., Any])


def written(code: Any) -> str:
    """``file:line: `` of a class or function, to begin a sentence with; empty if nobody knows."""
    code = inspect.unwrap(getattr(code, "__func__", code))
    try:
        return f"{inspect.getsourcefile(code)}:{inspect.getsourcelines(code)[1]}: "
    except (TypeError, OSError):
        return ""


def in_words(value: object, begins: bool = False, depth: int = 0) -> str:
    """A value that should not be where it is, in a few words; of an array the shape, and how it begins."""
    if value is None or isinstance(value, (bool, int, float, np.number)):
        return str(value)
    if isinstance(value, np.ndarray):
        first = f" with {', '.join(map(str, value.flat[:MOST]))}" if begins and value.size else ""
        return f"an array of shape {value.shape}{first}"
    if isinstance(value, CoroutineType):
        value.close()
        return f"{value.cr_code.co_qualname}(...), a conversation that nobody has begun"
    if isinstance(value, (list, tuple)) and depth < MOST:
        items = ", ".join(in_words(one, depth=depth + 1) for one in value[:MOST])
        return f"a {type(value).__name__} of {items or 'nothing'}"
    return f"a {type(value).__name__}"


def hold_to(found: type, base: type) -> None:
    """Have the methods of another package's class that its base asks for say so when they return something else.

    Raises:
        PluginError: one of them is not there, is to be a property and is not, or the other way round, or takes other
            parameters.
    """
    if found.__module__.startswith("coband."):
        return
    wanted = {name: inspect.getattr_static(base, name) for name in sorted(getattr(base, "__abstractmethods__", ()))}
    missing = [name for name, asked in wanted.items() if inspect.getattr_static(found, name, asked) is asked]
    if missing:
        raise PluginError(f"{found.__name__} lacks {', '.join(missing)}, which coband.{base.__name__} asks for")
    for name, asked in wanted.items():
        method = inspect.getattr_static(found, name)
        if isinstance(asked, property) != isinstance(method, property):
            do = "write @property above it" if isinstance(asked, property) else "leave out @property"
            raise PluginError(f"{found.__name__}.{name}: {do}, as coband.{base.__name__} has it")
        if why := other_parameters(f"{found.__name__}.{name}", method, asked):
            raise PluginError(why)
        says = _promised(asked) is not None or hasattr(asked, "promise")
        if says and inspect.isfunction(method) and method not in _HELD:
            setattr(found, name, _held(method, asked, f"coband.{base.__name__}.{name}"))


def other_parameters(name: str, method: Any, asked: Any) -> str:
    """What to say of a method that cannot be called as the one whose place it takes; empty if it can.

    Args:
        asked: a method or function; what may be given by name alone is left out.
    """
    if not (inspect.isfunction(asked) and inspect.isfunction(method)):
        return ""
    parameters = inspect.signature(asked).parameters.values()
    given = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        takes = ", ".join(inspect.signature(method).parameters)
        return f"{written(method)}{name} takes ({takes}); it is called with ({', '.join(given)})"
    return ""


@cache
def overridden(kind: type) -> str:
    """The same of the first method of another package's class that takes the place of one of coband's."""
    for one in (one for one in kind.__mro__ if one.__module__.startswith("coband.")):
        for name, asked in vars(one).items():
            if name.startswith("_") and name != "__init__":
                continue  # the author may call it as the author likes
            method = inspect.getattr_static(kind, name)
            own = not str(getattr(method, "__module__", "coband.")).startswith("coband.")
            if own and (why := other_parameters(f"{kind.__name__}.{name}", method, asked)):
                return why
    return ""


def _promised(method: Any) -> type | None:
    """The class of what a method is to return; None where that is not one class."""
    if not inspect.isfunction(method):
        return None
    try:
        hint = get_type_hints(method).get("return")
    except NameError:  # a name for type checkers
        return None
    kind = get_origin(hint) or hint
    if not isinstance(kind, type) or kind in (object, UnionType) or getattr(kind, "_is_protocol", False):
        return None
    return Iterable if issubclass(kind, Iterable) and kind.__module__ == "collections.abc" else kind


def finite(found: Any, *shape: int) -> bool:
    """Whether an array has a shape, and only finite numbers."""
    return found.shape == shape and bool(np.isfinite(found).all())


def real(found: Any) -> FloatArray:
    """An array of real numbers; what is masked is none.

    Raises:
        TypeError, ValueError: they are something else.
    """
    if np.iscomplexobj(found):
        raise TypeError("these are complex numbers")
    return np.asarray(np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan))


def returns(what: str, holds: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a method of a base whose type does not say all that it returns.

    Args:
        what: in words; ``{name}`` is the value of a parameter.
        holds: whether an answer is that; it is given the answer, and what the method was given.
    """

    def decorated(method: F) -> F:
        method.__dict__["promise"] = what, holds
        return method

    return decorated


def _held(method: Callable[..., Any], asked: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method, whose answers are compared with what another one promises."""
    wanted = _promised(asked) or object
    what, holds = getattr(asked, "promise", (wanted.__name__, lambda *_: True))

    @wraps(method)
    def held(node: Any, *given: Any, **named: Any) -> Any:
        answer = method(node, *given, **named)
        try:
            right = isinstance(answer, WIDER.get(wanted, (wanted,))) and bool(holds(answer, *given, **named))
        except (TypeError, ValueError, IndexError, AttributeError):  # it cannot even be compared
            right = False
        if right:
            return answer
        says = what.format_map(inspect.signature(asked).bind(node, *given, **named).arguments)
        shown = in_words(answer, begins=True)
        raise BrokenOff(f"{written(method)}{method.__qualname__} returned {shown}; {name} returns {says}")

    _HELD.add(held)
    return held
