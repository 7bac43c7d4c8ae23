"""The values behind the curves of a figure, which the page shows under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from coband.simulator.analysis.report.drawing import POINTS
from coband.simulator.analysis.report.palette import VARIABLES
from coband.simulator.arrays import FloatArray

MAX_POINTS = 40
"""Largest number of points of a curve whose values are in the page."""
MAX_VALUES = 5_000
"""Largest number of points of a figure whose values are in the page."""
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Noted:
    """The values of one curve: positions, heights, and the ends of their intervals where there are any."""

    label: str
    colour: str
    x: FloatArray
    y: FloatArray
    band: tuple[FloatArray, FloatArray] | None
    names: Sequence[str] | None
    across: str


_NOTED: WeakKeyDictionary[Axes, list[Noted]] = WeakKeyDictionary()


def note(
    axis: Axes,
    label: str,
    colour: str,
    x: ArrayLike,
    y: ArrayLike,
    band: tuple[ArrayLike, ArrayLike] | None = None,
    names: Sequence[str] | None = None,
    across: str = "",
) -> None:
    """Remember the values of a curve.

    Args:
        x: positions, shape (points,).
        y: heights, shape (points,).
        band: ends of the intervals of y, each of shape (points,).
        names: names of the positions where x only numbers them.
        across: what x is; empty for the name at the axis.
    """
    ends = None if band is None else (_floats(band[0]), _floats(band[1]))
    _NOTED.setdefault(axis, []).append(Noted(label, colour, _floats(x), _floats(y), ends, names, across))


def values(figure: Figure, moves: Sequence[tuple[float, float]] = ()) -> list[dict[str, Any]]:
    """The panels of a drawn figure that have curves: their places in SVG units and the values of the curves.

    Args:
        moves: by how much each panel moves on a narrow screen; empty if none does.
    """
    panels = [(number, axis, _NOTED[axis]) for number, axis in enumerate(figure.axes) if axis in _NOTED]
    curves = sum(len(noted) for _, _, noted in panels) or 1
    points = max(2, min(MAX_POINTS, MAX_VALUES // curves))
    width, height = (float(side) * POINTS for side in figure.get_size_inches())
    found = []
    for number, axis, noted in panels:
        place = axis.get_position()
        box = [place.x0 * width, (1 - place.y1) * height, place.x1 * width, (1 - place.y0) * height]
        across = noted[0].across or axis.get_xlabel()
        shown: dict[str, Any] = {"box": [round(side, 1) for side in box], "x": across}
        if moves:
            shown["move"] = [round(by, 1) for by in moves[number]]
        found.append({**shown, "curves": [_curve(axis, one, points, height) for one in noted]})
    return found


def _curve(axis: Axes, one: Noted, points: int, height: float) -> dict[str, Any]:
    kept = np.unique(np.linspace(0, len(one.x) - 1, points).round().astype(np.intp))
    places = axis.transData.transform(np.column_stack([one.x[kept], one.y[kept]]))
    scale = POINTS / axis.figure.dpi
    curve = {
        "label": one.label,
        "colour": VARIABLES.get(one.colour, "var(--ink)"),
        "at": [round(float(across) * scale) for across in places[:, 0]],
        "level": [round(height - float(up) * scale) for up in places[:, 1]],
        "value": _rounded(one.y[kept]),
        "x": [one.names[i] for i in kept] if one.names is not None else _rounded(one.x[kept]),
    }
    if one.band is not None:
        curve |= {"low": _rounded(one.band[0][kept]), "high": _rounded(one.band[1][kept])}
    return curve


def _rounded(numbers: FloatArray) -> list[float]:
    return [float(f"{number:.{DIGITS}g}") for number in numbers]


def _floats(numbers: ArrayLike) -> FloatArray:
    return np.asarray(numbers, dtype=np.float64)
