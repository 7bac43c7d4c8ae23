"""One mechanism of a protocol each, pinned so that what it computes differs as soon as the mechanism does: what is
given back when an exchange is given up, and whose statistics a synchronisation without everyone adds."""

from typing import Any

import numpy as np
import pytest

from coband.agents.kernel.async_kernel_ucb import AsyncKernelUCB
from coband.agents.messages.asynchronous import Upload
from coband.agents.messages.synchronisation import LocalStatistics, SyncAbandoned, SyncStart
from coband.extensions.conformance.runs import FIXED_PROBLEM, Run, run
from coband.server.kernel.approx_dis_kernel_ucb import ApproxDisKernelUCBServer
from coband.server.kernel.async_kernel_ucb import AsyncKernelUCBServer
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.nodes.outbox import Silence
from coband.simulator.core.records import trace as tr
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors.observations import Observations
from tests.agents.test_quorum import SLOW

CUT_OFF: dict[str, Any] = {
    "partitions": [{"start": 0.0, "end": 30.5, "groups": [[0]]}],
    "latency": 0.01,
    "retransmission": {"timeout": 0.1, "max_attempts": 1},
}
KERNEL = Gaussian(gamma=0.8)


def cut_off(agents: int = 1, turns: int = 40) -> Run:
    config = {"kernel": {"kind": "gaussian", "gamma": 0.8}, "threshold": 3.0}
    return run("async_kernel_ucb", config, agents=agents, network=CUT_OFF, schedule={"kind": "rounds", "turns": turns})


def test_the_variance_of_an_exchange_that_was_given_up_counts_for_the_next_one() -> None:
    """Without data every pull has variance 1: the fourth exceeds the threshold 3, and so does every sum after it."""
    result = cut_off()
    triggers = [row for row in result.events(tr.TRIGGER) if row.time < 30.5]
    assert [row.time for row in triggers] == [float(turn) for turn in range(4, 31)]
    assert [float(row.detail or 0) for row in triggers] == pytest.approx(list(range(4, 31)))


def test_the_data_of_an_exchange_that_was_given_up_go_with_the_next_one_in_their_order() -> None:
    result = cut_off()
    first = result.events(tr.APPLY)[0]
    assert (first.time, float(first.detail or 0)) == (pytest.approx(31.03), 31.0)
    server: Any = result.engine.server
    assert server.applied + result.engine.agents[0].unshared == 40


def roots(points: FloatArray) -> FloatArray:
    """L with K = L L^T, from the definition."""
    return np.linalg.cholesky(KERNEL(points, points))


def over(new: FloatArray, old: FloatArray, A: FloatArray) -> FloatArray:
    """A over the points ``old`` in the coordinates of ``new``: with T = L_old^-1 K L_new^-T it is T^T A T."""
    T = np.linalg.solve(roots(old), KERNEL(old, new)) @ np.linalg.inv(roots(new)).T
    moved: FloatArray = T.T @ A @ T
    return moved


@pytest.mark.parametrize("seed", range(3))
def test_the_last_statistics_of_late_agents_are_moved_from_their_dictionary_to_the_new_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each synchronisation: A is the sum over all agents of the last A of each, over the newest dictionary."""
    points: dict[int, FloatArray] = {}
    last: dict[int, tuple[int, FloatArray]] = {}
    moved = 0
    keep, add = ApproxDisKernelUCBServer.keep, ApproxDisKernelUCBServer._add_previous_statistics

    def kept(self: ApproxDisKernelUCBServer, message: LocalStatistics, agent: int) -> None:
        last[agent] = message.round, message.A
        keep(self, message, agent)

    def summed(self: ApproxDisKernelUCBServer, answered: Any) -> None:
        nonlocal moved
        new = points[self.version + 1] = self.points
        expected = np.zeros((len(new), len(new)))
        for agent, (round, A) in last.items():
            assert (agent in answered) == (round == self.version + 1)
            expected += A if agent in answered else over(new, points[round], A)
            moved += agent not in answered
        add(self, answered)
        np.testing.assert_allclose(self.statistics.A, expected, atol=1e-7)

    monkeypatch.setattr(ApproxDisKernelUCBServer, "keep", kept)
    monkeypatch.setattr(ApproxDisKernelUCBServer, "_add_previous_statistics", summed)
    config = {
        "threshold": 0.3,
        "lam": 0.5,
        "kernel": {"kind": "gaussian", "gamma": 0.8},
        "wait": {"quorum": 0.5, "timeout": 2.0},
    }
    run("approx_dis_kernel_ucb", config, agents=4, seed=seed, schedule={"kind": "rounds", "turns": 25}, agent=SLOW)
    assert moved > 2


@pytest.mark.parametrize("seed", range(3))
def test_an_upload_over_an_older_dictionary_is_moved_to_the_newest_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The points that others added meanwhile come before those of the upload."""
    moved = 0
    take_in = AsyncKernelUCBServer.add

    def taken(self: AsyncKernelUCBServer, upload: Upload, agent: int) -> Any:
        nonlocal moved
        before, known = self.statistics.A, self._sizes[upload.version]
        size = len(self._points)
        old = np.concatenate([self._points[:known], upload.points])
        answer = take_in(self, upload, agent)
        assert np.array_equal(self._points[size:], upload.points)
        expected = np.zeros((len(self._points), len(self._points)))
        expected[:size, :size] = before
        expected += over(self._points, old, upload.A)
        np.testing.assert_allclose(self.statistics.A, expected, atol=1e-6)
        moved += size > known
        return answer

    monkeypatch.setattr(AsyncKernelUCBServer, "add", taken)
    config = {"kernel": {"kind": "gaussian", "gamma": 0.8}, "threshold": 1.5, "q": 1.0}
    network = {"latency": {"kind": "uniform", "low": 1.0, "high": 6.0}}
    run("async_kernel_ucb", config, agents=4, seed=seed, network=network, schedule={"kind": "rounds", "turns": 12})
    assert moved > 2


