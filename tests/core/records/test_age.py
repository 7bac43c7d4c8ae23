"""The age of information: against plain loops over the trace, and nothing but a count."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import graphs, kit
from coband.extensions.conformance.runs import registry
from coband.extensions.conformance.runs import run as simulate
from coband.simulator.core.nodes.node import BatchAgent
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.progress import NEVER, Ages, Decisions
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.store.store import StoredRun, open_run
from tests.analysis.traces.runs import GRAPH, STAR, perform
from tests.core import toys
from tests.every import every
from tests.oracles import ages as oracle

LINEAR = """\
name: linear
seed: 5
agents: {count: 3}
schedule: {kind: rounds, turns: 12}
network: {latency: {kind: exponential, rate: 2.0}, loss: 0.1}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: dis_lin_ucb, label: DisLin, threshold: 0.5}
  - {algorithm: fed_lin_ucb, label: FedLin, threshold: 0.3}
  - {algorithm: fed_glb_ucb, label: FedGLB, threshold: 0.5}
  - {algorithm: async_lin_ucb, label: AsyncLin, gamma_u: 1.2, gamma_d: 1.2}
  - {algorithm: lin_ucb, label: LinUCB}
  - {algorithm: neural_ucb, label: Neural}
"""
GOSSIP = GRAPH.replace("problem:\n  kind: network\n  kernel: {kind: gaussian, gamma: 1.0}\n", "problem:\n").replace(
    "problem:\n  contexts: {kind: ball, dimension: 2}\n  arms: {kind: ball, dimension: 3, count: 5}\n",
    "problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: cosine}, noise: 0.1}\n",
)
Known = Callable[..., tuple[oracle.Pulls, float | None]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, StoredRun]]:
    folder = tmp_path_factory.mktemp("ages")
    perform(STAR, folder / "star", "network.loss=0.1")
    perform(LINEAR, folder / "linear")
    line = GRAPH.replace("line}", "line, latency: {kind: exponential, rate: 3}}")
    perform(line.replace("coop_kernel_ucb, label: Coop", "eager_kernel_ucb, label: Coop"), folder / "graph")
    perform(
        GOSSIP.replace("coop_kernel_ucb, label: Coop, hops: 3", "push_gossip_kernel_ucb, label: Gossip"),
        folder / "gossip",
    )
    opened = {name: open_run(folder / name) for name in ("star", "linear", "graph", "gossip")}
    yield opened
    for run in opened.values():
        run.close()


CASES: dict[str, tuple[str, Known]] = {
    "Async": ("star", oracle.asynchronous),
    "Sync": ("star", oracle.synchronous),
    "Dis": ("star", oracle.synchronous),
    "Alone": ("star", oracle.alone),
    "One": ("star", oracle.everything_told),
    "DisLin": ("linear", oracle.synchronous),
    "FedLin": ("linear", oracle.asynchronous),
    "FedGLB": ("linear", oracle.synchronous),
    "LinUCB": ("linear", oracle.alone),
    "Coop": ("graph", oracle.everything_told),
    "Gossip": ("gossip", oracle.everything_told),
}


@pytest.mark.parametrize("label", CASES)
def test_the_age_of_every_decision(runs: dict[str, StoredRun], label: str) -> None:
    name, known = CASES[label]
    (job,) = runs[name].select(label)
    events = list(runs[name].events(label))
    expected = oracle.ages(events, known)
    found = job.part.execute(
        "SELECT age, age_time FROM trace WHERE job = ? AND event = 'choose' ORDER BY seq", (job.id,)
    )
    rows = found.fetchall()
    assert [age for age, _ in rows] == [age for age, _ in expected]
    assert [time for _, time in rows] == [pytest.approx(time) if time is not None else None for _, time in expected]
    assert job.record is not None
    assert job.record["mean_age"] == pytest.approx(np.mean([age for age, _ in expected]))
    heard = [time for _, time in expected if time is not None]
    assert job.record.get("mean_age_time") == (pytest.approx(np.mean(heard)) if heard else None)


@pytest.mark.parametrize("busy", [(), ("agents.compute=0.4", "agents.handling=0.3")])
def test_copies_that_are_handed_over_together_have_the_same_ages(tmp_path: Path, busy: tuple[str, ...]) -> None:
    """On ideal links copies need not travel one by one; messages of three hops take a trial per hop.

    What has come to an agent that is busy is not known to it yet.
    """
    found = []
    for mode in ("direct", "hop_by_hop"):
        with open_run(perform(GRAPH, tmp_path / mode, f"network.local.mode={mode}", *busy)) as run:
            found.append(run.connection.execute("SELECT age, age_time FROM decisions ORDER BY seq").fetchall())
    assert found[0] == found[1]
    assert len({time for _, time in found[0]}) > 1


class KnowsItself(toys.ToyAgent):
    """Has learnt from its own pulls alone."""

    @property
    def pulls_in_model(self) -> int:
        return self.unshared


@pytest.mark.parametrize("cohorts", [True, False])
def test_agents_that_act_at_one_moment_know_nothing_of_each_others_pulls(cohorts: bool) -> None:
    """The age of the n-th pull is n less the agent's own pulls, also where turns are entered together."""
    plan = {"agents": {"count": 10}, "schedule": {"kind": "rounds", "turns": 3}, "network": {}, "cohorts": cohorts}
    silent = toys.ToyConfig(every=1000)
    result, rows, _ = toys.run_on_toys(replace(toys.TOY, agent=KnowsItself), silent, plan, 0)
    assert result.ages.pulls.tolist() == [10 * turn + agent - turn for turn in range(3) for agent in range(10)]
    assert list(result.ages.events) == [row.seq for row in rows if row.event == tr.CHOOSE]
    assert np.isnan(result.ages.times).all()
    assert result.ages.means() == {"mean_age": np.mean(result.ages.pulls)}


