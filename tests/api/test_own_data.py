"""One's own arrays and functions, run from Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.problems import array_problem
from tests.api.conftest import KERNEL

ROOT = Path(__file__).parents[2]
BASE: dict[str, Any] = {
    "name": "own",
    "replications": 2,
    "agents": {"count": 2},
    "schedule": {"kind": "rounds", "turns": 5},
    "trace": "off",
    "algorithms": [
        {"algorithm": "lin_ucb", "label": "Linear"},
        {"algorithm": "n_kernel_ucb", "label": "Kernel", "kernel": KERNEL},
    ],
}
RNG = np.random.default_rng(5)
ARMS = RNG.normal(size=(300, 3))
REWARDS = np.sin(ARMS @ [1.0, 2.0, 3.0])


def own(**changes: Any) -> coband.Problem:
    given = {"arms": ARMS, "rewards": REWARDS, "noise": 0.1, "count": 10} | changes
    return coband.Problem.from_arrays(given.pop("arms"), given.pop("rewards"), **given)


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def digests(problem: coband.Problem) -> list[str]:
    """What addresses of jobs begin with, one for each algorithm."""
    scenario = coband.Scenario.from_dict({**BASE, "problem": problem})
    return [variant.digest for variant in load_study(scenario.source, scenario.settings).variants]


def test_every_way_to_give_a_problem_is_the_same(tmp_path: Path) -> None:
    problem = own()
    scenario = coband.Scenario.from_dict({**BASE, "problem": problem})
    runs = [
        coband.run(BASE, problem=problem, workers=1, out=tmp_path / "argument"),
        coband.run(scenario.validate(), workers=1, out=tmp_path / "mapping"),
        coband.run(
            coband.Scenario.from_dict({**BASE, "problem": {"kind": "nothing"}}).with_(problem=problem),
            workers=2,
            out=tmp_path / "processes",
        ),
    ]
    assert runs[0].results["regret"].min() > 0
    fingerprints = [run.results["fingerprint"].tolist() for run in runs]
    assert fingerprints[0] == fingerprints[1] == fingerprints[2]


def test_a_stored_run_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be moved, read, reported and run again where nobody knows the arrays."""
    first = coband.run(BASE, problem=own(), workers=1, out=tmp_path / "first")
    fingerprints = first.results["fingerprint"].tolist()
    place = tmp_path / "elsewhere"
    shutil.move(first.path, place)
    code = f"""if True:
        import coband
        run = coband.load({str(place)!r})
        again = coband.run(run.scenario, workers=1, out={str(tmp_path / "again")!r})
        print(again.results["fingerprint"].tolist() == run.results["fingerprint"].tolist())
        print(run.report().name, run.words().index[0])
        coband.run({str(tmp_path / "again" / "scenario.yaml")!r}, workers=2, out={str(tmp_path / "third")!r})"""
    done = python(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", "report.html regret"]
    assert len(list(tmp_path.rglob("arrays-*.npz"))) == 3
    assert coband.load(tmp_path / "third").results["fingerprint"].tolist() == fingerprints


def test_scenario_files_take_their_arrays_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = coband.Scenario.from_dict(BASE).with_(grid={"problem": {"a": own(), "b": own(noise=0.2)}})
    scenario.to_yaml(tmp_path / "study.yaml")
    (file,) = tmp_path.glob("arrays-*.npz")
    assert np.load(file)["rewards"].tolist() == REWARDS.tolist()
    monkeypatch.setattr(array_problem, "_KNOWN", {})
    assert coband.Scenario.of(tmp_path / "study.yaml").validate().is_sweep
    file.unlink()
    with pytest.raises(coband.ScenarioError, match="this file has the arrays of the problem, and is not there"):
        coband.Scenario.of(tmp_path / "study.yaml").validate()
    with pytest.raises(coband.ScenarioError, match="this file has the arrays of the problem, and is not there"):
        coband.Scenario.of(tmp_path / "study.yaml").to_yaml(tmp_path / "copy.yaml")


def test_files_of_arrays_are_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(draft: Path, file: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        coband.Scenario.from_dict(BASE).with_(problem=own()).to_yaml(tmp_path / "study.yaml")
    assert not list(tmp_path.glob("arrays-*.npz"))


def test_a_scenario_is_written_though_its_arrays_are_not_valid(tmp_path: Path) -> None:
    scenario = coband.Scenario.from_dict(BASE).with_(problem={"kind": "arrays", "content": "zzz"})
    scenario.to_yaml(tmp_path / "study.yaml")
    with pytest.raises(coband.ScenarioError, match="content"):
        coband.Scenario.of(tmp_path / "study.yaml").validate()


@pytest.mark.parametrize("rows", [20, 300], ids=["in the text", "in a file"])
def test_one_changed_number_is_another_job(rows: int) -> None:
    arms, rewards = ARMS[:rows].copy(), REWARDS[:rows].copy()
    before = digests(own(arms=arms, rewards=rewards))
    assert digests(own(arms=arms, rewards=rewards)) == before
    rewards[-1] = np.nextafter(rewards[-1], 2.0)
    arms[0, 1] += 1e-9
    changed = digests(own(arms=arms, rewards=REWARDS[:rows])), digests(own(arms=ARMS[:rows], rewards=rewards))
    noisy = digests(own(arms=ARMS[:rows], rewards=REWARDS[:rows], noise=0.2))
    assert len({*before, *changed[0], *changed[1], *noisy}) == 4 * len(before)


def test_a_changed_function_is_another_job() -> None:
    functions = (lambda arms: arms[:, 0]), (lambda arms: 2.0 * arms[:, 0])
    one, other = (digests(coband.Problem.from_function(f, ARMS)) for f in functions)
    assert not set(one) & set(other)


def test_resume_reuses_what_is_the_same_alone(tmp_path: Path) -> None:
    scenario = coband.Scenario.from_dict(BASE).with_(grid={"problem.noise": [0.1, 0.2]})
    first = coband.sweep(scenario, problem=own(), workers=1, out=tmp_path / "sweep")
    same = coband.sweep(scenario, problem=own(), workers=1, out=tmp_path / "sweep", resume=True)
    assert same.results["fingerprint"].tolist() == first.results["fingerprint"].tolist()
    assert len(list(first.path.rglob("*.json.gz"))) == 8
    rewards = np.where(REWARDS > 0.5, 0.5, REWARDS)
    with pytest.warns(coband.RunWarning, match="what has finished and is no longer in it is kept in"):
        changed = coband.sweep(scenario, problem=own(rewards=rewards), workers=1, out=tmp_path / "sweep", resume=True)
    assert len(list(first.path.rglob("*.json.gz"))) == 16
    assert len(list(first.path.glob("arrays-*.npz"))) == 2
    assert changed.results["fingerprint"].tolist() != first.results["fingerprint"].tolist()


def test_the_command_line_goes_on_with_a_sweep_of_arrays(tmp_path: Path) -> None:
    """The manifest's command repeats it, and finds that all is done."""
    sweep = coband.sweep({**BASE, "problem": own()}, workers=1, out=tmp_path / "sweep")
    command = [*sweep.manifest["command"][1:], "--resume", "--out", str(sweep.path), "--workers", "1", "--json"]
    done = python(tmp_path, "-m", "coband", *command)
    assert done.returncode == 0, done.stderr
    assert len(list(sweep.path.rglob("*.json.gz"))) == 4


def test_tasks_of_agents_need_as_many_agents() -> None:
    problem = coband.Problem.from_function(lambda arms, agent: arms[:, agent], ARMS, agents=3)
    said = r"problem.*: rewards of shape \(3, 300\) are those of 3 agents, but"
    with pytest.raises(coband.ScenarioError, match=said):
        coband.run(BASE, problem=problem, workers=1)


def test_algorithms_on_fixed_domains_run_on_own_arms(tmp_path: Path) -> None:
    chosen = [{"algorithm": name, "kernel": KERNEL} for name in ("duets", "bpe", "gp_ucb")]
    scenario = coband.Scenario.from_dict({**BASE, "replications": 1, "algorithms": chosen})
    run = coband.run(scenario, problem=own(count=None), workers=1, out=tmp_path / "run")
    assert (run.status, run.results["turns"].tolist()) == ("finished", [10, 10, 10])
    with pytest.raises(coband.ScenarioError, match="duets needs one arm set for all turns of all agents"):
        scenario.with_(problem=own()).validate()
