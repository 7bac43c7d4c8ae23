"""The figure of regret against communication."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="pip install 'coband[report]'")

from coband.simulator.experiments.report.drawing import styled
from coband.simulator.experiments.report.figures import trade_off_figure
from coband.simulator.experiments.statistics.estimates import Estimate

SENT = [Estimate(500.0, (400.0, 600.0), 5), Estimate(40_000.0, (40_000.0, 40_000.0), 5)]
REGRETS = [Estimate(30.0, (20.0, 40.0), 5), Estimate(10.0, None, 1)]
SILENT = Estimate(0.0, (0.0, 0.0), 5), Estimate(90.0, (80.0, 100.0), 5)


def test_points_have_intervals_both_ways() -> None:
    with styled():
        (axis,) = trade_off_figure(["A", "B"], SENT, REGRETS).axes
    lines = [(line.get_xdata(), line.get_ydata()) for line in axis.lines]
    assert [tuple(map(list, line)) for line in lines[:3]] == [
        ([400.0, 600.0], [30.0, 30.0]),
        ([500.0, 500.0], [20.0, 40.0]),
        ([500.0], [30.0]),
    ]
    assert [tuple(map(list, line)) for line in lines[4:]] == [([40_000.0] * 2, [10.0, 10.0]), ([40_000.0], [10.0])]
    assert axis.get_xscale() == "symlog"  # the one sends eighty times what the other sends
    assert axis.get_ylim()[0] == 0.0


def test_who_sends_nothing_stands_at_zero() -> None:
    with styled():
        (axis,) = trade_off_figure(["A", "B"], [SENT[0], SILENT[0]], [REGRETS[0], SILENT[1]]).axes
    assert (axis.get_xlim()[0], axis.get_xscale()) == (0.0, "symlog")
    with styled():
        (axis,) = trade_off_figure(["A", "B"], [SENT[0]] * 2, REGRETS).axes
    assert axis.get_xscale() == "linear"
