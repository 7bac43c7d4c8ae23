"""Mechanisms: the noise that hides single pulls in what is sent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Pulls
from coband.simulator.core.wire import accounting
from coband.simulator.core.wire.accounting import Accountant
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import finite, returns

Draw = Callable[[str], np.random.Generator]
"""The random stream of that name, always the same."""


@dataclass(slots=True)
class Released:
    """What was sent of one field of one sender.

    Attributes:
        messages: how many.
        pulls: in all of them, where they bring new ones; else in the last one.
        squares: sum of the squared numbers of pulls in them.
        copies: in how many messages with new pulls one pull is: more than one where uploads were given up.
    """

    messages: int = 0
    pulls: int = 0
    squares: int = 0
    copies: int = 1

    def add(self, pulls: int, form: Pulls) -> None:
        """One more message with so many pulls in it."""
        self.messages += 1
        self.squares += pulls**2
        self.pulls = self.pulls + pulls if form == "new" else pulls

    @classmethod
    def at_most(cls, messages: int, pulls: int, form: Pulls) -> Released:
        """The most that so many messages about so many pulls can release."""
        return cls(messages, pulls, pulls**2 if form == "new" else messages * pulls**2)


class BaseMechanism(Config):
    """What all mechanisms have.

    Attributes:
        local: it noises each pull at its agent, and all that is sent is made of noised pulls.
        forms: of the sums that it can noise.
    """

    local: ClassVar[bool] = False
    forms: ClassVar[tuple[Pulls, ...]] = ("new", "all", "again")

    @abstractmethod
    @returns(
        "an array of {size} finite numbers",
        lambda found, size, *_: finite(found, size),
    )
    def noise(self, size: int, form: Pulls, number: int, draw: Draw) -> FloatArray:
        """The noise of the ``number``-th message (from 1) of a field of one sender, (size,), for a scale of 1 of all
        that is drawn. It is scaled by sigma times the field's bound."""

    @abstractmethod
    def weight(self, released: Released, form: Pulls, agent: bool) -> float:
        """The sum of squared sensitivities of the noised sums that a pull is part of, or all pulls of an agent.

        Of a local mechanism: the sum of sensitivities. The unit is the bound of one pull.
        """

    def epsilon(self, sigma: float, weight: float, delta: float, accountant: Accountant) -> float:
        """The epsilon of releases of that weight."""
        return accounting.gaussian_epsilon(sigma, weight, delta, accountant)

    def sigma(self, epsilon: float, weight: float, delta: float, accountant: Accountant) -> float:
        """The noise that keeps releases of that weight within epsilon."""
        return accounting.gaussian_sigma(epsilon, weight, delta, accountant)


class GaussianSums(BaseMechanism):
    """Gaussian noise on every message by itself (Dwork et al. 2006)."""

    kind: Literal["gaussian"]

    def noise(self, size: int, form: Pulls, number: int, draw: Draw) -> FloatArray:
        return draw(str(number)).standard_normal(size)

    def weight(self, released: Released, form: Pulls, agent: bool) -> float:
        if agent:
            return released.squares
        return min(released.copies, released.messages) if form == "new" else released.messages


class Tree(BaseMechanism):
    """Continual release by a binary tree over the messages of a field (Chan, Shi and Song 2011; Dubey and Pentland
    2020): each node is the sum of a block of 2^level messages with noise of its own, and what has been sent so far is
    a sum of at most 1 + log2(messages) nodes. So sums of many uploads have little noise."""

    kind: Literal["tree"]
    forms: ClassVar[tuple[Pulls, ...]] = ("new", "all")

    def noise(self, size: int, form: Pulls, number: int, draw: Draw) -> FloatArray:
        before = self._of_first(number - 1, size, draw) if form == "new" else 0.0
        return self._of_first(number, size, draw) - before

    @staticmethod
    def _of_first(messages: int, size: int, draw: Draw) -> FloatArray:
        """The noise in the sum of the first messages: of the blocks that make them up, the largest first."""
        total, start = np.zeros(size), 0
        for level in reversed(range(messages.bit_length())):
            if messages >> level & 1:
                total += draw(f"{level} {start >> level}").standard_normal(size)
                start += 1 << level
        return total

    def weight(self, released: Released, form: Pulls, agent: bool) -> float:
        most = released.pulls if agent else released.copies if form == "new" else 1
        return released.messages.bit_length() * most**2


class LaplaceLocal(BaseMechanism):
    """Laplace noise on the reward and on each coordinate of the point of every pull, at its agent, which learns from
    them (Duchi, Jordan and Wainwright 2013). What it sends, and when, says no more of a pull than these."""

    kind: Literal["laplace_local"]
    local: ClassVar[bool] = True

    def noise(self, size: int, form: Pulls, number: int, draw: Draw) -> FloatArray:
        return draw(str(number)).laplace(size=size)

    def weight(self, released: Released, form: Pulls, agent: bool) -> float:
        return released.pulls if agent else min(1, released.pulls)

    def epsilon(self, sigma: float, weight: float, delta: float, accountant: Accountant) -> float:
        return accounting.laplace_epsilon(sigma, weight)

    def sigma(self, epsilon: float, weight: float, delta: float, accountant: Accountant) -> float:
        return weight / epsilon


MECHANISMS: Kinds[type[BaseMechanism]] = Kinds.of("mechanisms", BaseMechanism, (GaussianSums, Tree, LaplaceLocal))
_Mechanism = Annotated[BaseMechanism, MECHANISMS.field()]
_Word = Literal["gaussian", "tree", "laplace_local"]
Mechanism = Annotated[
    _Mechanism,
    BeforeValidator(
        lambda value: {"kind": value} if isinstance(value, str) else value, json_schema_input_type=_Word | _Mechanism
    ),
]
"""``gaussian`` stands for ``{kind: gaussian}``."""


class Clip(Config):
    """What pulls are clipped to before their agent learns from them; null: that is not private."""

    points: float | None = Field(default=1.0, gt=0)
    """The largest Euclidean norm of arms; longer ones are shortened."""
    rewards: float | None = Field(default=1.0, gt=0)
    """The largest absolute value of rewards."""
