"""FedGLB-UCB: generalised linear bandit with a logistic link (Li and Wang 2022; baseline of Li et al. 2023).
As printed: `tests/oracles/fed_glb_ucb.py`. Next: `messages/linear.py`, `server/linear/fed_glb_ucb.py`.

Between synchronisations an agent takes an online Newton step per pull; in a synchronisation all agents fit one model to
all their data by accelerated gradient descent, each gradient a round of messages.

What the text leaves open, and the published code:

* the online steps are projected on the ball ||theta|| <= S as the text says (the published code projects on the
  probability simplex); the estimate of a synchronisation is not projected, in either;
* ``c_mu: null`` is the text's inf of mu' over [-S, S]; the published code has 0.25;
* gradient descent starts from the estimate of the last synchronisation, and steps by 1/(k_mu + lam/n) (the published
  code by a tenth of it);
* the triggering pull takes an online step too, since with link delays the agent may act before the synchronisation
  starts; without delays that leaves no trace, as all estimates are replaced;
* rewards are y = mu(x^T theta*) + noise, so noise may lead outside of [0, 1] and is taken as it is. Where *means* lie
  elsewhere, ``reward_range`` maps them to [0, 1].
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Len
from pydantic import Field, model_validator

from coband.agents.alone.lin_ucb import LinUcbConfig
from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.messages.linear import Gradient, Iterate, PointsUpload, RegressionModel
from coband.agents.messages.synchronisation import SyncAbandoned, SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.conversations import Unanswered, on
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, NodeContext, Outbox
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.logistic import Smoothness, flattest, loss_gradient, newton_step, project
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, RidgeVersion, SynchronisedRidge
from coband.simulator.metrics import Metric

ANSWERS = Iterate, RegressionModel, SyncAbandoned
"""What may follow an upload or a gradient."""


FLAT = 200
"""Largest radius for which c_mu can be computed with."""


class FedGlbConfig(LinUcbConfig):
    """Parameters of FedGLB-UCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The paper's D: a synchronisation is due when n_new * (gain in log det) reaches it."""
    radius: float = Field(default=1.0, gt=0)
    """S: bound on ||theta*||; online steps are projected on this ball. At most 200 unless c_mu is given."""
    c_mu: float | None = Field(default=None, gt=0, le=0.25)
    """Lower bound on the link's derivative; null: its least value over [-S, S], for arms in the unit ball."""
    smoothness: Smoothness = "unit_ball"
    """Steps of gradient descent: unit_ball, as in the paper, for arms in the unit ball (others are allowed for);
    data: as long as the arms pulled so far permit, which takes fewer rounds."""
    max_rounds: int = Field(default=1000, ge=1)
    """Gradient rounds of one synchronisation, at most."""
    reward_range: Annotated[tuple[float, float], Len(2, 2)] = (0.0, 1.0)
    """Smallest and largest mean reward; a reward y enters as (y - smallest) / (largest - smallest)."""

    @model_validator(mode="after")
    def _check(self) -> FedGlbConfig:
        low, high = self.reward_range
        if not low < high:
            raise ValueError(f"reward_range(=[{low}, {high}]) must be [smallest, largest] with smallest < largest.")
        if self.c_mu is None and self.radius > FLAT:
            raise ValueError(
                f"radius(={self.radius:g}) must be <= {FLAT} without c_mu, whose least value over [-S, S] is e^-S; "
                "write c_mu, or scale arms and theta."
            )
        return self

    @property
    def curvature(self) -> float:
        """c_mu."""
        return flattest(self.radius) if self.c_mu is None else self.c_mu


