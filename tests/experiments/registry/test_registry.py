"""Entry points: what is taken in, what is left out, and what is said about it."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint, distribution
from unittest import mock

import pytest
from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.experiments.registry.registry import Registry, checked_algorithm, checked_problem
from coband.simulator.plugins import kinds
from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.plugins.kinds import LISTS, Kinds
from coband.simulator.problems.world import ProblemEntry
from tests.experiments.registry.plugins import ASYNC, PROBLEMS

HERE = "tests.experiments.registry.plugins"


def point(name: str, value: str, group: str = "coband.algorithms") -> EntryPoint:
    return EntryPoint(name, value, group)


def collected(points: list[EntryPoint]) -> Kinds[Algorithm]:
    """A list of algorithms with these entry points."""
    with mock.patch.dict(LISTS), mock.patch.object(kinds, "installed", return_value=points):
        found = Kinds("algorithms", checked_algorithm, callable)
        assert found.warnings is found.warnings
    return found


def test_entry_points_are_loaded() -> None:
    registry = collected([point("local_ucb", f"{HERE}:LOCAL"), point("async_kernel_ucb", f"{HERE}:ASYNC")])
    assert list(registry) == ["async_kernel_ucb", "local_ucb"]
    assert registry["async_kernel_ucb"] is ASYNC
    assert (registry.warnings, registry.broken) == ([], {})


def test_a_broken_plugin_is_named_and_left_out() -> None:
    registry = collected([point("ghost", "no_such_module:X"), point("local_ucb", f"{HERE}:LOCAL")])
    assert list(registry) == ["local_ucb"]
    assert registry.broken == {"ghost": "No module named 'no_such_module'"}
    assert registry.warnings == [
        "coband.algorithms: 'ghost' of an unknown package (no_such_module:X) is left out: "
        "No module named 'no_such_module'"
    ]


def test_a_second_plugin_of_the_same_name_is_ignored() -> None:
    registry = collected([point("local_ucb", f"{HERE}:LOCAL"), point("local_ucb", f"{HERE}:ASYNC")])
    assert registry["local_ucb"].name == "local_ucb"
    assert registry.warnings == [
        f"coband.algorithms: 'local_ucb' of an unknown package ({HERE}:ASYNC) is ignored: "
        f"an unknown package ({HERE}:LOCAL) has that name"
    ]


def test_the_same_entry_point_twice_is_no_news() -> None:
    assert collected([point("local_ucb", f"{HERE}:LOCAL")] * 2).warnings == []


def own(name: str, value: str) -> EntryPoint:
    made = point(name, value)
    vars(made).update(dist=distribution("coband"))
    return made


def test_our_own_are_loaded_when_they_are_asked_for() -> None:
    asked = "tests.experiments.registry.asked_for"
    registry = collected([own("ghost", "no_such_module:X"), own("local_ucb", f"{HERE}:LOCAL"), own("x", f"{asked}:X")])
    assert registry["local_ucb"].name == "local_ucb"
    assert (registry.warnings, registry.broken, asked in sys.modules) == ([], {}, False)
    assert "ghost" not in registry
    assert registry.broken == {"ghost": "No module named 'no_such_module'"}
    assert list(registry) == ["local_ucb"]
    assert set(registry.broken) == {"ghost", "x"}


class Hiding(ASYNC.agent):  # type: ignore[misc,name-defined]
    alpha = 3.0


class Labelled(BaseModel):
    label: int = 0


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (3, "a coband.Algorithm is expected, not an object of type int"),
        (BaseModel, "a coband.Algorithm is expected, not the class BaseModel"),
        (replace(ASYNC, name="x"), "the entry point is called 'async_kernel_ucb' but the algorithm 'x'"),
        (replace(ASYNC, agent=int), "agent must be a subclass of coband.Agent or coband.BatchAgent"),  # type: ignore[arg-type]
        (
            replace(ASYNC, server="server.x"),
            "server='server.x'".replace("=", "(=") + ") must be None or 'module:Class'",
        ),
        (replace(ASYNC, config=dict), "config must be a pydantic model"),  # type: ignore[arg-type]
        (replace(ASYNC, config=Labelled), "config must not have a field 'label'"),
        (replace(ASYNC, agent=Hiding), "Hiding has an attribute 'alpha', which would hide the parameter of its config"),
    ],
)
def test_algorithms_are_checked(found: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        checked_algorithm("async_kernel_ucb", found)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ASYNC, "a coband.ProblemEntry is expected, not an object of type Algorithm"),
        (replace(PROBLEMS["clusters"], name="x"), "the entry point is called 'clusters' but the problem 'x'"),
        (
            replace(PROBLEMS["clusters"], config=Labelled),  # type: ignore[arg-type]
            "a subclass of coband.Problem is expected, not the class Labelled",
        ),
        (
            ProblemEntry("clusters", PROBLEMS["contextual"].config, "", ""),
            "ContextualProblem must have the field `kind: Literal['clusters']`",
        ),
    ],
)
def test_problems_are_checked(found: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        checked_problem("clusters", found)
    assert message in str(caught.value)


def test_everything_built_in_loads() -> None:
    registry = Registry.installed()
    assert registry.warnings == ()
    assert {"async_kernel_ucb", "approx_dis_kernel_ucb"} <= set(registry.algorithms)
    assert {"contextual", "clusters"} <= set(registry.problems)