def test_a_download_that_waits_for_the_next_choice_is_learnt_from(runs: dict[str, StoredRun]) -> None:
    """Async-LinUCB adds up downloads when it chooses; their times are those of its decisions all the same."""
    (job,) = runs["linear"].select("AsyncLin")
    assert job.record is not None
    assert job.record["mean_age_time"] > 0


def test_models_that_nobody_counts_have_no_age(runs: dict[str, StoredRun]) -> None:
    (job,) = runs["linear"].select("Neural")
    assert job.record is not None
    assert "mean_age" not in job.record
    query = "SELECT count(age) FROM trace WHERE job = ?"
    assert job.part.execute(query, (job.id,)).fetchone() == (0,)


def test_the_documentation_names_the_algorithms_without_age() -> None:
    def counts(agent: type[object]) -> bool:
        found = getattr(agent, "pulls_in_model", None)
        if isinstance(found, int):
            return True
        return isinstance(found, property) and found.fget is not None and bool(found.fget.__code__.co_names)

    algorithms = Registry.installed().algorithms.values()
    silent = {one.name for one in algorithms if not counts(one.agent) and not issubclass(one.agent, BatchAgent)}
    page = (Path(__file__).parents[3] / "docs" / "howto" / "reports.md").read_text(encoding="utf-8")
    listed = page.partition("Nobody counts the pulls in the models of")[2].partition("They have no age")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == silent


COUNTED = sorted(name for name, one in registry().algorithms.items() if not issubclass(one.agent, BatchAgent))


@every("name", COUNTED)
def test_no_decision_knows_of_more_pulls_than_there_were(name: str) -> None:
    plan: dict[str, Any] = {"agents": 2, "schedule": {"kind": "rounds", "turns": 3}}
    small = graphs.run(name, {}, kit.problem_of(name), **plan) if kit.on_graph(name) else simulate(name, {}, **plan)
    ages = small.result.ages.pulls.tolist()
    assert all(0 <= age <= made for made, age in enumerate(ages))


def test_the_curve_is_the_mean_between_its_points(runs: dict[str, StoredRun]) -> None:
    (job,) = runs["star"].select("Async")
    curve = job.part.execute("SELECT turn, age FROM ages WHERE job = ? ORDER BY turn", (job.id,)).fetchall()
    rows = job.part.execute("SELECT age FROM decisions WHERE job = ? ORDER BY seq", (job.id,)).fetchall()
    assert curve == [(turn, age) for turn, (age,) in enumerate(rows, start=1)]
    decisions = Decisions()
    for event, in_model in enumerate([0, 0, 1, 3, 0]):
        decisions.note(in_model, NEVER if event < 2 else 1.0, event)
    pulls, times = Ages.of(decisions, [0.0, 1.0, 2.0, 3.0, 4.0]).series(np.array([2.0, 5.0]))
    assert pulls.tolist() == [0.5, pytest.approx((1 + 0 + 4) / 3)]
    assert np.isnan(times[0])
    assert times[1] == pytest.approx((1 + 2 + 3) / 3)
    _, times = Ages.of(decisions, [0.0, 1.0, 2.0, 3.0, 4.0]).series(np.array([3.0, 5.0]))
    assert times.tolist() == [1.0, 2.5]  # decisions without an age add nothing to those beside them


def test_one_decision_without_a_count_leaves_none() -> None:
    decisions = Decisions()
    decisions.note(0, NEVER, 0)
    assert Ages.of(decisions, [1.0]).means() == {"mean_age": 0.0}
    decisions.note(None, NEVER, 1)
    none = Ages.of(decisions, [1.0, 2.0])
    assert none.means() == {}
    assert [len(part) for part in (none.pulls, none.times, none.events)] == [0, 0, 0]


def test_without_trace_the_means_are_the_same(tmp_path: Path, runs: dict[str, StoredRun]) -> None:
    with open_run(perform(STAR, tmp_path / "off", "network.loss=0.1", "trace=off", only=("Sync",))) as run:
        (job,) = run.jobs
        (traced,) = runs["star"].select("Sync")
        assert job.record is not None
        assert traced.record is not None
        assert job.record["mean_age"] == traced.record["mean_age"]
        assert job.record["fingerprint"] == traced.record["fingerprint"]
        assert job.part.execute("SELECT count(*) FROM decisions").fetchone() == (0,)
        assert job.part.execute("SELECT count(*) FROM ages").fetchone()[0] == 48
