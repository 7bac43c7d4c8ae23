"""Discounted DisLinUCB (ours): D-LinUCB (Russac et al. 2019, algorithm 1) on the pulls of all agents, which exchange
sums as in DisLinUCB (Wang et al. 2020), for worlds that drift.
As printed: `tests/oracles/discounted_dis_lin_ucb.py`. Next: `dis_lin_ucb.py`, `messages/linear.py`,
`server/linear/discounted_dis_lin_ucb.py`.

Weights fade with rounds. A turn of an agent multiplies by gamma the weights of all that it holds, and a synchronisation
by gamma^n those of all that the server holds, where n is the mean number of pulls in the uploads that it takes in. If
agents act in rounds, n is the number of rounds since the last synchronisation, and every weight gamma^(t-s) is that of
D-LinUCB. What comes late is as old as if it had come in time.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.linear.dis_lin_ucb import DisLinConfig
from coband.agents.messages.linear import DiscountedModel, DiscountedUpload
from coband.agents.messages.synchronisation import SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.posteriors.discounted import DiscountedSums


class DiscountedDisLinConfig(DisLinConfig):
    """Parameters of discounted DisLinUCB."""

    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by x^T theta + alpha sqrt(x^T V^(-1) V~ V^(-1) x)."""
    gamma: float = Field(default=0.999, gt=0, le=1)
    """Weight of a pull after one more round; 1: nothing is forgotten, as in DisLinUCB."""


class DiscountedDisLinUCB(SynchronousAgent):
    """The client's side: V = lam I + W_sync + W_new and V~ likewise, theta = V^(-1) (b_sync + b_new)."""

    model = DiscountedModel

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: DiscountedDisLinConfig = context.config
        self._none = context.sharing.get("start", lambda: DiscountedSums.none(context.dimension))
        self._synchronised = self._news = self._none
        self._turn = self._last = 0  # its turns so far, and at the last synchronisation
        self._sent: dict[int, DiscountedUpload] = {}  # what is in no model that it has, by round

    @property
    def pulls_in_model(self) -> int:
        """Those of the last synchronisation, however old, and its own since then."""
        return self._behind + self._new

    @property
    def _new(self) -> int:
        """Its pulls since the last synchronisation."""
        return self.unshared + sum(upload.count for upload in self._sent.values())

    def _old(self) -> DiscountedSums:
        """W_sync, W~_sync and b_sync."""
        return self._synchronised.discounted(self.config.gamma ** (self._turn - self._last))

    def _all(self) -> DiscountedSums:
        """The same with W_new, W~_new and b_new."""
        return sum(map(self._discounted, self._sent.values()), start=self._old() + self._news)

    def _discounted(self, upload: DiscountedUpload) -> DiscountedSums:
        """What was sent, with the weights of now."""
        sums = DiscountedSums(upload.W, upload.W_tilde, upload.b)
        return sums.discounted(self.config.gamma ** (self._turn - upload.turn))

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha sqrt(x^T V^(-1) V~ V^(-1) x)."""
        mean, variance = self._all().predict(arms.features, self.config.lam)
        return self.best(mean + self.config.alpha * np.sqrt(variance))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Discount all, and add the pull; ask when (t - t_last) * log(det V / det(lam I + W_sync)) > D."""
        self._turn += 1
        self._news = self._news.discounted(self.config.gamma).with_pull(arms.features[arm], reward)
        self.unshared += 1
        if self._requested:
            return []
        lam = self.config.lam
        gain = self._new * (self._all().log_det(lam) - self._old().log_det(lam))
        return self.request(gain) if exceeds(gain, self.config.threshold) else []

    def upload(self, start: SyncStart) -> DiscountedUpload:
        """W_new, W~_new, b_new, and how many pulls are in them."""
        news, self._news, pulls = self._news, self._none, self.unshared
        header = {"pulls": pulls, "turn": self._turn, "version": start.version, "round": start.round}
        upload = DiscountedUpload(W=news.W, W_tilde=news.W_tilde, b=news.b, count=pulls, **header)
        self._sent[start.round] = upload
        return upload

    def take_back(self, upload: DiscountedUpload) -> None:
        """What did not get through is news again, and older."""
        self._sent.pop(upload.round, None)
        self._news = self._news + self._discounted(upload)

    def adopt(self, model: DiscountedModel) -> None:
        """W_sync, W~_sync and b_sync are everybody's; all that has been sent is in them."""
        self._synchronised = DiscountedSums(model.W, model.W_tilde, model.b)
        self._last, self._sent = self._turn, {}
        self._version, self._behind = model.version, model.known
        self.note("model", version=model.version, round=model.round)


ALGORITHM = Algorithm(
    name="discounted_dis_lin_ucb",
    agent=DiscountedDisLinUCB,
    server="coband.server.linear.discounted_dis_lin_ucb:DiscountedDisLinUCBServer",
    config=DiscountedDisLinConfig,
    summary="Linear bandit for worlds that drift: DisLinUCB where agents and server discount old pulls.",
    reference="ours; D-LinUCB of Russac et al. 2019 with the protocol of Wang et al. 2020",
    needs=Needs(waits_for_all="wait == 'all'"),
    messages=(
        *OPENING,
        MessageSize(DiscountedUpload, "up", "2*d^2 + d + 1", "from each agent", due=True),
        MessageSize(DiscountedModel, "down", "2*d^2 + d", "to all", due=True),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "rounds*N*(2*d^2 + d + 1)", "wait == 'all'"),
        ClosedForm("downlink_scalars", "rounds*N*(2*d^2 + d)"),
    ),
    cites=("russac2019weighted", "wang2020distributed"),
    search={"threshold": "0.1..1000", "gamma": "0.9..0.9999"},
    always={"threshold": 0.0},
)
