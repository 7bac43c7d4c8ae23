"""FedLinUCB: asynchronous linear bandit (He et al. 2022; baseline of paper 000).

With link delays the agent goes on with its old model while an upload is under way (``blocking: false``); points pulled
meanwhile belong to the next upload, and the trigger is not looked at before the answer has come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from coband.agents.lin_ucb import LinUcbConfig
from coband.agents.memory import LINEAR
from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, Agent, NodeContext, Outbox, OutOfPatience
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge

ROUNDING = 1e-12
"""Unit features with lam = C = 1 give det(V_i + V_loc) = 2 det(V_i) but for rounding, which must not decide."""


class FedLinConfig(LinUcbConfig):
    """Parameters of FedLinUCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The C of det(V_i + V_loc) > (1 + C) det(V_i), when an upload is due (He et al.: 1/N^2 in theory)."""
    blocking: bool = False
    """True: the agent waits while its upload is under way."""


class FedLinUCB(Agent):
    """The client's side: acts on (V_i, b_i) of its last download, and keeps its news (V_loc, b_loc) apart."""

    noted: ClassVar[Mapping[str, str]] = {"trigger": "gain since the last upload, above the threshold"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FedLinConfig = context.config
        self.downloaded = SynchronisedRidge(ridge(context.dimension, self.config.lam))
        self._news = LocalRidge(self.downloaded)
        self._growth = math.log1p(self.config.threshold) + ROUNDING
        self._pending = False
        self._behind = 0  # pulls in the downloaded model

    @property
    def pulls_in_model(self) -> int:
        """Those of the downloaded model."""
        return self._behind

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha ||x||_(V^-1) of the downloaded model alone."""
        mean, variance = self.downloaded.ridge.predict(arms)
        return self.best(mean + self.config.alpha * np.sqrt(variance))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull to the news; upload them when det(V_i + V_loc) > (1 + C) det(V_i)."""
        self._news.update(Observations.pull(arms, arm, reward))
        self.unshared += 1
        if self._pending:
            return []
        gain = self._news.gain("full")
        if not gain > self._growth:
            return []
        self.note("trigger", version=self.downloaded.version, value=gain)
        self._pending, self.waiting = True, self.config.blocking
        W, b = self._news.news()
        assert isinstance(W, Gram)
        self._news.clear()
        pulls, self.unshared = self.unshared, 0
        return [(SERVER, LinearUpload(W=W, b=b, pulls=pulls, version=self.downloaded.version))]

    def receive(self, message: Message, source: Address) -> Outbox:
        """The server's sums, own upload included."""
        assert isinstance(message, LinearModel)
        self.heard_from(source)
        self.downloaded.follow(message.version, message.W, message.b)
        self._pending = self.waiting = False
        self._behind = message.known
        self.note("model", version=message.version, round=message.round)
        return []

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """The pulls of an upload that did not come through are news again, and go with the next one."""
        assert isinstance(message, LinearUpload)
        self._news.restore(message.W, message.b)
        self.unshared += message.pulls
        self._pending = self.waiting = False
        return []

    def missed(self, source: Address) -> Outbox | None:
        """The answer, perhaps, does not come: wait for it a while."""
        return self.be_patient(source) if self._pending else None

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        """Go on with the model at hand; the server has the upload, and its next answer contains it."""
        self._pending = self.waiting = False
        return []


ALGORITHM = Algorithm(
    name="fed_lin_ucb",
    agent=FedLinUCB,
    server="coband.server.fed_lin_ucb:FedLinUCBServer",
    config=FedLinConfig,
    summary="Asynchronous linear bandit: an agent whose determinant has grown by a factor exchanges statistics.",
    reference="He et al. 2022, FedLinUCB; baseline of paper 000",
    messages=(MessageSize(LinearUpload, "up", "d^2 + d"), MessageSize(LinearModel, "down", "d^2 + d")),
    counts=(
        ClosedForm("uplink_scalars", "rounds*(d^2 + d)"),
        ClosedForm("downlink_scalars", "rounds*(d^2 + d)"),
    ),
    cites=("he2022simple",),
    search={"threshold": "0.01..100"},
    always={"threshold": 0.0},
    memory=(LINEAR,),
)
