"""FN-UCB: "Federated Neural Bandits" (paper 002), algorithm 1; the server's side (algorithm 2) is ``server.fn_ucb``.

What the text and the published code say, and what is ours:

* theta_sync is the average of the weights (``average``), and a training starts from the agent's own last ones (appendix
  E). ``average: none`` and ``best`` and ``train_from: averaged`` are ours.
* ``init: normal`` (weights and biases N(0, 1), unscaled output, plain gradients) is what the published curves were
  made with; ``init: paper`` is appendix B.
* In the published code all networks are one storage: theta_0, every agent's network and the aggregate. Agents train it
  in turn, the features drift with it, and averaging has no effect. ``networks: shared_storage`` does the same;
  ``networks: separate`` is the paper's algorithm, and has clearly higher regret for N >= 2.
* The published code trains only once alpha > 0 (``train_when: alpha``), has alpha = 0 for three rounds
  (``alpha_start: 3``) and takes a point into the training set only in rounds that communicate and train
  (``training_points: communicated``): n, and with it the decay of the weights lam/n, begins at the first training.
* A training that diverges is undone (``agents.restarts``).
* With diagonal matrices the predicted means are rescaled to [0, 1] over the arms of a turn (footnote 4; ``rescale``).
"""

from __future__ import annotations

import math

import numpy as np

from coband.agents import theorems
from coband.agents.fn_ucb_parameters import FnUcbConfig
from coband.agents.memory import NEURAL
from coband.agents.messages.neural import NeuralModel, NeuralUpload
from coband.agents.messages.synchronisation import SyncAbandoned, SyncRequest, SyncStart
from coband.agents.neural_parameters import enter
from coband.agents.restarts import METRICS, Restarts
from coband.agents.synchronisation import ABANDONED, SynchronousAgent
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, NodeContext, Outbox
from coband.simulator.maths.linalg.arm_batches import ArmBatches
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.quadratic_forms import quadratic
from coband.simulator.maths.neural.training import Task, TrainingPool
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, RidgeVersion, SynchronisedRidge


