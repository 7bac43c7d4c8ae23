"""The hunt for faults: nothing in our algorithms, what was planted elsewhere, and small reproductions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.hunt import Hunt, HuntError, draw
from coband.extensions.conformance.runs import algorithm, registry
from coband.simulator.experiments.scenario.loading import loads
from tests.cli.fake_cli import Program
from tests.everyday import slow
from tests.extensions.conformance.hunt.__main__ import hunt_of
from tests.extensions.conformance.hunt.hunted import HUNTED, hunted, impatient


@pytest.fixture
def coband(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def test_faults_depend_on_the_seed_alone() -> None:
    swarms = [draw(np.random.default_rng(seed), 50.0, 4, True) for seed in (1, 1, 2)]
    assert swarms[0] == swarms[1] != swarms[2]
    assert all(swarms)
    kinds = {fault.key for seed in range(40) for fault in draw(np.random.default_rng(seed), 50.0, 4, True)}
    agents, network = "availability compute handling stragglers", "loss duplicate latency reorder partitions outages"
    assert kinds == set(f"{agents} {network} bandwidth server retransmission heals".split())


@pytest.mark.parametrize("name", HUNTED)
def test_each_algorithm_is_hunted_in_all_variants_that_it_can_run(name: str) -> None:
    labels = [hunt_of(name, variant).labels for variant in range(4)]
    assert labels[0] == labels[1] == [one["label"] for one in HUNTED[name]["algorithms"]]
    needs_rounds = {"delb", "pls", "rclb"} if name == "fixed" else set()
    assert [*labels[2], *labels[3]] == [one for one in [*labels[0], *labels[1]] if one not in needs_rounds]


@pytest.mark.parametrize("name", [name if place % 2 else slow(name) for place, name in enumerate(HUNTED)])
def test_a_short_hunt_finds_nothing(name: str) -> None:
    for schedule in Hunt(hunted(name)).seeds(range(1)):
        assert schedule.faults
        assert schedule.runs == len(HUNTED[name]["algorithms"])
        assert not schedule.failures, schedule.failures[0]


@pytest.mark.parametrize("name", [slow(name) if place % 2 else name for place, name in enumerate(HUNTED)])
def test_a_short_hunt_where_nothing_is_sent_twice_finds_nothing(name: str) -> None:
    gave_up = 0
    for schedule in Hunt(impatient(name)).seeds((2,)):
        assert not schedule.failures, schedule.failures[0]
        gave_up += schedule.gave_up
    assert gave_up > 0


def test_every_algorithm_that_says_anything_is_hunted() -> None:
    hunted_algorithms = {entry["algorithm"] for family in HUNTED.values() for entry in family["algorithms"]}
    talking = {name for name, entry in registry().algorithms.items() if entry.messages}
    assert talking <= hunted_algorithms


def test_what_cannot_run_under_faults_is_refused_and_the_hunt_goes_on(coband: Program, tmp_path: Path) -> None:
    file = tmp_path / "datagrams.yaml"
    file.write_text(hunted("asynchronous", network={"transport": "datagram"}).to_yaml())
    arguments = ["hunt", file, "--only", "fed_lin_ucb", "--only", "n_kernel_ucb", "--seeds", "0:4"]
    status, output, _ = coband(*arguments)
    assert status == 0
    assert "fed_lin_ucb: refused: " in output
    assert "fed_lin_ucb needs every message, but this network loses some; set network.transport: reliable" in output
    assert "seed 3: fine" in output
    assert output.splitlines()[-1].startswith("0 failures in ")
    assert output.splitlines()[-1].endswith(" refused")


DYING = {"energy": {"capacity": 2.0, "per_turn": 1.0}}


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        (DYING, 2, "n_kernel_ucb fails without any further fault, so a hunt would say nothing of it: 2 turns were"),
        ({"reward_delay": 9.0, "leaves": {"kind": "times", "times": [[0, 3.0]]}}, 0, "0 failures in 1 runs"),
    ],
    ids=["batteries", "rewards that never come"],
)
def test_what_no_hunt_can_judge(coband: Program, tmp_path: Path, more: dict[str, Any], status: int, words: str) -> None:
    file = tmp_path / "one.yaml"
    agents, schedule = {"count": 2, **more}, {"kind": "rounds", "turns": 3}
    algorithms = [{"algorithm": "n_kernel_ucb"}]
    file.write_text(hunted("asynchronous", agents=agents, schedule=schedule, algorithms=algorithms).to_yaml())
    found, output, errors = coband("hunt", file, "--seeds", "0:1")
    assert (found, words in output + errors) == (status, True), output + errors


def test_a_scenario_whose_numbers_are_hopeless_is_refused_in_a_sentence() -> None:
    scenario = hunted("asynchronous", algorithms=[{"algorithm": "lin_ucb", "lam": 1e-40}])
    with pytest.raises(
        HuntError, match=r"fault, .* of it: lam I \+ W is not positive definite .* features .*\. Change"
    ):
        next(Hunt(scenario).seeds([0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", HUNTED)
def test_a_long_hunt_finds_nothing(name: str) -> None:
    schedule = {"kind": "one_at_a_time", "turns": 60}
    algorithms = [
        one for one in HUNTED[name]["algorithms"] if schedule["kind"] in algorithm(one["algorithm"]).needs.schedules
    ]
    scenarios = [hunted(name)]
    if HUNTED[name]["schedule"]["kind"] == "rounds" and algorithms:
        scenarios.append(hunted(name, schedule=schedule, algorithms=algorithms))
    for scenario in scenarios:
        for found in Hunt(scenario).seeds(range(100, 160)):
            assert not found.failures, found.failures[0]


@pytest.mark.parametrize(
    ("label", "seed", "changes"),
    [("fn quorum", 130, {}), ("fed_glb_ucb", 101, {"schedule": {"kind": "one_at_a_time", "turns": 60}})],
    ids=["a round after one that was abandoned", "gradients when all agents have left"],
)
def test_what_a_hunt_of_members_once_found_is_mended(label: str, seed: int, changes: dict[str, Any]) -> None:
    for found in Hunt(hunted("members", **changes), [label]).seeds(range(seed, seed + 1)):
        assert not found.failures, found.failures[0]


def test_a_planted_fault_is_found_shrunk_and_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(*parts: Any) -> None:
        raise AssertionError("an agent was down")

    monkeypatch.setattr("coband.simulator.core.churn.Churn.start", impatient)
    catches = [
        catch
        for schedule in Hunt(hunted("asynchronous"), ["one_kernel_ucb"]).seeds(range(3))
        for catch in schedule.failures
    ]
    assert catches
    for catch in catches:
        assert [fault.key for fault in catch.faults] in (["availability"], ["outages"])
        assert "an agent was down" in catch.error
        again = loads(catch.scenario)
        assert again.checks == "full"
        assert [entry.label for entry in again.algorithms] == ["one_kernel_ucb"]


def test_a_failure_is_printed_as_a_scenario(coband: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "hunted.yaml"
    file.write_text(hunted("asynchronous").to_yaml())
    arguments = ["hunt", str(file), "--only", "n_kernel_ucb", "--seeds", "0:2"]
    status, output, _ = coband(*arguments)
    assert (status, output.splitlines()[-1]) == (0, "0 failures in 2 runs")

    def broken(*parts: Any) -> None:
        raise AssertionError("an agent was down")

    monkeypatch.setattr("coband.simulator.core.churn.Churn.start", broken)
    status, output, _ = coband(*arguments, "--out", tmp_path / "found")
    assert status == 1
    (written, *_) = sorted((tmp_path / "found").iterdir())
    assert f"to see it again: coband run {written} --trace full" in output
    assert loads(written.read_text()).name == "hunted_asynchronous"
    files = len(list((tmp_path / "found").iterdir()))
    coband(*arguments, "--out", tmp_path / "found")
    assert len(list((tmp_path / "found").iterdir())) == files
    written.write_text("of another hunt")
    coband(*arguments, "--out", tmp_path / "found")
    assert written.read_text() == "of another hunt"
    assert len(list((tmp_path / "found").iterdir())) == files + 1


@pytest.mark.parametrize("seeds", ["3", "a:b", "5:5", "-1:3"])
def test_bad_seeds_are_refused(coband: Program, tmp_path: Path, seeds: str) -> None:
    file = tmp_path / "hunted.yaml"
    file.write_text(hunted("asynchronous").to_yaml())
    status, _, errors = coband("hunt", file, f"--seeds={seeds}")
    assert status == 2
    assert f"--seeds {seeds}: must be A:B with whole numbers 0 <= A < B, such as 0:10" in errors


def test_an_unknown_label_is_refused(coband: Program, tmp_path: Path) -> None:
    file = tmp_path / "hunted.yaml"
    file.write_text(hunted("graph").to_yaml())
    status, _, errors = coband("hunt", file, "--only", "x")
    assert status == 2
    assert "no algorithm or label 'x' in this scenario; there are coop_kernel_ucb, eager_kernel_ucb" in errors
