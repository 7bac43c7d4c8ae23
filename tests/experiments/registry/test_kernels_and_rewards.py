"""Kernels and rewards of other packages: what is taken in, what is refused, and where they can be named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Literal

import numpy as np
import pytest

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario import document, loading
from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.maths.kernels.base import BaseKernel, Columns, Positive, StationaryKernel
from coband.simulator.maths.kernels.library import Product
from coband.simulator.maths.kernels.registry import KERNELS, checked_kernel
from coband.simulator.plugins.entry_points import Loaded, PluginError, load
from coband.simulator.plugins.kinds import checked_class
from coband.simulator.problems.arms import ArmSource
from coband.simulator.problems.rewards import REWARDS, Reward, RewardFunction, RidgeFunction


@dataclass(frozen=True)
class Laplace(StationaryKernel):
    """exp(-||x - y|| / l)."""

    length_scale: Positive = 1.0
    columns: Columns | None = None
    kind: Literal["laplace"] = "laplace"

    def inverse_length(self) -> float:
        return 1.0 / self.length_scale

    def finish(self, G: FloatArray) -> FloatArray:
        values: FloatArray = np.exp(-np.sqrt(-2.0 * np.minimum(G, 0.0)))
        return values


class Plain(Reward):
    """x . 1."""

    kind: Literal["plain"]

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        return RidgeFunction(np.ones(source.dimension), lambda u: u)


SCENARIO = """\
name: open
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
problem:
  kind: contextual
  arms: {kind: box, dimension: 2, count: 3}
  reward: {kind: plain}
algorithms:
  - {algorithm: n_kernel_ucb, kernel: {kind: product, factors: [{kind: laplace, length_scale: 2}, {kind: linear}]}}
"""


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The two as if packages had brought them; what was built without them is built anew, and once more afterwards."""
    kernels = Loaded({**KERNELS.offered().found, "laplace": checked_kernel("laplace", Laplace)})
    rewards = Loaded({**REWARDS.offered().found, "plain": checked_class("plain", Plain, Reward)})
    monkeypatch.setattr(KERNELS, "_installed", kernels)
    monkeypatch.setattr(REWARDS, "_installed", rewards)
    _build_anew()
    yield
    monkeypatch.undo()
    _build_anew()


def _build_anew() -> None:
    for cache in (document.document_model, document.json_schema, loading._adapter):
        cache.cache_clear()
    found = Registry.installed()
    parts: list[Any] = [entry.config for entry in (*found.algorithms.values(), *found.problems.values())]
    for part in parts:
        part.model_rebuild(force=True)


@pytest.mark.usefixtures("_installed")
def test_scenarios_name_them() -> None:
    found = loads(SCENARIO)
    config: Any = found.algorithms[0].config
    assert isinstance(config.kernel, Product)
    assert config.kernel.factors[0] == Laplace(2.0)
    assert isinstance(found.problem.reward, Plain)  # type: ignore[attr-defined]
    assert loads(found.to_yaml()) == found
    assert "Laplace" in document.json_schema(Registry.installed())["$defs"]


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kind: laplace",
            "kind: laplac",
            "9:72: algorithms[0].kernel.factors[0].kind: 'laplac' is not a known kind; did you mean laplace? "
            "known: gaussian, linear, matern, polynomial, product, sum, laplace",
        ),
        (
            "length_scale: 2",
            "length_scale: 0",
            "9:95: algorithms[0].kernel.factors[0].length_scale: 0 is not allowed: must be > 0",
        ),
        (
            "kind: plain",
            "kind: plane",
            "7:18: problem.reward.kind: 'plane' is not a known kind; did you mean plain? "
            "known: branin, cosine, cubic, hartmann, linear, logistic, python, rkhs, square, plain",
        ),
        (
            "kind: plain",
            "kind: hartmann",
            "4:1: problem: reward hartmann is a function on [0, 1]^4: write arms: {kind: box, dimension: 4, ...}.",
        ),
    ],
)
def test_mistakes_are_explained(old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(SCENARIO.replace(old, new), "open.yaml")
    assert str(caught.value) == f"open.yaml:{message}"


class Bare(BaseKernel):
    """No dataclass."""


@dataclass(frozen=True)
class Columnless(StationaryKernel):
    """No columns."""

    kind: Literal["columnless"] = "columnless"


@pytest.mark.parametrize(
    ("name", "found", "message"),
    [
        ("laplace", Laplace(), "a subclass of coband.BaseKernel or coband.StationaryKernel is expected, not an object"),
        ("laplace", dict, "is expected, not the class dict"),
        ("bare", Bare, "Bare must be a frozen dataclass: write @dataclass(frozen=True) above it"),
        ("columnless", Columnless, "Columnless must have the field `columns: Columns | None = None`"),
        ("other", Laplace, "Laplace must have the field `kind: Literal['other']`, the entry point's name"),
    ],
)
def test_kernels_are_checked(name: str, found: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        checked_kernel(name, found)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "found", "message"),
    [
        ("plain", Laplace, "a subclass of coband.Reward is expected, not the class Laplace"),
        ("other", Plain, "Plain must have the field `kind: Literal['other']`, the entry point's name"),
    ],
)
def test_rewards_are_checked(name: str, found: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        checked_class(name, found, Reward)
    assert message in str(caught.value)


def test_a_kernel_that_does_not_load_is_left_out() -> None:
    found = load([EntryPoint("laplace", f"{__name__}:Plain", "coband.kernels")], checked_kernel)
    assert (found.found, list(found.broken)) == ({}, ["laplace"])
    assert found.warnings[0].startswith("coband.kernels: 'laplace' of an unknown package")
