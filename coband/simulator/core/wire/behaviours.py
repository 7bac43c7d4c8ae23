"""Behaviours: what a dishonest agent sends in place of what its protocol says.

A behaviour changes the real numbers of a message that depend on rewards (moments, rewards, weights), unless the
scenario names other fields.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Meaning
from coband.simulator.core.wire.encodings import Fields
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import returns

LARGEST = 1e6
"""Largest factor or constant: what is larger only tests how numbers overflow."""
Factor = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]


@dataclass(frozen=True)
class Sight:
    """What a dishonest agent sees when it sends a message.

    Attributes:
        rng: the stream of this message.
        secret: the stream of this agent, from its start, the same at each message.
        meanings: of all real fields.
        whole: all real fields of the message, as they are.
        honest: field -> what each honest agent has sent last in it, where it has the same shape.
        earlier: fields of the agent's messages of this class before, the newest first.
        agents, dishonest: how many there are.
    """

    rng: np.random.Generator
    secret: np.random.Generator
    meanings: Mapping[str, Meaning]
    whole: Fields
    honest: Mapping[str, Sequence[FloatArray]]
    earlier: Sequence[Fields]
    agents: int
    dishonest: int


class BaseBehaviour(Config):
    """Base of behaviours: what a dishonest agent sends.

    Attributes:
        fields: meanings of the fields that it changes.
        colludes: it knows what honest agents send.
        withholds: it sends nothing.
        each: it answers each receiver of a message by itself.
        poisons: not the agent lies but its environment, about rewards (`core.wire.worlds`).
        remembers: so many messages of its own.
    """

    fields: ClassVar[tuple[Meaning, ...]] = ("moment", "rewards", "weights")
    colludes: ClassVar[bool] = False
    withholds: ClassVar[bool] = False
    each: ClassVar[bool] = False
    poisons: ClassVar[bool] = False

    @property
    def remembers(self) -> int:
        return 0

    @abstractmethod
    @returns(
        "the fields that it is given, with finite numbers of the same shapes",
        lambda found, fields, about: _fit(found, fields),
    )
    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        """What is sent in place of the fields; shapes stay."""


def _fit(found: Fields, fields: Fields) -> bool:
    """Whether fields can be sent in place of others."""
    return found.keys() == fields.keys() and all(
        np.shape(found[name]) == values.shape and np.isfinite(found[name]).all() for name, values in fields.items()
    )


class SignFlip(BaseBehaviour):
    """The opposite, times a factor."""

    kind: Literal["sign_flip"]
    scale: Factor = 1.0
    """The factor."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return {name: -self.scale * values for name, values in fields.items()}


class Scale(BaseBehaviour):
    """The truth times a factor."""

    kind: Literal["scale"]
    factor: Factor
    """The factor."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return {name: self.factor * values for name, values in fields.items()}


class Noise(BaseBehaviour):
    """The truth with Gaussian noise on every number."""

    kind: Literal["noise"]
    sigma: Annotated[float, Field(ge=0, le=LARGEST)]
    """Its standard deviation."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return {name: values + self.sigma * about.rng.standard_normal(values.shape) for name, values in fields.items()}


class Constant(BaseBehaviour):
    """The same number everywhere."""

    kind: Literal["constant"]
    value: Factor
    """The number."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return {name: np.full(values.shape, self.value) for name, values in fields.items()}


class RandomArmModel(BaseBehaviour):
    """Statistics of an invented parameter theta, uniform on a sphere and the agent's own for the whole run.

    A moment becomes W theta with the sums of squares W beside it, rewards become x^T theta of the points beside them;
    weights, and a moment without W, become a multiple of theta with the norm that they had.
    """

    kind: Literal["random_arm_model"]
    norm: Annotated[float, Field(gt=0, le=LARGEST)] = 1.0
    """||theta||."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return {name: self._invented(values, about.meanings[name], about) for name, values in fields.items()}

    def _invented(self, values: FloatArray, meaning: Meaning, about: Sight) -> FloatArray:
        beside = {about.meanings[name]: found for name, found in about.whole.items()}
        basis = beside.get({"moment": "gram", "rewards": "points"}.get(meaning, meaning))  # type: ignore[call-overload]
        fits = basis is not None and basis.shape[:-1] == values.shape and basis.ndim > 0 and meaning != "weights"
        theta = about.secret.standard_normal(basis.shape[-1] if fits and basis is not None else values.size)
        theta *= self.norm / max(float(np.linalg.norm(theta)), 1e-300)
        if fits and basis is not None:
            return np.asarray(basis @ theta)
        return (theta * (float(np.linalg.norm(values)) / self.norm)).reshape(values.shape)


