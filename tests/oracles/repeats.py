"""``repeats: drop`` (ours, for domains of few points): a point stands once in a dictionary, where it came first."""

from collections.abc import Sequence

import numpy as np

from tests.oracles import Config
from tests.oracles.posterior import FloatArray


def repeats_dropped(config: Config) -> bool:
    """Whether equal points stand once in a dictionary."""
    return str(getattr(config, "repeats", "keep")) == "drop"


def without_repeats(points: Sequence[FloatArray], known: Sequence[FloatArray] = ()) -> list[FloatArray]:
    """Each of ``points`` that is not among ``known``, once, where it came first."""
    kept: list[FloatArray] = []
    for x in points:
        if not any(np.array_equal(x, other) for other in [*known, *kept]):
            kept.append(x)
    return kept
