"""Scenarios that come with coband: every file has a name, a header and a place in the package."""

from pathlib import Path

import pytest

from coband.simulator.experiments.scenario.files import (
    is_shipped,
    located,
    paths,
    shipped_scenario,
    shipped_scenarios,
    similar,
)
from coband.simulator.experiments.scenario.loading import load
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.scenario_errors import ScenarioError

FOLDER = Path(__file__).parents[3] / "scenarios"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_scenario_of_the_checkout_comes_along() -> None:
    files = {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in FOLDER.rglob("*.yaml")}
    assert list(paths()) == sorted(files)
    assert all(paths()[name].samefile(path) for name, path in files.items())
    assert not [path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".yaml"]


def test_the_first_line_of_a_header_is_a_sentence() -> None:
    found = shipped_scenarios()
    assert [scenario.name for scenario in found] == list(paths())
    assert [scenario.name for scenario in found if scenario.summary[-1:] not in (".", "?")] == []


def test_what_a_header_and_a_file_say() -> None:
    quick = shipped_scenario("async_kernel_ucb/magic_quick")
    assert quick.header[-1] == "Quick variant: N = 20, T = 1000, 3 runs."
    assert (quick.data, shipped_scenario("coop_kernel_ucb/facebook").data) == ("magic", "ego-facebook")
    assert shipped_scenario("quickstart").data is None


def test_a_name_gives_the_scenario() -> None:
    scenario = load("duets/h1_quick", ["replications=1"])
    assert (scenario.name, scenario.base.samefile(FOLDER / "duets")) == ("h1_quick", True)
    assert load_study("sweeps/straggler_slowdown_quick").points > 1


def test_a_file_of_that_name_wins() -> None:
    assert is_shipped(Path("quickstart"))
    text = (FOLDER / "quickstart.yaml").read_text(encoding="utf-8")
    Path("quickstart").write_text(text.replace("name: quickstart", "name: mine"), encoding="utf-8")
    assert (load("quickstart").name, load_study("quickstart").name) == ("mine", "mine")
    assert not is_shipped(Path("quickstart"))


def test_a_folder_of_that_name_does_not() -> None:
    Path("duets").mkdir()
    Path("quickstart").mkdir()
    assert load("quickstart").name == "quickstart"
    assert located(Path("duets")) == Path("duets")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quikstart", "; did you mean quickstart, which comes with coband?"),
        ("scenarios/quickstart.yaml", "; did you mean quickstart, which comes with coband?"),
        ("h1_quick.yaml", "; did you mean duets/h1_quick, which comes with coband?"),
        ("facebok", "; did you mean coop_kernel_ucb/facebook or "),
        ("xyz", ", and no scenario of that name comes with coband; `coband list scenarios` shows those that do"),
        ("xyz.yaml", ""),
        ("/nowhere/xyz", ""),
    ],
)
def test_an_unknown_name_brings_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(name)
    found = str(caught.value)
    assert found.startswith(f"{name}: there is no such file{message}")
    assert message.endswith(" or ") or found.endswith(f"file{message}")


def test_a_similar_file_comes_before_similar_names() -> None:
    Path("quickstar.yaml").write_text("")
    with pytest.raises(ScenarioError, match=r"did you mean quickstar\.yaml\?$"):
        load("quickstar")


def test_names_of_studies_with_the_same_end() -> None:
    assert similar(Path("magic.yaml")) == ["async_kernel_ucb/magic", "fn_ucb/magic"]
