"""Whether arguments are of the types that annotations say."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sized
from types import SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from coband.simulator.api.errors import RunError

LIMIT = 2**63
"""Whole numbers of stores and seeds are below it."""


def check(function: Callable[..., Any], /, **given: object) -> None:
    """Compare arguments of a function with its annotations; those that have none are left out.

    Raises:
        RunError: one is of another type.
    """
    wanted = {name: hint for name, hint in function.__annotations__.items() if name in given}
    hints = get_type_hints(SimpleNamespace(__annotations__=wanted), vars(sys.modules[function.__module__]))
    for name, hint in hints.items():
        if not fits(given[name], hint):
            words = hint.__name__ if isinstance(hint, type) else re.sub(r"\b(?:\w+\.)+", "", str(hint))
            shown = reprlib.repr(given[name])
            limit = ", and whole numbers have at most 64 bits" if re.search(r"\d{19}", shown) else ""
            raise RunError(f"{name}={shown} is not allowed: must be {words}{limit}.")


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of the type of an annotation; numpy's numbers and arrays are numbers and lists."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if kind is Literal:
        return value in parts
    if not isinstance(value, int | float if kind is float else kind):
        return False
    if kind in (int, float):
        return not isinstance(value, bool) and (isinstance(value, float) or kind is float or -LIMIT <= value < LIMIT)
    if isinstance(value, Mapping) and issubclass(kind, Mapping):
        return all(fits(key, parts[0]) and fits(item, parts[1]) for key, item in value.items())
    if isinstance(value, tuple) and kind is tuple:
        return len(value) == len(parts) and all(map(fits, value, parts))
    if isinstance(value, Iterable) and kind in (Iterable, list):
        return not isinstance(value, str) and (
            not isinstance(value, Sized) or all(fits(one, parts[0]) for one in value)
        )
    return True


def several(name: str, given: Any) -> tuple[Any, ...]:
    """What is given as one or as several; nothing for None.

    Raises:
        RunError: it is an empty list.
    """
    if given is None:
        return ()
    found = (given,) if isinstance(given, str | int | np.integer) else tuple(given)
    if not found:
        raise RunError(f"{name}={given!r} names nothing to run; leave it out to run all.")
    return found
