"""Metrics: the numbers of a result, as whoever makes them declares them.

Algorithms, problems and coband itself declare their numbers with :class:`Metric`. ``expect:``, the counts lock, the
report, ``coband compare`` and ``coband describe`` take name, unit, meaning and direction from there and from nowhere
else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from coband.simulator.plugins.entry_points import PluginError

Number = int | float
Better = Literal["lower", "higher"]
Aggregate = Literal["sum", "mean", "max", "min"]


@dataclass(frozen=True)
class Metric:
    """One number of a result.

    Attributes:
        name: its key in results and in ``expect:``; a Python identifier.
        unit: of what it is counted or measured in, such as "scalars".
        meaning: one line, without a full stop.
        better: which end wins, so that the report and ``coband compare`` rank algorithms by it; None: nobody wins.
        aggregate: how what several nodes report becomes one number of the result; None: it is a number of each agent
            alone (``report_own``), which the result of the run does not have.
        locked: whether ``coband counts`` holds it; for whole numbers that follow from scenario and seed.
        proportion: 0 or 1 in every replication; its interval is Wilson's.
        title: in a heading; by default the name with blanks.
        verb: what is said of the best one; by default "has the lowest ..." or "has the highest ...".
        guarantee: of a number that is 0 where the conditions of a theorem do not hold: the theorem, which a warning
            then names.
        caution: of a number that is 0 where a result shows less than one may think: what a warning then says.

    Raises:
        PluginError: the name is not an identifier.
    """

    name: str
    unit: str
    meaning: str
    better: Better | None = None
    aggregate: Aggregate | None = "sum"
    locked: bool = False
    proportion: bool = False
    title: str = ""
    verb: str = ""
    guarantee: str = ""
    caution: str = ""

    def __post_init__(self) -> None:
        if not str(self.name).isidentifier():
            raise PluginError(f"name(={self.name!r}) of a metric must be an identifier, such as gradient_rounds")

    @property
    def heading(self) -> str:
        """Its name for people."""
        return self.title or self.name.replace("_", " ")

    @property
    def praise(self) -> str:
        """What is said of the best one."""
        return self.verb or f"has the {self.end} {self.heading}"

    @property
    def end(self) -> str:
        """Which end wins, as an adjective."""
        return "highest" if self.better == "higher" else "lowest"

    def combined(self, values: Sequence[Number]) -> Number:
        """One number from those of several nodes."""
        if self.aggregate == "max":
            return max(values)
        if self.aggregate == "min":
            return min(values)
        return sum(values) / len(values) if self.aggregate == "mean" else sum(values)


@dataclass(frozen=True)
class RunMetric(Metric):
    """A number that is computed from the result of every run, whatever the algorithm and the problem.

    Attributes:
        of: given the result of a run (`RunResult`), returns the number.

    Raises:
        PluginError: the name is not an identifier, ``better`` is none of the above, or ``of`` is not a function.
    """

    of: Callable[[Any], Number] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.better not in (None, *get_args(Better)):
            raise PluginError(f"better(={self.better!r}) of the metric {self.name} must be 'lower', 'higher' or None")
        if not callable(self.of):
            raise PluginError(f"of(={self.of!r}) of the metric {self.name} must be a function of the result of a run")


CLIPPED = Metric("clipped", "pulls", "pulls whose point or reward was clipped for privacy")
DICTIONARY_SIZE = Metric("dictionary_size", "points", "points in the dictionary at the end", locked=True)
"""For algorithms that keep a dictionary: results of all algorithms have a place for it."""


def by_name(*groups: Sequence[Metric]) -> Mapping[str, Metric]:
    """The metrics of several lists by name; the first of a name counts."""
    found: dict[str, Metric] = {}
    for metric in (metric for group in groups for metric in group):
        found.setdefault(metric.name, metric)
    return found
