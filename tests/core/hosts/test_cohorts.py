"""Turns of one instant taken by one event, against an event for each turn: nothing but time may differ."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.agents.alone.lin_ucb import LinUCB
from coband.agents.graph.coop_kernel_ucb import CoopKernelUCB
from coband.agents.graph.dist_kernel_ucb import DistKernelUCB
from coband.extensions.conformance.runs import Run, plan_of, run
from coband.simulator.core.engine import Engine
from coband.simulator.core.hosts.cohort import FEW, Cohort, chooses_together
from coband.simulator.core.nodes.node import Client, Outbox
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.trace import Row, keep
from coband.simulator.maths.posteriors.nystrom import NystromPredictor
from coband.simulator.problems.world import LONGEST_EXPECTED
from tests.core.network.test_local import TALK, Talker, TalkerConfig
from tests.core.toys import ToyWorld
from tests.every import every
from tests.everyday import everyday

LONG = {"kind": "one_at_a_time", "turns": 150}
GAUSSIAN = {"kind": "gaussian", "gamma": 0.5}
ON_GRAPHS = ("coop_kernel_ucb", "eager_kernel_ucb", "naive_coop", "dist_kernel_ucb", "push_gossip_kernel_ucb")
IN_STARS = (
    "async_kernel_ucb dis_kernel_ucb dis_lin_ucb fed_lin_ucb fn_ucb kernel_ts lin_ucb neural_ucb n_kernel_ucb "
    "one_kernel_ucb"
).split()


def problem(rng: np.random.Generator, fixed: bool) -> dict[str, Any]:
    arms = {"kind": "ball", "dimension": 3, "count": int(rng.integers(2, 6))}
    if fixed:
        arms = {"kind": "pool", "size": 5, "dimension": 3}
    elif rng.random() < 0.3:  # repeated points, so that scores are often equal
        arms = {"kind": "pool", "points": [[0.5, 0.0, 0.0]] * 3 + [[0.0, 0.5, 0.1]], "count": 3}
    return {"kind": "contextual", "arms": arms, "reward": {"kind": "cosine"}, "noise": 0.1}


def config_of(name: str, rng: np.random.Generator) -> dict[str, Any]:
    if name in ("fn_ucb", "neural_ucb"):
        return {"width": 4, "steps": 2}
    if name in ("coop_kernel_ucb", "eager_kernel_ucb", "dist_kernel_ucb", "naive_coop"):
        kernel = GAUSSIAN if rng.random() < 0.7 else {"kind": "linear"}
        network = {} if name == "naive_coop" else {"network_kernel": rng.choice([None, "mmd"])}
        posterior = "exact" if rng.random() < 0.7 else {"kind": "nystrom", "size": 8}
        return {"kernel": kernel, "hops": int(rng.integers(1, 3)), "posterior": posterior, **network}
    return {}


def pair(name: str, case: int, **plan: Any) -> tuple[Run, Run]:
    """The same random run with cohorts and without."""
    rng = np.random.default_rng([case, *name.encode()])
    agents = int(rng.choice([2, FEW - 1, FEW, 2 * FEW + 1]))
    network: dict[str, Any] = {}
    if name in ON_GRAPHS:
        p = float(rng.choice([0.2, 0.7, 1.0]))
        network = {"topology": {"kind": "erdos_renyi", "p": p, "connected": False}}
    if rng.random() < 0.4:
        network |= {"latency": {"kind": "uniform", "low": 0.0, "high": 2.5}}
    if rng.random() < 0.3:
        plan["agent"] = {"handling": 0.3}
    parts = {
        "agents": agents,
        "schedule": {"kind": "rounds", "turns": int(rng.integers(4, 15))},
        "problem": problem(rng, name == "dist_kernel_ucb"),
        "network": network,
        "checks": "cheap",
        "ties": str(rng.choice(["random", "first"])),
        "share": bool(rng.random() < 0.8),
        "seed": case,
        **plan,
    }
    config = config_of(name, rng)
    return run(name, config, **parts), run(name, config, **parts, cohorts=False)


def assert_same(one: Run, other: Run) -> None:
    assert one.rows == other.rows
    assert one.names == other.names
    assert one.result.fingerprint == other.result.fingerprint
    for series in ("times", "regret_series", "scalars_series", "turns_series"):
        np.testing.assert_array_equal(getattr(one.result, series), getattr(other.result, series))
    for part in ("totals", "by_agent", "reward", "rounds", "simulated_time", "stalled"):
        assert getattr(one.result, part) == getattr(other.result, part), part
    assert one.result.ledger == other.result.ledger
    assert one.result.audit.copies == other.result.audit.copies
    for part in ("pulls", "times", "events"):
        np.testing.assert_array_equal(getattr(one.result.ages, part), getattr(other.result.ages, part))


@every("case", everyday(2, range(6)))
@every("name", [*ON_GRAPHS, *IN_STARS])
def test_cohorts_change_no_event_of_the_trace_and_no_number(name: str, case: int) -> None:
    assert_same(*pair(name, case))


@every("case", everyday(5, range(20)))
@every("name", ["coop_kernel_ucb", "fn_ucb"])
def test_agents_that_choose_together_choose_as_alone(name: str, case: int) -> None:
    assert_same(*pair(name, 100 + case, share=True))


@every("case", everyday(3, range(12)))
@every("name", ["ucb1", "ucb_odc", "coop_ucb2", "dec_ts", "dec_ucb", "gossip_se"])
def test_agents_with_k_arms_average_and_choose_together_to_the_last_bit(name: str, case: int) -> None:
    averages = not name.startswith("ucb")
    config = {"missing": ("own", "last", "reweigh")[case % 3]} if averages else {}
    network: dict[str, Any] = {"topology": {"kind": "erdos_renyi", "p": 0.4}}
    if case % 2:
        network |= {"latency": {"kind": "uniform", "low": 0.0, "high": 2.5}, "loss": 0.2, "transport": "datagram"}
    parts: dict[str, Any] = {
        "agents": (FEW - 1, 2 * FEW + 1)[case // 2 % 2],
        "schedule": {"kind": "rounds", "turns": 30},
        "problem": {"kind": "k_armed", "arms": 5, "means": {"low": 0.1, "high": 0.9}},
        "network": network,
        "seed": case,
    }
    together, alone = (run(name, config, **parts, checks="cheap", cohorts=cohorts) for cohorts in (True, False))
    assert_same(together, alone)
    for one, other in zip(together.engine.agents, alone.engine.agents, strict=True):
        for values in ("counts", "sums", *(["mass"] if averages else [])):
            np.testing.assert_array_equal(getattr(one, values), getattr(other, values))


@every("threshold", [0.0, 0.5, 3.0])
@every("schedule", [{"kind": "one_at_a_time", "turns": 80}, {"kind": "rounds", "turns": 16}])
@every("network", [{}, {"latency": {"kind": "uniform", "low": 0.0, "high": 4.0}}])
@every("name", ["async_kernel_ucb", "fed_lin_ucb"])
def test_looking_ahead_changes_nothing(
    name: str, threshold: float, schedule: dict[str, Any], network: dict[str, Any]
) -> None:
    kernel = {"kernel": {"kind": "gaussian", "gamma": 1.0}} if name == "async_kernel_ucb" else {}
    parts = {"agents": 5, "schedule": schedule, "network": network, "checks": "cheap"}
    config = {**kernel, "threshold": threshold, "lam": 0.5}
    assert_same(*(run(name, config, **parts, cohorts=cohorts) for cohorts in (True, False)))


def test_turns_are_evaluated_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    scores = NystromPredictor.scores_stack
    monkeypatch.setattr(
        NystromPredictor, "scores_stack", lambda model, X, alpha: (sizes.append(len(X)), scores(model, X, alpha))[1]
    )
    run("async_kernel_ucb", {"kernel": {"kind": "gaussian", "gamma": 1.0}, "threshold": 3.0}, agents=3, schedule=LONG)
    assert sum(sizes) > 90
    assert max(sizes) <= LONGEST_EXPECTED
    sizes.clear()
    run("async_kernel_ucb", {}, agents=3, schedule=LONG, cohorts=False)
    assert not sizes


def test_turns_of_a_file_at_one_time_are_taken_in_order(tmp_path: Path) -> None:
    turns = [(agent, time) for time in (1, 2, 2, 3.5) for agent in range(9) if agent % 2 or time != 3.5]
    turns += [(2, 4), (7, 5)]  # one after the other, though no agent acts twice
    file = tmp_path / "turns.csv"
    file.write_text("agent,time\n" + "".join(f"{agent},{time}\n" for agent, time in turns))
    schedule = {"kind": "trace", "file": str(file)}
    parts = {"agents": 9, "schedule": schedule, "checks": "cheap"}
    together = run("dis_lin_ucb", {}, **parts)
    assert_same(together, run("dis_lin_ucb", {}, **parts, cohorts=False))
    assert [agent for agent, *_ in together.pulls] == [
        agent for _, agent in sorted((time, agent) for agent, time in turns)
    ]


class Mixed(Talker):
    """The agents whose numbers divide by ten say nothing."""

    def observe(self, *turn: Any) -> Outbox:
        said = super().observe(*turn)
        return said if self.context.index % 10 else []


class Lucky(ToyWorld):
    """A world in which one agent does better than the best arm."""

    realised = False

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        return 1.0, -0.5 if agent == 3 else 0.0


def toys(world: ToyWorld, cohorts: bool) -> list[Row]:
    """The trace of two rounds of talkers and others."""
    plan = {
        "agents": {"count": 4 * FEW},
        "schedule": {"kind": "rounds", "turns": 2},
        "network": {"topology": "ring"},
        "checks": "cheap",
        "cohorts": cohorts,
    }
    rows: list[Row] = []
    algorithm = replace(TALK, agent=Mixed)
    Engine(plan_of(plan), algorithm, TalkerConfig(), world, Streams(0), sink=keep(rows)).run()
    return rows


def test_agents_that_say_nothing_may_act_between_those_that_do() -> None:
    rows = toys(ToyWorld(), cohorts=True)
    assert rows == toys(ToyWorld(), cohorts=False)
    senders = {row.node for row in rows if row.event == tr.SEND}
    assert senders == {agent for agent in range(4 * FEW) if agent % 10}


@pytest.mark.parametrize("cohorts", [True, False])
def test_no_regret_of_agents_that_act_at_once_may_be_negative(cohorts: bool) -> None:
    with pytest.raises(InvariantViolation, match=r"pseudo-regret of a turn is -0\.5"):
        toys(Lucky(), cohorts)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many agents each cohort had."""
    sizes: list[int] = []
    tick: Callable[[Cohort, Sequence[Any]], None] = Cohort.tick
    monkeypatch.setattr(Cohort, "tick", lambda cohort, hosts: (sizes.append(len(hosts)), tick(cohort, hosts))[1])
    return sizes


