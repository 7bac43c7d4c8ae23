"""FedUCB: "Differentially-Private Federated Linear Bandits" (Dubey and Pentland 2020), algorithm 1, with a server.
As printed: `tests/oracles/fed_ucb.py`. Next: `fed_ucb_estimator.py`, `messages/linear.py`, `server/linear/fed_ucb.py`.

DisLinUCB with a privatiser at every agent (`maths.private_sums`): in a synchronisation an agent sends the sums of all
of its pulls with noise, and goes on with what the server has added up, M sums shifted by 2 Y I each. An agent asks for
a synchronisation when (t - t_last) (log det(V + M (rho_max - rho_min) I) - log det S) >= D, with S the synchronised sum
and V = S + its pulls since then. One whose pulls have all been sent sends the same numbers once more.

Only the sums are private. When an agent asks depends on its pulls, which the paper's proof leaves out (Zhou and
Chowdhury 2024, who also dispute its bounds on regret and communication; none is declared here for that reason).
The authors' public code shifts every entry in place of the diagonal, takes b for V^(-1) b, and has no agents that talk.
"""

from __future__ import annotations

import numpy as np

from coband.agents.common.parameters import Synchronous
from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.linear.fed_ucb_estimator import Estimator, PrivateConfig, State, TreeNoise
from coband.agents.messages.linear import PrivateModel, PrivateSums
from coband.agents.messages.synchronisation import SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.core.nodes.own_noise import OwnNoise
from coband.simulator.metrics import CLIPPED


class FedUcbConfig(PrivateConfig, Synchronous):
    """Parameters of FedUCB."""


class FedUCB(SynchronousAgent):
    """The client's side."""

    model = PrivateModel

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FedUcbConfig = context.config
        self.estimator = Estimator(self.config, self.config.calibration(context), context.agents, context.rng)
        self._given: dict[int, State] = {0: self.estimator.own}  # own pulls that the server has from each round on
        self._last = 0  # the round of those in the model

    @property
    def pulls_in_model(self) -> int:
        """Those of the last synchronisation, and its own since then."""
        return self._behind + self.estimator.fresh

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + beta ||x||_(V^-1)."""
        return self.best(self.estimator.scores(arms.features))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull; ask for a synchronisation when the gain reaches D."""
        self.unshared += 1
        gain = self.estimator.learn(arms.features[arm], reward)
        return [] if self._requested or exceeds(self.config.threshold, gain) else self.request(gain)

    def upload(self, start: SyncStart) -> PrivateSums:
        """All own pulls so far, with noise."""
        W, b = self.estimator.release()
        self.releases, self._given[start.round] = self.estimator.privatiser.released, self.estimator.own
        return PrivateSums(W=W, b=b, pulls=self.unshared, version=start.version, round=start.round)

    def take_back(self, upload: PrivateSums) -> None:
        """What did not get through is in no model; what was sent before it is."""
        earlier = [round for round in self._given if round < upload.round]
        if earlier and upload.round in self._given:
            self._given[upload.round] = self._given[earlier[-1]]
        self.estimator.known = self._given[self._last]

    def adopt(self, model: PrivateModel) -> None:
        """S and s are everybody's, with the own pulls of the last upload that is in them."""
        *earlier, self._last = (round for round in self._given if round <= model.round)
        oldest = earlier[-1] if earlier else 0  # stays, since the last one may come back
        self._given = {round: given for round, given in self._given.items() if round >= oldest}
        self.estimator.follow(np.column_stack([model.W, model.b]), self._given[self._last])
        self._version, self._behind = model.version, model.known
        self.note("model", version=model.version, round=model.round)

    def report(self) -> dict[str, float | int]:
        return {"clipped": self.estimator.clipped}


def noise_of(context: NodeContext) -> OwnNoise:
    """That of an agent's sums."""
    return TreeNoise(context.config.calibration(context))


ALGORITHM = Algorithm(
    name="fed_ucb",
    agent=FedUCB,
    server="coband.server.linear.fed_ucb:FedUcbServer",
    config=FedUcbConfig,
    summary="Linear bandit; all agents sum their statistics, each of them under differential privacy.",
    reference="Dubey and Pentland 2020, FedUCB, algorithm 1",
    needs=Needs(horizon=True, waits_for_all="wait == 'all'"),
    messages=(
        *OPENING,
        MessageSize(PrivateSums, "up", "d^2 + d", "from each agent", due=True),
        MessageSize(PrivateModel, "down", "d^2 + d", "to all", due=True),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "rounds*N*(d^2 + d)", "wait == 'all'"),
        ClosedForm("downlink_scalars", "rounds*N*(d^2 + d)"),
    ),
    metrics=(CLIPPED,),
    cites=("dubey2020differentially", "shariff2018differentially"),
    search={"threshold": "0.1..1000"},
    rate=(
        "none that stands: Zhou and Chowdhury 2024 find the bound of Dubey and Pentland 2020 on regret incorrect, and "
        "the one on communication unfounded"
    ),
    always={"threshold": 0.0},
    private=noise_of,
)
