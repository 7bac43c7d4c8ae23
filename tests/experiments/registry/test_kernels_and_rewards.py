"""Kernels and rewards of other packages: what is taken in, and what is refused."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Literal
from unittest import mock

import pytest

from coband.simulator.maths.kernels.base import BaseKernel, StationaryKernel
from coband.simulator.maths.kernels.registry import checked_kernel
from coband.simulator.plugins import kinds
from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.plugins.kinds import LISTS, Kinds, checked_class
from coband.simulator.problems.rewards import Reward
from tests.experiments.registry.open_lists_plugin import Laplace, Total


class Bare(BaseKernel):
    """No dataclass."""


@dataclass(frozen=True)
class Columnless(StationaryKernel):
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
        ("total", Laplace, "a subclass of coband.Reward is expected, not the class Laplace"),
        ("other", Total, "Total must have the field `kind: Literal['other']`, the entry point's name"),
    ],
)
def test_rewards_are_checked(name: str, found: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        checked_class(name, found, Reward)
    assert message in str(caught.value)


def test_a_kernel_that_does_not_load_is_left_out() -> None:
    points = [EntryPoint("laplace", f"{Total.__module__}:Total", "coband.kernels")]
    with mock.patch.dict(LISTS), mock.patch.object(kinds, "installed", return_value=points):
        found = Kinds("kernels", checked_kernel, callable)
        assert (dict(found), list(found.broken)) == ({}, ["laplace"])
    assert found.warnings[0].startswith("coband.kernels: 'laplace' of an unknown package")
