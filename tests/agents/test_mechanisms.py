"""One mechanism of a protocol each, pinned so that what it computes differs as soon as the mechanism does: what is
given back when an exchange is given up, and whose statistics a synchronisation without everyone adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coband.agents.async_kernel_ucb import Exchange
from coband.agents.messages.asynchronous import Upload
from coband.agents.messages.linear import LinearUpload
from coband.agents.messages.synchronisation import LocalStatistics, SyncAbandoned, SyncStart
from coband.server.approx_dis_kernel_ucb import ApproxDisKernelUCBServer
from coband.server.async_kernel_ucb import AsyncKernelUCBServer
from coband.server.synchronisation import MessageBuffer
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.conformance.runs import FIXED_PROBLEM, Run, run
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.node import SERVER
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.linalg.gram import Gram
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


# --- uploads over older dictionaries


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
    collect, add = ApproxDisKernelUCBServer.collect, ApproxDisKernelUCBServer._sum_up

    def collected(self: ApproxDisKernelUCBServer, message: Any, source: int) -> Any:
        if isinstance(message, LocalStatistics):
            last[source] = message.round, message.A
        return collect(self, message, source)

    def summed(self: ApproxDisKernelUCBServer) -> Any:
        nonlocal moved
        new = points[self.version + 1] = self.points
        expected = np.zeros((len(new), len(new)))
        for agent, (round, A) in last.items():
            answered = self.has_answered(agent)
            assert answered == (round == self.version + 1)
            expected += A if answered else over(new, points[round], A)
            moved += not answered
        outbox = add(self)
        np.testing.assert_allclose(self.statistics.A, expected, atol=1e-7)
        return outbox

    monkeypatch.setattr(ApproxDisKernelUCBServer, "collect", collected)
    monkeypatch.setattr(ApproxDisKernelUCBServer, "_sum_up", summed)
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
    take_in = AsyncKernelUCBServer._add_upload

    def taken(self: AsyncKernelUCBServer, agent: int, upload: Any) -> Any:
        nonlocal moved
        before, known = self.statistics.A, self._sizes[upload.version]
        size = len(self._points)
        old = np.concatenate([self._points[:known], upload.points])
        answer = take_in(self, agent, upload)
        assert np.array_equal(self._points[size:], upload.points)
        expected = np.zeros((len(self._points), len(self._points)))
        expected[:size, :size] = before
        expected += over(self._points, old, upload.A)
        np.testing.assert_allclose(self.statistics.A, expected, atol=1e-6)
        moved += size > known
        return answer

    monkeypatch.setattr(AsyncKernelUCBServer, "_add_upload", taken)
    config = {"kernel": {"kind": "gaussian", "gamma": 0.8}, "threshold": 1.5, "q": 1.0}
    network = {"latency": {"kind": "uniform", "low": 1.0, "high": 6.0}}
    run("async_kernel_ucb", config, agents=4, seed=seed, network=network, schedule={"kind": "rounds", "turns": 12})
    assert moved > 2


def test_late_messages_stay_in_the_order_of_their_arrival_and_others_in_that_of_the_agents() -> None:
    messages = [LinearUpload(W=Gram(np.ones((1, 2))), b=np.full(2, float(number))) for number in range(5)]
    buffer: MessageBuffer[LinearUpload] = MessageBuffer(3)
    buffer.add_late(messages[3])
    assert [buffer.add(agent, messages[agent]) for agent in (2, 0, 1)] == [False, False, True]
    buffer.add_late(messages[4])
    assert buffer.stored == [messages[place] for place in (3, 4, 0, 1, 2)]
    assert buffer.take_late() == [messages[3], messages[4]]
    assert buffer.take() == messages[:3]
    assert buffer.stored == []


@pytest.mark.parametrize("repeats", ["keep", "drop"])
def test_a_point_that_is_sampled_again_stands_twice_or_once(repeats: str) -> None:
    problem = {**FIXED_PROBLEM, "domain": {"kind": "ball", "dimension": 3, "points": 4}}
    config = {"threshold": 0.2, "q": 1e9, "repeats": repeats}
    server: Any = run("async_kernel_ucb", config, problem=problem).engine.server
    distinct = len(np.unique(server._points, axis=0))
    assert (distinct == len(server._points)) == (repeats == "drop")


# --- points that arrive twice


def test_a_point_that_is_known_already_does_not_keep_back_the_next_one() -> None:
    """Two early points: one that was asked for again and came in the meantime, and the next one of the log."""
    agent: Any = run("one_kernel_ucb", {}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    known, point = agent._known, Observations(np.ones((1, agent.context.dimension)), np.ones(1))
    agent._early = {known - 1: (agent._settled, point), known: (agent._settled, point)}
    assert agent._line_up() == []
    assert (agent._known, agent._early) == (known + 1, {})


# --- exactly at a limit


def test_approx_dis_asks_for_a_synchronisation_when_variances_exceed_the_threshold_and_not_at_it() -> None:
    """Without data every pull has variance 1, so that three of them come to exactly 3."""
    config = {"kernel": {"kind": "gaussian", "gamma": 0.8}, "threshold": 3.0, "lam": 1.0}
    result = run("approx_dis_kernel_ucb", config, agents=1, schedule={"kind": "rounds", "turns": 6})
    first = result.events(tr.TRIGGER)[0]
    assert (first.time, first.version) == (4.0, 0)


def test_an_upload_that_is_given_up_after_its_exchange_makes_its_data_new_again() -> None:
    agent: Any = run("async_kernel_ucb", {}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    lost = Observations(np.full((2, agent.context.dimension), 0.5), np.array([1.0, 2.0]))
    before, variance, unshared = agent._new.since(0), agent._new_variance, agent.unshared
    agent._exchange, agent._unsettled = None, {7: Exchange(new=lost, variance=0.25, number=3, round=7)}
    points, empty = np.empty((0, agent.context.dimension)), np.empty(0)
    upload = Upload(points=points, rewards=empty, A=np.empty((0, 0)), b=empty, round=7, pulls=2)
    assert agent.undelivered(upload, SERVER) == []
    assert (agent.unshared, agent._unsettled) == (unshared + 2, {})
    assert agent._new_variance == variance + 0.25
    np.testing.assert_array_equal(agent._new.since(0).rewards, [1.0, 2.0, *before.rewards])


# --- what could not be sent


def test_a_point_that_could_not_be_sent_goes_with_the_next_one_and_not_again() -> None:
    agent: Any = run("one_kernel_ucb", {}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    arms = ArmSet(np.eye(agent.context.dimension))
    ((_, lost),) = agent.observe(arms, 0, 0.5)
    assert agent.unreachable(lost, SERVER) == []
    sent = [[message.position for _, message in agent.observe(arms, 1, 0.5)] for _ in range(2)]
    assert sent == [[lost.position, lost.position + 1], [lost.position + 2]]


@pytest.mark.parametrize("abandoned", [False, True])
def test_an_answer_that_did_not_come_through_goes_with_that_to_the_next_synchronisation(abandoned: bool) -> None:
    """It is new again as soon as the synchronisation has ended, or another one has begun."""
    config = {"threshold": 1e9}
    agent: Any = run("dis_lin_ucb", config, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.agents[0]
    ((_, first),) = agent.receive(SyncStart(round=1), SERVER)
    assert agent.undelivered(first, SERVER)  # it will be sent again
    assert agent.is_wanted(first, SERVER)
    if abandoned:
        assert agent.receive(SyncAbandoned(round=1), SERVER) == []
        assert not agent.is_wanted(first, SERVER)
    ((_, second),) = agent.receive(SyncStart(round=2), SERVER)
    assert np.trace(first.W.dense()) > 0.0
    np.testing.assert_allclose(second.W.dense(), first.W.dense())
    np.testing.assert_allclose(second.b, first.b)
    assert not agent.is_wanted(first, SERVER)
