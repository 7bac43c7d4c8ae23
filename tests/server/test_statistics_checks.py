"""What servers keep is the sum of what came, and the check of it sees when it is not."""

import re
from collections.abc import Callable
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any
from unittest import mock

import numpy as np
import pytest

from coband.extensions.conformance.runs import algorithm, plan_of, problem_of, run, world
from coband.server.common.sums import SquaresCheck
from coband.simulator.core.engine import Engine
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.linalg.gram import Downdate, Gram, ScaledIdentity
from coband.simulator.maths.posteriors.dictionary import Statistics
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge


def server_of(name: str, **config: Any) -> Any:
    """The server of two agents that have not said anything yet."""
    plan = plan_of({"agents": {"count": 2}, "schedule": {"kind": "rounds", "turns": 30}, "network": {}})
    entry = algorithm(name)
    return Engine(plan, entry, entry.config.model_validate(config), world(problem_of(name), 0, 2), Streams(0)).server


INTERLEAVED = {"threshold": 0.5, "server": {"exchanges": "interleaved"}}
DELAYS: dict[str, Any] = {"network": {"latency": {"kind": "uniform", "high": 3.0}}}


Uploads = list[tuple[int, Any]]


def scale_statistics(server: Any, uploads: Uploads) -> None:
    server.statistics = Statistics(1.001 * server.statistics.A, server.statistics.b)


def move_rewards(server: Any, uploads: Uploads) -> None:
    server.statistics = Statistics(server.statistics.A, server.statistics.b + 1e-3)


def add_a_row(server: Any, uploads: Uploads) -> None:
    server.sums.add(Gram(np.full((1, 3), 0.01)))


def discount_the_squares_once_more(server: Any, uploads: Uploads) -> None:
    server.sums = replace(server.sums, W_tilde=0.999 * server.sums.W_tilde)


def count_one_more(server: Any, uploads: Uploads) -> None:
    server._pulls = 81


def scale_the_last_projection(server: Any, uploads: Uploads) -> None:
    source, message = uploads.pop()
    uploads.append((source, replace(message, v=1.001 * message.v)))


CASES: dict[str, tuple[str, dict[str, Any], Callable[[Any, Uploads], None], str]] = {
    "async": ("async_kernel_ucb", {"threshold": 0.5}, scale_statistics, "the server's A is not the sum of the"),
    "async b": ("async_kernel_ucb", {"threshold": 0.5}, move_rewards, "the server's b is not the sum of the"),
    "interleaved": ("async_kernel_ucb", INTERLEAVED, scale_statistics, "the server's A is not the sum of the"),
    "approx": ("approx_dis_kernel_ucb", {"threshold": 0.5}, scale_statistics, "A of version"),
    "dis_lin": ("dis_lin_ucb", {"threshold": 0.5}, add_a_row, "W is not the sum of the"),
    "discounted": ("discounted_dis_lin_ucb", {}, discount_the_squares_once_more, "W_tilde is not the sum of the"),
    "fed_lin": ("fed_lin_ucb", {"threshold": 0.5}, add_a_row, "W is not the sum of the"),
    "async_lin": ("async_lin_ucb", {"gamma_u": 1.5}, add_a_row, "W is not the sum of the"),
    "async_lin count": ("async_lin_ucb", {"gamma_u": 1.5}, count_one_more, "the sums count 81 pulls"),
    "fed_glb": ("fed_glb_ucb", {"threshold": 0.5, "max_rounds": 2}, add_a_row, "W is not the sum of the"),
    "duets": ("duets", {}, scale_the_last_projection, "(lam I + Z^T Z) vbar is not the sum of the"),
}


def inspected(name: str, config: dict[str, Any]) -> tuple[Any, Uploads]:
    """A server after a run, and the uploads that it took in, as the run's last check is told them."""
    place = Registry.installed().algorithms[name].server
    assert place is not None
    with mock.patch.object(resolve_name(place), "discrepancies", return_value=()) as check:
        result = run(name, config, agents=4, schedule={"kind": "rounds", "turns": 20}, **DELAYS)
    (uploads,) = check.call_args.args
    return result.engine.server, list(uploads)


@pytest.mark.parametrize("case", CASES)
def test_statistics_that_are_not_the_sum_of_the_uploads_are_seen(case: str) -> None:
    name, config, tamper, sentence = CASES[case]
    server, uploads = inspected(name, config)
    assert server.rounds > 1
    assert list(server.discrepancies(uploads)) == []
    tamper(server, uploads)
    (found,) = server.discrepancies(uploads)
    assert found.startswith(sentence)


