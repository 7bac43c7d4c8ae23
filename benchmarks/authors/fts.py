"""FTS-DE against github.com/daizhongxiang/Differentially-Private-Federated-Bayesian-Optimization
(``COBAND_DP_FTS_DE_CODE``: a checkout).

The program's server is a script with data of its own, so that averages are ours on both sides. Its agents' search of a
continuous domain is replaced by a loop over coband's arms with their own score of each, and their first points are
random arms of their region. What stands in for GPy keeps the kernel. Both draw by themselves, so that runs differ.
Means are compared in small worlds, CPU seconds also at the program's sizes: 100 features, 1000 points in a search.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.authors import compared, program, timed
from coband.extensions.conformance.runs import algorithm, world
from coband.simulator.arrays import FloatArray

AGENTS, TURNS = 6, 25
SMALL, PROGRAM = (30, 60), (100, 1000)
"""Features and arms."""
CONFIG: dict[str, Any] = {"length_scale": 0.2, "variance": 1.0, "noise_variance": 0.01, "initial": 5, "constant": 5}
GPY = {"rbf.lengthscale": "length_scale", "rbf.variance": "variance", "Gaussian_noise.variance": "noise_variance"}
Found = tuple[float, int, float]
"""Regret, scalars, CPU seconds."""


def problem(points: int) -> dict[str, Any]:
    """A function of an RKHS on points of the square."""
    domain = {"kind": "box", "dimension": 2, "points": points}
    reward = {"kind": "rkhs", "kernel": {"kind": "gaussian", "length_scale": 0.2}}
    return {"kind": "fixed_domain", "domain": domain, "reward": reward, "noise": 0.1}


def ours(size: tuple[int, int], seed: int) -> Found:
    """A run."""
    config, schedule = {**CONFIG, "features": size[0]}, {"kind": "rounds", "turns": TURNS}
    result, seconds = timed("fts_de", config, problem(size[1]), AGENTS, schedule, seed)
    return result.regret, int(result.totals["scalars"]), seconds


class Kept:
    """What stands in for a Gaussian process of GPy: its parameters stay, whatever is done to what it gives."""

    def __init__(self, *given: Any) -> None:
        """Nothing depends on them."""

    def __getitem__(self, name: str) -> FloatArray:
        return np.array([CONFIG[GPY[name]]])

    def set_XY(self, **data: Any) -> None:  # noqa: N802  as GPy calls it
        """Nothing depends on them."""


class Domain:
    """The world as the program's agents see it: they choose arms, and are told rewards."""

    def __init__(self, points: int, seed: int) -> None:
        self._world = world(problem(points), seed, AGENTS)
        self.X, self.regret = np.array(self._world.arms(0, 1)), 0.0
        self._turns, self._arm = [0] * AGENTS, 0

    def search(self, ac: Any, M: int, random_features: Any, w_sample: Any, bounds: Any, partitions: Any) -> FloatArray:
        """The program's search, over arms; a shift of no size, since it replaces points that come again."""
        parts = {"M": M, "random_features": random_features, "w_sample": w_sample, "partitions": partitions}
        self._arm = int(np.argmax([float(ac(x.reshape(1, -1), parts)) for x in self.X]))
        return np.asarray(self.X[self._arm] + 1e-12 * (1 + sum(self._turns)))

    def begin(self, agent: Any, index: int, arms: list[int]) -> None:
        """The first points of an agent."""
        agent.X, agent.Y = self.X[arms], np.array([self.pull(index, arm) for arm in arms])
        agent.initialized = True

    def pull(self, agent: int, arm: int | None = None) -> float:
        """A pull; of the arm that was found last where none is given."""
        self._turns[agent] += 1
        reward, regret = self._world.pull(agent, self._turns[agent], self._arm if arm is None else arm)
        self.regret += regret
        return reward


def theirs(code: Any, size: tuple[int, int], seed: int) -> Found:
    """A run of the program's agents, with our averages."""
    config: Any = algorithm("fts_de").config.model_validate(CONFIG)
    domain, M, initial = Domain(size[1], seed), size[0], config.initial
    np.random.seed(seed)  # noqa: NPY002  the program draws from the global stream
    rng, started, scalars = np.random.default_rng(seed), time.process_time(), 0
    code.acq_max = domain.search
    s, b = rng.standard_normal((M, 2)) / config.length_scale, rng.uniform(0, 2 * np.pi, M)
    shared = {"M": M, "s": s, "b": b, "v_kernel": config.variance, "obs_noise": config.noise_variance}
    halves = [np.array([[a / 2, (a + 1) / 2], [b / 2, (b + 1) / 2]]) for a in range(2) for b in range(2)]
    bounds, pt = {"x1": (0, 1), "x2": (0, 1)}, 1 - 1 / (np.arange(TURNS) + 1)
    given = {"M": M, "N": AGENTS, "random_features": shared, "pt": pt, "M_target": M, "partitions": halves}
    regions, agents = config.regions_of(domain.X), []
    for n in range(AGENTS):
        agent = code.dp_fts_de(lambda x, agent: domain.pull(agent), bounds, 10**9, partition_assignment=n % 4, **given)
        arms = rng.choice(np.flatnonzero(regions == n % 4), initial).tolist()
        agent.init = lambda points, index, agent=agent, arms=arms: domain.begin(agent, index, arms)
        agents.append(agent)
    averages: Any = None
    for round in range(TURNS - initial + 1):
        more = {"init_points": initial, "all_w_t": averages, "init_flag": round == 0}
        with contextlib.redirect_stdout(io.StringIO()):
            draws = np.array([np.squeeze(one.maximize(agent_ind=n, **more)) for n, one in enumerate(agents)])
        averages = list(config.shares(AGENTS, 2, round + 1) @ draws)
        scalars += draws.size + AGENTS * sum(one.size for one in averages)
    return domain.regret, scalars, time.process_time() - started


def main(worlds: int = 40) -> int:
    """Compare; 1 if something is not equivalent."""
    gpy: Any = sys.modules.setdefault("GPy", ModuleType("GPy"))
    gpy.models, gpy.kern = SimpleNamespace(GPRegression=Kept), SimpleNamespace(RBF=lambda **given: None)
    repository = "daizhongxiang/Differentially-Private-Federated-Bayesian-Optimization"
    code = program("COBAND_DP_FTS_DE_CODE", repository, "bayesian_optimization_dp_fts_de.py")
    ours(SMALL, worlds)  # imports what a run needs
    for size, worlds_of in ((PROGRAM, 3), (SMALL, worlds)):
        pairs = [(ours(size, seed), theirs(code, size, seed)) for seed in range(worlds_of)]
        print(f"{AGENTS} agents, {TURNS} turns, {size[1]} arms of the square, M = {size[0]}")
        alike = compared(pairs, "regret", "scalars")
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