class FnUcb(SynchronousAgent):
    """The client's side; comments give the lines of algorithm 1."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: FnUcbConfig = context.config
        self.config = config
        self.network = config.network(context.dimension)
        p = self.network.size
        # Line 1. theta_0 comes from a coin that all agents may open, and so is the same for all.
        first = context.sharing.get("theta_0", lambda: self.network.initial(context.open_coin(0)))
        self.theta_0, self._centre = first, first.copy()
        if config.networks == "shared_storage":
            self.theta_0 = context.sharing.common("storage", lambda: first)
        start = context.sharing.get("start", lambda: RidgeVersion(ridge(p, config.lam, config.diagonal)))
        self._synchronised = SynchronisedRidge(start)
        self._ridge = LocalRidge(self._synchronised)
        self._arm_batches = context.sharing.get("offers", ArmBatches)
        self._pool = context.sharing.get("pool", lambda: TrainingPool(config.descent(self.network)))
        self.local = ridge(p, config.lam, config.diagonal)
        prior = self.local.inverse()
        self._inverses: tuple[Gram | FloatArray, ...] = (prior,) * (1 if config.less_comm else context.agents)
        self.theta_own = self.theta_sync = self.theta_0
        self.alpha = 0.0
        self._turn = self._last_turn = self._version = 0
        self._model: NeuralModel | None = None
        self._data = GrowingObservations(self.network.inputs)
        self._restarts = Restarts()
        self._newest: tuple[FloatArray, float] | None = None
        self._offered = GrowingRows(self.network.inputs)

    @property
    def weight(self) -> float:
        """Weight of UCB b in choosing."""
        return {"both": self.alpha, "a_only": 0.0, "b_only": 1.0}[self.config.use]

    def prefetch(self, arms: ArmSet) -> None:
        """Have the arms of the next turn looked at together with those of other agents."""
        self._arm_batches.prefetch(arms)

    def choose(self, arms: ArmSet) -> int:
        """Lines 4 to 7: the arm with the largest (1 - alpha) UCB a + alpha UCB b."""
        stack, mine = self._arm_batches.find(arms)
        X = stack.ask("inputs", lambda: enter(self.config, stack.X))
        G = stack.ask("features", lambda: self.network.features(self.theta_0, X))
        self._offer(X[mine])
        if self._ridge.has_news or self.config.average == "none":
            arm = self.best(self._scores(X[mine], G[mine]))
        else:  # what it knows is the last synchronisation, and that is common knowledge
            arm = self.best(stack.ask(("scores", self._synchronised.ridge), lambda: self._scores(X, G))[mine])
        self._x, self._g = X[mine, arm], G[mine, arm]
        return arm

    def _offer(self, X: FloatArray) -> None:
        if self.config.alpha == "theory" and self._offered.size < self.config.alpha_points:
            self._offered.append(X[: self.config.alpha_points - self._offered.size])

    def _scores(self, X: FloatArray, G: FloatArray) -> FloatArray:
        """Line 7 for inputs X (..., n, d) with features G (..., n, p), shape (..., n)."""
        weight = self.weight
        if not weight:
            return self._ucb_a(G)
        return (1.0 - weight) * self._ucb_a(G) + weight * self._ucb_b(X, G)

    def _ucb_a(self, G: FloatArray) -> FloatArray:
        """Line 5: linear UCB on the features, with the news of all agents up to the last synchronisation."""
        mean, variance = self._ridge.predict(G)
        if self.config.diagonal if self.config.rescale is None else self.config.rescale:
            mean = rescaled(mean)
        bound: FloatArray = mean + self.config.nu * np.sqrt(self.config.lam * variance)
        return bound

    def _ucb_b(self, X: FloatArray, G: FloatArray) -> FloatArray:
        """Line 6: the network's value and the average deviation under all agents' local data."""
        theta = self.theta_own if self.config.average == "none" else self.theta_sync
        widths = [np.sqrt(quadratic(G, inverse)) for inverse in self._inverses]
        width = widths[0] if len(widths) == 1 else np.mean(widths, axis=0)
        bound: FloatArray = self.network.values(theta, X) + self.config.nu2 * np.sqrt(self.config.lam) * width
        return bound

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 9 to 12: add the pull; ask for a synchronisation when (t - t_last) * gain exceeds D."""
        self._turn += 1
        self.unshared += 1
        self._ridge.update(Observations(self._g[None], np.array([reward])))
        self.local.add_squares(self._g[None])
        self._newest = (self._x, reward)
        if self.config.training_points == "all":
            self._data.append(*self._newest)
            self._announce()
        gain = (self._turn - self._last_turn) * self._ridge.gain(self.config.trigger)
        if self._requested or not (gain > self.config.threshold or self.config.threshold == 0.0):
            return []
        return self.request(gain)

    def receive(self, message: Message, source: Address) -> Outbox:
        """Train and upload when a synchronisation starts; take in its result when it ends."""
        if isinstance(message, SyncStart):
            return [(SERVER, self._upload(message))]
        self.resume()
        if isinstance(message, NeuralModel):
            self._adopt(message)
        else:
            assert isinstance(message, SyncAbandoned)
        return []

    def take_back(self, message: Message) -> None:
        """W_new and B_new of an upload that did not get through are news again."""
        assert isinstance(message, NeuralUpload)
        self._ridge.restore(message.W, message.B)

    def _upload(self, message: SyncStart) -> NeuralUpload:
        """Lines 14 to 16."""
        self.take_part(message)
        alpha = self._own_alpha()
        newest, self._newest = self._newest, None
        if self.config.training_points == "communicated" and newest is not None and self._training_is_due(alpha):
            self._data.append(*newest)
        self._train(alpha)
        theta = self.theta_own
        if self.config.networks == "shared_storage":
            theta = theta.copy()
        W, B = self._ridge.news()
        pulls, self.unshared = self.unshared, 0
        return NeuralUpload(
            W=W,
            B=B,
            theta=theta,
            loss=self._loss() if self.config.average == "best" else None,
            alpha=alpha,
            inverse=self.local.inverse(),
            pulls=pulls,
            version=message.version,
            round=message.round,
        )

    def _loss(self) -> float:
        """Mean squared error of the agent's network on its training set; infinite without data.

        The decay of the weights is left out: it weighs less the more data an agent has.
        """
        if not self._data.size:
            return math.inf
        errors = self.network.values(self.theta_own, self._data.points) - self._data.rewards
        loss = float(np.mean(errors * errors))
        return loss if math.isfinite(loss) else math.inf

    def _own_alpha(self) -> float:
        """Line 15."""
        config = self.config
        if config.use == "a_only":
            return 0.0
        if config.alpha == "schedule":
            return min(1.0, max(0, self._turn - config.alpha_start) / config.alpha_ramp)
        if not self._offered.size:
            return 0.0
        G = self.network.features(self.theta_0, self._offered.all)
        sigmas = np.sqrt(self.local.variance(G))
        return float(sigmas.min() / sigmas.max()) if sigmas.max() > 0 else 0.0

    def _announce(self) -> None:
        """Tell the pool what would be trained if a synchronisation began now."""
        config = self.config
        if config.networks == "separate" and config.alpha == "schedule" and self._trains(self._own_alpha()):
            self._pool.announce(self.context.index, self._task())

    def _trains(self, alpha: float) -> bool:
        return bool(self._data.size) and self._training_is_due(alpha)

    def _training_is_due(self, alpha: float) -> bool:
        """A network that is never asked is not trained."""
        config = self.config
        if config.use == "a_only" or self._turn > config.train_until:
            return False
        return config.train_when == "always" or alpha > 0

    def _task(self) -> Task:
        start = self.theta_own if self.config.train_from == "own" else self.theta_sync
        return Task(start, self._centre, self._data.points, self._data.rewards)

    def _train(self, alpha: float) -> None:
        """Line 14."""
        if not self._trains(alpha):
            return
        trained = self._restarts.checked(self._pool.train(self.context.index, self._task()), self._centre)
        if self.config.networks == "shared_storage":
            self.theta_0[:] = trained
        else:
            self.theta_own = trained

    def report(self) -> dict[str, float | int]:
        """How often its network started again."""
        return self._restarts.report()

    def _adopt(self, message: NeuralModel) -> None:
        """Lines 17 and 18."""
        self._synchronised.follow(message.version, message.W, message.B)
        self._ridge.clear()
        if self.config.networks == "separate":
            self.theta_sync = message.theta
        self._model, self.alpha, self._inverses = message, message.alpha, message.inverses
        self._last_turn, self._version = self._turn, message.version
        self.note("model", version=message.version, round=message.round)