class FedGlbUCB(SynchronousAgent):
    """The client's side: A = (lam/c_mu) I + sum x x^T, b = sum (x^T theta) x, the centre A^(-1) b."""

    model = RegressionModel

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FedGlbConfig = context.config
        self._c_mu = self.config.curvature
        self._low, high = self.config.reward_range
        self._spread = high - self._low
        lam = self.config.lam / self._c_mu
        start = context.sharing.get("start", lambda: RidgeVersion(RidgeRegression(context.dimension, lam)))
        self._synchronised = SynchronisedRidge(start)
        self.ridge = LocalRidge(self._synchronised)
        self.theta = np.zeros(context.dimension)
        self._data = GrowingObservations(context.dimension)

    @property
    def pulls_in_model(self) -> int:
        """Those of the last synchronisation, and its own since then."""
        return self._behind + self.ridge.size

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T A^(-1) b + alpha ||x||_(A^-1); the link, which is increasing, is left out."""
        centre, variance = self.ridge.predict(arms)
        return self.best(centre + self.config.alpha * np.sqrt(variance))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Take an online Newton step; ask for a synchronisation when n_new * log(det A / det A_last) >= D."""
        self._learn(arms.features[arm], (reward - self._low) / self._spread)
        if self._requested or exceeds(self.config.threshold, gain := self.ridge.size * self.ridge.gain("full")):
            return []
        return self.request(gain)

    def _learn(self, x: FloatArray, y: float) -> None:
        self._data.append(x, y)
        self.unshared += 1
        z = float(x @ self.theta)
        self.ridge.update(Observations(x[None], np.array([z])))
        stepped = newton_step(self.theta, self.ridge.solve(x), z, y, self._c_mu)
        if float(np.linalg.norm(stepped)) > self.config.radius:
            stepped = project(stepped, self.ridge.inverse(), self.config.radius)
        self.theta = stepped

    @on(SyncStart, blocking=True)
    async def take_part(self, start: SyncStart, server: Address) -> None:
        """Up: W_new and how many pulls it has; then as `descend`."""
        answer = await self.ask(SERVER, self.upload(start), reply=ANSWERS, undo=self.take_back)
        await self.descend(answer, server)

    def upload(self, start: SyncStart) -> PointsUpload:
        """W_new, and of how many pulls."""
        W, _ = self.ridge.news(start.round)
        assert isinstance(W, Gram)
        pulls = self.unshared
        return PointsUpload(W=W, count=pulls, pulls=pulls, version=start.version, round=start.round)

    @on(Iterate, blocking=True)
    async def descend(self, answer: Message | Unanswered, server: Address) -> None:
        """Send gradients as often as they are wanted, also if the news did not get through; take in the new model."""
        while isinstance(answer, Iterate):
            answer = await self.ask(SERVER, self._gradient(answer), reply=ANSWERS)
        if isinstance(answer, RegressionModel):
            self.take_in(answer, server)

    def _gradient(self, message: Iterate) -> Gradient:
        gradient = loss_gradient(self._data.points, self._data.rewards, message.theta)
        return Gradient(gradient=gradient, step=message.step, version=message.version, round=message.round)

    def adopt(self, message: RegressionModel) -> None:
        """Predictions of all past pulls are now those of the new estimate: b = (sum x x^T) theta."""
        self._synchronised.follow(message.version, message.W, message.W.dense() @ message.theta)
        self.ridge.clear()
        self.theta = message.theta
        self._version, self._behind = message.version, message.known
        self.note("model", version=message.version, round=message.round)

    def take_back(self, upload: PointsUpload) -> None:
        """W of an upload that did not get through is news again."""
        self.ridge.restore(upload.round, upload.W, upload.W.dense() @ self.theta)


ALGORITHM = Algorithm(
    name="fed_glb_ucb",
    agent=FedGlbUCB,
    server="coband.server.linear.fed_glb_ucb:FedGlbUCBServer",
    config=FedGlbConfig,
    summary="Generalised linear bandit (logistic): online Newton steps alone, accelerated gradient descent together.",
    reference="Li and Wang 2022, FedGLB-UCB; baseline of Li et al. 2023",
    needs=Needs(waits_for_all="1"),
    messages=(
        *OPENING,
        MessageSize(PointsUpload, "up", "d^2 + 1", "from each agent", due=True),
        MessageSize(Iterate, "down", "d", "to all, in each gradient round"),
        MessageSize(Gradient, "up", "d", "from each agent, in each gradient round"),
        MessageSize(RegressionModel, "down", "d^2 + d + 1", "to all", due=True),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "N*(rounds*(d^2 + 1) + gradient_rounds*d)"),
        ClosedForm("downlink_scalars", "N*(rounds*(d^2 + d + 1) + gradient_rounds*d)"),
    ),
    metrics=(
        Metric("gradient_rounds", "rounds", "rounds of gradient descent over all synchronisations", locked=True),
        Metric("unconverged", "synchronisations", "synchronisations that ended before the gradient was small enough"),
    ),
    cites=("li2022generalized",),
    search={"threshold": "0.1..1000"},
    always={"threshold": 0.0},
)
