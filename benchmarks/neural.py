"""FN-UCB, and training alone."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Cases, Measured, alike, plan, seconds, simulated
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.neural.network import Network
from coband.simulator.maths.neural.training import Descent, Task
from coband.simulator.problems.contextual import ContextualProblem
from tests.oracles import fn_ucb

ARMS = {"kind": "sphere", "dimension": 10, "count": 4}
SPHERE = ContextualProblem.model_validate(
    {"kind": "contextual", "arms": ARMS, "reward": {"kind": "cosine"}, "noise": 0.01}
)


def trained(turns: int) -> Measured:
    """FN-UCB with training, two agents and the settings of the published code, against the oracle's loops."""
    config = {"init": "normal", "alpha_start": 3, "train_when": "alpha"}
    parameters = Registry.installed().algorithms["fn_ucb"].config.model_validate(config)
    asked, streams = plan(2, {"kind": "rounds", "turns": turns}), Streams(0)
    fast, result = seconds(lambda: simulated("fn_ucb", config, lambda streams: SPHERE.build(streams, 2), asked))
    slow, expected = seconds(
        lambda: fn_ucb.run([[0, 1]] * turns, SPHERE.build(streams, 2), None, parameters, streams.coin, 2), 1
    )
    return Measured(slow, fast, alike(expected, result), f"{1e3 * fast / turns:.1f} ms a round")


def training_floor(points: int) -> Measured:
    """Thirty steps against their matrix products alone (a ratio near 1 is good)."""
    network, rng = Network(10, 20), np.random.default_rng(0)
    X, theta = rng.standard_normal((points, 10)), network.initial(rng)
    task, descent = Task(theta, theta, X, np.cos(X[:, 0])), Descent(network, 30, 0.01, 0.1)
    W, inputs, back = np.ones((20, 10)), np.ascontiguousarray(task.X.T), np.ones((20, points))
    forward, gradient, last = np.empty((20, points)), np.empty((20, 10)), np.ones(20)

    def products() -> None:
        for _ in range(30):
            np.matmul(W, inputs, out=forward)
            residual = last @ forward
            np.matmul(forward, residual)
            np.matmul(back, task.X, out=gradient)

    floor, _ = seconds(products, 5)
    whole, _ = seconds(lambda: descent(task), 5)
    return Measured(whole, floor, True, "textbook column: the training; fast column: its matrix products")


CASES: Cases = {
    "fn_trained": (lambda: trained(12), "FN-UCB with 30 training steps a round, N=2, T=12; target 20"),
    "training_floor": (
        lambda: training_floor(2000),
        "a network's training, n=2000, against its matrix products; target at most 4",
    ),
}