def rescaled(values: FloatArray) -> FloatArray:
    """Values (..., n) moved to [0, 1] along the last axis; 0 where all are equal."""
    spread: FloatArray = values - values.min(axis=-1, keepdims=True)
    height = spread.max(axis=-1, keepdims=True)
    return spread / np.where(height > 0.0, height, 1.0)


ALGORITHM = Algorithm(
    name="fn_ucb",
    agent=FnUcb,
    server="coband.server.fn_ucb:FnUcbServer",
    config=FnUcbConfig,
    summary="Federated neural bandit: linear UCB on tangent features of all agents, and an averaged network.",
    reference="paper 002, algorithms 1 and 2 (FN-UCB, FN-UCB (Less Comm.))",
    messages=(
        MessageSize(SyncRequest, "up", "0"),
        MessageSize(SyncStart, "down", "0", "to all"),
        MessageSize(NeuralUpload, "up", "2*p^2 + 2*p + 1 + extra", "from each agent", "not diagonal"),
        MessageSize(NeuralUpload, "up", "4*p + 1 + extra", "from each agent", "diagonal"),
        MessageSize(NeuralModel, "down", "2*p^2 + 2*p + 1", "to all", "less_comm and not diagonal"),
        MessageSize(NeuralModel, "down", "4*p + 1", "to all", "less_comm and diagonal"),
        MessageSize(NeuralModel, "down", "p^2 + 2*p + 1 + N*p^2", "to all", "not less_comm and not diagonal"),
        MessageSize(NeuralModel, "down", "3*p + 1 + N*p", "to all", "not less_comm and diagonal"),
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
    search={"threshold": "0.1..1000"},
    bounds=theorems.FN_UCB,
    always={"threshold": 0.0},
    memory=(NEURAL,),
)
