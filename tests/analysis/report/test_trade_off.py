"""The figure of regret against communication and time: intervals, curves of parameters, and what is not dominated."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from coband.simulator.analysis.report.drawing import styled
from coband.simulator.analysis.report.frontier import TradeOff, curves, trade_off_figure
from coband.simulator.analysis.report.palette import INK, PAPER, SERIES, line_style
from coband.simulator.core.metrics import ALWAYS
from coband.simulator.experiments.runs.planner import Parameter
from coband.simulator.experiments.statistics.dominance import Standing
from coband.simulator.experiments.statistics.estimates import Estimate

MEASURES = {metric.name: metric for metric in ALWAYS if metric.better}
SENT = [Estimate(500.0, (400.0, 600.0), 5), Estimate(40_000.0, (40_000.0, 40_000.0), 5)]
REGRETS = [Estimate(30.0, (20.0, 40.0), 5), Estimate(10.0, None, 1)]
SILENT = Estimate(0.0, (0.0, 0.0), 5), Estimate(90.0, (80.0, 100.0), 5)
BEST = Standing("frontier", None, True)


def point(label: str, cost: Estimate, gain: Estimate, standing: Standing = BEST, **values: float) -> TradeOff:
    parameters = tuple(Parameter(f"algorithms.{name}", name, str(x), x) for name, x in values.items())
    return TradeOff(label, label[:1], parameters, 0, cost, gain, standing, None)


def drawn(*points: TradeOff) -> Axes:
    with styled():
        styles = {entry: line_style(number) for number, entry in enumerate({point.entry: None for point in points})}
        (axis,) = trade_off_figure([(MEASURES["scalars"], MEASURES["regret"], points)], styles).axes
    return axis


def lines(axis: Axes) -> list[tuple[list[float], list[float]]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines]  # type: ignore[arg-type]


def test_points_have_intervals_both_ways() -> None:
    axis = drawn(point("A", SENT[0], REGRETS[0]), point("B", SENT[1], REGRETS[1]))
    staircase, *others = lines(axis)
    assert staircase == ([500.0, 40_000.0], [30.0, 10.0])
    assert others[:3] == [([400.0, 600.0], [30.0, 30.0]), ([500.0, 500.0], [20.0, 40.0]), ([500.0], [30.0])]
    assert others[4:] == [([40_000.0] * 2, [10.0, 10.0]), ([40_000.0], [10.0])]
    assert axis.get_xscale() == "symlog"  # the one sends eighty times what the other sends
    low, high = axis.get_xlim()
    assert [tick for tick in axis.get_xticks() if low <= tick <= high][:3] == [500.0, 1000.0, 2000.0]
    assert axis.get_ylim()[0] == 0.0


def test_who_sends_nothing_stands_at_zero() -> None:
    axis = drawn(point("A", SENT[0], REGRETS[0]), point("B", *SILENT))
    assert (axis.get_xlim()[0], axis.get_xscale()) == (0.0, "symlog")
    assert drawn(point("A", SENT[0], REGRETS[0]), point("B", SENT[0], REGRETS[1])).get_xscale() == "linear"


def test_signs_say_what_is_known() -> None:
    standings = [BEST, Standing("undecided", None, False), Standing("beaten", 0, False)]
    axis = drawn(*(point("A", SENT[0], REGRETS[0], one) for one in standings))
    faces = [to_hex(line.get_markerfacecolor()) for line in axis.lines if line.get_marker() not in ("", "None")]
    assert faces[0] == SERIES[0]
    assert faces[2] == PAPER
    assert faces[1] not in (SERIES[0], PAPER)
    legend = axis.figure.legends[0]
    expected = ["A", "not dominated", "not distinguishable", "dominated"]
    assert [text.get_text() for text in legend.get_texts()] == expected


def test_of_one_replication_the_means_alone_count() -> None:
    one = Estimate(1.0, None, 1)
    axis = drawn(point("A", one, one, Standing("undecided", None, True)), point("B", one, one, BEST))
    assert to_hex(axis.lines[-1].get_markerfacecolor()) == SERIES[1]
    assert "not distinguishable" not in [text.get_text() for text in axis.figure.legends[0].get_texts()]


def test_a_curve_joins_the_values_of_one_parameter_in_their_order() -> None:
    found = [point(f"A{i}", *SILENT, threshold=t, q=q) for i, (t, q) in enumerate([(9, 1), (0.5, 1), (2, 1), (2, 3)])]
    ((name, joined),) = curves(found)
    assert (name, [one.label for one in joined]) == ("threshold", ["A1", "A2", "A0"])
    axis = drawn(*found)
    assert sorted(text.get_text() for text in axis.texts) == ["0.5", "2", "9"]
    assert {text.get_color() for text in axis.texts} == {INK}, "colours of lines are too light to read"
    assert axis.figure.legends[0].get_texts()[0].get_text() == "A (by threshold)"


def test_without_values_that_agree_a_curve_joins_the_best_means() -> None:
    at: Any = [(1, 9), (2, 5), (3, 7), (4, 1)]
    found = [
        point(f"A{i}", Estimate(x, None, 1), Estimate(y, None, 1), t=float(i), q=float(-i))
        for i, (x, y) in enumerate(at)
    ]
    ((name, joined),) = curves(found)
    assert (name, [one.label for one in joined]) == (None, ["A0", "A1", "A3"])
    assert curves([point("A", *SILENT)]) == []
