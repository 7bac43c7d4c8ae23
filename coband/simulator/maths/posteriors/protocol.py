"""The interface of every posterior: what it learns from, and what it says about arms; several asked at one moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Self

import numpy as np

from coband.simulator.arms import ArmSet, Points
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.posteriors.observations import Observations


class Predictor(ABC):
    """Says what is known of the rewards of arms."""

    __slots__ = ()

    @abstractmethod
    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        """Mean mu and variance sigma^2 >= 0 of each of n arms, (n,) each.

        Variances are on the scale of Li et al. 2023, eq. 1: k(x, x)/lam for an arm that is unknown. What
        holds a domain takes its points only, and what works on explicit features takes these, (..., n, p), in place of
        arms.
        """

    def scores(self, arms: ArmSet, alpha: float) -> FloatArray:
        """The upper confidence bound mu + alpha sigma of n arms, (n,).

        Only the largest entries have to be exact: -inf may stand for a score that is certainly below the largest.
        """
        mean, variance = self.predict(arms)
        return mean + alpha * np.sqrt(variance)


class Posterior(Predictor):
    """Mean and variance of the rewards of arms given observations.

    A posterior depends on which observations it has been given, not on the calls that brought them: one by one, all at
    once and in any order come to the same, but for rounding. Where the order matters by definition (the first points
    make a dictionary) the class says so.
    """

    @abstractmethod
    def update(self, observations: Observations) -> None:
        """Learn observations, any number of them."""

    @property
    @abstractmethod
    def log_det(self) -> float:
        """log det(I + K/lam) of the n observations with kernel matrix K, (n, n): twice the information gained.

        0 for no observations; it never falls. With explicit features it is log det(V/lam).
        """

    def look_ahead(self, arms: ArmSet) -> None:
        """The arm set of one of the agent's coming turns: a chance to prepare it together with others.

        ``scores`` will be asked about the same object, after any number of updates. Nothing but time depends on this.
        """

    @property
    def known_alike(self) -> Hashable | None:
        """The same for posteriors that have learnt the same, and so say the same of any arms; None: nobody knows."""
        return None


class MultitaskPosterior(Posterior):
    """A posterior of one agent on the tasks of several: ``predict`` is about arms of its own task.

    Observations have ``tasks`` and ``keys``.

    Attributes:
        task: the agent's own, (s,).
    """

    task: FloatArray

    @classmethod
    def update_alike(cls, posteriors: Sequence[Self], observations: Observations) -> None:
        """Several that are known to be alike, or one, learn the same observations."""
        for posterior in posteriors:
            posterior.update(observations)

    def scores_alike(
        self, posteriors: Sequence[MultitaskPosterior], arm_sets: Sequence[ArmSet], alpha: FloatArray
    ) -> FloatArray:
        """The scores mu + alpha sigma of the arms of several arm sets, each for the task of its posterior.

        Only the largest entries of each arm set have to be exact, as with ``scores``.

        Args:
            posteriors: this one and others that know the same, one per arm set.
            arm_sets: of n_1, n_2, ... arms.
            alpha: of each arm set.

        Returns:
            Those of all arms, one arm set after the other, (n_1 + n_2 + ...,).
        """
        rows = zip(posteriors, arm_sets, alpha.tolist(), strict=True)
        return np.concatenate([posterior.scores(arms, factor) for posterior, arms, factor in rows])

    def follow(self, table: FloatArray) -> bool:
        """Go on with another table K_z of agents (N, N), if that is possible without starting again.

        Returns:
            Whether it was. If not, nothing has changed, and the observations have to be given to a new posterior.
        """
        return False


def scores(posteriors: Sequence[MultitaskPosterior], arm_sets: Sequence[ArmSet], alpha: FloatArray) -> FloatArray:
    """The scores mu + alpha sigma as each posterior has them for its arm set.

    Posteriors that say they know the same (``known_alike``) are asked in one go.

    Args:
        posteriors: of one kind and kernel, one per arm set.
        arm_sets: of n_1, n_2, ... arms.
        alpha: of each arm set.

    Returns:
        The scores, one arm set after the other, (n_1 + n_2 + ...,); only the largest of each arm set have to be exact.
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


def learn(pairs: Sequence[tuple[MultitaskPosterior, Observations]]) -> None:
    """Each posterior learns its observations; those that know the same and learn the same object do it in one go."""
    alike = [posterior.known_alike for posterior, _ in pairs]
    keys = [
        None if key is None else (key, id(observations)) for key, (_, observations) in zip(alike, pairs, strict=True)
    ]
    for members in _alike(keys):
        first, observations = pairs[members[0]]
        first.update_alike([pairs[one][0] for one in members], observations)


def _alike(keys: Sequence[Hashable | None]) -> Iterable[list[int]]:
    """The numbers of equal keys together; each None by itself."""
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(("alone", number) if key is None else ("alike", key), []).append(number)
    return groups.values()