@pytest.mark.parametrize("name", ["bpe", "duets"])
def test_an_active_set_that_is_empty_or_grows_is_seen(name: str) -> None:
    server: Any = run(name, {"beta": 0.3}, agents=2, schedule={"kind": "rounds", "turns": 30}).engine.server
    left = server.active
    assert list(server.broken_invariants()) == []
    server.active = np.arange(len(left) + 1)
    assert list(server.broken_invariants()) == [
        f"{len(left) + 1} points of {len(left)} are left in version {server.rounds}"
    ]
    server.active = left[:0]
    assert list(server.broken_invariants()) == [f"0 points of {len(left) + 1} are left in version {server.rounds}"]


def test_interleaved_exchanges_did_overlap() -> None:
    _, taken = inspected("async_kernel_ucb", INTERLEAVED)
    uploads = [message for _, message in taken if message.kind == "upload"]
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


def test_rounding_errors_of_a_matrix_of_squares_are_no_violation() -> None:
    """1e-8 (1 + the largest entry or eigenvalue) is allowed for, whether that is small or large."""
    nearly = np.array([[1e-3, 5e-9], [0.0, 1e-3]])
    assert list(SquaresCheck().violations(nearly, 1)) == []
    assert list(SquaresCheck().violations(np.array([1e6, -1e-3]), 1)) == []
    assert list(SquaresCheck().violations(np.array([[1e6, 1e-3], [0.0, 1e6]]), 1)) == []
    assert list(SquaresCheck().violations(np.array([1e-3, -1.5e-8]), 1)) == [
        "the server's sum of squares of version 1 has the eigenvalue -1.5e-08 < 0"
    ]


def test_the_check_of_growth_has_the_ridge_parameter_of_the_agents() -> None:
    """A = (lam/c_mu) I + W: log det is that of I + W c_mu/lam."""
    config = {"threshold": 0.5, "max_rounds": 2, "lam": 0.3, "c_mu": 0.2}
    server: Any = run("fed_glb_ucb", config, agents=2, schedule={"kind": "rounds", "turns": 10}).engine.server
    W = server.sums.gram.dense()
    assert np.trace(W) > 1.0
    gain = np.linalg.slogdet(np.eye(len(W)) + W * 0.2 / 0.3)[1]
    server.version = 0
    (found,) = server.broken_invariants()
    said = re.match(r"log det fell from (\S+) \(version", found)
    assert said is not None
    assert float(said[1]) == pytest.approx(gain)


def test_log_det_and_versions_do_not_fall() -> None:
    check = SquaresCheck(lam=1.0)
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
    W, b = local.news(1)
    local.update(Observations(np.array([[0.0, 2.0]]), np.array([3.0])))
    assert (np.asarray(W).tolist(), b.tolist()) == ([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    local.clear()
    assert local.size == 1
    W, b = local.news(2)
    assert (np.asarray(W).tolist(), b.tolist()) == ([[0.0, 0.0], [0.0, 4.0]], [0.0, 6.0])
    assert local.news(3)[1].tolist() == [0.0, 0.0]
    local.clear()
    assert isinstance(W, Gram)
    local.restore(2, W, b)
    mean, squares = local.predict(np.eye(2))
    assert mean.tolist() == pytest.approx([0.0, 6.0 / 5.0])
    assert squares.tolist() == pytest.approx([1.0, 1.0 / 5.0])


@pytest.mark.parametrize(
    "W",
    [
        Gram(np.eye(3), 2.0 * np.eye(3)),
        Gram(np.empty((0, 3)), ScaledIdentity(3, 2.0)),
        Downdate(np.full((1, 3), 0.1), np.eye(3)),
    ],
    ids=["rows and base", "base", "downdate"],
)
@pytest.mark.parametrize("name", ["dis_lin_ucb", "fn_ucb"])
def test_a_matrix_enters_the_sum_with_all_that_it_is_made_of(name: str, W: Gram) -> None:
    server = server_of(name, **({"width": 2, "duplicate_input": False, "init": "normal"} if name == "fn_ucb" else {}))
    p = server.B.size if name == "fn_ucb" else 3
    before, after = Gram(np.ones((2, p))), Gram(2.0 * np.ones((1, p)))
    uploads = [before, W.padded(p), after]
    if name == "fn_ucb":
        server._add_up([mock.Mock(W=matrix, B=np.zeros(p)) for matrix in uploads])
    else:
        for matrix in uploads:
            server.sums.add(matrix)
    total = server.statistics if name == "fn_ucb" else server.sums.gram
    assert total.dense() == pytest.approx(sum((matrix.dense() for matrix in uploads), start=np.zeros((p, p))))


def test_log_det_may_fall_by_a_rounding_error() -> None:
    """1e-8 (1 + log det) is allowed for, also where log det is small."""
    check = SquaresCheck(lam=1.0)
    assert list(check.violations(np.array([1e-3]), 1)) == []
    assert list(check.violations(np.array([1e-3 - 5e-9]), 2)) == []
    assert len(list(check.violations(np.array([1e-3 - 5e-8]), 3))) == 1
