"""What servers keep is the sum of what came, and the check of it sees when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coband.server.sums import GrowthCheck, SquaresCheck
from coband.simulator.conformance.runs import Run, run
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.maths.posteriors.statistics import Statistics
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge

INTERLEAVED = {"threshold": 0.5, "server": {"exchanges": "interleaved"}}
DELAYS: dict[str, Any] = {"network": {"latency": {"kind": "uniform", "high": 3.0}}}


def scale_statistics(server: Any) -> None:
    server.statistics = Statistics(1.001 * server.statistics.A, server.statistics.b)


def move_rewards(server: Any) -> None:
    server.statistics = Statistics(server.statistics.A, server.statistics.b + 1e-3)


def add_a_row(server: Any) -> None:
    server.sums.add(Gram(np.full((1, 3), 0.01)))


CASES: dict[str, tuple[str, dict[str, Any], Callable[[Any], None], str]] = {
    "async": ("async_kernel_ucb", {"threshold": 0.5}, scale_statistics, "the server's A is not the sum of the"),
    "async b": ("async_kernel_ucb", {"threshold": 0.5}, move_rewards, "the server's b is not the sum of the"),
    "interleaved": ("async_kernel_ucb", INTERLEAVED, scale_statistics, "the server's A is not the sum of the"),
    "approx": ("approx_dis_kernel_ucb", {"threshold": 0.5}, scale_statistics, "A of version"),
    "dis_lin": ("dis_lin_ucb", {"threshold": 0.5}, add_a_row, "W is not the sum of the"),
    "fed_lin": ("fed_lin_ucb", {"threshold": 0.5}, add_a_row, "W is not the sum of the"),
    "fed_glb": ("fed_glb_ucb", {"threshold": 0.5, "max_rounds": 2}, add_a_row, "W is not the sum of the"),
    "duets": ("duets", {}, lambda server: server._vbar.__imul__(1.001), "(lam I + Z^T Z) vbar is not the sum of the"),
}


def taken(result: Run) -> Any:
    assert result.engine._inspection is not None
    return result.engine._inspection._uploads


@pytest.mark.parametrize("case", CASES)
def test_statistics_that_are_not_the_sum_of_the_uploads_are_seen(case: str) -> None:
    name, config, tamper, sentence = CASES[case]
    result = run(name, config, agents=4, schedule={"kind": "rounds", "turns": 20}, **DELAYS)
    server = result.engine.server
    assert server is not None
    assert server.rounds > 1
    assert list(server.discrepancies(taken(result))) == []
    tamper(server)
    (found,) = server.discrepancies(taken(result))
    assert found.startswith(sentence)


def test_interleaved_exchanges_did_overlap() -> None:
    result = run("async_kernel_ucb", INTERLEAVED, agents=4, schedule={"kind": "rounds", "turns": 20}, **DELAYS)
    uploads = [message for _, message in taken(result) if message.kind == "upload"]
    assert sum(upload.version != number for number, upload in enumerate(uploads)) > 3


def test_a_matrix_of_squares_is_symmetric_and_has_no_negative_eigenvalue() -> None:
    check = SquaresCheck("A")
    assert list(check.violations(np.array([[1.0, 0.5], [0.4, 1.0]]), 1)) == [
        "the server's A of version 1 is not symmetric"
    ]
    assert list(check.violations(np.array([[1.0, 2.0], [2.0, 1.0]]), 2)) == [
        "the server's A of version 2 has the eigenvalue -1 < 0"
    ]
    assert list(check.violations(-np.eye(2), 2)) == []  # has been looked at
    assert list(check.violations(np.empty((0, 0)), 3)) == []


def test_log_det_and_versions_do_not_fall() -> None:
    check = GrowthCheck(1.0)
    assert list(check.violations(np.eye(2), 2)) == []
    assert list(check.violations(3.0 * np.eye(2), 1)) == [
        "log det fell from 1.38629436 (version 2) to 2.77258872 (version 1)"
    ]
    assert list(check.violations(np.eye(3), 3)) == [
        "log det fell from 2.77258872 (version 1) to 2.07944154 (version 3)"
    ]


def test_news_are_given_out_once_and_outlast_a_model_that_does_not_know_them() -> None:
    local = LocalRidge(SynchronisedRidge(RidgeRegression(2, 1.0)))
    local.update(Observations(np.array([[1.0, 0.0]]), np.array([1.0])))
    W, b = local.news()
    local.update(Observations(np.array([[0.0, 2.0]]), np.array([3.0])))
    assert (np.asarray(W).tolist(), b.tolist()) == ([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    local.clear()
    assert local.size == 1
    W, b = local.news()
    assert (np.asarray(W).tolist(), b.tolist()) == ([[0.0, 0.0], [0.0, 4.0]], [0.0, 6.0])
    assert local.news()[1].tolist() == [0.0, 0.0]
    local.clear()
    assert isinstance(W, Gram)
    local.restore(W, b)
    mean, squares = local.predict(np.eye(2))
    assert mean.tolist() == pytest.approx([0.0, 6.0 / 5.0])
    assert squares.tolist() == pytest.approx([1.0, 1.0 / 5.0])
