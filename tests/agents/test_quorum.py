"""Synchronous servers that do not wait for everyone: what is late is taken in by the next synchronisation, once."""

from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.neural import NeuralUpload
from coband.extensions.conformance import kit
from coband.extensions.conformance.runs import Run, batches, run
from coband.server.neural.fn_ucb import FnUcbServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.records import trace as tr
from tests.core.hosts.test_faults import CHURN, EVERYTHING
from tests.every import every
from tests.everyday import slow

ALGORITHMS: dict[str, dict[str, Any]] = {  # the first word is the algorithm's name
    "approx_dis_kernel_ucb": {"threshold": 0.3, "lam": 0.5},
    "dis_kernel_ucb": {"threshold": 1.0},
    "dis_lin_ucb": {"threshold": 1.0},
    "discounted_dis_lin_ucb": {"threshold": 1.0, "gamma": 0.9},
    "fn_ucb": {"width": 4, "steps": 2, "threshold": 0.3},
    "fn_ucb best": {"width": 4, "steps": 2, "threshold": 0.3, "average": "best", "train_from": "averaged"},
    "fn_ucb none": {"width": 4, "steps": 2, "threshold": 0.3, "average": "none"},
}
SLOW: dict[str, Any] = {"compute": 0.1, "handling": 0.5, "stragglers": {"fraction": 0.25, "slowdown": 30.0}}


@cache
def waiting_for_all(name: str) -> Run:
    return simulate(name, "all", checks="cheap")


def simulate(name: str, wait: Any, seed: int = 0, **parts: Any) -> Run:
    schedule = {"kind": "rounds", "turns": 25}
    config = {**ALGORITHMS[name], "wait": wait}
    return run(name.split()[0], config, agents=4, seed=seed, schedule=schedule, **{"agent": SLOW, **parts})


def uploads_after_the_end(result: Run) -> int:
    """Uploads with pulls that reached the server when their synchronisation was over."""
    finished = late = 0
    for row in result.rows:
        if row.event == tr.APPLY and row.node == -1:
            finished = row.version
        elif (
            row.event == tr.DELIVER and row.node == -1 and result.names[row.kind] in ("points", "statistics", "upload")
        ):
            late += row.round <= finished
    return late


@every("name", ALGORITHMS)
def test_a_quorum_that_is_never_needed_changes_nothing(name: str) -> None:
    patient = simulate(name, {"quorum": 0.5, "timeout": 1e9}, checks="cheap")
    assert patient.result.rounds > 2
    assert patient.result.fingerprint == waiting_for_all(name).result.fingerprint


@every("name", ALGORITHMS)
def test_nobody_waits_for_stragglers_and_what_is_late_counts_once(name: str) -> None:
    late, all_ = simulate(name, {"quorum": 0.75, "timeout": 2.0}), waiting_for_all(name)
    kit.check_complete(late, 100)
    kit.check_ledger(late)
    assert uploads_after_the_end(late) > 0
    assert uploads_after_the_end(all_) == 0
    fast = [
        max(row.time for row in result.events(tr.CHOOSE) if row.node == agent)
        for result in (late, all_)
        for agent in range(4)
    ]
    assert sorted(fast[:4])[2] < 0.7 * sorted(fast[4:])[2]


@every("name", ALGORITHMS)
def test_a_quorum_is_a_share_of_those_that_have_joined(name: str) -> None:
    """One of two, of which the other is slow, while two more have not joined yet."""
    joins = {"joins": {"kind": "times", "times": [[2, 1e6], [3, 1e6]]}}
    late = simulate(name, {"quorum": 0.5, "timeout": 0.5}, seed=1, agent={**SLOW, **joins}, checks="cheap")
    assert uploads_after_the_end(late) > 0


@every("name", ALGORITHMS)
def test_a_quorum_under_all_faults_loses_nothing(name: str) -> None:
    result = simulate(name, {"quorum": 0.5, "timeout": 1.0}, agent=CHURN, network=EVERYTHING)
    kit.check_complete(result, 100)
    kit.check_ledger(result)


def test_the_best_network_is_one_of_those_that_came_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[list[NeuralUpload]] = []
    original = FnUcbServer._theta

    def theta(self: FnUcbServer, uploads: list[NeuralUpload]) -> FloatArray:
        chosen = original(self, uploads)
        smallest = min(upload.loss for upload in uploads if upload.loss is not None)
        assert any(upload.loss == smallest and np.array_equal(upload.theta, chosen) for upload in uploads)
        taken.append(uploads)
        return chosen

    monkeypatch.setattr(FnUcbServer, "_theta", theta)
    late = simulate("fn_ucb best", {"quorum": 0.75, "timeout": 2.0}, checks="cheap")  # full checks have a second server
    assert {len(uploads) for uploads in taken} == {3}
    assert len(taken) == late.result.rounds


