"""Errors and warnings of the Python interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from coband.simulator.experiments.runs.study import SelectionError
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.scenario_errors import InputProblem, RequestError, ScenarioError

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
