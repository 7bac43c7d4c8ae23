"""What methods of plugins return, beside what the base of their list promises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache, wraps
from numbers import Real
from types import UnionType
from typing import Any, get_origin, get_type_hints

import numpy as np

from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.scenario_errors import BrokenOff

WIDER: dict[type, tuple[type, ...]] = {float: (Real,), int: (int, np.integer), bool: (bool, np.bool_)}
"""What does as well."""


def written(code: Any) -> str:
    """``file:line: `` of a class or function, to begin a sentence with; empty if nobody knows."""
    code = inspect.unwrap(getattr(code, "__func__", code))
    try:
        return f"{inspect.getsourcefile(code)}:{inspect.getsourcelines(code)[1]}: "
    except (TypeError, OSError):
        return ""


def hold_to(found: type, base: type) -> None:
    """Have the methods of another package's class that its base asks for say so when they return something else.

    Raises:
        PluginError: one of them is to be a property and is not, or the other way round; or it takes other parameters.
    """
    for name in () if found.__module__.startswith("coband.") else getattr(base, "__abstractmethods__", ()):
        asked, method = inspect.getattr_static(base, name), inspect.getattr_static(found, name)
        if isinstance(asked, property) != isinstance(method, property):
            do = "write @property above it" if isinstance(asked, property) else "leave out @property"
            raise PluginError(f"{found.__name__}.{name}: {do}, as coband.{base.__name__} has it")
        if why := other_parameters(f"{found.__name__}.{name}", method, asked):
            raise PluginError(why)
        wanted = _promised(asked)
        if wanted is not None and inspect.isfunction(method) and not hasattr(method, "__wrapped__"):
            setattr(found, name, _held(method, wanted, f"coband.{base.__name__}.{name}"))


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


def _held(method: Callable[..., Any], wanted: type, asked: str) -> Callable[..., Any]:
    accepted = WIDER.get(wanted, (wanted,))

    @wraps(method)
    def held(*given: Any, **named: Any) -> Any:
        answer = method(*given, **named)
        if isinstance(answer, accepted):
            return answer
        what = "None" if answer is None else f"a value of type {type(answer).__name__}"
        raise BrokenOff(f"{written(method)}{method.__qualname__} returned {what}; {asked} returns {wanted.__name__}")

    return held