GIVING_UP: dict[str, Any] = {
    "latency": {"kind": "uniform", "high": 0.4},
    "loss": 0.5,
    "retransmission": {"timeout": 0.5, "max_attempts": 2},
}
NEEDY: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name.split()[0], config) for name, config in ALGORITHMS.items()},
    **{
        f"{name} quorum": (name.split()[0], {**config, "wait": {"quorum": 0.5, "timeout": 2.0}})
        for name, config in ALGORITHMS.items()
    },
    **{
        f"{name} hasty": (name.split()[0], {**config, "wait": {"quorum": 0.5, "timeout": 0.7}})
        for name, config in ALGORITHMS.items()
    },
    "fed_lin_ucb": ("fed_lin_ucb", {"threshold": 0.3}),
    "fed_lin_ucb blocking": ("fed_lin_ucb", {"threshold": 0.3, "blocking": True}),
    "fed_glb_ucb": ("fed_glb_ucb", {"threshold": 0.5, "max_rounds": 3}),
    "async": ("async_kernel_ucb", {"threshold": 0.5}),
    "async delta": ("async_kernel_ucb", {"threshold": 0.5, "transfer": "delta", "blocking": True}),
    "async interleaved": ("async_kernel_ucb", {"threshold": 0.5, "server": {"exchanges": "interleaved"}}),
    "one_kernel_ucb": ("one_kernel_ucb", {}),
    "duets": ("duets", {}),
    "bpe": ("bpe", {}),
    "fed_pe": ("fed_pe", {}),
    "delb": ("delb", {"C": 0.002}),
    "rclb": ("rclb", {"C": 0.02}),
    "pls": ("pls", {"C": 0.002}),
    "co_kernel_fc": ("co_kernel_fc", {}),
    "co_kernel_fc by server": ("co_kernel_fc", {"via": "server"}),
}


def given_up_and_complete(case: str, seeds: range) -> int:
    """How many messages runs gave up that came to their ends all the same."""
    name, config = NEEDY[case]
    given_up = 0
    for seed in seeds:
        schedule = None if batches(name) else {"kind": "rounds", "turns": 25}
        result = run(name, config, agents=4, seed=seed, schedule=schedule, network=GIVING_UP)
        kit.check_complete(result, None if batches(name) else 100)
        given_up += result.result.audit.given_up
    return given_up


@every("case", [case for case in NEEDY if not {"hasty", "best", "none"} & set(case.split())])
def test_a_message_that_was_given_up_leaves_nobody_waiting(case: str) -> None:
    assert given_up_and_complete(case, range(4, 5)) > 0


@pytest.mark.slow
@every("case", NEEDY)
def test_messages_that_were_given_up_leave_nobody_waiting(case: str) -> None:
    assert given_up_and_complete(case, range(4, 14)) > 0


ADVERSE: list[dict[str, Any]] = [{"agent": CHURN, "network": EVERYTHING}, {"seed": 1, "network": GIVING_UP}]
"""Nodes that come and go, and models that come after the next one."""
HASTY = [*(f"{name} hasty" for name in ALGORITHMS), "fed_glb_ucb"]


@every("case, parts", [pair if place % 3 else slow(pair) for place, pair in enumerate(product(HASTY, ADVERSE))])
def test_sharing_work_changes_nothing(case: str, parts: dict[str, Any]) -> None:
    name, config = NEEDY[case]
    plan = {"agents": 4, "schedule": {"kind": "rounds", "turns": 25}, "checks": "cheap", **parts}
    together, apart = (run(name, config, **plan, share=share) for share in (True, False))
    assert together.result.totals["expired"] > 0 or "agent" in parts
    assert together.result.fingerprint == apart.result.fingerprint
    assert together.pulls == apart.pulls


def test_points_that_were_given_up_and_come_later_keep_their_place() -> None:
    """Every agent's log of a synchronisation is the same: an agent has its own points in the order of its pulls."""
    name, config = NEEDY["dis_kernel_ucb quorum"]
    parts: dict[str, Any] = {"schedule": {"kind": "rounds", "turns": 25}, "network": GIVING_UP, "checks": "cheap"}
    result = run(name, config, agents=4, seed=2, share=False, **parts)
    assert result.result.totals["expired"] > 0
    agents: list[Any] = list(result.engine.agents)
    for agent, other in pairwise(agents):
        common = min(agent.posterior.known, other.posterior.known)
        assert np.array_equal(agent._log.rewards[:common], other._log.rewards[:common])
    assert max(agent.posterior.known for agent in agents) > 20


@every("case", [slow(case) if "hasty" in case else case for case in NEEDY])
def test_a_link_that_is_dead_for_good_keeps_nobody_waiting(case: str) -> None:
    name, config = NEEDY[case]
    result = run(
        name,
        config,
        agents=3,
        schedule=None if batches(name) else {"kind": "rounds", "turns": 20},
        checks="cheap",
        network={
            "latency": 0.1,
            "retransmission": {"timeout": 0.5, "max_attempts": 2},
            "recovery": {"attempts": 3},
            "partitions": [{"start": 0.0 if batches(name) else 5.0, "end": 1e9, "groups": [[0]]}],
        },
    )
    kit.check_complete(result, None if batches(name) else 60)
    assert result.result.audit.given_up > 0
    pulling = max(int(agent["turns"]) for agent in result.result.by_agent) if batches(name) else 0  # one time unit each
    assert result.result.simulated_time < 2000 + pulling
