"""Async-LinUCB-AM: Async-LinUCB (Li and Wang 2022) for heterogeneous clients, who share only a part of theta.
As printed: `tests/oracles/async_lin_ucb_am.py`. Next: `async_lin_ucb.py`, `messages/linear.py`,
`server/linear/async_lin_ucb.py`.

A context is x = (x_g, x_l), and E y = x_g . theta_g + x_l . theta_l, theta_l the agent's. Arms are chosen by the sum of
two upper bounds, one for each part. A pull's reward is divided into y_g + y_l once, by alternating minimisation that
starts from y_g = y - x_l . theta_l:

    theta_g = P (A_g + x_g x_g^T)^+ (b_g + y_g x_g),   y_l = y - x_g . theta_g,
    theta_l = P (A_l + x_l x_l^T)^+ (b_l + y_l x_l),   y_g = y - x_l . theta_l,

P shortens to length S. Then A_g, b_g take in x_g and y_g, which is what is exchanged, and A_l, b_l take in x_l and y_l.
The text was not at hand: steps and constants are those of the authors' program, but that directions of less than 1e-9
of the largest eigenvalue are not part of the pseudoinverse (there 1e-15, which rounding exceeds), and that both sides
send when a determinant has grown by more than gamma (there also by just as much).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from coband.agents.linear.async_lin_ucb import ALGORITHM as COMMON
from coband.agents.linear.async_lin_ucb import AsyncLinConfig, AsyncLinUCB
from coband.agents.messages.linear import CountedUpload, PartialDownload, PartialUpload
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import ClosedForm, MessageSize
from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.linalg.matrices import dsyev
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression

RANK = 1e-9


class AsyncLinAmConfig(AsyncLinConfig):
    """Parameters of Async-LinUCB-AM; ``norm`` S bounds each part of theta."""

    shared: int | None = Field(default=None, ge=1)
    """g: the first features, whose parameter is common to all agents; null: half of them, rounded up."""
    steps: int = Field(default=100, ge=1)
    """Alternations for each pull; they end earlier when nothing changes any more."""

    def shared_features(self, context: NodeContext) -> int:
        found = (context.dimension + 1) // 2 if self.shared is None else self.shared
        if found >= context.dimension:
            raise UnsupportedScenario(f"needs more than shared(={found}) features; arms have {context.dimension}")
        return found


class Regression:
    """Least squares on parts of rewards, with one more pull of which the part is not known yet.

    Args:
        A, b: sums x x^T and y x.
        x: the further point.
        norm: theta is shortened to it.
    """

    def __init__(self, A: FloatArray, b: FloatArray, x: FloatArray, norm: float) -> None:
        sizes, axes, info = dsyev(A + x[:, None] * x, lower=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"no eigenvalues of the sum of squares were found ({info})")
        kept = np.abs(sizes) > RANK * max(-sizes[0], sizes[-1])
        if not kept.all():
            sizes, axes = sizes[kept], axes[:, kept]
        along = np.array([b, x]) @ axes
        parts = along / sizes  # u and v along the axes, where theta = u + y v
        (uu, uv), (_, vv) = (parts @ parts.T).tolist()
        xu, xv = (parts @ along[1]).tolist()
        self._norm = norm
        self._products: tuple[float, ...] = (uu, uv, vv, xu, xv)

    def value(self, y: float) -> float:
        """x . theta if this is its part of the reward."""
        uu, uv, vv, xu, xv = self._products
        length = math.sqrt(max(uu + y * (2.0 * uv + y * vv), 0.0))
        return (xu + y * xv) * min(1.0, self._norm / length if length else 1.0)


class AsyncLinUcbAm(AsyncLinUCB):
    """The client's side; the common part is that of Async-LinUCB."""

    config: AsyncLinAmConfig
    upload: ClassVar[type[CountedUpload]] = PartialUpload

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._g, personal = len(self._b), context.dimension - len(self._b)
        self.personal = RidgeRegression(personal, self.config.lam)
        self._A_g, self._b_g = np.zeros_like(self._W), np.zeros_like(self._b)
        self._A_l, self._b_l = np.zeros((personal, personal)), np.zeros(personal)

    def scores(self, arms: ArmSet) -> FloatArray:
        """The sum of both parts' bounds."""
        found, g = np.zeros(len(arms)), self._g
        for model, X in ((self.ridge, arms.features[:, :g]), (self.personal, arms.features[:, g:])):
            mean, variance = model.predict(X)
            found += mean + self.radius(X.shape[1]) * np.sqrt(variance)
        return found

    def observation(self, arms: ArmSet, arm: int, reward: float) -> Observations:
        """Divide the reward, learn the personal part, return the common one."""
        x = arms.features[arm]
        x_g, x_l = x[: self._g], x[self._g :]
        common = Regression(self._A_g, self._b_g, x_g, self.config.norm)
        own = Regression(self._A_l, self._b_l, x_l, self.config.norm)
        y_g = reward - float(self.personal.predict(x_l[None])[0][0])
        for _ in range(self.config.steps):
            before, y_l = y_g, reward - common.value(y_g)
            y_g = reward - own.value(y_l)
            if y_g == before:
                break
        self._A_g, self._b_g = self._A_g + x_g[:, None] * x_g, self._b_g + y_g * x_g
        self._A_l, self._b_l = self._A_l + x_l[:, None] * x_l, self._b_l + y_l * x_l
        self.personal.update(Observations(x_l[None], np.array([y_l])))
        return Observations(x_g[None], np.array([y_g]))

    def _take_in(self) -> None:
        for download in self._waiting:
            self._A_g, self._b_g = self._A_g + download.W.dense(), self._b_g + download.b
        super()._take_in()


ALGORITHM = replace(
    COMMON,
    name="async_lin_ucb_am",
    agent=AsyncLinUcbAm,
    config=AsyncLinAmConfig,
    summary="Async-LinUCB where a part of the parameter is each agent's own, by alternating minimisation.",
    reference="Li and Wang 2022, Async-LinUCB-AM",
    messages=(
        MessageSize(PartialUpload, "up", "g^2 + g + 1"),
        MessageSize(PartialDownload, "down", "g^2 + g + 1", "to each agent that lacks enough"),
    ),
    counts=(
        ClosedForm("uplink_scalars", "rounds*(g^2 + g + 1)"),
        ClosedForm("downlink_scalars", "downloads*(g^2 + g + 1)"),
    ),
    where={"g": "shared if shared else ceil(d/2)"},
    rate="",
)
