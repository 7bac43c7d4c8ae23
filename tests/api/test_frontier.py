"""The frontier in Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from tests.api.conftest import STUDY

VARY: dict[str, Any] = {"algorithms.Async.threshold": [0.2, 1, 5], "algorithms.Async.q": np.array([0.1, 1])}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> coband.Frontier:
    out = tmp_path_factory.mktemp("frontier") / "out"
    scenario = {**STUDY, "trace": "off"}
    return coband.frontier(scenario, vary=VARY, replications=3, budget=60, workers=1, out=out, progress=False)


def test_points(found: coband.Frontier) -> None:
    assert found.objectives == ["regret", "scalars"]
    assert set(found.points.columns) >= {"label", "threshold", "q", "verdict", "beaten_by", "regret", "scalars_high"}
    assert set(found.points["n"]) == {3}
    assert len(found.candidates) == 7
    fresh = found.run.summary.xs("regret", level="measure").loc[found.points["label"], ["mean", "low"]]
    assert fresh.to_numpy().tolist() == found.points[["regret", "regret_low"]].to_numpy().tolist()


def test_best(found: coband.Frontier, tmp_path: Path) -> None:
    assert found.best("scalars")["label"] == "Alone"
    assert found.best("regret", scalars=0)["scalars"] == 0
    chosen = next(row for row in map(found.best, ("regret",)))
    chosen_only = {"set": chosen["settings"], "only": chosen["entry"], "replications": 3}
    again = coband.run({**STUDY, "trace": "off"}, **chosen_only, workers=1, out=tmp_path / "x")
    assert again.summary["mean"].iloc[0] == chosen["regret"]
    with pytest.raises(coband.RunError, match="no finalist"):
        found.best("regret", scalars=-1)
    with pytest.raises(coband.RunError, match="did you mean regret"):
        found.best("regrets")
    for limit in ("1000", float("nan")):
        with pytest.raises(coband.RunError, match=rf"scalars={limit!r}: a limit is a number, such as scalars=1e5"):
            found.best("regret", scalars=limit)  # type: ignore[arg-type]


def test_loaded_again(found: coband.Frontier) -> None:
    assert repr(coband.Frontier(found.path)) == repr(found)
    assert isinstance(coband.load(found.path), coband.Sweep)


def test_what_is_no_frontier(done: coband.Run) -> None:
    with pytest.raises(coband.RunError, match="holds no search"):
        coband.Frontier(done.path)
    with pytest.raises(coband.RunError, match="jobs are too few"):
        coband.frontier(STUDY, vary=VARY, budget=1)
    with pytest.raises(coband.ScenarioError, match="is not a range"):
        coband.frontier(STUDY, vary={"algorithms.Async.q": "1..x"})


def test_plot(found: coband.Frontier) -> None:
    names = [(axis.get_xlabel(), axis.get_ylabel()) for axis in found.plot().axes]
    assert names == [("scalars sent", "regret"), ("simulated time", "regret")]
