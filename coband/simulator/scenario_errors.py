"""The errors that users can do something about: a request that cannot be met, a scenario that is wrong, a run that
cannot go on; and how they write what was given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
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
    """

    file: str
    line: int | None
    column: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class ScenarioError(Exception):
    """A scenario is invalid; ``problems`` lists all mistakes, in the order of the file."""

    def __init__(self, problems: Iterable[InputProblem]) -> None:
        self.problems = sorted(problems, key=_place)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def _place(problem: InputProblem) -> tuple[bool, int, int]:
    return problem.line is None, problem.line or 0, problem.column or 0


LONGEST_SHOWN, FEW_NAMES, MOST_SUGGESTED = 60, 10, 3
KeyPath = tuple[str | int, ...]


def key_path(path: KeyPath) -> str:
    """The path as users write it: ``("algorithms", 0, "alpha")`` is ``algorithms[0].alpha``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{shortened(step)}"
    return text.removeprefix(".")


def shortened(text: str) -> str:
    """The text on one line, with control characters escaped, cut after `LONGEST_SHOWN` characters."""
    line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return line if len(line) <= LONGEST_SHOWN else line[:LONGEST_SHOWN] + "..."


def quoted(text: str) -> str:
    """The `shortened` text in quotes."""
    return f"'{shortened(text)}'"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """``"; did you mean latency?"``, or an empty text if no known name, nor a part of one, is similar."""
    return f"; did you mean {' or '.join(found)}?" if (found := alike(name, known)) else ""


def alike(name: str, known: Sequence[str]) -> list[str]:
    """The known names that are most similar, as wholes or in parts; none if none is."""
    wholes = {candidate.casefold(): [candidate] for candidate in known}
    parts: dict[str, list[str]] = {}
    for folded, candidate in wholes.items():
        for part in folded.split("_"):
            parts.setdefault(part, []).extend(candidate)
    for words, cutoff in ((wholes, 0.82), (parts, 0.82), (wholes, 0.6)):
        near = difflib.get_close_matches(name.casefold(), words, n=1, cutoff=cutoff)
        if near and len(words[near[0]]) <= MOST_SUGGESTED:
            return words[near[0]]
    return []


def nearest(name: str, known: Sequence[str]) -> str:
    """All known names where they are few, otherwise the most similar ones, or the first; with commas between."""
    if len(known) <= FEW_NAMES:
        return ", ".join(known)
    return ", ".join([*(difflib.get_close_matches(name, known) or known[: FEW_NAMES - 1]), "..."])


def slips(name: str, known: Sequence[str]) -> list[str]:
    """The known names of which a name may be a slip of the pen: nearly all letters are the same, large or small."""
    folded = {one.casefold(): one for one in known}
    return [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, cutoff=0.82)]
