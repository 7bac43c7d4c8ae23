"""Options that do not go together are refused before a run; what is not refused runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from coband.simulator.analysis.counts.counting import count
from coband.simulator.experiments.runs.preflight import preflight
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.scenario_errors import ScenarioError

SECOND = {"kind": "sum", "terms": [{"kind": "linear"}, {"kind": "gaussian", "gamma": 1.0, "columns": [0, 2]}]}
BALL = {"kind": "ball", "dimension": 2, "count": 3}
COSINE = {"kind": "contextual", "arms": BALL, "reward": {"kind": "cosine"}}
FIXED = {"kind": "fixed_domain", "domain": {"kind": "ball", "dimension": 2, "points": 5}, "reward": {"kind": "cosine"}}
TASKS = {"kind": "pure_exploration", "features": {"kind": "table", "tasks": "different", "size": 3, "ones": 1}}
PAIRS = {
    "kind": "pure_exploration",
    "features": {"kind": "kernel", "kernel": {**SECOND, "terms": [{"kind": "linear", "columns": [3]}]}},
}
NETWORK = {"kind": "network", "arms": BALL, "kernel": {"kind": "linear"}}
PHASES = {"kind": "phases", "limit": 4}
TIMED = {"kind": "renewal", "think": 1.0, "duration": 5.0}
ELSE = "numbered from 0; name others, or leave columns out for all of them"

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "a kernel of columns that arms do not have": (
        COSINE,
        {"algorithm": "async_kernel_ucb", "kernel": SECOND},
        {},
        f"kernel names column 2, but arms have 2 coordinates, {ELSE}",
    ),
    "the kernel of an estimate of tasks": (
        COSINE,
        {"algorithm": "eager_kernel_ucb", "network_kernel": {"kind": "mmd", "kernel": SECOND}},
        {"network": {"topology": "ring"}},
        f"network_kernel.kernel names column 2, but arms have 2 coordinates, {ELSE}",
    ),
    "a kernel of contexts": (
        {**NETWORK, "contexts": {"kind": "ball", "dimension": 2}},
        {"algorithm": "eager_kernel_ucb", "network_kernel": SECOND},
        {"network": {"topology": "ring"}},
        f"network_kernel names column 2, but network contexts have 2 coordinates, {ELSE}",
    ),
    "a kernel of rewards": (
        {**COSINE, "reward": {"kind": "rkhs", "kernel": SECOND}},
        {"algorithm": "n_kernel_ucb"},
        {},
        f"problem.reward.kernel names column 2, but its points have 2 coordinates, {ELSE}",
    ),
    "a kernel of pairs": (
        PAIRS,
        {"algorithm": "ind_rage"},
        {"schedule": PHASES},
        f"problem.features.kernel names column 3, but its points have 3 coordinates, {ELSE}",
    ),
    "a problem's kernel of arms": (
        {**NETWORK, "kernel": SECOND},
        {"algorithm": "n_kernel_ucb"},
        {},
        f"problem.kernel names column 2, but its points have 2 coordinates, {ELSE}",
    ),
    "alpha of theory without a threshold": (
        COSINE,
        {"algorithm": "async_kernel_ucb", "alpha": "theory", "threshold": 0},
        {},
        "alpha: theory needs a threshold > 0",
    ),
    "q of theory without a number of turns": (
        COSINE,
        {"algorithm": "async_kernel_ucb", "q": "theory"},
        {"schedule": TIMED},
        "q: theory depends on the number of turns; give horizon (turns of all agents together), or schedule.turns",
    ),
    "p0 of theory with the rate of the public code": (
        FIXED,
        {"algorithm": "duets", "p0": "theory", "inducing": "rate"},
        {},
        "p0: theory is a factor of sigma_max^2 and has no meaning with inducing: rate",
    ),
    "equal halves of an odd number of inputs": (
        {**COSINE, "arms": {**BALL, "dimension": 3}},
        {"algorithm": "neural_ucb", "duplicate_input": False},
        {},
        "inputs(=3) and width(=20) must be even with init: paper",
    ),
    "batches without a number of turns": (
        FIXED,
        {"algorithm": "bpe"},
        {"schedule": TIMED},
        "bpe must know the number of turns; give horizon (turns of each agent), or leave out schedule.duration",
    ),
}

RUNS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "turn by turn on tasks": (TASKS, {"algorithm": "n_kernel_ucb"}, {}),
    "arms that the kernel does not tell apart": (
        TASKS,
        {"algorithm": "ind_peace_fb", "budget": 300, "kernel": {"kind": "gaussian", "gamma": 1.0, "columns": [0]}},
        {"schedule": PHASES},
    ),
    "a list inside a kernel that may also be a word": (
        COSINE,
        {
            "algorithm": "eager_kernel_ucb",
            "network_kernel": {"kind": "mmd", "kernel": {"kind": "sum", "terms": [{"kind": "linear"}]}},
        },
        {"network": {"topology": "ring"}},
    ),
    "all constants of theory": (
        COSINE,
        {"algorithm": "async_kernel_ucb", "alpha": "theory", "q": "theory", "threshold": "theory", "horizon": 40},
        {"schedule": TIMED},
    ),
}


def written(place: Path, problem: dict[str, Any], entry: dict[str, Any], further: dict[str, Any]) -> Path:
    """A small scenario of one algorithm."""
    document = {"name": "pair", "seed": 3, "replications": 1, "agents": {"count": 4}, "problem": problem}
    document |= {"schedule": {"kind": "rounds", "turns": 4}, "algorithms": [entry], **further}
    file = place / "pair.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused(case: str, tmp_path: Path) -> None:
    problem, entry, further, message = REFUSED[case]
    file = written(tmp_path, problem, entry, further)
    try:
        found = [str(problem) for problem in preflight(file, (), load_study(file, ())).problems]
    except ScenarioError as error:
        found = str(error).splitlines()
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize("case", RUNS)
def test_what_is_not_refused_runs(case: str, tmp_path: Path) -> None:
    file = written(tmp_path, *RUNS[case])
    assert preflight(file, (), load_study(file, ())).problems == []
    counted = count(file)[RUNS[case][1]["algorithm"]]
    assert counted["turns"] > 0
