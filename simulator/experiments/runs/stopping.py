"""When a mean is known well enough: more replications until its interval is narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.statistics import estimates as statistics

GROWTH = 2.0
"""At most so many times as many replications in one step: a first guess of the spread is rough."""


def more(until: Until, values: Sequence[float], done: int) -> int:
    """How many replications to add, 0 when the mean is known or the most have been made.

    With half-width h after n replications and the target w, about n (h / w)^2 are needed. Looking after each step and
    stopping at the first narrow interval covers a little less often than 95 %, so begin with enough replications.

    Args:
        values: of the replications that finished.
        done: how many have ended, failures included.
    """
    room = until.max_replications - done
    if room <= 0 or not values:
        return 0
    estimate = statistics.estimate(values)
    if estimate.half_width is None:
        return 1
    target = until.half_width if until.half_width is not None else abs(estimate.mean) * (until.relative or 0.0)
    if estimate.half_width <= target:
        return 0
    needed = math.inf if target == 0 else len(values) * (estimate.half_width / target) ** 2
    wanted = math.ceil(min(needed, GROWTH * len(values)))
    return min(room, max(1, wanted - len(values)))
