"""What a parameter may be while a frontier is searched for: ``0.01..100``, or a list of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from coband.simulator.experiments.scenario.yaml_nodes import Mark, Node, read, resolve
from coband.simulator.experiments.sweep.grid import Value, values_of
from coband.simulator.scenario_errors import ScenarioError, quoted

DIGITS = 3
"""Significant digits of the values that are tried between two ends."""
LOG_FROM = 10.0
"""A range whose ends are positive and at least this factor apart is searched on a logarithmic scale."""
SCALES = ("linear", "log")
FORM = "write LOW..HIGH, LOW..HIGH log, LOW..HIGH linear, or values with commas between them"


@dataclass(frozen=True)
class Listed:
    """A parameter that has one of several values."""

    values: tuple[Value, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def ordered(self) -> bool:
        """Whether all are numbers, so that neighbours are alike."""
        return all(value.number is not None for value in self.values)

    def value(self, index: float) -> Value:
        """The value with a number, from 0."""
        return self.values[int(index)]

    @property
    def ends(self) -> tuple[Value, ...]:
        """The values to check before the search begins."""
        return self.values


@dataclass(frozen=True)
class Between:
    """A parameter that is a number between two ends, both included.

    Attributes:
        log: whether equal factors count alike.
        whole: whether it takes whole numbers only.
    """

    low: float
    high: float
    log: bool
    whole: bool
    mark: Mark

    @cached_property
    def count(self) -> int | None:
        """How many values there are; None for too many to try them all."""
        return int(self.high - self.low) + 1 if self.whole else None

    @property
    def values(self) -> tuple[Value, ...]:
        """All values, in their order, where they are few enough to be tried."""
        return tuple(self.value(self.low + index) for index in range(self.count or 0))

    def value(self, number: float) -> Value:
        """A number with `DIGITS` significant digits, within the ends."""
        if self.whole:
            given: float | int = round(number)
        else:
            given = min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)
        text = f"{given:g}" if given in (self.low, self.high) else repr(given)
        return Value(text, Node(self.mark, given, text))

    @property
    def ends(self) -> tuple[Value, ...]:
        """The values to check before the search begins."""
        return self.value(self.low), self.value(self.high)


Range = Listed | Between


def parse(text: str, mark: Mark, key: str) -> Range:
    """Read what a parameter may be.

    Args:
        text: ``LOW..HIGH``, with ``log`` or ``linear`` after it, or values with commas between them.
        key: the parameter, for messages.

    Raises:
        ScenarioError: the text has another form.
    """
    return _between(text, mark, key) if ".." in text else _listed(text, mark, key)


def _between(text: str, mark: Mark, key: str) -> Between:
    ends, _, scale = text.strip().partition(" ")
    low, high = (_number(end) for end in ends.split("..", 1))
    scale = scale.strip()
    if low is None or high is None or scale not in ("", *SCALES):
        raise mark.error(f"{quoted(text)} is not a range; {FORM}", (key,))
    if not low < high:
        raise mark.error(f"{quoted(text)}: the first end must be below the second", (key,))
    if scale == "log" and low <= 0:
        raise mark.error(f"{quoted(text)}: a logarithmic range begins above 0", (key,))
    log = scale == "log" or (not scale and low > 0 and high >= LOG_FROM * low)
    return Between(low, high, log, isinstance(low, int) and isinstance(high, int), mark)


def _number(text: str) -> int | float | None:
    found = resolve(text.strip())
    proper = isinstance(found, (int, float)) and not isinstance(found, bool) and math.isfinite(found)
    return found if proper else None  # type: ignore[return-value]  # it is a number


def _listed(text: str, mark: Mark, key: str) -> Listed:
    node, problems = read(f"[{text}]" if not text.strip().startswith(("[", "{")) else text, mark.file, origin=mark)
    if problems:
        raise ScenarioError(problems)
    if not isinstance(node.value, (tuple, dict)):
        raise mark.error(f"{quoted(text)} has no values; {FORM}", (key,))
    found = tuple(values_of(node))
    if not found or len({value.label for value in found}) < len(found):
        raise mark.error(f"needs values that differ; {FORM}", (key,))
    return Listed(found)
