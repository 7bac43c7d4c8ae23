"""Grids in scenario files: points, labels, what varies for whom, and what a user is told."""

import json
from pathlib import Path

import pytest

from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.loading import load, loads
from coband.simulator.experiments.sweep.study import Study, load_study
from coband.simulator.scenario_errors import ScenarioError
from tests.experiments.registry.plugins import REGISTRY, SCENARIO
from tests.experiments.scenario.cases import cases

AXES = "grid:\n  network.loss: [0, 0.1]\n  algorithms.Async.alpha: [0.1, 1, 4]\n"


NUMBERS = str(list(range(200)))


def study(folder: Path, more: str = AXES, *settings: str) -> Study:
    file = folder / "quick.yaml"
    file.write_text(SCENARIO + more)
    return load_study(file, settings, registry=REGISTRY)


def labels(folder: Path, more: str, *settings: str) -> list[str]:
    return [variant.label for variant in study(folder, more, *settings).variants]


def test_an_axis_of_one_algorithm_does_not_multiply_the_others(tmp_path: Path) -> None:
    found = study(tmp_path)
    assert found.points == 6
    assert [variant.label for variant in found.variants] == [
        "Async [loss=0, alpha=0.1]",
        "Bold [loss=0]",
        "Async [loss=0, alpha=1]",
        "Async [loss=0, alpha=4]",
        "Async [loss=0.1, alpha=0.1]",
        "Bold [loss=0.1]",
        "Async [loss=0.1, alpha=1]",
        "Async [loss=0.1, alpha=4]",
    ]
    alphas = [variant.scenario.algorithms[0].config.alpha for variant in found.variants]  # type: ignore[attr-defined]
    assert alphas == [0.1, 4, 1, 4, 0.1, 4, 1, 4]
    assert all(len(variant.scenario.algorithms) == 1 for variant in found.variants)
    assert found.entries == ["Async", "Bold"]


def test_keys_of_a_zip_go_in_step(tmp_path: Path) -> None:
    more = "zip:\n  agents.count: [2, 4]\n  schedule.turns: [10, 20]\n"
    assert labels(tmp_path, more)[::2] == ["Async [count=2, turns=10]", "Async [count=4, turns=20]"]
    two = "zip:\n- {agents.count: [2, 4], schedule.turns: [10, 20]}\n- {network.loss: [0, 0.1], seed: [1, 2]}\n"
    assert study(tmp_path, two + "grid: {problem.noise: [1, 2, 3]}\n").points == 3 * 2 * 2


def test_values_have_labels(tmp_path: Path) -> None:
    more = "grid:\n  network.latency: {near: 0.01, far: {kind: exponential, rate: 1}}\n"
    assert labels(tmp_path, more)[::2] == ["Async [latency=near]", "Async [latency=far]"]
    more = "grid:\n  network.latency: [1e-2, {kind: exponential, rate: 1}]\n"
    assert labels(tmp_path, more)[::2] == ["Async [latency=1e-2]", "Async [latency={kind: exponential, rate: 1}]"]


def test_keys_in_step_that_call_their_values_alike_have_one_name(tmp_path: Path) -> None:
    more = (
        "zip:\n  problem.arms.dimension: {small: 2, large: 4}\n  algorithms.Async.alpha: {small: 1, large: 2}\n"
        "grid:\n  algorithms.Async.dims: {a: [1], b: [2]}\ntuning: {}\n"
    )
    found = study(tmp_path, more)
    expected = ["Async [dims=a, dimension=small]", "Bold [dimension=small]"]
    assert [variant.label for variant in found.variants[:2]] == expected
    assert found.variants[0].context == ("Async", "dimension=small")  # an axis that changes the world is not tuned


def test_names_are_as_short_as_they_can_be(tmp_path: Path) -> None:
    more = (
        "grid:\n  algorithms.*.alpha: [1, 2]\n  algorithms.Async.kernel.gamma: [1, 2]\n  agents.count: [1, 2]\n"
        "  problem.arms.count: [2, 3]\n"
    )
    assert labels(tmp_path, more)[0] == "Async [alpha=1, gamma=1, agents.count=1, arms.count=2]"


