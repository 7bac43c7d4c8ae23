"""Chooses what to try next in one space: all of it where it is small enough, otherwise what a sampler proposes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from coband.simulator.analysis.frontier.ranges import Between, Range
from coband.simulator.analysis.frontier.space import Labels, Point, Space, labels
from coband.simulator.scenario_errors import RequestError

LEAST_GENERATION, MOST_GENERATION = 4, 24
CONSIDERED = 64
"""Points among which the TPE chooses each proposal."""
PROPOSALS = 10
"""So many proposals are asked for, for each new point that is wanted, before points are drawn uniformly."""


def explorer(space: Space, most: int, objectives: int, seed: int) -> Explorer:
    """The explorer of a space.

    Args:
        most: how many points it may try.
        objectives: how many numbers a point gives.

    Raises:
        RequestError: there is something to propose, and Optuna is not installed.
    """
    if space.size is not None and space.size <= most:
        return Everything(space)
    return Proposed(space, most, objectives, seed)


class Everything:
    """All points of a space at once."""

    def __init__(self, space: Space) -> None:
        self._points: Iterator[Point] = space.points()

    def ask(self, most: int) -> list[Point]:
        """All of them, the first time."""
        return list(self._points)

    def tell(self, point: Point, values: Sequence[float] | None) -> None:
        """Nothing depends on it."""


class Proposed:
    """Points that Optuna's TPE proposes, generation by generation.

    Its proposals follow from the seed and from what points have given alone, so an interrupted search that starts again
    proposes the same points again. Objectives are told on the scale of asinh, a logarithm for large numbers, which
    changes no order: samplers spread points by distances, and communication varies by factors.
    """

    def __init__(self, space: Space, most: int, objectives: int, seed: int) -> None:
        self._space = space
        self._generation = min(MOST_GENERATION, max(LEAST_GENERATION, round(math.sqrt(most))))
        optuna = _optuna()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a feature of a sampler is experimental
            proposing = optuna.samplers.TPESampler(
                seed=seed, multivariate=True, n_startup_trials=self._generation, n_ei_candidates=CONSIDERED
            )
            self._study = optuna.create_study(directions=["minimize"] * objectives, sampler=proposing)
        self._uniform = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        self._distributions = {one.path: _distribution(one.range) for one in space.dimensions}
        self._trials: dict[Labels, list[Any]] = {}
        self._known: dict[Labels, Sequence[float] | None] = {}

    def ask(self, most: int) -> list[Point]:
        """The next generation: at most ``most`` points that were not proposed before; none when nothing is left."""
        found: list[Point] = []
        wanted = min(most, self._generation)
        for _ in range(PROPOSALS * wanted):
            if len(found) == wanted:
                return found
            trial = self._study.ask(self._distributions)
            self._note(self._point(trial.params), trial, found)
        for _ in range(PROPOSALS * wanted * PROPOSALS):  # it proposes what is known
            if len(found) == wanted:
                return found
            drawn = self._uniform.ask(self._distributions).params
            if labels(point := self._point(drawn)) not in self._trials:
                self._study.enqueue_trial(drawn)
                self._note(point, self._study.ask(self._distributions), found)
        return found

    def _point(self, params: dict[str, Any]) -> Point:
        return tuple(one.range.value(params[one.path]) for one in self._space.dimensions)

    def _note(self, point: Point, trial: Any, found: list[Point]) -> None:
        """Keep a proposal; a point that is known gives at once what it gave."""
        key = labels(point)
        new = key not in self._trials
        self._trials.setdefault(key, []).append(trial)
        if new:
            found.append(point)
        elif key in self._known:
            self._give(trial, self._known[key])

    def tell(self, point: Point, values: Sequence[float] | None) -> None:
        """What a point has given, one value for each objective, the lower the better; None if it broke off."""
        self._known[labels(point)] = values
        for trial in self._trials[labels(point)]:
            self._give(trial, values)

    def _give(self, trial: Any, values: Sequence[float] | None) -> None:
        from optuna.trial import TrialState

        if values is None:
            self._study.tell(trial, state=TrialState.FAIL)
        else:
            self._study.tell(trial, [math.asinh(value) for value in values])


Explorer = Everything | Proposed
"""What to try next in a space."""


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise RequestError(
            "proposing candidates needs optuna, which is not installed: pip install 'coband[frontier]'. Without it, "
            "spaces are searched that are small enough to try everything: list values, or give a larger budget."
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _distribution(found: Range) -> Any:
    from optuna import distributions

    if not isinstance(found, Between):
        if found.ordered:
            return distributions.IntDistribution(0, found.count - 1)
        return distributions.CategoricalDistribution(list(range(found.count)))
    if found.whole:
        return distributions.IntDistribution(int(found.low), int(found.high), log=found.log)
    return distributions.FloatDistribution(found.low, found.high, log=found.log)
