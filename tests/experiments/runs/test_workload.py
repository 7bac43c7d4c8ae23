"""How much there is to run, in one line."""

from pathlib import Path

import pytest

from coband.simulator.experiments.runs.reporting import workload
from coband.simulator.experiments.sweep.study import load_study
from tests.experiments.scenario.cases import cases

SCENARIO = """
name: sizes
replications: 3
agents: {count: 4}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms: [{algorithm: kernel_ucb, label: K}, {algorithm: gp_ucb}]
"""
SIZES = """
schedule: {kind: rounds, turns: 10}⏎
    10 turns × 4 agents × <JOBS> = 240 pulls
schedule: {kind: rounds, turns: 10, duration: 5}⏎
    10 turns, at most until time 5, × 4 agents × <JOBS> = at most 240 pulls
schedule: {kind: one_at_a_time, turns: 1000}⏎
    1,000 turns of 4 agents together × <JOBS> = 6,000 pulls
schedule: {kind: renewal, think: 1, turns: 10}⏎
    10 turns × 4 agents × <JOBS> = 240 pulls
schedule: {kind: renewal, think: 1, duration: 50}⏎
    turns until time 50 × 4 agents × <JOBS>
schedule: {kind: trace, file: turns.csv}⏎
    3 turns of 4 agents together × <JOBS> = 18 pulls
schedule: {kind: rounds, turns: 10}⏎grid: {problem.noise: [0.1, 0.2]}⏎
    10 turns × 4 agents × 4 variants of 2 algorithms at 2 points × 3 replications = 480 pulls
schedule: {kind: rounds, turns: 10}⏎grid: {schedule.turns: [10, 20]}⏎
    40 to 80 pulls × 4 variants of 2 algorithms at 2 points × 3 replications = 720 pulls
schedule: {kind: rounds, turns: 10}⏎until: {half_width: 1, max_replications: 9}⏎
    10 turns × 4 agents × 2 algorithms × 3 to 9 replications = at least 240 pulls
schedule: {kind: rounds, turns: 10, duration: 5}⏎until: {half_width: 1, max_replications: 9}⏎
    10 turns, at most until time 5, × 4 agents × 2 algorithms × 3 to 9 replications
schedule: {kind: rounds, turns: 10}⏎grid: {algorithms.K.alpha: [1, 2]}⏎tuning: {replications: 5}⏎
    10 turns × 4 agents × 3 variants of 2 algorithms at 2 points × 5 replications = 600 pulls for tuning, then the best
        × 3 replications
"""


@pytest.mark.parametrize(("more", "said"), cases(SIZES.replace("<JOBS>", "2 algorithms × 3 replications")))
def test_size_of_a_study(more: str, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turns.csv").write_text("agent,time\n0,1\n1,2\n3,2.5\n")
    (tmp_path / "sizes.yaml").write_text(SCENARIO + more)
    assert [workload(load_study("sizes.yaml"))] == said


def test_algorithms_that_stop_by_their_own_rule() -> None:
    assert workload(load_study("cope_kb/fixed_confidence_same_quick")).startswith(
        "pulls until the algorithm stops by its own rule × "
    )
