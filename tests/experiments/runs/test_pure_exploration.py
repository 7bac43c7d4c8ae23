"""A scenario of pure exploration from file to result: columns, intervals, a trace that agrees with the ledger."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from coband.simulator.analysis.traces.verification import verify
from coband.simulator.cli.main import cli, main
from coband.simulator.experiments.statistics.estimates import wilson
from coband.simulator.experiments.store.store import open_run

ROOT = Path(__file__).resolve().parents[3]
QUICK = str(ROOT / "coband" / "scenarios" / "cope_kb" / "fixed_confidence_similar_quick.yaml")


def test_from_file_to_result(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["run", QUICK, "--set", "replications=3", "--set", "problem.gap=0.8", "--workers", "1"]
    done = CliRunner().invoke(cli, [*arguments, "--json", "--out", str(out)])
    assert done.exit_code == 0, done.output
    entries = {entry["label"]: entry for entry in json.loads(done.stdout)["results"]}
    for entry in entries.values():
        record = entry["replications"][0]
        assert record["samples_per_agent"] > 0
        assert record["correct"] + record["error"] == 1
        errors = [record["error"] for record in entry["replications"]]
        assert entry["ci95"]["error"] == list(wilson(errors))
        agents = record["agents"]
        assert [agent["agent"] for agent in agents] == list(range(5))
        assert sum(agent["correct"] for agent in agents) == record["correct_agents"]
        assert sum(agent["samples"] for agent in agents) == pytest.approx(5 * record["samples_per_agent"])
        assert sum(agent["turns"] for agent in agents) == record["turns"]
        assert all(agent["peer_scalars"] == 2 * 6 * 4 * agent["rounds"] for agent in agents)
        assert all(agent["phases"] >= agent["rounds"] and agent["answer"] in range(6) for agent in agents)
    joint = entries["CoKernelFC"]["replications"][0]
    assert joint["peer_scalars"] == 240 * joint["rounds"]
    with open_run(out) as stored:
        assert [score.differences for score in verify(stored)] == [()] * 33
        assert [agent for agent in stored.by_agent("CoKernelFC") if agent.pop("replication") == 0] == joint["agents"]
        series = stored.series("CoKernelFC")[0]
        assert series.turns[-1] == joint["turns"]


def test_the_table_shows_what_matters(tmp_path: Path) -> None:
    arguments = ["run", QUICK, "--set", "replications=2", "--only", "CoKernelFC", "--workers", "1"]
    done = CliRunner().invoke(cli, [*arguments, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "samples per agent" in done.output
    assert "0 [0, 0.66]" in done.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("problem.features.ones=4", "problem.features.ones: ones(=4) must be < size(=4)."),
        ("problem.features.tasks=[0, 1]", "has 2 entries: must have one per agent (agents.count is 5)"),
        ("algorithms.0.allocation=both", "algorithms[0].allocation: 'both' is not allowed: must be one of global, ind"),
    ],
)
def test_what_cannot_be_is_refused(change: str, message: str) -> None:
    done = CliRunner().invoke(cli, ["validate", QUICK, "--set", change])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(
    ("label", "budget", "message"),
    [
        ("CoKernelFB", 5, "budget(=5) is too small: rounding to 5 samples makes the largest variance"),
        ("CoKernelFB-IndAlloc", 5, "budget(=5) is too small: rounding to 1 samples"),
        ("IndPeaceFB", 5, "budget(=5) is too small: rounding to 1 samples"),
        ("IndUniformFB", 5, "budget(=5) is too small for one pull of each of 6 arms."),
    ],
)
def test_a_budget_that_is_too_small_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: str, budget: int, message: str
) -> None:
    scenario, budgets = QUICK.replace("confidence", "budget"), f"algorithms.*.budget={budget}"
    with pytest.raises(SystemExit) as ended:
        main(["run", scenario, "--set", budgets, "--only", label, "--workers", "1", "--out", str(tmp_path / "run")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_algorithm_of_phases_is_refused_elsewhere(tmp_path: Path) -> None:
    arguments = ["validate", QUICK, "--set", "schedule.kind=rounds", "--set", "schedule.turns=5"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code != 0
    assert "co_kernel_fc cannot run on schedule.kind rounds; it runs on: phases" in done.output
