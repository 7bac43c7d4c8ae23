"""Objects of Python in the place of names: algorithms, kinds, graphs and functions that are not installed."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np
import pytest

import coband
from coband.extensions.conformance import cases
from coband.simulator.api.scenario import simple
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.plugins.kinds import LISTS
from coband.simulator.plugins.promises import written
from tests.experiments.registry.open_lists_plugin import ALGORITHM, METRIC, Coin, Ladder, Laplace, Total, Wheel

SESSION = '''
from typing import Literal
import coband, networkx

class Parameters(coband.Config):
    skipped: int = 0

class Stubborn(coband.Agent):
    """Pulls one arm."""

    def choose(self, arms):
        return self.context.config.skipped

    def observe(self, arms, arm, reward):
        self.unshared += 1
        return []

    def receive(self, message, source):
        return []

class Mute(coband.Server):
    def receive(self, message, source):
        return []

@coband.register
class Wheel(coband.BaseGraph):
    kind: Literal["spokes"]

    def draw(self, agents, rng):
        return coband.Graph((tuple(range(1, agents)), *((0,) for _ in range(1, agents))))

both = coband.Needs(topologies=("star", "graph"))
ALONE = coband.Algorithm("stubborn", Stubborn, None, Parameters, "Pulls one arm.", "none", needs=both)
SERVED = coband.Algorithm("served", Stubborn, Mute, Parameters, "Pulls one arm.", "none")

def brightness(arms):
    return arms.sum(axis=1)

scenario = {
    "name": "objects", "agents": {"count": 4}, "schedule": {"kind": "rounds", "turns": 4}, "replications": 2,
    "network": {"latency": lambda rng: 0.1 * rng.random()},
    "problem": {"kind": "contextual", "arms": {"kind": "box", "dimension": 2, "count": 3}, "reward": brightness},
}
for workers in (1, 2):
    star = coband.run(scenario, algorithms=[SERVED, {"algorithm": ALONE, "skipped": 1}, "n_kernel_ucb"],
                      workers=workers, out=f"star-{workers}", progress=False)
    topology = networkx.path_graph(4) if workers == 1 else {"kind": "spokes"}
    coband.run(scenario, algorithms=[ALONE, "coop_kernel_ucb"], set={"network.topology": topology},
               workers=workers, out=f"graph-{workers}", progress=False)
'''


def test_what_a_session_defines_runs_here_and_in_workers(tmp_path: Path) -> None:
    (tmp_path / "session.py").write_text(SESSION)
    command = [sys.executable, "-W", "error", "session.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    runs = [coband.load(tmp_path / f"star-{workers}") for workers in (1, 2)]
    assert runs[0].results["fingerprint"].tolist() == runs[1].results["fingerprint"].tolist()
    assert list(dict.fromkeys(runs[0].results["label"].tolist())) == ["served", "stubborn", "n_kernel_ucb"]
    graphs = [coband.load(tmp_path / f"graph-{workers}").details["graph"][0] for workers in (1, 2)]
    assert graphs == ["given; 4 nodes, 3 edges, diameter 3", "given; 4 nodes, 3 edges, diameter 2"]
    manifest = json.loads((tmp_path / "star-2" / "manifest.json").read_text())
    assert manifest["not_installed"] == ["brightness", "function_1", "served", "stubborn"]
    with pytest.raises(coband.ScenarioError, match="'brightness' was given in a session of Python that is over"):
        coband.run(tmp_path / "star-1" / "scenario.yaml", out=tmp_path / "again")


@pytest.fixture
def _forgotten() -> Iterator[None]:
    """What a test registers is gone afterwards."""
    yield
    for one in LISTS.values():
        one.registered.clear()


def _no_generator(self: object, agents: int) -> None:
    """Lacks a parameter."""


class Hub(coband.BaseGraph):
    kind: Literal["hub"]
    first: tuple[int, ...] = (0,)

    def draw(self, agents: int, rng: np.random.Generator) -> coband.Graph:
        return coband.Graph(tuple(tuple(range(1, agents)) if agent == 0 else (0,) for agent in range(agents)))


SCENARIO: dict[str, Any] = {
    "name": "objects",
    "agents": {"count": 3},
    "schedule": {"kind": "rounds", "turns": 2},
    "problem": {"kind": "contextual", "arms": {"kind": "ball", "dimension": 2, "count": 3}, "reward": "cosine"},
    "algorithms": [{"algorithm": "coop_kernel_ucb"}],
}
SCENARIO["problem"]["reward"] = {"kind": "cosine"}


@pytest.mark.usefixtures("_forgotten")
def test_an_object_of_a_kind_stands_for_its_section(tmp_path: Path) -> None:
    found = coband.Scenario.of(SCENARIO).with_(
        {"network.topology": Hub(kind="hub", first=(0, 1)), "algorithms.0.kernel": Laplace(2.0)}
    )
    assert found.to_dict()["network"] == {"topology": {"kind": "hub", "first": [0, 1]}}
    assert found.to_dict()["algorithms"][0]["kernel"] == {"length_scale": 2.0, "columns": None, "kind": "laplace"}
    assert found.validate() is found
    coband.register(METRIC)
    run = coband.run(found, workers=1, out=tmp_path / "run", progress=False)
    assert run.results["worst_agent"][0] > 0


@pytest.mark.usefixtures("_forgotten")
def test_a_cell_may_be_run_again() -> None:
    coband.register(Wheel)
    other = type("Wheel", (Wheel,), {"__doc__": "Another.", "__annotations__": {"kind": Literal["wheel"]}})
    coband.register(other)
    assert LISTS["topologies"].get("wheel") is other
    first = Registry.installed()
    coband.register(ALGORITHM)
    coband.register(replace(ALGORITHM, summary="changed"))
    assert Registry.installed() is not first  # of which schemas are kept
    assert Registry.installed().algorithms["first_arm"].summary == "changed"


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "nothing can be done with an object of type int; give a coband.Algorithm, a ProblemEntry, a RunMetric, or"),
        (replace(ALGORITHM, name="lin_ucb"), "algorithms: 'lin_ucb' is coband's own; give yours another name"),
        (
            type("Kindless", (Wheel,), {"__annotations__": {"kind": str}, "kind": "x"}),
            "the class Kindless must have a field `kind: Literal['NAME']`, the name in scenarios",
        ),
        (
            type("Empty", (coband.BaseLoss,), {"__annotations__": {"kind": Literal["empty"]}}),
            "Empty lacks mean, process, which coband.BaseLoss asks for",
        ),
        (
            type("Short", (Wheel,), {"__annotations__": {"kind": Literal["short"]}, "draw": _no_generator}),
            f"{written(_no_generator)}Short.draw takes (self, agents); it is called with (self, agents, rng)",
        ),
        (replace(METRIC, name="regret"), "the metric 'regret' is coband's own; give yours another name"),
    ],
)
def test_what_cannot_be_registered(given: Any, message: str) -> None:
    with pytest.raises(coband.PluginError) as error:
        coband.register(given)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "my metric"}, "name(='my metric') of a metric must be an identifier, such as gradient_rounds"),
        ({"better": "lowr"}, "better(='lowr') of the metric worst_agent must be 'lower', 'higher' or None"),
        ({"of": 3}, "of(=3) of the metric worst_agent must be a function of the result of a run"),
    ],
)
def test_what_is_no_metric(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(coband.PluginError, match=re.escape(message)):
        replace(METRIC, **changed)


def _raise(result: object) -> float:
    raise ValueError("no such agent")


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize(
    ("of", "why"),
    [
        (_raise, "ValueError: no such agent"),
        (lambda result: [1.0], "TypeError: must be real number, not list"),
        (lambda result: "x", "a str is not a number"),
        (lambda result: None, "None is not a number"),
        (lambda result: float("nan"), "nan is not a number"),
    ],
)
def test_a_job_whose_metric_fails_is_kept(tmp_path: Path, of: Callable[[Any], Any], why: str) -> None:
    coband.register(replace(METRIC, of=of))
    with pytest.warns(coband.RunWarning, match=rf"the metric worst_agent has no value \({why}\)"):
        run = coband.run(SCENARIO, algorithms="n_kernel_ucb", workers=1, out=tmp_path / "run", progress=False)
    assert run.status == "finished"
    assert run.results["worst_agent"].isna().all()
    assert run.summary["mean"].unstack()[["regret", "worst_agent"]].isna().to_numpy().tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (nx.DiGraph([(0, 1)]), "network.topology: links have no direction; give graph.to_undirected()"),
        (nx.path_graph(20_002), "network.topology: a graph of more than 20,000 links is too large for the text"),
        (
            object(),
            "network.topology: an object of type object cannot be a value of a scenario; give numbers, texts, lists or",
        ),
    ],
)
def test_objects_that_no_scenario_can_have(given: Any, message: str) -> None:
    with pytest.raises(coband.ScenarioError) as error:
        simple(given, "network.topology")
    assert str(error.value).startswith(f"scenario: {message}")


def test_a_graph_must_have_as_many_nodes_as_there_are_agents() -> None:
    with pytest.raises(coband.ScenarioError, match="given: the graph has 4 nodes: must have 3, the number of agents"):
        coband.Scenario.of(SCENARIO).with_({"network.topology": nx.path_graph(4)}).validate()


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ({**SCENARIO["problem"], "reward": Total(kind="total"), "noise": Coin(kind="coin", step=0.2)}, "coin"),
        (coband.Problem.from_arrays(np.eye(3), [0.1, 0.5, 0.9], noise=Coin(kind="coin")), "coin"),
        (coband.Problem.from_arrays(np.eye(3), [0.1, 0.5, 0.9], noise={"kind": "bernoulli"}), "bernoulli"),
        (Ladder(kind="ladder", steps=4), "ladder"),
    ],
)
def test_problems_and_their_parts_may_be_objects(problem: Any, said: str, tmp_path: Path) -> None:
    run = coband.run(SCENARIO, algorithms=[ALGORITHM], problem=problem, workers=1, out=tmp_path / "run", progress=False)
    assert run.results["turns"].tolist() == [6]
    assert f"kind: {said}" in (tmp_path / "run" / "scenario.yaml").read_text()


@pytest.mark.usefixtures("_forgotten")
def test_an_object_takes_the_place_of_an_installed_plugin_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LISTS["topologies"]._offered[0], "hub", EntryPoint("hub", "elsewhere:Hub", "coband.topologies"))
    monkeypatch.setitem(LISTS["topologies"]._lasting, "hub", type("Hub", (Hub,), {}))
    with pytest.warns(RuntimeWarning, match="topologies: 'hub' is installed, too; what was given in Python takes its"):
        coband.Scenario.of(SCENARIO).with_({"network.topology": Hub(kind="hub")})
    assert LISTS["topologies"]["hub"] is Hub


@pytest.mark.usefixtures("_forgotten")
def test_the_kit_takes_an_algorithm_as_an_object() -> None:
    cases(ALGORITHM)[0].check()
    forgetful = replace(ALGORITHM, agent=type("Mine", (ALGORITHM.agent,), {"observe": lambda *given: []}))
    with pytest.raises(InvariantViolation, match=r"an agent writes `self\.unshared \+= 1` in observe"):
        cases(forgetful)[0].check()
    with pytest.raises(ValueError, match="'unknown' is not an algorithm that is installed; give the coband.Algorithm"):
        cases("unknown")


def _exit(*given: Any) -> Any:
    sys.exit(0)


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize(("method", "workers"), [("choose", 1), ("choose", 2), ("observe", 1), ("report", 1)])
def test_an_exit_fails_its_job_and_no_other(method: str, workers: int, tmp_path: Path) -> None:
    own = replace(ALGORITHM, name="leaves", agent=type("Leaves", (ALGORITHM.agent,), {method: _exit}))
    algorithms = [{"algorithm": own}, {"algorithm": "lin_ucb"}]
    with pytest.warns(coband.RunWarning, match="1 of 2 jobs broke off"):
        run = coband.run(SCENARIO, algorithms=algorithms, workers=workers, out=tmp_path / "run", progress=False)
    assert run.results["label"].tolist() == ["lin_ucb"]
    line = _exit.__code__.co_firstlineno + 1
    assert f"test_objects.py:{line}: sys.exit(0) was called; return" in str(run.failures["error"].tolist())
    told = (tmp_path / "run" / "results.json").read_text()
    assert "coband.run(..., only='leaves', trace='full') where leaves is defined" in told