def test_a_setting_fixes_a_key(tmp_path: Path) -> None:
    assert study(tmp_path, AXES, "network.loss=0.2").points == 3
    assert load(tmp_path / "quick.yaml", ["network.loss=0", "algorithms . Async . alpha=1"], registry=REGISTRY)
    by_other_names = study(tmp_path, AXES, "network.loss=0", "algorithms.*.alpha=9")
    assert by_other_names.points == 1
    assert [one.scenario.algorithms[0].config.alpha for one in by_other_names.variants] == [9, 9]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("more", "setting", "message"),
    [
        (
            "  algorithms.*.alpha: [1, 2]\n",
            "algorithms.Async.alpha=3",
            "--set algorithms.Async.alpha=3: 'algorithms.Async",
        ),
        (
            "  algorithms.Async.alpha: [1, 2]\n  algorithms.0.alpha: [3]\n",
            "seed=1",
            "quick.yaml:21:3: 'algorithms.Async",
        ),
        (
            "  problem.arms.count: [3, 4]\n  problem.arms: {a: {kind: ball, dimension: 2, count: 2}}\n",
            "seed=1",
            "quick.yaml:21:3: 'problem.arms.count' changes nothing: 'problem.arms' varies",
        ),
    ],
)
def test_what_a_later_key_sets_again_is_refused(tmp_path: Path, more: str, setting: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        study(tmp_path, "grid:\n" + more, setting)
    [problem] = caught.value.problems
    assert str(problem).removeprefix(f"{tmp_path}/").startswith(message)
    assert "varies and sets the same after it; give one of the two" in str(problem)


def test_a_part_may_vary_after_the_whole(tmp_path: Path) -> None:
    more = "  algorithms.*.alpha: [1, 2]\n  algorithms.Async.alpha: [3, 4]\n"
    assert study(tmp_path, "grid:\n" + more).points == 4


def test_settings_within_a_grid_name_its_keys(tmp_path: Path) -> None:
    assert study(tmp_path, AXES, "grid.network.loss=[0, 0.1, 0.2]", "grid.problem.noise=[1, 2]").points == 3 * 3 * 2
    zipped = "zip:\n- {network.loss: [0, 0.1], seed: [1, 2]}\n"
    assert study(tmp_path, zipped, "zip.0.problem.noise=[1, 2]", "zip.0.network.loss=[0.2, 0.3]").points == 2


def test_settings_of_a_variant_give_its_scenario(tmp_path: Path) -> None:
    more = (
        "grid:\n  network.latency: {near: 0.01, far: {kind: exponential, rate: 1}}\n  problem.noise: [0.5]\n"
        "  problem.arms.kind: [ball, 'sphere']\n"
    )
    for variant in study(tmp_path, more).variants:
        scenario = load(tmp_path / "quick.yaml", variant.settings, registry=REGISTRY)
        assert scenario.network == variant.scenario.network
        assert scenario.problem == variant.scenario.problem


def test_a_run_of_a_sweep_says_what_to_do(tmp_path: Path) -> None:
    study(tmp_path)
    file = tmp_path / "quick.yaml"
    with pytest.raises(ScenarioError) as caught:
        load(file, registry=REGISTRY)
    assert str(caught.value) == (
        f"{file}:21:3: grid: this scenario has 6 points: run them with `coband sweep {file}`, or one of them with "
        "--set network.loss=0 --set algorithms.Async.alpha=0.1"
    )
    said = r"run them with coband\.sweep, or one of them with set=\['network\.loss=0', "
    with pytest.raises(ScenarioError, match=said):
        loads(file.read_text(), registry=REGISTRY)


def test_tuning_and_stopping(tmp_path: Path) -> None:
    found = study(tmp_path, AXES + "tuning: {}\nuntil: {relative: 0.1, on: scalars}\n")
    assert (found.tuning.replications, found.tuning.on, found.until.max_replications) == (5, "regret", 100)
    assert {variant.context for variant in found.variants} == {
        (entry, f"loss={loss}") for entry in ("Async", "Bold") for loss in ("0", "0.1")
    }
    over = study(tmp_path, AXES + "tuning: {over: [network.loss]}\n")
    expected = {("Bold",), *(("Async", f"alpha={alpha}") for alpha in ("0.1", "1", "4"))}
    assert {variant.context for variant in over.variants} == expected


def test_a_plain_run_passes_over_tuning_and_stopping(tmp_path: Path) -> None:
    study(tmp_path, "until: {half_width: 1}\n")
    assert load(tmp_path / "quick.yaml", registry=REGISTRY).replications == 3


def test_the_schema_knows_the_sections() -> None:
    properties = json_schema(REGISTRY)["properties"]
    assert {"grid", "zip", "tuning", "until"} <= set(properties)
    assert "max_replications" in json.dumps(json_schema(REGISTRY)["$defs"]["Until"])


BAD = """
grid:⏎  algorithms.*.alpha: [-1, x]⏎  problem.nois: [1, 2]⏎  algorithms.Asink.alpha: [3]⏎  network.loss: [0, 2]⏎
    21:24: algorithms[0].alpha: -1 is not allowed: must be a number >= 0
    21:24: algorithms[1].alpha: -1 is not allowed: must be a number >= 0
    21:28: algorithms[0].alpha: 'x' is not allowed: must be a number >= 0
    21:28: algorithms[1].alpha: 'x' is not allowed: must be a number >= 0
    22:3: problem.nois: unknown key; did you mean noise? allowed: kind, arms, reward, noise, regret
    23:3: algorithms: has no entry 'Asink'; did you mean Async? give a label, a number from 0, or *
    24:21: network.loss: 2 is not allowed: must be
grid: 3⏎
    20:7: grid: 3 is not allowed: must be a mapping or null
grid:⏎  seed: 3⏎
    21:9: grid.seed: 3 is not allowed: must be a list of at least 1 or a mapping
grid:⏎  seed: {"a\\tb": 1}⏎
    21:18: seed: 'a\\tb' is not allowed: a label is text on one line, without tabs
grid:⏎  seed: []⏎
    21:9: grid.seed: an empty list is not allowed: must be a list of at least 1 or a mapping
grid:⏎  seed: [1, 2, 1]⏎
    21:16: seed: '1' is given twice
grid:⏎  replications: [1, 2]⏎
    21:3: 'replications' is the same at all points and cannot vary
grid:⏎  agents..count: [1]⏎
    21:3: 'agents..count' is not a key path; write key.path, such as agents.count
    21:3: agents.: the key '' has no name
zip:⏎  seed: [1, 2]⏎  agents.count: [1]⏎
    22:3: agents.count: has 1 values, and 'seed' has 2: keys under zip need equally many
grid:⏎  seed: [1, 2]⏎zip:⏎  seed: [1, 2]⏎  agents.count: [1, 2]⏎
    23:3: 'seed' varies twice; give it once, under grid or under zip
grid:⏎  network.latency: [{kind: lognormal, median: 1.23456789, sigma: 2}]⏎
    21:21: network.latency: needs a label of at most 40 characters: write {label: value, ...} for the list
grid:⏎  seed: <200>⏎  agents.count: <201>⏎
    21:3: grid: 40,200 points are too many: at most 20,000; make several sweeps of it
tuning: {}⏎grid:⏎  network.loss: [0, 0.1]⏎
    20:9: tuning: nothing to choose: no key of the grid begins with algorithms.; name keys with over: [...]
tuning: {over: [network.los]}⏎grid:⏎  network.loss: [0, 0.1]⏎
    20:17: tuning.over[0]: 'network.los' is not a key of the grid; did you mean network.loss? keys: network.loss
until: {half_width: 1, relative: 0.1}⏎
    20:1: until: give either half_width or relative
until: {half_width: 1, max_replications: 2}⏎
    20:42: until.max_replications: 2 is not allowed: must be >= 3, the replications to begin with
until: {half_width: 1, on: regrets}⏎
    20:28: until.on: 'regrets' is not allowed
"""


@pytest.mark.parametrize(("more", "messages"), cases(BAD))
def test_bad_grids(tmp_path: Path, more: str, messages: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        study(tmp_path, more.replace(" => ", "").replace("<200>", NUMBERS).replace("<201>", NUMBERS[:-1] + ", 200]"))
    found = [str(problem).removeprefix(f"{tmp_path}/quick.yaml:") for problem in caught.value.problems]
    assert len(found) == len(messages), found
    for message, expected in zip(found, messages, strict=True):
        assert message.startswith(expected)


def test_a_rule_across_sections_is_checked_at_every_point(tmp_path: Path) -> None:
    more = "grid:\n  schedule.weights: [[1, 1, 1, 1, 1], [1, 2]]\n"
    with pytest.raises(ScenarioError, match="21:39: schedule.weights: has 2 entries: must have one per agent"):
        study(tmp_path, more, "schedule.order=weighted")


def test_many_problems_are_cut_off(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        study(tmp_path, f"grid:\n  network.loss: {list(range(2, 102))}\n")
    assert len(caught.value.problems) == 51
    assert caught.value.problems[-1].message == "50 more problems are not shown"
