"""Best parameters, as papers report them: chosen on some seeds, reported on others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.statistics import estimates as statistics

FIRST_REPLICATION = 1_000_000
"""Number of the first replication for tuning; those that are reported have smaller numbers, so no seed is met twice."""


@dataclass(frozen=True)
class Choice:
    """What tuning found for one algorithm in one context.

    Attributes:
        variant: number of the best variant; None when no candidate finished all its replications.
        candidates: numbers of all.
    """

    context: tuple[str, ...]
    variant: int | None
    candidates: tuple[int, ...]


@dataclass(frozen=True)
class Stopped:
    """A candidate that successive halving has stopped.

    Attributes:
        replications: after so many of them.
        mean: its mean; None if it did not finish all of them.
        bound: the worst mean that went on.
    """

    variant: int
    replications: int
    mean: float | None
    bound: float | None


def stages(tuning: Tuning, candidates: int) -> list[tuple[int, int]]:
    """(candidates, replications that each of them has then made) of each stage of successive halving.

    Of n candidates of a stage ceil(keep n) go on. Those of stage k make ceil(first / keep^k) replications, at most
    those of ``tuning``, with which the last stage ends; one candidate goes on to them at once.
    """
    if tuning.halving is None:
        return [(candidates, tuning.replications)]
    found, made, left = list[tuple[int, int]](), float(tuning.halving.first), candidates
    while left > 1 and made < tuning.replications:
        found.append((left, math.ceil(made)))
        made, left = made / tuning.halving.keep, max(1, math.ceil(left * tuning.halving.keep - 1e-9))
    return [*found, (left, tuning.replications)]


def halve(
    tuning: Tuning, made: int, keep: int, found: Mapping[int, Sequence[Record]]
) -> tuple[list[int], list[Stopped]]:
    """Which candidates go on, in their order, and which are stopped; of equal ones the first goes on.

    Args:
        made: replications that each has made.
        keep: how many go on at most.
        found: number of a variant -> records of its replications.
    """
    sign = 1.0 if tuning.best == "lowest" else -1.0
    means = {
        variant: statistics.mean(values) if len(values) == made else None
        for variant, records in found.items()
        for values in [results.numbers(tuning.on, records)]
    }
    ranked = sorted(
        (variant for variant in found if means[variant] is not None), key=lambda v: sign * (means[v] or 0.0)
    )
    kept = ranked[:keep]
    bound = means[kept[-1]] if kept else None
    stopped = [Stopped(variant, made, means[variant], bound) for variant in found if variant not in kept]
    return [variant for variant in found if variant in kept], stopped


def choose(tuning: Tuning, context: tuple[str, ...], found: Mapping[int, Sequence[Record]]) -> Choice:
    """The variant with the best mean; of equal ones, the first.

    Args:
        context: what the candidates share.
        found: number of a variant -> records of its replications for tuning. One with fewer than wanted is no
            candidate, as it would be compared on other worlds.
    """
    best, _ = halve(tuning, tuning.replications, 1, found)
    return Choice(context, best[0] if best else None, tuple(found))
