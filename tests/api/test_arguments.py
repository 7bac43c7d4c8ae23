"""Arguments of other types than the interface takes: one sentence names the argument, and nothing is run."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.simulator.api.errors import fits
from coband.simulator.api.frontier import Range
from tests.api.conftest import STUDY

Q = "algorithms.Async.q"
FRONTIER = partial(coband.frontier, STUDY, progress=False)
RUN, SWEEP = partial(coband.run, STUDY), partial(coband.sweep, STUDY)
NOTHING = "names nothing to run; leave it out to run all"


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (RUN, {"only": 3}, "only=3 is not allowed: must be str | Iterable[str] | None."),
        (RUN, {"only": []}, f"only=[] {NOTHING}."),
        (RUN, {"replication": ()}, f"replication=() {NOTHING}."),
        (RUN, {"replication": "0"}, "replication='0' is not allowed: must be int | Iterable[int] | None."),
        (RUN, {"algorithms": 3}, "algorithms=3 is not allowed: must be Iterable[Algorithm | str | Mapping[str, Any]]"),
        (RUN, {"out": 3}, "out=3 is not allowed: must be str | PathLike[str] | None."),
        (RUN, {"replication": -1}, "there is no replication -1: the scenario has 2 replications, counted from 0."),
        (
            RUN,
            {"replication": 7},
            "there is no replication 7: the scenario has 2 replications, counted from 0; with repl",
        ),
        (SWEEP, {"only": 3}, "only=3 is not allowed"),
        (SWEEP, {"trace": "all"}, "trace='all' is not allowed: must be Literal['off', 'protocol', 'full']."),
        (coband.load, {"path": None}, "path=None is not allowed: must be str | PathLike[str]."),
        (coband.runs, {"folder": 3}, "folder=3 is not allowed: must be str | PathLike[str]."),
        (coband.Frontier, {"path": 3}, "path=3 is not allowed"),
        (SWEEP, {"cluster": "slurm", "cluster_options": 3}, "cluster_options=3 is not allowed: must be Mapping[str,"),
        (FRONTIER, {"only": 3}, "only=3 is not allowed"),
        (FRONTIER, {"vary": f"{Q}=1,2"}, f"vary='{Q}=1,2' is not allowed: must be Mapping[str, str | tuple[float,"),
        (FRONTIER, {"vary": {Q: (1,)}}, f"vary={{'{Q}': (1,)}} is not allowed"),
        (FRONTIER, {"budget": "1"}, "budget='1' is not allowed: must be int."),
        (FRONTIER, {"budget": True}, "budget=True is not allowed: must be int."),
        (FRONTIER, {"trials": 0}, "the search needs at least 1 replication of each candidate: trials=3"),
        (FRONTIER, {"sampler": "foo"}, "sampler='foo' is not allowed: must be Literal['tpe', 'nsga2']."),
        (
            FRONTIER,
            {"objectives": "regret,scalars"},
            "objectives='regret,scalars' is not allowed: must be Iterable[str",
        ),
    ],
)
def test_what_cannot_be_run(
    function: Callable[..., Any], given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((coband.RunError, coband.ScenarioError)) as error:
        function(**given)
    assert str(error.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("pulls_of", {"replication": "0"}, "replication='0' is not allowed: must be int | None."),
        ("pulls_of", {"label": "Async", "workers": 0}, "workers=0: at least one is needed, a whole number."),
        ("events", {"replication": "0"}, "replication='0' is not allowed: must be int | None."),
        (
            "events",
            {"message": 10**20},
            f"message={10**20} is not allowed: must be int | None, and whole numbers have at most 64 bits.",
        ),
        ("why", {"event": 2**63}, f"event={2**63} is not allowed"),
        ("why", {"event": {"label": "Async", "replication": 0, "seq": 1e30}}, "seq=1e+30: the row of an event has"),
        ("events", {"node": 77}, "node='77' is no node of this run; there is "),
        ("events", {"sql": "SELECT 1 AS a, 2 AS a"}, "the query has several columns a; name them apart with AS."),
        ("report", {"out": 3}, "out=3 is not allowed: must be str | PathLike[str] | None."),
        ("why", {"event": {"label": "Async"}}, "seq=None: the row of an event has its number there, a whole one."),
        ("why", {"event": "x"}, "event='x' is not allowed: must be int | Mapping[str, Any]."),
    ],
)
def test_what_a_run_cannot_be_asked(done: coband.Run, method: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(coband.RunError) as error:
        getattr(done, method)(**given)
    assert str(error.value).startswith(message)


def test_what_is_no_scenario() -> None:
    said = r"^scenario: a mapping is needed, not str; Scenario\.of takes files"
    with pytest.raises(coband.ScenarioError, match=said):
        coband.Scenario.from_dict("study.yaml")  # type: ignore[arg-type]
    for changes in (3, [3]):
        with pytest.raises(coband.ScenarioError, match=r"^scenario: changes are a mapping or texts key\.path=value"):
            coband.run(STUDY, set=changes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a scenario is a file, a name, YAML text, a mapping or a Scenario, not int"):
        coband.Scenario.from_yaml(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^callbacks: 3 is no coband\.Callback"):
        coband.run(STUDY, callbacks=3)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers(done: coband.Run, tmp_path: Path) -> None:
    event = done.events(event="send", label="Async", replication=1)["seq"][0]
    assert isinstance(event, np.int64)
    assert done.why(event, label="Async", replication=np.int64(1)).events["seq"][0] == event
    run = coband.run(STUDY, replication=np.int64(0), only=["Alone"], workers=np.int64(1), out=tmp_path / "run")
    assert run.results["replication"].tolist() == [0]
    assert all(fits(one, Range) for one in (np.array([0.2, 1]), [0.2, 1], (np.float64(0.2), 1), "0.2..1", {"low": 0.2}))
    assert not any(fits(one, Range) for one in (0.2, (1,), (0.2, "x"), None))
