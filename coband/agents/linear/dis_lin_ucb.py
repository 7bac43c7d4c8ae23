"""DisLinUCB: event-triggered synchronisation of all agents (Wang et al. 2020; baseline of Li et al. 2023).
As printed: `tests/oracles/dis_lin_ucb.py`. Next: `messages/linear.py`, `server/linear/dis_lin_ucb.py`.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.alone.lin_ucb import LinUcbConfig
from coband.agents.common.parameters import Synchronous
from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.agents.messages.synchronisation import SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, RidgeVersion, SynchronisedRidge


class DisLinConfig(LinUcbConfig, Synchronous):
    """Parameters of DisLinUCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The paper's D: a synchronisation is due when (t - t_last) * (gain in log det) exceeds it."""


class DisLinUCB(SynchronousAgent):
    """The client's side: V = lam I + W_sync + W_new, theta = V^(-1) (b_sync + b_new)."""

    model = LinearModel

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: DisLinConfig = context.config
        start = context.sharing.get("start", lambda: RidgeVersion(RidgeRegression(context.dimension, self.config.lam)))
        self._synchronised = SynchronisedRidge(start)
        self.ridge = LocalRidge(self._synchronised)

    @property
    def pulls_in_model(self) -> int:
        """Those of the last synchronisation, and its own since then."""
        return self._behind + self.ridge.size

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha ||x||_(V^-1)."""
        mean, variance = self.ridge.predict(arms)
        return self.best(mean + self.config.alpha * np.sqrt(variance))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """W_new += x x^T, b_new += y x; ask for a synchronisation when (t - t_last) * log(det V / det V_last) > D."""
        self.ridge.update(Observations.pull(arms, arm, reward))
        self.unshared += 1
        if self._requested or not exceeds(gain := self.ridge.size * self.ridge.gain("full"), self.config.threshold):
            return []
        return self.request(gain)

    def upload(self, start: SyncStart) -> LinearUpload:
        """W_new and b_new."""
        W, b = self.ridge.news(start.round)
        assert isinstance(W, Gram)
        return LinearUpload(W=W, b=b, pulls=self.unshared, version=start.version, round=start.round)

    def take_back(self, upload: LinearUpload) -> None:
        """W and b of an upload that did not get through are news again."""
        self.ridge.restore(upload.round, upload.W, upload.b)

    def adopt(self, model: LinearModel) -> None:
        """W_sync and b_sync are everybody's; W_new and b_new are zero, but for what has not been uploaded."""
        self._synchronised.follow(model.version, model.W, model.b)
        self.ridge.clear()
        self._version, self._behind = model.version, model.known
        self.note("model", version=model.version, round=model.round)


ALGORITHM = Algorithm(
    name="dis_lin_ucb",
    agent=DisLinUCB,
    server="coband.server.linear.dis_lin_ucb:DisLinUCBServer",
    config=DisLinConfig,
    summary="Linear bandit; all agents sum their statistics when one of them has learnt enough.",
    reference="Wang et al. 2020, DisLinUCB; baseline of Li et al. 2023",
    needs=Needs(waits_for_all="wait == 'all'"),
    messages=(
        *OPENING,
        MessageSize(LinearUpload, "up", "d^2 + d", "from each agent", due=True),
        MessageSize(LinearModel, "down", "d^2 + d", "to all", due=True),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "rounds*N*(d^2 + d)", "wait == 'all'"),
        ClosedForm("downlink_scalars", "rounds*N*(d^2 + d)"),
    ),
    rate="regret Õ(d √T) with Õ(N^1.5 d³) scalars (Wang et al. 2020, abstract)",
    cites=("wang2020distributed",),
    search={"threshold": "0.1..1000"},
    always={"threshold": 0.0},
)
