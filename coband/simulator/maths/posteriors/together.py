"""Several posteriors that learn, or are asked about arms of their own, at one moment."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior


def scores(posteriors: Sequence[MultitaskPosterior], arm_sets: Sequence[ArmSet], alpha: FloatArray) -> FloatArray:
    """The scores mu + alpha sigma as each posterior has them for its arm set.

    Posteriors that say they know the same (``known_alike``) are asked in one go.

    Args:
        posteriors: of one kind and kernel, one per arm set.
        arm_sets: of n_1, n_2, ... arms.
        alpha: of each arm set.

    Returns:
        Of all arms, one arm set after the other, (n_1 + n_2 + ...,); only the largest of each arm set have to be exact.
    """
    ends = np.cumsum([len(arms) for arms in arm_sets])
    found = np.empty(ends[-1])
    for members in _alike([posterior.known_alike for posterior in posteriors]):
        asked, sets = [posteriors[one] for one in members], [arm_sets[one] for one in members]
        places = np.concatenate([np.arange(ends[one] - len(arm_sets[one]), ends[one]) for one in members])
        if len(members) == 1:
            found[places] = asked[0].scores(sets[0], float(alpha[members[0]]))
        else:
            found[places] = asked[0].scores_alike(asked, sets, alpha[members])
    return found


def learn(news: Sequence[tuple[MultitaskPosterior, Observations]]) -> None:
    """Each posterior learns its observations; those that know the same and learn the same object do it in one go."""
    alike = [posterior.known_alike for posterior, _ in news]
    keys = [
        None if key is None else (key, id(observations)) for key, (_, observations) in zip(alike, news, strict=True)
    ]
    for members in _alike(keys):
        first, observations = news[members[0]]
        first.update_alike([news[one][0] for one in members], observations)


def _alike(keys: Sequence[Hashable | None]) -> Iterable[list[int]]:
    """The numbers of equal keys together; each None by itself."""
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(("alone", number) if key is None else ("alike", key), []).append(number)
    return groups.values()
