"""How much there is to run, in one line."""

from pathlib import Path

import pytest

from coband.simulator.experiments.runs.workload import workload
from coband.simulator.experiments.sweep.study import load_study

SCENARIO = """
name: sizes
replications: 3
agents: {count: 4}
schedule: SCHEDULE
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms: [{algorithm: kernel_ucb, label: K}, {algorithm: gp_ucb}]
"""
JOBS = "2 algorithms × 3 replications"
GRID = "grid: {problem.noise: [0.1, 0.2]}\n"
ROUNDS = "{kind: rounds, turns: 10}"


@pytest.mark.parametrize(
    ("schedule", "more", "sentence"),
    [
        (ROUNDS, "", f"10 turns × 4 agents × {JOBS} = 240 pulls"),
        (
            "{kind: rounds, turns: 10, duration: 5}",
            "",
            f"10 turns, at most until time 5, × 4 agents × {JOBS} = at most 240 pulls",
        ),
        ("{kind: one_at_a_time, turns: 1000}", "", f"1,000 turns of 4 agents together × {JOBS} = 6,000 pulls"),
        ("{kind: renewal, think: 1, turns: 10}", "", f"10 turns × 4 agents × {JOBS} = 240 pulls"),
        ("{kind: renewal, think: 1, duration: 50}", "", f"turns until time 50 × 4 agents × {JOBS}"),
        ("{kind: trace, file: turns.csv}", "", f"3 turns of 4 agents together × {JOBS} = 18 pulls"),
        (ROUNDS, GRID, "10 turns × 4 agents × 4 variants of 2 algorithms at 2 points × 3 replications = 480 pulls"),
        (
            ROUNDS,
            "grid: {schedule.turns: [10, 20]}\n",
            "40 to 80 pulls × 4 variants of 2 algorithms at 2 points × 3 replications = 720 pulls",
        ),
        (
            ROUNDS,
            "until: {half_width: 1, max_replications: 9}\n",
            "10 turns × 4 agents × 2 algorithms × 3 to 9 replications = at least 240 pulls",
        ),
        (
            "{kind: rounds, turns: 10, duration: 5}",
            "until: {half_width: 1, max_replications: 9}\n",
            "10 turns, at most until time 5, × 4 agents × 2 algorithms × 3 to 9 replications",
        ),
        (
            ROUNDS,
            "grid: {algorithms.K.alpha: [1, 2]}\ntuning: {replications: 5}\n",
            "10 turns × 4 agents × 3 variants of 2 algorithms at 2 points × 5 replications = 600 pulls for tuning, "
            "then the best × 3 replications",
        ),
    ],
)
def test_the_size_of_a_study(
    schedule: str, more: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turns.csv").write_text("agent,time\n0,1\n1,2\n3,2.5\n")
    (tmp_path / "sizes.yaml").write_text(SCENARIO.replace("SCHEDULE", schedule) + more)
    assert workload(load_study("sizes.yaml")) == sentence


def test_algorithms_that_stop_by_their_own_rule() -> None:
    assert workload(load_study("cope_kb/fixed_confidence_same_quick")).startswith(
        "pulls until the algorithm stops by its own rule × "
    )
