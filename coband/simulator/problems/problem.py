"""What a problem offers the simulator: a world that gives arm sets and rewards; the true reward function stays hidden.

The engine alone talks to a `World`; an agent sees the feature array of its turn and the reward of its pull, nothing
else.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pydantic

from coband.simulator.core.config import Config
from coband.simulator.core.reading import DataError as DataError
from coband.simulator.core.world import World
from coband.simulator.maths.kernels.base import KernelSpec
from coband.simulator.metrics import Metric
from coband.simulator.plugins.entry_points import installed
from coband.simulator.scenario_errors import InputProblem, ScenarioError

Streams = Callable[[str, int, str], np.random.Generator]
"""Named random streams, (role, entity, purpose) -> generator; equal arguments give equal, fresh streams."""


class InstanceError(ValueError):
    """No world could be drawn from a valid description; the text says what to change."""


def check_columns(kernel: KernelSpec, coordinates: int, place: str) -> None:
    """Refuse a kernel that is restricted to coordinates which its points do not have.

    Args:
        kernel: a kernel of points (n, coordinates).
        coordinates: number of coordinates.
        place: key path of the kernel.

    Raises:
        InstanceError: with the largest column.
    """
    if kernel.largest_column >= coordinates:
        raise InstanceError(
            f"{place} names column {kernel.largest_column}, but its points have {coordinates} coordinates, numbered "
            "from 0; name others, or leave columns out for all of them"
        )


class Problem(Config, abc.ABC):
    """The `problem:` section of a scenario: what to draw a world from."""

    bernoulli: ClassVar[str] = "noise: {kind: bernoulli}"
    """What a scenario writes for rewards that are 0 or 1."""

    @property
    def adds_noise(self) -> bool:
        """Whether noise is added to mean rewards, so that rewards may be anything."""
        noise = getattr(self, "noise", 0.0)
        return getattr(noise, "kind", "gaussian") != "bernoulli" and noise != 0.0

    def validate_for(self, agents: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """(key path, what is wrong) of every part that does not fit the number of agents."""
        return iter(())

    @staticmethod
    def from_arrays(
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        noise: float | Mapping[str, Any] = 0.0,
        count: int | None = None,
        scale: Literal["normalise_standardise", "standardise", "normalise", "none"] | None = None,
        regret: Literal["expected", "realised"] = "expected",
    ) -> Problem:
        """One's own arms and mean rewards, as whatever numpy reads as arrays: lists, data frames, arrays.

        =============  ==========  ===================================================================================
        arms           rewards     what a turn offers
        =============  ==========  ===================================================================================
        (M, d)         (M,)        the same M arms with d features, for all agents; or ``count`` of them
        (M, d)         (N, M)      the same, where each of N agents has a task of its own: row v has its rewards
        (T, K, d)      (T, K)      one of T logged turns of K arms; agents go through them in random orders
        (N, T, K, d)   (N, T, K)   the next of an agent's own T turns, and again from the start
        =============  ==========  ===================================================================================

        The values are copied into the problem: what happens to the arrays later makes no difference.

        Args:
            arms: features, all finite; equal arms are allowed.
            rewards: mean rewards, all finite.
            noise: standard deviation of Gaussian noise that is added, or a ``noise`` section of a scenario.
            count: with arms (M, d), how many are drawn for each turn, without replacement; None for all.
            scale: ``standardise`` brings features to mean 0 and deviation 1 over all arms, ``normalise`` arms to norm
                1; kernels and linear models measure distances, so features need one scale.
            regret: against the mean reward of the best arm of the turn, that of the arm or the noisy one.

        Raises:
            ScenarioError: shapes do not fit, a number is not finite, or there are fewer than two arms.
        """
        made: Problem = _own_problem("arrays").of(arms, rewards, noise=noise, count=count, scale=scale, regret=regret)
        return made

    @staticmethod
    def from_function(
        f: Callable[..., Any],
        arms: npt.ArrayLike | Mapping[str, Any],
        *,
        agents: int | None = None,
        noise: float | Mapping[str, Any] = 0.0,
        count: int | None = None,
        scale: Literal["normalise_standardise", "standardise", "normalise", "none"] | None = None,
        regret: Literal["expected", "realised"] = "expected",
    ) -> Problem:
        """A function of arms as their mean reward.

        With arrays of arms, f is called here, and its values are what `from_arrays` is given; so it may be a lambda, a
        method or a function of a notebook, and need not be pickled or imported by anybody.

        Args:
            f: gets the arms of a turn, an array (n, d), and returns n mean rewards; with ``agents`` its second argument
                is the number of the agent, from 0. It must give the same values at each call.
            arms: (M, d) or (T, K, d), as for `from_arrays`. Or a section ``arms`` of a problem ``contextual``, such as
                ``{"kind": "ball", "dimension": 3, "count": 10}``: then arms are drawn afresh for each turn, and f must
                be a function of a module, which worker processes import.
            agents: number of agents with tasks of their own, for arms (M, d); None for one task.
            noise, count, scale, regret: as for `from_arrays`.

        Raises:
            ScenarioError: f fails or returns something else, or arms are none.
        """
        made: Problem = _own_problem("arrays").of_function(
            f, arms, agents=agents, noise=noise, count=count, scale=scale, regret=regret
        )
        return made

    @staticmethod
    def k_armed(means: Any, **options: Any) -> Problem:
        """K arms without features, for cooperative bandits.

        Examples:
            >>> Problem.k_armed([0.9, 0.6, 0.5], reward="bernoulli").count
            3

        Args:
            means: mean rewards of the arms, (K,) or, for each agent its own, (N, K); or ``{"low": ..., "high": ...}``
                or ``{"first": ..., "second": ..., "rest": ...}``, with ``arms``.
            options: ``arms``, ``spread``, ``reward``, ``sd``, ``offered``, ``shuffle``, ``regret``, as `coband describe
                k_armed` has them.

        Raises:
            ScenarioError: means or options cannot be used.
        """
        made: Problem = _own_problem("k_armed").of(means, options)
        return made

    def attachment(self, base: Path | None) -> tuple[str, Callable[[], bytes]] | None:
        """A file that must lie beside a stored scenario with this problem: its name, and what gives its content.

        Args:
            base: as for `build`.

        Returns:
            None where the text of the scenario says everything, as for most problems.
        """
        return None

    def peek(self, base: Path | None, most: int) -> str | None:
        """Look at the beginning of data that are too large to be read for a check alone.

        Args:
            base: as for `build`.
            most: bytes that may be read in full.

        Returns:
            What was looked at, in words; None when `build` takes no longer.

        Raises:
            DataError: a file is missing, or its beginning is malformed.
        """
        return None

    @abc.abstractmethod
    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw the world of one replication.

        Args:
            streams: the replication's named random streams.
            agents: how many agents will act, numbered from 0.
            base: directory that relative file names start from, usually the scenario's; None: the working directory.
        """

    def build_on(
        self, distances: npt.NDArray[np.int64], streams: Streams, agents: int, base: Path | None = None
    ) -> World:
        """Draw the world of agents that sit on a graph; for most problems the graph makes no difference.

        Args:
            distances: hops between any two agents, -1 where there is no path, (agents, agents).
            streams, agents, base: as for `build`.
        """
        return self.build(streams, agents, base)


def _own_problem(name: str) -> Any:
    """A problem of coband's, found by its name as scenarios find it."""
    (point,) = [one for one in installed("coband.problems") if one.name == name]
    return point.load().config


def refused(where: str, error: Exception) -> ScenarioError:
    """The error as users get it: what a function was given, and what is wrong with it."""
    if not isinstance(error, pydantic.ValidationError):
        return ScenarioError([InputProblem("", None, None, where, str(error))])
    found = [(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in error.errors()]
    return ScenarioError(InputProblem("", None, None, f"{where}: {key}" if key else where, text) for key, text in found)


@dataclass(frozen=True)
class ProblemEntry:
    """A problem as the registry knows it (entry-point group `coband.problems`)."""

    name: str
    config: type[Problem]
    summary: str
    reference: str
    cites: tuple[str, ...] = ()
    """What ``coband show --bibtex`` prints: keys of ``references.bib``, or whole BibTeX entries."""
    metrics: tuple[Metric, ...] = ()
    """The numbers that its worlds score agents with (``score``, ``score_of``) and measure (``measures``)."""
    aim: str = "regret"
    """The metric that algorithms are compared on first; another one than regret takes its place."""