@pytest.mark.parametrize("repeats", ["keep", "drop"])
def test_a_point_that_is_sampled_again_stands_twice_or_once(repeats: str) -> None:
    problem = {**FIXED_PROBLEM, "domain": {"kind": "ball", "dimension": 3, "points": 4}}
    config = {"threshold": 0.2, "q": 1e9, "repeats": repeats}
    server: Any = run("async_kernel_ucb", config, problem=problem).engine.server
    distinct = len(np.unique(server._points, axis=0))
    assert (distinct == len(server._points)) == (repeats == "drop")


def test_a_point_that_is_known_already_does_not_keep_back_the_next_one() -> None:
    """Two early points: one that was asked for again and came in the meantime, and the next one of the log."""
    agent: Any = run("one_kernel_ucb", {}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    known, point = agent._known, Observations(np.ones((1, agent.context.dimension)), np.ones(1))
    agent._early = {known - 1: (agent._settled, point), known: (agent._settled, point)}
    agent._line_up()
    assert agent.sent() == []
    assert (agent._known, agent._early) == (known + 1, {})


def test_approx_dis_asks_for_a_synchronisation_when_variances_exceed_the_threshold_and_not_at_it() -> None:
    """Without data every pull has variance 1, so that three of them come to exactly 3."""
    config = {"kernel": {"kind": "gaussian", "gamma": 0.8}, "threshold": 3.0, "lam": 1.0}
    result = run("approx_dis_kernel_ucb", config, agents=1, schedule={"kind": "rounds", "turns": 6})
    first = result.events(tr.TRIGGER)[0]
    assert (first.time, first.version) == (4.0, 0)


def test_an_upload_that_is_given_up_after_its_exchange_makes_its_data_new_again() -> None:
    lossy: dict[str, Any] = {"network": {"loss": 1e-9}, "schedule": {"kind": "rounds", "turns": 3}}
    engine = run("async_kernel_ucb", {"threshold": 0.0}, agents=2, **lossy).engine
    agent, server = engine.agents[0], engine.server
    assert isinstance(agent, AsyncKernelUCB)
    assert isinstance(server, AsyncKernelUCBServer)
    arms = ArmSet(np.eye(agent.context.dimension))
    ((_, request),) = agent.observe(arms, agent.choose(arms), 0.5)
    ((_, model),) = server.receive(request, 0)
    ((_, upload),) = agent.receive(model, SERVER)
    ((_, patience),) = agent.on_timer(Silence(about=SERVER)) or []
    assert agent.on_timer(patience) is not None
    assert (agent.unshared, agent._new.size) == (0, 0)
    assert agent.undelivered(upload, SERVER) == []
    assert (agent.unshared, agent._new.size) == (1, 1)
    assert agent._new_variance > 0.0


def test_a_point_that_could_not_be_sent_goes_with_the_next_one_and_not_again() -> None:
    agent: Any = run("one_kernel_ucb", {}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    arms = ArmSet(np.eye(agent.context.dimension))
    ((_, lost),) = agent.observe(arms, 0, 0.5)
    agent.unshared += lost.pulls  # as where a message is given up
    agent.keep(lost, SERVER)
    sent = [[message.position for _, message in agent.observe(arms, 1, 0.5)] for _ in range(2)]
    assert sent == [[lost.position, lost.position + 1], [lost.position + 2]]


@pytest.mark.parametrize("abandoned", [False, True])
def test_an_answer_that_did_not_come_through_goes_with_that_to_the_next_synchronisation(abandoned: bool) -> None:
    """It is new again as soon as the synchronisation has ended, or another one has begun."""
    config = {"threshold": 1e9}
    agent: Any = run("dis_lin_ucb", config, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    start, end = SyncStart(round=1), SyncAbandoned(round=1)
    vars(start).update(talk=7, asks=1)
    vars(end).update(answers=7)
    ((_, first),) = agent.receive(start, SERVER)
    ((_, resend),) = agent.undelivered(first, SERVER)
    if abandoned:
        assert agent.receive(end, SERVER) == []
    ((_, second),) = agent.receive(SyncStart(round=2), SERVER)
    assert np.trace(first.W.dense()) > 0.0
    np.testing.assert_allclose(second.W.dense(), first.W.dense())
    np.testing.assert_allclose(second.b, first.b)
    assert agent.on_timer(resend) is None
