"""Copies that links lose: independently, or in bursts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coband.simulator.core.config import Config
from coband.simulator.plugins.kinds import Kinds

Probability = Annotated[float, Field(ge=0, le=1)]


class BaseLoss(Config):
    """What all losses have that are more than a probability."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Share of copies that are lost in the long run."""

    @abstractmethod
    def process(self, rng: np.random.Generator) -> Callable[[], bool]:
        """One link: whether successive copies are lost; the stream ``rng`` belongs to what is returned alone."""


class GilbertElliott(BaseLoss):
    """Losses in bursts: a link is in a good or a bad state, and changes between them copy by copy.

    It starts in its stationary distribution. On average (r (1 - k) + p (1 - h)) / (p + r) of all copies are lost
    (Gilbert 1960, Elliott 1963).
    """

    kind: Literal["gilbert_elliott"]
    p: float = Field(gt=0, le=1)
    """Probability that the next copy finds the link bad after a good one."""
    r: float = Field(gt=0, le=1)
    """Probability that the next copy finds the link good after a bad one."""
    h: Probability = 0.0
    """A copy is lost with probability 1 - h while the link is bad."""
    k: Probability = 1.0
    """A copy is lost with probability 1 - k while the link is good."""

    @property
    def mean(self) -> float:
        return (self.r * (1.0 - self.k) + self.p * (1.0 - self.h)) / (self.p + self.r)

    def process(self, rng: np.random.Generator) -> Callable[[], bool]:
        return BurstLoss(self, rng)


LOSSES: Kinds[type[BaseLoss]] = Kinds.of("losses", BaseLoss, (GilbertElliott,))
"""The losses that scenarios can name, beside a probability."""
AnyLoss = Annotated[BaseLoss, LOSSES.field()]
Loss = Probability | AnyLoss


def mean_loss(loss: float | BaseLoss | None) -> float:
    """Share of copies that are lost in the long run."""
    return loss.mean if isinstance(loss, BaseLoss) else loss or 0.0


class BernoulliLoss:
    """Whether successive copies on one link are lost; the stream ``rng`` belongs to this object alone."""

    __slots__ = ("_loss", "_rng")

    def __init__(self, loss: float, rng: np.random.Generator) -> None:
        self._loss, self._rng = loss, rng

    def __call__(self) -> bool:
        """Draw for the next copy: independent of all others."""
        return bool(self._rng.random() < self._loss)


class BurstLoss:
    """The same with a state that lasts; two draws per copy, one for the state and one for the loss."""

    __slots__ = ("_bad", "_loss", "_rng")

    def __init__(self, loss: GilbertElliott, rng: np.random.Generator) -> None:
        self._loss, self._rng = loss, rng
        self._bad = bool(rng.random() < loss.p / (loss.p + loss.r))

    def __call__(self) -> bool:
        """Draw for the next copy, then for the state that the one after it finds."""
        loss, (lost, changed) = self._loss, self._rng.random(2)
        passes = loss.h if self._bad else loss.k
        if changed < (loss.r if self._bad else loss.p):
            self._bad = not self._bad
        return bool(lost >= passes)


def loss_process(loss: float | BaseLoss, rng: np.random.Generator) -> Callable[[], bool]:
    """What draws the losses of one link."""
    return loss.process(rng) if isinstance(loss, BaseLoss) else BernoulliLoss(loss, rng)
