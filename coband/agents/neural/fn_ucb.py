"""FN-UCB: "Federated Neural Bandits" (Dai et al. 2023), algorithm 1; algorithm 2 is the server's.
As printed: `tests/oracles/fn_ucb.py`. Next: `fn_ucb_network.py`, `messages/neural.py`, `server/neural/fn_ucb.py`.

What the text and the published code say, and what is ours:

* theta_sync is the average of the weights (``average``), and a training starts from the agent's own last ones (appendix
  E). ``average: none`` and ``best`` and ``train_from: averaged`` are ours.
* ``lam`` is 0.1, where line 1 has 1 + 2/T, and ``train: public`` the loss of the published code, where line 14 has
  that of eq. 1 (``train: paper``).
* ``init: normal`` (weights and biases N(0, 1), unscaled output, plain gradients) is what the published curves were
  made with; ``init: paper`` is appendix B.
* In the published code all networks are one storage: theta_0, every agent's network and the aggregate. Agents train it
  in turn, the features drift with it, and averaging has no effect. ``networks: shared_storage`` does the same;
  ``networks: separate`` is the paper's algorithm, and has clearly higher regret for N >= 2.
* The published code trains only once alpha > 0 (``train_when: alpha``), has alpha = 0 for three rounds
  (``alpha_start: 3``) and takes a point into the training set only in rounds that communicate and train
  (``training_points: communicated``): n, and with it the decay of the weights lam/n, begins at the first training.
* A training that diverges is undone (`networks`).
* With diagonal matrices the predicted means are rescaled to [0, 1] over the arms of a turn (footnote 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.messages.neural import NeuralModel, NeuralUpload
from coband.agents.messages.synchronisation import SyncStart
from coband.agents.neural.fn_ucb_network import FnUcbConfig, Training
from coband.agents.neural.networks import METRICS, enter
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import repeat_alike
from coband.simulator.maths.linalg.quadratic_forms import quadratic
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import Ridge
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, RidgeVersion, SynchronisedRidge


@dataclass(frozen=True, eq=False)
class Looked:
    """Arm sets of one shape: inputs X (N, n, d), features G (N, n, p), and scores (N, n) by what is known."""

    X: FloatArray
    G: FloatArray
    scores: dict[Ridge, FloatArray] = field(default_factory=dict)


class FnUcb(SynchronousAgent):
    """The client's side; comments give the lines of algorithm 1."""

    model = NeuralModel
    kept = ("_x", "_g")

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: FnUcbConfig = context.config
        self.config = config
        self.nets = Training(context)
        p = self.nets.network.size
        start = context.sharing.get("start", lambda: RidgeVersion(ridge(p, config.lam, config.diagonal)))
        self._synchronised = SynchronisedRidge(start)
        self._ridge = LocalRidge(self._synchronised)
        self.local = ridge(p, config.lam, config.diagonal)
        prior = self.local.inverse()
        self._inverses: tuple[Gram | FloatArray, ...] = (prior,) * (1 if config.less_comm else context.agents)
        self.alpha = 0.0
        self._turn = self._last_turn = 0
        self._offered = GrowingRows(self.nets.network.inputs)

    def choose(self, arms: ArmSet) -> int:
        """Lines 4 to 7: the arm with the largest (1 - alpha) UCB a + alpha UCB b."""
        return self._choose(self._looked_at([arms])[arms])

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        """The same for several agents, whose arms are looked at in one pass."""
        slices = agents[0]._looked_at(arm_sets)
        return [agent._choose(slices[arms]) for agent, arms in zip(agents, arm_sets, strict=True)]

    def _looked_at(self, arm_sets: Sequence[ArmSet]) -> dict[ArmSet, tuple[Looked, int]]:
        """Inputs and features of arm sets, those of one shape in one stack; and the slice of each.

        numpy multiplies a stack of matrices slice by slice, so a slice has the bits that it has alone.
        """
        shapes: dict[tuple[int, ...], dict[ArmSet, None]] = {}
        for arms in arm_sets:
            shapes.setdefault(arms.features.shape, {})[arms] = None
        found: dict[ArmSet, tuple[Looked, int]] = {}
        for sets in shapes.values():
            X = enter(self.config, np.array([arms.features for arms in sets]))
            looked = Looked(X, self.nets.network.features(self.nets.theta_0, X))
            found.update({arms: (looked, place) for place, arms in enumerate(sets)})
        return found

    def _choose(self, looked_at: tuple[Looked, int]) -> int:
        looked, mine = looked_at
        X, G = looked.X[mine], looked.G[mine]
        if self._ridge.has_news or self.config.average == "none":
            scores = self._scores(X, G)
        else:  # what it knows is the last synchronisation, and that is common knowledge
            ridge = self._synchronised.ridge
            if ridge not in looked.scores:
                looked.scores[ridge] = self._scores(looked.X, looked.G)
            scores = looked.scores[ridge][mine]
        repeat_alike(scores[:, None], X)
        if self.config.alpha == "theory" and self._offered.size < self.config.alpha_points:
            self._offered.append(X[: self.config.alpha_points - self._offered.size])
        arm = self.best(scores)
        self._x, self._g = X[arm], G[arm]
        return arm

    def _ucb_a(self, G: FloatArray) -> FloatArray:
        """Line 5: linear UCB on the features, with the news of all agents up to the last synchronisation."""
        mean, variance = self._ridge.predict(G)
        if self.config.diagonal:
            mean = rescaled(mean)
        return mean + self.config.nu * np.sqrt(self.config.lam * variance)

    def _ucb_b(self, X: FloatArray, G: FloatArray) -> FloatArray:
        """Line 6: the network's value and the average deviation under all agents' local data."""
        theta = self.nets.theta_own if self.config.average == "none" else self.nets.theta_sync
        widths = [np.sqrt(quadratic(G, inverse)) for inverse in self._inverses]
        width = widths[0] if len(widths) == 1 else np.mean(widths, axis=0)
        bound: FloatArray = self.nets.network.values(theta, X) + self.config.nu2 * np.sqrt(self.config.lam) * width
        return bound

    def _scores(self, X: FloatArray, G: FloatArray) -> FloatArray:
        """Line 7 for inputs X (..., n, d) with features G (..., n, p), shape (..., n)."""
        weight = {"both": self.alpha, "a_only": 0.0, "b_only": 1.0}[self.config.use]
        if not weight:
            return self._ucb_a(G)
        return (1.0 - weight) * self._ucb_a(G) + weight * self._ucb_b(X, G)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 9 to 12: add the pull; ask for a synchronisation when (t - t_last) * gain exceeds D."""
        self._turn += 1
        self.unshared += 1
        self._ridge.update(Observations(self._g[None], np.array([reward])))
        self.local.add_squares(self._g[None])
        self.nets.add(self._x, reward)
        if self.config.alpha == "schedule":
            self.nets.announce(self._turn, self._own_alpha())
        gain = (self._turn - self._last_turn) * self._ridge.gain(self.config.trigger)
        if self._requested or not (exceeds(gain, self.config.threshold) or self.config.threshold == 0.0):
            return []
        return self.request(gain)

    def upload(self, start: SyncStart) -> NeuralUpload:
        """Lines 14 to 16: train, and send what is new."""
        alpha = self._own_alpha()
        theta = self.nets.train(self._turn, alpha)
        W, B = self._ridge.news(start.round)
        return NeuralUpload(
            W=W,
            B=B,
            theta=theta,
            loss=self.nets.loss() if self.config.average == "best" else None,
            alpha=alpha,
            inverse=self.local.inverse(),
            pulls=self.unshared,
            version=start.version,
            round=start.round,
        )

    def _own_alpha(self) -> float:
        """Line 15."""
        config = self.config
        if config.use == "a_only":
            return 0.0
        if config.alpha == "schedule":
            return min(1.0, max(0, self._turn - config.alpha_start) / config.alpha_ramp)
        if not self._offered.size:
            return 0.0
        G = self.nets.network.features(self.nets.theta_0, self._offered.all)
        sigmas = np.sqrt(self.local.variance(G))
        return float(sigmas.min() / sigmas.max()) if sigmas.max() > 0 else 0.0

    def take_back(self, upload: NeuralUpload) -> None:
        """W_new and B_new of an upload that did not get through are news again."""
        self._ridge.restore(upload.round, upload.W, upload.B)

    def adopt(self, message: NeuralModel) -> None:
        """Lines 17 and 18."""
        self._synchronised.follow(message.version, message.W, message.B)
        self._ridge.clear()
        if self.config.networks == "separate":
            self.nets.theta_sync = message.theta
        self.alpha, self._inverses = message.alpha, message.inverses
        self._last_turn, self._version = self._turn, message.version
        self.note("model", version=message.version, round=message.round)

    def report(self) -> dict[str, float | int]:
        return self.nets.restarts.report()


def rescaled(values: FloatArray) -> FloatArray:
    """Values (..., n) moved to [0, 1] along the last axis; 0 where all are equal."""
    spread: FloatArray = values - values.min(axis=-1, keepdims=True)
    height = spread.max(axis=-1, keepdims=True)
    return spread / np.where(height > 0.0, height, 1.0)


ALGORITHM = Algorithm(
    name="fn_ucb",
    agent=FnUcb,
    server="coband.server.neural.fn_ucb:FnUcbServer",
    config=FnUcbConfig,
    summary="Federated neural bandit: linear UCB on tangent features of all agents, and an averaged network.",
    reference="Dai et al. 2023, algorithms 1 and 2 (FN-UCB, FN-UCB (Less Comm.))",
    needs=Needs(waits_for_all="wait == 'all'"),
    messages=(
        *OPENING,
        MessageSize(NeuralUpload, "up", "2*p^2 + 2*p + 1 + extra", "from each agent", "not diagonal", due=True),
        MessageSize(NeuralUpload, "up", "4*p + 1 + extra", "from each agent", "diagonal", due=True),
        MessageSize(NeuralModel, "down", "2*p^2 + 2*p + 1", "to all", "less_comm and not diagonal"),
        MessageSize(NeuralModel, "down", "4*p + 1", "to all", "less_comm and diagonal"),
        MessageSize(NeuralModel, "down", "p^2 + 2*p + 1 + answered*p^2", "to all", "not less_comm and not diagonal"),
        MessageSize(NeuralModel, "down", "3*p + 1 + answered*p", "to all", "not less_comm and diagonal"),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "rounds*N*(2*p^2 + 2*p + 1 + extra)", "not diagonal"),
        ClosedForm("uplink_scalars", "rounds*N*(4*p + 1 + extra)", "diagonal"),
        ClosedForm("downlink_scalars", "rounds*N*(2*p^2 + 2*p + 1)", "less_comm and not diagonal"),
        ClosedForm("downlink_scalars", "rounds*N*(4*p + 1)", "less_comm and diagonal"),
        ClosedForm("downlink_scalars", "rounds*N*((N + 1)*p^2 + 2*p + 1)", "not less_comm and not diagonal"),
        ClosedForm("downlink_scalars", "rounds*N*((N + 3)*p + 1)", "not less_comm and diagonal"),
        ClosedForm("rounds", "T / N", "threshold == 0 and schedule == 'rounds'"),
    ),
    where={
        "extra": "1 if average == 'best' else 0",
        "inputs": "2*d if duplicate_input or (duplicate_input == None and init == 'paper') else d",
        "biases": "(layers - 1)*width + 1 if init == 'normal' else 0",
        "p": "width*inputs + (layers - 2)*width^2 + width + biases",
    },
    metrics=METRICS,
    cites=("dai2023federated",),
    search={"threshold": "0.1..1000", "nu": "0.001..3"},
    rate=(
        "regret Õ(D √T + D_max √(N T)), with less_comm Õ(D √T + D_max N √T), in Õ(D √N) communication rounds, "
        "where D is the effective dimension of all contexts and D_max the largest of one agent's "
        "(Dai et al. 2023, theorems 1 and 2, appendix C.7)"
    ),
    always={"threshold": 0.0},
    knows=("storage",),  # with networks: shared_storage alone
    undefended={"average == 'best'": "its server takes one agent's network as it was sent, and no mean of all"},
)
