"""When a mean is known well enough: more replications until its interval is narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.statistics.anytime import confidence_sequence, share_sequence

GROWTH = 2.0
"""At most so many times as many replications in one step: a first guess of the spread is rough."""


def more(until: Until, values: Sequence[float], done: int, *, proportion: bool = False) -> int:
    """How many replications to add, 0 when the mean is known or the most have been made.

    With half-width h after n replications and the target w, about n (h / w)^2 are needed. The interval is that of a
    confidence sequence, which may be looked at after each step: it covers with 95 % wherever one stops.

    Args:
        values: of the replications that finished.
        done: how many have ended, failures included.
        proportion: whether they are all 0 or 1.
    """
    room = until.max_replications - done
    if room <= 0 or not values:
        return 0
    widths = half_widths(until, values, proportion=proportion)
    if widths is None:
        return 1
    half_width, target = widths
    if half_width <= target:
        return 0
    needed = math.inf if target == 0 else len(values) * (half_width / target) ** 2
    wanted = math.ceil(min(needed, GROWTH * len(values)))
    return min(room, max(1, wanted - len(values)))


def half_widths(until: Until, values: Sequence[float], *, proportion: bool = False) -> tuple[float, float] | None:
    """Half the width of the interval of the mean, and the one that is wanted; None where there is no interval yet."""
    interval = share_sequence(round(sum(values)), len(values)) if proportion else confidence_sequence(values)
    if interval is None:
        return None
    half_width, mean = 0.5 * (interval[1] - interval[0]), 0.5 * (interval[0] + interval[1])
    return half_width, until.half_width if until.half_width is not None else abs(mean) * (until.relative or 0.0)


def still_wide(until: Until, values: Sequence[float], *, proportion: bool = False) -> str:
    """What to say of a mean that is not known well enough after the most replications; empty where it is."""
    if len(values) < until.max_replications:  # jobs broke off, perhaps all
        return ""
    widths = half_widths(until, values, proportion=proportion)
    if widths is None or widths[0] <= widths[1]:
        return ""
    return (
        f"{until.on} is known to ± {widths[0]:.3g} after {len(values)} replications, the most that until: allows; "
        f"it asks for ± {widths[1]:.3g}"
    )
