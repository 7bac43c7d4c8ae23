"""Batched pure exploration: the run is the pseudo-code, counts are closed forms, all nodes find the same batches."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from coband.agents.kernel.bpe import BpeConfig
from coband.extensions.conformance.runs import Run, run
from coband.server.kernel.bpe import BpeServer
from coband.simulator.arms import ArmSet
from coband.simulator.maths.exploration.bpe import Batch, batch_lengths
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors.finite_domain import Domain
from tests.agents.beside import assert_equal, beside
from tests.agents.test_duets import LATENCY, ROUNDS, random_case
from tests.every import every
from tests.oracles import bpe as oracle

SMALL: dict[str, Any] = {"kernel": {"kind": "gaussian", "length_scale": 0.6}, "beta": 0.3}


@cache
def solved(case: int) -> tuple[Run, oracle.BpeRun]:
    """A random case of DUETS with the parameters of this algorithm."""
    plan, config = random_case(case)
    config = {key: config[key] for key in ("kernel", "beta", "lam")}
    config |= {"share": "nothing" if case % 4 == 3 else "rewards", "horizon": [1000, None, 5, None, None][case % 5]}
    return beside("bpe", oracle, config, plan)


@every("case", range(16))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    simulated, expected = solved(case)
    assert_equal(simulated, expected)
    assert [agent.active.tolist() for agent in simulated.engine.agents] == expected.active  # type: ignore[attr-defined]


def test_the_random_cases_reach_what_they_are_meant_to_test() -> None:
    results = [solved(case)[0].result for case in range(16)]
    assert max(result.rounds for result in results) >= 2
    left = [result.totals["points_left"] for result in results]
    assert min(left) == 1
    assert any(1 < points < 20 for points in left)


def test_batch_lengths() -> None:
    assert batch_lengths(50) == (8, 20, 22)
    assert batch_lengths(1000) == (32, 179, 424, 365)
    assert batch_lengths(1) == (1,)
    assert batch_lengths(0) == (0,)
    for horizon in range(1, 400):
        assert list(batch_lengths(horizon)) == oracle.batches(horizon)


def test_every_node_trims_alike() -> None:
    result = run("bpe", SMALL, agents=5, schedule=ROUNDS, network=LATENCY)
    server = result.engine.server
    assert isinstance(server, BpeServer)
    masks = [agent.active for agent in result.engine.agents]  # type: ignore[attr-defined]
    assert len({mask.tobytes() for mask in [*masks, server.active]}) == 1
    assert 0 < len(server.active) < 40


def test_equal_points_are_one_point() -> None:
    """Variances and sums are those of distinct points; the one of the lowest number is pulled, all copies are kept."""
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    domain = Domain(Gaussian(length_scale=0.5), ArmSet.fixed(X))
    batch = Batch(domain, np.arange(4), 0.2)
    assert [batch.arm(place) for place in range(4)] == [0, 1, 0, 1]
    assert batch.sums(np.array([1.0, 2.0, 3.0, 5.0])).tolist() == [4.0, 7.0]
    assert batch.kept(4, np.array([4.0, 7.0]), 0.0).tolist() == [1, 3]
    assert batch.kept(4, np.array([4.0, 7.0]), 100.0).tolist() == [0, 1, 2, 3]


def test_beta_of_theory_by_hand() -> None:
    """|U| = 200, 3 batches."""
    expected = 2.5 + 0.3 * math.sqrt(2 / 0.6 * math.log(2 * 200 * 3 / 0.05))
    assert BpeConfig(beta="theory", delta=0.05, B=2.5, R=0.3, lam=0.6).width(200, 3) == pytest.approx(expected)
    assert BpeConfig(beta=0.7).width(200, 3) == 0.7
