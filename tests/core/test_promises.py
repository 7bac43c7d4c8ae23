"""Plugins whose methods return what they must not, or take other parameters: the sentence names the place."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.hosts.speed import BaseStragglers
from coband.simulator.core.network.partitions import BaseOutage
from coband.simulator.core.network.topologies import BaseGraph
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.randomness.distributions import BaseDistribution, Sampler
from coband.simulator.core.wire.behaviours import BaseBehaviour
from coband.simulator.core.wire.defences import BaseDefence
from coband.simulator.core.wire.encodings import BaseEncoding
from coband.simulator.core.wire.privacy import BaseMechanism
from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.plugins.functions import FUNCTIONS
from coband.simulator.plugins.promises import hold_to
from coband.simulator.problems.rewards import Reward, means_of
from coband.simulator.scenario_errors import BrokenOff

TWO = np.ones(2)
NAN = np.array([1.0, np.nan])
Answers = list[tuple[Any, str | None]]  # what a method returns, and how the sentence goes on; None: nothing is wrong
PLACES: list[tuple[type[Any], str, tuple[Any, ...], str, Answers]] = [
    (
        BaseDistribution,
        "draw",
        (None, 2),
        "an array of 2 finite numbers >= 0",
        [
            (TWO, None),
            (np.zeros(2), None),
            (-TWO, "an array of shape (2,) with -1.0, -1.0"),
            (NAN, "an array of shape (2,) with 1.0, nan"),
            (np.inf * TWO, "an array of shape (2,) with inf, inf"),
            (np.ones(3), "an array of shape (3,) with 1.0, 1.0, 1.0"),
            ([1.0, 1.0], "a list of 1.0, 1.0"),
            (None, "None"),
        ],
    ),
    (
        BaseMechanism,
        "noise",
        (2, "new", 1, None),
        "an array of 2 finite numbers",
        [(-TWO, None), (NAN, "an array of shape (2,)"), (TWO[:, None], "an array of shape (2, 1)"), (0.0, "0.0")],
    ),
    (
        BaseEncoding,
        "decode",
        ([], 2),
        "an array of 2 finite numbers",
        [(-TWO, None), (NAN, "an array of shape (2,)"), (np.ones(1), "an array of shape (1,)")],
    ),
    (
        BaseEncoding,
        "widths",
        (2,),
        "a list of (how many codes, bits of each)",
        [([(1, 32), (2, 8)], None), ([16, 16], "a list of 16, 16"), ([(2, 8.0)], "a list of a tuple of 2, 8.0")],
    ),
    (
        BaseStragglers,
        "factors",
        (2, None),
        "a list of 2 finite numbers > 0",
        [
            ([1.0, 3.0], None),
            ([1.0], "a list of 1.0"),
            ([1.0, 0.0], "a list of 1.0, 0.0"),
            ([1.0, np.inf], "a list of 1.0, inf"),
            ([1.0, np.nan], "a list of 1.0, nan"),
            (TWO, "an array of shape (2,)"),
        ],
    ),
    (
        BaseDefence,
        "mean",
        (np.ones((5, 2)),),
        "a finite number for each of the columns it is given",
        [(-TWO, None), (NAN, "an array of shape (2,)"), (np.ones((5, 2)), "an array of shape (5, 2)"), (1.0, "1.0")],
    ),
    (
        BaseBehaviour,
        "corrupt",
        ({"b": TWO}, None),
        "the fields that it is given, with finite numbers of the same shapes",
        [
            ({"b": np.inf * TWO}, "a dict"),
            ({}, "a dict"),
            ({"b": TWO, "W": TWO}, "a dict"),
            ({"b": np.ones(3)}, "a dict"),
            ({"b": NAN}, "a dict"),
        ],
    ),
    (
        BaseGraph,
        "draw",
        (3, None),
        "a Graph of 3 nodes that lists each link with both of its ends, neighbours in ascending order",
        [
            (Graph(((1, 2), (0,), (0,))), None),
            (Graph(((), (), ())), None),
            *(
                (Graph(adjacency), "a Graph")
                for adjacency in (
                    ((1, 3), (0,), ()),
                    ((2, 1), (0,), (0,)),
                    ((1,), (), ()),
                    ((0,), (), ()),
                    ((1,), (0,)),
                    (),
                )
            ),
        ],
    ),
    (Reward, "draw", (None, None), "the function f", [(len, None), (None, "None"), (TWO, "an array of shape (2,)")]),
]
CASES = [(base, method, given, right, *one) for base, method, given, right, answers in PLACES for one in answers]


def _plugin(base: type[Any], **members: Any) -> Any:
    """A class of another package, which has what the base asks for."""
    # Without the base: its promises are what is tested, not its fields.
    others = {name: inspect.getattr_static(base, name) for name in base.__abstractmethods__}
    fakes = {name: property(len) if isinstance(one, property) else lambda *given: None for name, one in others.items()}
    found = type("Mine", (), fakes | members)
    hold_to(found, base)
    return found()


@pytest.mark.parametrize(("base", "method", "given", "right", "answer", "wrong"), CASES)
def test_what_a_method_returns(
    base: type[Any], method: str, given: tuple[Any, ...], right: str, answer: Any, wrong: str | None
) -> None:
    def mine(self: Any, *given: Any) -> Any:
        return answer

    mine.__qualname__ = f"Mine.{method}"
    plugin = _plugin(base, **{method: mine})
    if wrong is None:
        assert getattr(plugin, method)(*given) is answer
        return
    begins, name = f"Mine.{method} returned {wrong}", f"coband.{base.__name__}.{method}"
    with pytest.raises(BrokenOff, match=f"{re.escape(begins)}.*; {re.escape(f'{name} returns {right}')}$"):
        getattr(plugin, method)(*given)


def _short(self: Any, rng: Any) -> None:
    """Lacks a parameter."""


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {"draw": _short},
            r"test_promises\.py:\d+: Mine.draw takes \(self, rng\); it is called with \(self, rng, size\)$",
        ),
        ({"draw": lambda self, rng, size, more: TWO}, r"Mine.draw takes \(self, rng, size, more\); it is"),
        ({"mean": lambda self: 1.0}, r"Mine\.mean: write @property above it, as coband\.BaseDistribution has it"),
        ({"draw": property(lambda self: TWO)}, r"Mine\.draw: leave out @property, as coband\.BaseDistribution has it"),
    ],
)
def test_how_a_method_is_called(members: dict[str, Any], says: str) -> None:
    with pytest.raises(PluginError, match=says):
        _plugin(BaseDistribution, **members)


@pytest.mark.parametrize("takes", [lambda self, *given: TWO, lambda self, rng, size, more=0: TWO])
def test_a_method_may_take_more(takes: Callable[..., Any]) -> None:
    assert _plugin(BaseDistribution, draw=takes).draw(None, 2) is TWO


@pytest.mark.parametrize("answer", [np.ones((3, 1)), np.ones(6), None, [[1.0, 1.0]] * 3])
def test_what_a_reward_function_returns(answer: Any) -> None:
    class Mine:
        def __call__(self, arms: Any) -> Any:
            return answer

        def describe(self) -> Any:
            return {}

    says = (
        r"test_promises\.py:\d+: Mine returned .* for arms of shape \(3, 2, 4\); return .* an array of shape \(3, 2\)$"
    )
    with pytest.raises(BrokenOff, match=says):
        means_of(Mine(), np.ones((3, 2, 4)))


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (0.5, None),
        (np.float64(0.5), None),
        (-1.0, "-1.0"),
        (np.nan, "nan"),
        (None, "None"),
        ("x", "a str"),
        ([1, 2], "a list of 1, 2"),
    ],
)
def test_what_a_function_of_delays_returns(monkeypatch: pytest.MonkeyPatch, answer: Any, wrong: str | None) -> None:
    def mine(rng: np.random.Generator) -> Any:
        return answer

    monkeypatch.setitem(FUNCTIONS.registered, "mine", mine)
    sampler = Sampler(kind="sampler", function="__main__:mine")
    if wrong is None:
        assert sampler.draw(np.random.default_rng(0), 2).tolist() == [0.5, 0.5]
        return
    says = rf"test_promises\.py:\d+: __main__:mine returned {wrong}; .* it returns one finite number >= 0$"
    with pytest.raises(BrokenOff, match=says):
        sampler.draw(np.random.default_rng(0), 2)


def test_nodes_that_there_are_not() -> None:
    with pytest.raises(BrokenOff, match="-1 .. 3 - 1"):
        _plugin(BaseOutage, windows=lambda self, agents, rng: {17: []}).windows(3, None)
