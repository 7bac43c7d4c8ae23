"""Errors and warnings of the Python interface, and whether arguments are of the types that annotations say."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from types import SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from coband.simulator.experiments.runs.study import SelectionError
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.scenario_errors import InputProblem, RequestError, ScenarioError

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


_OPTIONS = {
    "--out DIR": "out=DIR",
    "--resume": "resume=True",
    "--force": "force=True",
    "--cluster-option": "cluster_options=",
    "--agent": "agents=",
}
_OPTION = re.compile(r"`[^`]*`|(?<!\S)(?:--out DIR|--[a-z]+(?:-[a-z]+)*)\b(?: (?=['\"\d-]))?")

_OF_SCENARIOS: tuple[type[Exception], ...] = (*BAD_INPUT, SelectionError)


class RunError(Exception):
    """A run cannot be made, continued, read or compared; the text says why and what to do."""


class RunWarning(UserWarning):
    """Something about a run that its numbers do not show: turns never taken, jobs that broke off, failed conditions."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the errors of the program into the two of the Python interface.

    Raises:
        ScenarioError: the scenario is wrong, with the lines that the command line prints.
        RunError: anything else that the user can do something about.
    """
    try:
        yield
    except ScenarioError:
        raise
    except _OF_SCENARIOS as error:
        raise ScenarioError([InputProblem("", None, None, "", in_python(str(error)))]) from error
    except RequestError as error:
        raise RunError(in_python(str(error))) from error


def in_python(text: str) -> str:
    """A message with keyword arguments in the place of options, but for commands in it: ``workers=1`` for
    ``--workers 1``."""
    return _OPTION.sub(lambda found: found[0] if found[0][0] == "`" else _argument(found[0]), text)


def _argument(option: str) -> str:
    name = option.rstrip()
    return _OPTIONS.get(name) or f"{name[2:].replace('-', '_')}="


def not_installed(package: str, extra: str, purpose: str) -> ImportError:
    """The error that a library of an optional extra is missing."""
    return ImportError(
        f"{purpose} needs {package}, which is not installed: pip install 'coband[{extra}]'.", name=package
    )
