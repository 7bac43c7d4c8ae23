"""DisLinUCB: linear bandit with event-triggered synchronisation of all agents (Wang et al. 2020; baseline of paper
000)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.lin_ucb import LinUcbConfig
from coband.agents.memory import LINEAR_IN_COMMON
from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.agents.messages.synchronisation import SyncAbandoned, SyncRequest, SyncStart
from coband.agents.parameters import Synchronous
from coband.agents.synchronisation import ABANDONED, SynchronousAgent
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, NodeContext, Outbox
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, RidgeVersion, SynchronisedRidge


class DisLinConfig(LinUcbConfig, Synchronous):
    """Parameters of DisLinUCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The paper's D: a synchronisation is due when (t - t_last) * (gain in log det) exceeds it."""


class DisLinUCB(SynchronousAgent):
    """The client's side: V = lam I + W_sync + W_new, theta = V^(-1) (b_sync + b_new)."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: DisLinConfig = context.config
        start = context.sharing.get("start", lambda: RidgeVersion(ridge(context.dimension, self.config.lam)))
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
        """Add the pull; ask for a synchronisation when (t - t_last) * log(det V / det V_last) > D."""
        self.ridge.update(Observations.pull(arms, arm, reward))
        self.unshared += 1
        if self._requested:
            return []
        gain = self.ridge.size * self.ridge.gain("full")
        if not gain > self.config.threshold:
            return []
        return self.request(gain)

    def receive(self, message: Message, source: Address) -> Outbox:
        """Upload the news when a synchronisation starts; take in everybody's when it ends."""
        if isinstance(message, SyncStart):
            self.take_part(message)
            W, b = self.ridge.news()
            assert isinstance(W, Gram)
            pulls, self.unshared = self.unshared, 0
            return [(SERVER, LinearUpload(W=W, b=b, pulls=pulls, version=message.version, round=message.round))]
        self.resume()
        if isinstance(message, SyncAbandoned):
            return []
        assert isinstance(message, LinearModel)
        self._synchronised.follow(message.version, message.W, message.b)
        self.ridge.clear()
        self._version, self._behind = message.version, message.known
        self.note("model", version=message.version, round=message.round)
        return []

    def take_back(self, message: Message) -> None:
        """W and b of an upload that did not get through are news again."""
        assert isinstance(message, LinearUpload)
        self.ridge.restore(message.W, message.b)


ALGORITHM = Algorithm(
    name="dis_lin_ucb",
    agent=DisLinUCB,
    server="coband.server.dis_lin_ucb:DisLinUCBServer",
    config=DisLinConfig,
    summary="Linear bandit; all agents sum their statistics when one of them has learnt enough.",
    reference="Wang et al. 2020, DisLinUCB; baseline of paper 000",
    messages=(
        MessageSize(SyncRequest, "up", "0"),
        MessageSize(SyncStart, "down", "0", "to all"),
        MessageSize(LinearUpload, "up", "d^2 + d", "from each agent"),
        MessageSize(LinearModel, "down", "d^2 + d", "to all"),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "rounds*N*(d^2 + d)", "wait == 'all'"),
        ClosedForm("downlink_scalars", "rounds*N*(d^2 + d)"),
    ),
    cites=("wang2020distributed",),
    search={"threshold": "0.1..1000"},
    always={"threshold": 0.0},
    memory=(LINEAR_IN_COMMON,),
)