class InnerProduct(BaseBehaviour):
    """Minus the mean of the honest agents, times a factor, so that the inner product with the truth is negative (Xie et
    al. 2019)."""

    kind: Literal["inner_product"]
    colludes: ClassVar[bool] = True
    scale: Factor = 1.0
    """The factor, epsilon."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        means = {name: np.mean(found, axis=0) for name, found in about.honest.items() if found}
        return {name: -self.scale * means[name] if name in means else values for name, values in fields.items()}


class ALittleIsEnough(BaseBehaviour):
    """The mean of the honest agents less z standard deviations in each number (Baruch et al. 2019)."""

    kind: Literal["alie"]
    colludes: ClassVar[bool] = True
    z: Annotated[float, Field(ge=0, le=LARGEST)] | None = None
    """Standard deviations; null: the largest with which a majority still looks farther from the mean, Phi^-1 of
    (n - m - s)/(n - m) with s = floor(n/2 + 1) - m, of n agents of whom m are dishonest."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        z, changed = self._z(about), dict(fields)
        for name, found in about.honest.items():
            if found:
                changed[name] = np.mean(found, axis=0) - z * np.std(found, axis=0)
        return changed

    def _z(self, about: Sight) -> float:
        if self.z is not None:
            return self.z
        honest, needed = about.agents - about.dishonest, about.agents // 2 + 1 - about.dishonest
        share = min(max((honest - needed) / max(honest, 1), 0.5), 1.0 - 1e-9)
        return NormalDist().inv_cdf(share)


class Stale(BaseBehaviour):
    """What the agent sent some messages ago, as far as it has the same shapes."""

    kind: Literal["stale"]
    fields: ClassVar[tuple[Meaning, ...]] = ("gram", "moment", "rewards", "weights")
    age: int = Field(default=10, ge=1, le=1000)
    """So many messages of the same class ago; at the beginning, the first one."""

    @property
    def remembers(self) -> int:
        return self.age

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        for old in reversed(about.earlier[: self.age]):
            if all(old[name].shape == values.shape for name, values in fields.items()):
                return {name: old[name] for name in fields}
        return fields


class FreeRider(BaseBehaviour):
    """Zeros: the agent takes the model and gives nothing."""

    kind: Literal["free_rider"]
    fields: ClassVar[tuple[Meaning, ...]] = ("gram", "moment", "rewards", "weights")

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return {name: np.zeros(values.shape) for name, values in fields.items()}


class Silent(BaseBehaviour):
    """Nothing: every message is lost behind its node. It still counts as sent once; its sender and its receiver notice
    as if the transport had given it up."""

    kind: Literal["silent"]
    withholds: ClassVar[bool] = True

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return fields


class Equivocate(BaseBehaviour):
    """The truth to some receivers and the opposite to the others, each drawn with probability 1/2."""

    kind: Literal["equivocate"]
    each: ClassVar[bool] = True
    scale: Factor = 1.0
    """Factor of the opposite."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        flips = about.rng.random() < 0.5
        return {name: -self.scale * values if flips else values for name, values in fields.items()}


class RewardPoisoning(BaseBehaviour):
    """The agents are honest and get false rewards: the truth is moved towards minus a factor times it, as far as what
    is left of a budget goes. The regret is that of the true rewards."""

    kind: Literal["reward_poisoning"]
    poisons: ClassVar[bool] = True
    scale: Factor = 1.0
    """The factor."""
    budget: Annotated[float, Field(ge=0, le=LARGEST)]
    """Sum of all changes, in absolute value, to the rewards of one agent."""

    def corrupt(self, fields: Fields, about: Sight) -> Fields:
        return fields


ADVERSARIES: Kinds[type[BaseBehaviour]] = Kinds.of(
    "adversaries",
    BaseBehaviour,
    (
        SignFlip,
        Scale,
        Noise,
        Constant,
        RandomArmModel,
        InnerProduct,
        ALittleIsEnough,
        Stale,
        FreeRider,
        Silent,
        Equivocate,
        RewardPoisoning,
    ),
)
