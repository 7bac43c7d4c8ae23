"""Scenarios from files, text, mappings and by name."""

from pathlib import Path, PurePosixPath

import numpy as np
import pytest

import coband
from coband.simulator.experiments.scenario.loading import load, loads
from coband.simulator.experiments.scenario.overrides import to_yaml
from tests.api.conftest import STUDY

NO_AGENTS = "agents.count: 0 is not allowed: must be a whole number >= 1 and <= 1000000"
WRONG = {**STUDY, "agents": {"count": 0}}


def test_what_describes_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = to_yaml(STUDY)
    Path("study.yaml").write_text(text)
    given = [STUDY, text, "study.yaml", Path("study.yaml"), coband.Scenario.from_dict(STUDY)]
    assert {coband.Scenario.of(one).to_yaml() for one in given} == {text}
    assert coband.Scenario.of("quickstart").labels == ["Async", "Approx-Dis", "Dis", "One", "Alone"]
    assert coband.Scenario.of("{name: short}").to_dict() == {"name": "short"}
    assert repr(coband.Scenario.of({"name": "short", "algorithms": 3})) == "Scenario('short', )"


def test_values_are_set_without_touching_the_original() -> None:
    scenario = coband.Scenario.from_dict(STUDY)
    other = scenario.with_(
        {"agents.count": np.int64(20), "algorithms.Async.alpha": 1e-5}, description="a: b", seed=None
    )
    assert (scenario.to_dict()["agents"]["count"], other.to_dict()["agents"]["count"]) == (3, 20)
    assert (other.to_dict()["description"], other.to_dict()["seed"]) == ("a: b", None)
    assert other.to_dict()["algorithms"][0]["alpha"] == 1e-5
    assert scenario.with_("agents.count=4").with_(["seed=9"]).settings == ("agents.count=4", "seed=9")
    assert loads(other.with_(seed=1).to_yaml()).agents.count == 20


def test_it_can_be_written_to_a_file(tmp_path: Path) -> None:
    with pytest.raises(coband.RunError, match=r" cannot be written: .+\. Give another path\."):
        coband.Scenario.from_dict(STUDY).to_yaml(tmp_path)
    scenario = coband.Scenario.of("quickstart")
    assert scenario.to_yaml(tmp_path / "a.yaml") == (tmp_path / "a.yaml").read_text()
    assert load(tmp_path / "a.yaml") == load("quickstart")


def test_values_of_other_libraries_become_plain() -> None:
    document = {**STUDY, "agents": {"count": np.int64(3)}, "seed": np.uint8(7)}
    assert coband.Scenario.from_dict(document).to_dict() == STUDY
    listed = coband.Scenario.from_dict({"grid": {"agents.count": np.array([2, 4])}, "file": PurePosixPath("a/b")})
    assert listed.to_dict() == {"grid": {"agents.count": [2, 4]}, "file": "a/b"}
    assert listed.is_sweep
    said = r"scenario: problem\[0\]: an object of type object cannot be a value"
    with pytest.raises(coband.ScenarioError, match=said):
        coband.Scenario.from_dict({"problem": [object()]})


@pytest.mark.parametrize("text", ["a\x85b", "a\x7f\uffffb\u2028", "\N{GRINNING FACE}"])
def test_texts_stay_what_they_are(text: str) -> None:
    scenario = coband.Scenario.of(STUDY).with_(description=text)
    assert scenario.to_dict()["description"] == text
    assert coband.Scenario.of(scenario.to_yaml()).to_dict()["description"] == text


@pytest.mark.parametrize("value", ["\ud800", 10**5000, b"text", {1, 2}], ids=["half", "huge", "bytes", "set"])
def test_values_that_no_file_can_have_are_refused(value: object) -> None:
    with pytest.raises(coband.ScenarioError, match="^scenario: description: .* (not text|cannot be a value of a scen)"):
        coband.Scenario.of(STUDY).with_(description=value)


def test_mistakes_have_the_lines_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(to_yaml(WRONG))
    with pytest.raises(coband.ScenarioError) as expected:
        load(file)
    with pytest.raises(coband.ScenarioError) as found:
        coband.run(file)
    assert str(found.value) == str(expected.value) == f"{file}:5:10: {NO_AGENTS}"
    with pytest.raises(coband.ScenarioError, match="<string>:5:10: agents.count: 0 is not allowed"):
        coband.run(to_yaml(WRONG))
    with pytest.raises(coband.ScenarioError, match="there is no such file"):
        coband.run(tmp_path / "missing.yaml")


def test_mistakes_in_a_mapping_have_no_lines() -> None:
    for attempt in (coband.run, coband.sweep, lambda given: coband.Scenario.of(given).validate()):
        with pytest.raises(coband.ScenarioError) as found:
            attempt(WRONG)
        assert str(found.value) == f"scenario: {NO_AGENTS}"


def test_mistakes_in_settings() -> None:
    with pytest.raises(coband.ScenarioError, match=r"--set agents.count=0: agents.count: 0 is not allowed"):
        coband.run(STUDY, set={"agents.count": 0})
    with pytest.raises(coband.ScenarioError, match="has no entry 'Nobody'"):
        coband.Scenario.from_dict(STUDY).with_({"algorithms.Nobody.alpha": 1}).validate()


def test_validation() -> None:
    scenario = coband.Scenario.from_dict(STUDY)
    assert scenario.validate() is scenario
    with pytest.raises(coband.ScenarioError, match="'nothing' is not a known kind; known: arrays, classification"):
        scenario.with_({"problem.kind": "nothing"}).validate()


def test_how_it_is_shown() -> None:
    assert repr(coband.Scenario.from_dict(STUDY)) == "Scenario('study', Async, Alone)"
