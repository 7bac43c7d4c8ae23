"""Reward functions, also Python functions of the user's, and noise: what `problem.reward` and `problem.noise` say.

Rewards are found through the entry-point group ``coband.rewards``, ours and those of other packages alike.

Li et al. 2023 is "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment", Pavlovic et
al. 2024 is "Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with Shared Randomness".
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import pydantic
from pydantic import Discriminator, Field, Tag

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config, JsonObject
from coband.simulator.plugins.functions import load
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import finite, in_words, real, returns, written
from coband.simulator.problems.arms import ArmSource, uniform_ball, uniform_sphere
from coband.simulator.problems.world import Noise
from coband.simulator.scenario_errors import BrokenOff


class RewardFunction(Protocol):
    """A drawn mean reward f: R^d -> R."""

    def __call__(self, arms: FloatArray) -> FloatArray:
        """f of the arms of several turns: (turns, n, d) -> (turns, n).

        The values of a turn must not depend, not even in the last bit, on the turns evaluated with it. A product of
        matrices does not promise that; one scalar product per row does.
        """

    def describe(self) -> JsonObject:
        """What was drawn, in JSON types."""


def means_of(reward: RewardFunction, arms: FloatArray) -> FloatArray:
    """f of the arms of several turns: (turns, n, d) -> (turns, n).

    Raises:
        BrokenOff: f gives something else.
    """
    found = reward(arms)
    if isinstance(found, np.ndarray) and found.shape == arms.shape[:-1]:
        return found
    raise BrokenOff(
        f"{written(type(reward).__call__)}{type(reward).__name__} returned {in_words(found)} for arms of shape "
        f"{arms.shape}; return their mean rewards, an array of shape {arms.shape[:-1]}"
    )


class Reward(Config, abc.ABC):
    """A `problem.reward` section: what a mean reward is drawn from. Its `kind` is the name of its entry point."""

    unit_cube: ClassVar[int | None] = None
    """d, when f is defined on [0, 1]^d alone; None when arms may lie anywhere."""

    @abc.abstractmethod
    @returns("the function f", lambda found, rng, source: callable(found))
    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        """Draw f for one replication.

        Args:
            rng: the stream (world, 0, reward).
            source: where arms come from; its `dimension` is d, its `domain` gives points of the region.
        """

    def redraw(self, dimension: int) -> Callable[[np.random.Generator], FloatArray] | None:
        """What draws another theta, (d,), for a mean reward that drifts; None where f is not a `RidgeFunction`."""
        return None

    def misplaced(self, region: Any, key: str) -> str:
        """What is wrong with a region of arms, the section ``key``, for this reward; empty when nothing is."""
        bounds = tuple(getattr(region, name, None) for name in ("dimension", "low", "high"))
        if self.unit_cube is None or (region.kind == "box" and bounds == (self.unit_cube, 0.0, 1.0)):
            return ""
        kind = getattr(self, "kind", type(self).__name__)
        return (
            f"reward {kind} is a function on [0, 1]^{self.unit_cube}: "
            f"write {key}: {{kind: box, dimension: {self.unit_cube}, ...}}."
        )


@dataclass(frozen=True)
class RidgeFunction:
    """f(x) = g(x . theta), a function of one direction."""

    theta: FloatArray
    profile: Callable[[FloatArray], FloatArray]

    def __call__(self, arms: FloatArray) -> FloatArray:
        projections: FloatArray = np.vecdot(arms, self.theta)
        return self.profile(projections)

    def describe(self) -> JsonObject:
        return {"theta": self.theta.tolist()}


class _RidgeReward(Reward):
    """A function of x . theta, with theta drawn once per replication."""

    theta: Literal["ball", "sphere"] = "ball"
    """Where theta is drawn from: uniform in the unit ball (Li et al. 2023) or on the unit sphere (Pavlovic et al.
    2024)."""

    @abc.abstractmethod
    def profile(self, u: FloatArray) -> FloatArray:
        """g(u), with f(x) = g(x . theta)."""

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        return RidgeFunction(self.redraw(source.dimension)(rng), self.profile)

    def redraw(self, dimension: int) -> Callable[[np.random.Generator], FloatArray]:
        draw_theta = uniform_ball if self.theta == "ball" else uniform_sphere
        return lambda rng: np.ascontiguousarray(draw_theta(rng, (), dimension))


class CosineReward(_RidgeReward):
    """f(x) = cos(3 x . theta)."""

    kind: Literal["cosine"]
    """cos(3 x . theta): f1 of Li et al. 2023 and h1 of Pavlovic et al. 2024."""

    def profile(self, u: FloatArray) -> FloatArray:
        return np.cos(3.0 * u)


class LinearReward(_RidgeReward):
    """f(x) = x . theta."""

    kind: Literal["linear"]
    """x . theta: linear bandits."""
    personal: int | None = Field(default=None, ge=1)
    """So many coordinates of theta, the last ones, are each agent's own; both parts are drawn by themselves. null: all
    agents have one theta."""

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        own = self.personal or 0
        return RidgeFunction(np.append(self.redraw(source.dimension - own)(rng), np.zeros(own)), self.profile)

    def own_part(self, common: RewardFunction, rng: np.random.Generator) -> RewardFunction:
        """f of an agent, with a personal part."""
        assert isinstance(common, RidgeFunction)
        own = self.personal or 0
        return replace(common, theta=np.append(common.theta[:-own], self.redraw(own)(rng)))

    def misplaced(self, region: Any, key: str) -> str:
        if self.personal is None:
            return super().misplaced(region, key)
        if key != "arms" or region.count is None:
            wanted = "write problem.kind: contextual with arms that change (of a pool, give arms.count)"
            return f"reward.personal gives each agent a best arm of its own; {wanted}."
        points = getattr(region, "points", None)
        dimension = len(points[0]) if isinstance(points, tuple) else region.dimension
        if self.personal >= dimension:
            return f"reward.personal(={self.personal}) must be less than the {dimension} dimensions of the arms."
        return super().misplaced(region, key)

    def profile(self, u: FloatArray) -> FloatArray:
        return u


class LogisticReward(_RidgeReward):
    """f(x) = 1 / (1 + exp(-scale x . theta))."""

    kind: Literal["logistic"]
    """1 / (1 + exp(-scale x . theta)): logistic bandits, with additive noise."""
    scale: float = Field(default=1.0, gt=0)
    """How steep it is: the larger, the closer means come to 0 and 1."""

    def profile(self, u: FloatArray) -> FloatArray:
        return 0.5 * (1.0 + np.tanh(0.5 * (self.scale * u)))  # which does not overflow


class SquareReward(_RidgeReward):
    """f(x) = 10 (x . theta)^2."""

    kind: Literal["square"]
    """10 (x . theta)^2: Dai et al. 2023, where theta is on the sphere."""

    def profile(self, u: FloatArray) -> FloatArray:
        return 10.0 * u * u


class CubicReward(_RidgeReward):
    """A cubic polynomial of u = x . theta; the two papers print different signs."""

    kind: Literal["cubic"]
    """A cubic polynomial of u = x . theta."""
    form: Literal["async", "duets"] = "async"
    """async: u^3 - 3u^2 - u + 3 (f2 of Li et al. 2023); duets: u^3 - 3u^2 + 3u + 3 (h2 of Pavlovic et al. 2024)."""

    def profile(self, u: FloatArray) -> FloatArray:
        return ((u - 3.0) * u + (-1.0 if self.form == "async" else 3.0)) * u + 3.0


REWARDS: Kinds[type[Reward]] = Kinds.of("rewards", Reward)
AnyReward = Annotated[Reward, REWARDS.field()]


class BaseNoise(Config):
    """How a reward scatters around its mean: one draw per turn, the same for every arm (common random numbers)."""

    @abc.abstractmethod
    @returns("{turns} finite numbers", lambda found, rng, turns: finite(np.asarray(found), turns))
    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        """The next draws of a stream, one per turn."""

    @abc.abstractmethod
    @returns("a finite number", lambda found, mean, draw: np.isfinite(found))
    def reward(self, mean: float, draw: float) -> float:
        """The reward of an arm with this mean in the turn with this draw."""


class _AdditiveNoise(BaseNoise):
    """Noise added to the mean."""

    def reward(self, mean: float, draw: float) -> float:
        return mean + draw


class GaussianNoise(_AdditiveNoise):
    """Normal noise of mean zero."""

    kind: Literal["gaussian"]
    """Normal, mean zero."""
    sd: Annotated[float, REWARD] = Field(ge=0)
    """Standard deviation, in units of the reward."""

    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        values: list[float] = (self.sd * rng.standard_normal(turns)).tolist()
        return values


class UniformNoise(_AdditiveNoise):
    """Noise uniform in [-half_width, half_width]."""

    kind: Literal["uniform"]
    """Uniform, mean zero."""
    half_width: Annotated[float, REWARD] = Field(ge=0)
    """Largest absolute value, in units of the reward."""

    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        values: list[float] = (self.half_width * (2.0 * rng.random(turns) - 1.0)).tolist()
        return values


class BernoulliNoise(BaseNoise):
    """Rewards 0 and 1; the mean, from 0 to 1, is the probability of 1."""

    kind: Literal["bernoulli"]
    """0 or 1, of the mean."""

    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        values: list[float] = rng.random(turns).tolist()
        return values

    def reward(self, mean: float, draw: float) -> float:
        if not 0.0 <= mean <= 1.0:
            raise BrokenOff(
                f"noise: bernoulli: an arm has the mean reward {mean:g}, which is not a probability; give rewards "
                "whose means are from 0 to 1, such as kind: logistic or python, or gaussian noise"
            )
        return float(draw < mean)


NOISES: Kinds[type[BaseNoise]] = Kinds.of("noises", BaseNoise, (GaussianNoise, UniformNoise, BernoulliNoise))


def _noise_kind(value: object) -> str | None:
    """How a noise section is read: as a bare number, or by its kind."""
    if isinstance(value, int | float | str):
        return "number"
    return "kind" if isinstance(value, (dict, BaseNoise)) else None


NoiseSpec = Annotated[
    Annotated[float, Field(ge=0), Tag("number")] | Annotated[Annotated[BaseNoise, NOISES.field()], Tag("kind")],
    REWARD,
    Discriminator(
        _noise_kind,
        custom_error_type="noise",
        custom_error_message="Write a number (the standard deviation), {kind: gaussian, sd: ...} "
        "or {kind: uniform, half_width: ...}",
    ),
]
"""Any `problem.noise` section; a bare number is the standard deviation of Gaussian noise."""


def as_noise(spec: float | BaseNoise) -> Noise:
    """The noise that a section describes."""
    return spec if isinstance(spec, BaseNoise) else GaussianNoise(kind="gaussian", sd=spec)


class PythonReward(Reward):
    """f(x) computed by a function of a module or file; the same f in every replication."""

    kind: Literal["python"]
    """A Python function of your own."""
    function: str
    """``module:function`` (installed or in the working directory) or ``path/to/file.py:function``,
    relative to the scenario. It gets the arms of a turn, an array (n, d), and returns their mean rewards, (n,), the
    same ones at each call."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> PythonReward:
        load(self.function)
        return self

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        return _Rewarded(self.function, load(self.function))


class _Rewarded:
    def __init__(self, name: str, function: Callable[[FloatArray], Any]) -> None:
        self._name, self._function, self._steady = name, function, False

    def __call__(self, arms: FloatArray) -> FloatArray:
        """f of the arms of several turns, turn by turn: (turns, n, d) -> (turns, n)."""
        if not self._steady and not np.array_equal(self._of_a_turn(arms[0]), self._of_a_turn(arms[0])):
            raise BrokenOff(
                f"{written(self._function)}{self._name} gave other values when it was called again; it must give mean "
                "rewards, and problem.noise adds noise"
            )
        self._steady = True
        return np.stack([self._of_a_turn(turn) for turn in arms])

    def _of_a_turn(self, arms: FloatArray) -> FloatArray:
        answer = self._function(arms)
        try:
            values = real(answer)
            right = finite(values, len(arms))
        except (TypeError, ValueError):
            right = False
        if not right:
            raise BrokenOff(
                f"{written(self._function)}{self._name} returned {in_words(answer, begins=True)} for arms of shape "
                f"{arms.shape}; return their mean rewards, {len(arms)} finite numbers"
            )
        return values

    def describe(self) -> JsonObject:
        return {"function": self._name}
