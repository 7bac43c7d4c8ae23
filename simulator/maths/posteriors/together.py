"""Several posteriors asked about arms of their own at one moment."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.posteriors.augmented import AugmentedPosterior
from coband.simulator.maths.posteriors.protocol import Posterior


def together(posteriors: Sequence[Posterior], arm_sets: Sequence[ArmSet]) -> tuple[FloatArray, FloatArray]:
    """Mean and variance as each posterior's ``predict`` has them for its arm set.

    Posteriors of augmented points that say they know the same (``known_alike``) are asked in one go.

    Args:
        posteriors: of one kind and kernel, one per arm set.
        arm_sets: of n_1, n_2, ... arms.

    Returns:
        Of all arms, one arm set after the other, each (n_1 + n_2 + ...,).
    """
    ends = np.cumsum([len(arms) for arms in arm_sets])
    mean, variance = np.empty(ends[-1]), np.empty(ends[-1])
    groups: dict[Hashable, list[int]] = {}
    for number, posterior in enumerate(posteriors):
        alike = posterior.posterior.known_alike if isinstance(posterior, AugmentedPosterior) else None
        groups.setdefault(number if alike is None else ("alike", alike), []).append(number)
    for members in groups.values():
        first = posteriors[members[0]]
        if len(members) == 1:
            found = first.predict(arm_sets[members[0]])
        else:
            assert isinstance(first, AugmentedPosterior)
            tasks = [posteriors[number].task for number in members]  # type: ignore[attr-defined]
            found = first.predict_tasks(tasks, [arm_sets[number] for number in members])
        places = np.concatenate([np.arange(ends[number] - len(arm_sets[number]), ends[number]) for number in members])
        mean[places], variance[places] = found
    return mean, variance
