"""Arguments of other types than the interface takes: one sentence names the argument, and nothing is run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from tests.api.conftest import STUDY

NOTHING = "names nothing to run; leave it out to run all"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"only": []}, f"only=[] {NOTHING}."),
        ({"replication": ()}, f"replication=() {NOTHING}."),
        ({"replication": -1}, "there is no replication -1: the scenario has 2 replications, counted from 0."),
        ({"replication": 7}, "there is no replication 7: the scenario has 2 replications, counted from 0; with repl"),
    ],
)
def test_what_cannot_be_run(
    given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((coband.RunError, coband.ScenarioError)) as error:
        coband.run(STUDY, **given)
    assert str(error.value).startswith(message)
    with pytest.raises(coband.RunError, match="trace='all': must be one of off, protocol, full"):
        coband.sweep(STUDY, trace="all")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_cannot_be_asked(done: coband.Run) -> None:
    with pytest.raises(coband.RunError, match=r"^the query is wrong: no such table: nowhere\."):
        done.sql("SELECT * FROM nowhere")


def test_what_is_no_scenario() -> None:
    said = r"^scenario: a mapping is needed, not str; Scenario\.of takes files"
    with pytest.raises(coband.ScenarioError, match=said):
        coband.Scenario.from_dict("study.yaml")  # type: ignore[arg-type]
    for changes in (3, [3]):
        with pytest.raises(coband.ScenarioError, match=r"^scenario: changes are a mapping or texts key\.path=value"):
            coband.run(STUDY, set=changes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a scenario is a file, a name, YAML text, a mapping or a Scenario, not int"):
        coband.Scenario.of(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^callbacks: 3 is not a coband\.Callback"):
        coband.run(STUDY, callbacks=3)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers(done: coband.Run, tmp_path: Path) -> None:
    event = done.events("event = 'send' AND label = 'Async' AND replication = 1")["seq"][0]
    assert done.why(event, label="Async", replication=np.int64(1)).events["seq"][0] == event
    run = coband.run(STUDY, replication=np.int64(0), only=["Alone"], workers=np.int64(1), out=tmp_path / "run")
    assert run.results["replication"].tolist() == [0]
