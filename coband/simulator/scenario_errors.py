"""The errors that users can do something about: a request that cannot be met, a scenario that is wrong, a run that
cannot go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

RAISED: tuple[type[BaseException], ...] = (Exception, SystemExit)
"""What the code of users may raise: an exit of theirs ends what it is called for, not the program."""


class RequestError(ValueError):
    """What the user asks for cannot be done; the text says why, and what to do."""


class BrokenOff(ArithmeticError):
    """A run cannot go on, since its numbers do not allow it; the text says why, and what to change."""


@dataclass(frozen=True, slots=True)
class InputProblem:
    """One mistake in a scenario.

    Attributes:
        file: the file, or the ``--set key.path=value`` that the value came from; empty for the scenario as a whole.
        line, column: counted from 1; None if there is no position in a file.
        key: key path such as ``algorithms[0].alpha``; empty for the document itself.
        message: what was given, what is allowed, what to do.
        fitting: what else fits the scenario, a sentence that is printed after the message.
    """

    file: str
    line: int | None
    column: int | None
    key: str
    message: str
    fitting: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        said = f"{self.message}. {self.fitting}" if self.fitting else self.message
        return ": ".join(part for part in (place, self.key, said) if part)


class ScenarioError(Exception):
    """A scenario is invalid; ``problems`` lists all mistakes, in the order of the file."""

    def __init__(self, problems: Iterable[InputProblem]) -> None:
        self.problems = sorted(problems, key=_place)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def _place(problem: InputProblem) -> tuple[bool, int, int]:
    return problem.line is None, problem.line or 0, problem.column or 0
