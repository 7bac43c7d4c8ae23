"""Errors and warnings of the Python interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

from coband.simulator.scenario_errors import InputProblem, RequestError, ScenarioError


def several(name: str, given: Any) -> tuple[Any, ...]:
    """What is given as one or as several; nothing for None.

    Raises:
        RunError: it is an empty list.
    """
    if given is None:
        return ()
    found = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not found:
        raise RunError(f"{name}={given!r} names nothing to run; leave it out to run all.")
    return found


def one_of(name: str, given: object, choices: Any) -> None:
    """Refuse a value that a ``Literal`` does not have.

    Raises:
        RunError: it is another one.
    """
    known = get_args(choices)
    if given not in known:
        raise RunError(f"{name}={given!r}: must be one of {', '.join(known)}.")


_OPTIONS = {
    "--out DIR": "out=DIR",
    "--resume": "resume=True",
    "--force": "force=True",
    "--cluster-option": "cluster_options=",
    "--agent": "agents=",
}
_OPTION = re.compile(r"`[^`]*`|(?<!\S)(?:--out DIR|--[a-z]+(?:-[a-z]+)*)\b(?: (?=['\"\d-]))?")


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
    except (ScenarioError, RunError):
        raise
    except Exception as error:
        from coband.simulator.experiments.runs.study import SelectionError
        from coband.simulator.experiments.scenario.loading import BAD_INPUT

        if isinstance(error, (*BAD_INPUT, SelectionError)):
            raise ScenarioError([InputProblem("", None, None, "", in_python(str(error)))]) from error
        if isinstance(error, RequestError):
            raise RunError(in_python(str(error))) from error
        raise


def in_python(text: str) -> str:
    """A message with keyword arguments in the place of options, but for commands in it: ``workers=1`` for
    ``--workers 1``."""
    return _OPTION.sub(lambda found: found[0] if found[0][0] == "`" else _argument(found[0]), text)


def _argument(option: str) -> str:
    name = option.rstrip()
    return _OPTIONS.get(name) or f"{name[2:].replace('-', '_')}="