@pytest.mark.parametrize(
    ("plan", "used"),
    [
        ({}, True),
        ({"share": False}, True),
        ({"network": {"latency": 0.5}}, True),
        ({"cohorts": False}, False),
        ({"checks": "full"}, True),
        ({"trace": "full"}, False),
        ({"agent": {"compute": 0.1}}, False),
        ({"agent": {"availability": {"kind": "markov_on_off", "mean_up": 5, "mean_down": 1}}}, False),
        ({"schedule": {"kind": "one_at_a_time", "turns": 9}}, False),
    ],
)
def test_cohorts_are_used_where_nothing_comes_between_turns(plan: dict[str, Any], used: bool, ticks: list[int]) -> None:
    parts = {"checks": "cheap", "schedule": {"kind": "rounds", "turns": 3}, **plan}
    run("lin_ucb", {}, agents=4, **parts)
    assert ticks == ([4, 4, 4] if used else [])


@pytest.mark.parametrize("counts", [[3, 3, 3], [2, 4, 3]])
def test_best_together_is_best_of_each(counts: list[int]) -> None:
    scores = np.array([1.0, 2.0, 2.0, 0.5, 0.1, 0.5, 3.0, 1.0, 3.0])
    pairs = [run("lin_ucb", {}, agents=3, schedule={"kind": "rounds", "turns": 1}).engine.agents for _ in range(2)]
    alone, together = pairs
    expected = [agent.best(part) for agent, part in zip(alone, np.split(scores, np.cumsum(counts[:-1])), strict=True)]
    assert Client.best_together(together, scores, counts) == expected


def test_a_class_that_chooses_in_its_own_way_does_not_choose_together() -> None:
    class Changed(CoopKernelUCB):
        def choose(self, arms: Any) -> int:
            return 0

    assert chooses_together(CoopKernelUCB)
    assert not chooses_together(DistKernelUCB)
    assert not chooses_together(LinUCB)
    assert not chooses_together(Changed)
