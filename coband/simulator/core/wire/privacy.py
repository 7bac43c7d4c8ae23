"""Privacy: what a scenario asks for, the mechanisms whose noise hides single pulls, and what is sent without noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, MessageSize
from coband.simulator.core.config import Config, word_is_kind
from coband.simulator.core.nodes.message import Message, Pulls
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
    """Base of mechanisms, which make messages private by noise.

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

        For a local mechanism: the sum of sensitivities. The unit is the bound of one pull.
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
    BeforeValidator(word_is_kind, json_schema_input_type=_Word | _Mechanism),
]
"""``gaussian`` stands for ``{kind: gaussian}``."""


class Clip(Config):
    """What pulls are clipped to before their agent learns from them; null: that is not private."""

    points: float | None = Field(default=1.0, gt=0)
    """The largest Euclidean norm of arms; longer ones are shortened."""
    rewards: float | None = Field(default=1.0, gt=0)
    """The largest absolute value of rewards."""


WHEN = "it depends on pulls, as does how many it brings"
PUBLIC = ("turns", "agents")
"""Indices that say nothing of a pull."""


class Privacy(Config):
    """Noise that hides the pulls of agents from others.

    Two runs are neighbours when in one of them a pull is nothing: its point and its reward are zero.
    """

    mechanism: Mechanism
    """Where the noise is, and of which form."""
    clip: Clip = Clip()
    """What bounds the effect of one pull."""
    epsilon: float | None = Field(default=None, gt=0)
    """What is spent at most; the noise is calibrated for it, on the most that can be sent. Give it or sigma."""
    sigma: float | None = Field(default=None, gt=0)
    """Standard deviation of the noise in units of what one pull changes at most (laplace_local: its scale)."""
    delta: float = Field(default=1e-5, gt=0, lt=1)
    """With this probability the promise of epsilon may fail."""
    unit: Literal["pull", "agent"] = "pull"
    """What is hidden: one pull, or all pulls of an agent."""
    adversary: Literal["server", "others"] = "server"
    """From whom: the server, which sees what agents send; or the other agents, which see what the server sends. Agents
    of a graph see what each other send either way."""
    accountant: Accountant = "exact"
    """How epsilon is computed from Gaussian noise: exact, or by one of two upper bounds, a discretised privacy loss
    distribution (pld) or Renyi divergences (rdp)."""
    leak: Literal["refuse", "allow"] = "refuse"
    """What happens where the adversary sees anything that is not protected: the scenario is refused with a list, or
    results say so."""

    @model_validator(mode="after")
    def _is_one_amount(self) -> Privacy:
        if (self.epsilon is None) == (self.sigma is None):
            raise ValueError("give either epsilon or sigma")
        if self.clip.points is None and self.clip.rewards is None:
            raise ValueError("clip: points and rewards cannot both be null; nothing would be private")
        return self

    @property
    def wholly(self) -> bool:
        """Whether points and rewards are both private."""
        return self.clip.points is not None and self.clip.rewards is not None

    def sees(self, size: MessageSize) -> bool:
        """Whether the adversary sees messages of that direction."""
        return size.direction in ("peer", "up" if self.adversary == "server" else "down")

    def noised(self, kind: type[Message]) -> list[str]:
        """The fields of a kind of message that get noise on the wire."""
        return [name for name in kind.payload_fields() if not self.mechanism.local and not self._gap(kind, name)]

    def _gap(self, kind: type[Message], name: str) -> str:
        """Why no noise can be put on a field; empty if it can."""
        declared, holds = kind.declared(name), kind.meaning(name)
        if declared["noised"]:
            return "its node has put noise on it"
        if holds in ("points", "rewards"):
            return "single pulls, not a sum of them"
        if holds == "count":
            return "a count gets no noise"
        if not declared["bound"]:
            return "what one pull changes in it has no declared bound"
        for part in ("points", "rewards"):
            if part in declared["bound"] and getattr(self.clip, part) is None:
                return f"clip.{part} is null"
        if declared["pulls"] not in self.mechanism.forms:
            return f"its form changes, which {self.mechanism.kind} cannot do"  # type: ignore[attr-defined]
        return ""

    def leaks_of(self, kind: type[Message], name: str) -> str:
        """What an adversary learns of pulls from a field; empty if only what noise leaves."""
        holds = kind.meaning(name)
        if kind.declared(name)["noised"]:
            return ""
        if holds == "index":
            return "" if self.mechanism.local and optional(kind, name) else "which arm"
        if self.mechanism.local:
            return "" if self.wholly or (holds == "rewards" and self.clip.rewards is not None) else self._missing
        return self._gap(kind, name)

    @property
    def _missing(self) -> str:
        return f"clip.{'points' if self.clip.points is None else 'rewards'} is null"

    def leaks(self, algorithm: Algorithm) -> Iterator[tuple[str, str]]:
        """(what the adversary sees of an algorithm's messages, why it is not private; empty if it is)."""
        seen = [size for size in algorithm.messages if self.sees(size)]
        for kind in dict.fromkeys(size.message for size in seen):
            names = [name for name in kind.payload_fields() if kind.declared(name)["of"] not in PUBLIC]
            yield from ((f"{kind.kind}.{name}", self.leaks_of(kind, name)) for name in names)
        hidden, public = self.mechanism.local and self.wholly, {size.message for size in seen if size.due}
        for kind in dict.fromkeys(size.message for size in seen):
            yield f"time of {kind.kind}", "" if hidden or kind in public else WHEN

    def noised_by(self, algorithm: Algorithm) -> dict[type[Message], list[str]]:
        """Fields that get noise on the wire, by kind of message that the adversary sees."""
        return {size.message: self.noised(size.message) for size in algorithm.messages if self.sees(size)}

    def idle(self, algorithm: Algorithm) -> str:
        """Why the mechanism would hide nothing of what an algorithm sends; empty if it hides something."""
        noised = self.noised_by(algorithm)
        if self.mechanism.local or not noised or any(noised.values()):
            return ""
        return (
            f"{self.mechanism.kind} finds no sum of pulls with a declared bound in what "  # type: ignore[attr-defined]
            f"{algorithm.name} sends, so it would hide nothing; take laplace_local"
        )

    def unprotected(self, algorithm: Algorithm) -> list[str]:
        """What is not private, with the reasons."""
        return [f"{what} ({why})" for what, why in self.leaks(algorithm) if why]


def optional(kind: type[Message], name: str) -> bool:
    """Whether a field may be left out, so that only a run shows whether it is sent."""
    return "None" in str(kind.__dataclass_fields__[name].type)
