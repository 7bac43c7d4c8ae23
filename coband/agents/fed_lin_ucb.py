"""FedLinUCB: asynchronous linear bandit (He et al. 2022; baseline of Li et al. 2023).

With link delays the agent goes on with its old model while an upload is under way (``blocking: false``); points pulled
meanwhile belong to the next upload, and the trigger is not looked at before the answer has come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from coband.agents.episode import Episode
from coband.agents.lin_ucb import LinUcbConfig
from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox
from coband.simulator.core.talks import Talks, late
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.synchronised_ridge import ROUNDING, RidgeVersion, SynchronisedRidge


class FedLinConfig(LinUcbConfig):
    """Parameters of FedLinUCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The C of det(V_i + V_loc) > (1 + C) det(V_i), when an upload is due (He et al.: 1/N^2 in theory)."""
    blocking: bool = False
    """True: the agent waits while its upload is under way."""


class FedLinUCB(Talks, Agent):
    """The client's side: acts on (V_i, b_i) of its last download, and keeps its news (V_loc, b_loc) apart."""

    noted: ClassVar[Mapping[str, str]] = {"trigger": "gain since the last upload"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FedLinConfig = context.config
        start = context.sharing.get("start", lambda: RidgeVersion(ridge(context.dimension, self.config.lam)))
        self.downloaded = SynchronisedRidge(start, alone=True)
        self._episode = Episode(self.downloaded, self.config.alpha)
        self._growth = math.log1p(self.config.threshold) + ROUNDING
        self._uploading = False
        self._behind = 0  # pulls in the downloaded model

    @property
    def pulls_in_model(self) -> int:
        """Those of the downloaded model."""
        return self._behind

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha ||x||_(V^-1) of the downloaded model alone."""
        return self.best(self._episode.scores(arms))

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """Let coming turns be worked out together."""
        self._episode.look_ahead(arm_sets)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """V_loc += x x^T, b_loc += y x; upload them when det(V_i + V_loc) > (1 + C) det(V_i)."""
        self._episode.pull(arms, arm, reward)
        self.unshared += 1
        if self._uploading or not (gain := self._episode.gain(self._growth)) > self._growth:
            return []
        return self.begin(self._upload(gain), blocking=self.config.blocking)

    async def _upload(self, gain: float) -> None:
        """Upload: (V_loc, b_loc) up, zero from now on. Download: the server's sums, own upload included."""
        self.note("trigger", version=self.downloaded.version, value=gain)
        self._uploading = True
        W, b = self._episode.news.news(0)
        assert isinstance(W, Gram)
        self._episode.clear()  # so that whatever is taken back is added
        upload = LinearUpload(W=W, b=b, pulls=self.unshared, version=self.downloaded.version)
        model = await self.ask(SERVER, upload, reply=LinearModel, attempts=0, undo=self._take_back)
        self._uploading = False
        if isinstance(model, LinearModel):
            self.adopt(model, SERVER)

    def _take_back(self, upload: LinearUpload) -> None:
        """Pulls that the server does not get are news again, and go with the next upload."""
        self._episode.restore(upload.W, upload.b)

    @late(LinearModel)
    def adopt(self, model: LinearModel, server: Address) -> None:
        """(V_i, b_i) are the server's sums, unless a newer model has come before."""
        if model.version < self.downloaded.version:
            return
        self.downloaded.follow(model.version, model.W, model.b)
        self._episode.begin()
        self._behind = model.known
        self.note("model", version=model.version, round=model.round)


ALGORITHM = Algorithm(
    name="fed_lin_ucb",
    agent=FedLinUCB,
    server="coband.server.fed_lin_ucb:FedLinUCBServer",
    config=FedLinConfig,
    summary="Asynchronous linear bandit: an agent whose determinant has grown by a factor exchanges statistics.",
    reference="He et al. 2022, FedLinUCB; baseline of Li et al. 2023",
    messages=(MessageSize(LinearUpload, "up", "d^2 + d"), MessageSize(LinearModel, "down", "d^2 + d", due=True)),
    counts=(ClosedForm("uplink_scalars", "rounds*(d^2 + d)"), ClosedForm("downlink_scalars", "rounds*(d^2 + d)")),
    rate="regret Õ(d √T) in Õ(d N²) communication rounds for C = 1/N² (He et al. 2022, abstract)",
    cites=("he2022simple",),
    search={"threshold": "0.01..100"},
    always={"threshold": 0.0},
)
