"""Figures of panels: for the page, where each part is an SVG of one size, and for files, in any size with a legend."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter, MaxNLocator, NullFormatter, ScalarFormatter

from coband.simulator.analysis.comparison.data import ReportError
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.style import (
    HEADINGS,
    OTHERS,
    SIZE,
    SMALL,
    SMALL_STYLE,
    Styles,
    styled,
    tick,
    wrapped,
)

WIDTH, HEIGHT = 3.7, 2.3
"""Size of a drawing of the page in inches."""
COLUMN = (3.3, 2.2)
"""Size of a drawing in a file, unless another is asked for: a column of a paper with two."""
ACROSS = 3
"""Drawings side by side in a file."""
ROW, LINE = 0.1, 0.15
"""Height of a row in inches: of its margin, and of each line of its name."""
CHARACTER = 0.6
"""Width of an average character of the font, as a share of its size."""
HANDLE = 4.4
"""Width of the sign in front of a legend entry, and of the gap between entries, in font sizes."""
NAMES = 22
"""Characters in a line of the name of a row; in files a share of the width."""
MAX_RATIO = 8.0
"""Drawings side by side have one axis unless their heights differ by a larger factor."""
LEAST = 0.35
"""Smallest height and width of the axes of a file's drawing, in inches."""
RESOLUTION = 200
FORMATS = ("pdf", "svg", "png")
UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


class Drawing(Figure):
    """A figure that is saved, and shown in a notebook, in the style in which it was drawn."""

    def savefig(self, *arguments: Any, **options: Any) -> None:
        with styled(SMALL_STYLE):
            super().savefig(*arguments, **{"facecolor": "white", **options})

    def _repr_png_(self) -> bytes:
        return rendered(self, "png")


def rendered(figure: Figure, kind: str, resolution: int = RESOLUTION) -> bytes:
    """A figure as the bytes of a pdf, svg or png file with white background; the same runs give an identical file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=resolution, metadata=UNDATED[kind])
    return buffer.getvalue()


def draw_part(
    axis: Axes, panel: Panel, key: Sequence[str], part: pd.DataFrame, styles: Styles, width: int = NAMES
) -> None:
    """Draw one part of a panel, with title, grid, and numbers at the axes.

    Args:
        key: what tells the part from others, which the title says where no axis does.
        width: largest number of characters in a line of a row's name.
    """
    if panel.draw is None:
        raise ReportError(f"{panel.name} is a table: `--format csv` writes it.")
    axis.grid(visible=True, axis="x" if panel.rows else "both")
    panel.draw(axis, part, styles)
    words = [HEADINGS.get(word, word.replace("_", " ")) for word in key if word]
    said = {one.replace("_", " ") for one in (axis.get_xlabel(), axis.get_ylabel())}
    axis.set_title(", ".join(word for word in words if word not in said))
    for one in (axis.xaxis, axis.yaxis):
        if isinstance(one.get_major_formatter(), (ScalarFormatter, LogFormatter)):
            one.set_major_formatter(FuncFormatter(tick))
            one.set_minor_formatter(NullFormatter())
            if one.get_scale() == "linear":
                one.set_major_locator(MaxNLocator(5))
    if panel.rows:
        axis.set_yticks(axis.get_yticks(), [wrapped(one.get_text(), width) for one in axis.get_yticklabels()])


def wrap_title(axis: Axes, inches: float) -> int:
    """Break the title into lines of this width, and return their number."""
    title = axis.get_title(loc="left")
    axis.set_title(wrapped(title, max(10, int(inches * 72 / (0.68 * float(axis.title.get_fontsize()))))))
    return axis.get_title(loc="left").count("\n") + 1 if title else 0


def lines(axis: Axes) -> int:
    """Number of lines of text that the names of rows take."""
    return sum(1 + one.get_text().count("\n") for one in axis.get_yticklabels())


def same_scale(panel: Panel, axes: Sequence[Axes]) -> None:
    """Give drawings side by side the same axis of numbers, unless that would press one of them flat."""
    bounds = np.array([axis.get_xlim() if panel.rows else axis.get_ylim() for axis in axes])
    spans = bounds[:, 1] - bounds[:, 0]
    if panel.name != "heat" and spans.max() <= MAX_RATIO * spans.min():
        for axis in axes:
            (axis.set_xlim if panel.rows else axis.set_ylim)(bounds[:, 0].min(), bounds[:, 1].max())


def entries(axes: Sequence[Axes]) -> dict[str, Any]:
    """Name -> sign of everything that a legend of these drawings has."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    return {name: found[name] for name in sorted(found, key=lambda name: name == OTHERS)}


def inline_figures(panel: Panel, parts: Sequence[tuple[Sequence[str], pd.DataFrame]], styles: Styles) -> list[Figure]:
    """A figure for each part, all of one width, with fixed margins so that their axes are aligned."""
    made: list[Figure] = []
    with styled():
        for key, part in parts:
            figure = Figure(figsize=(WIDTH, HEIGHT))
            draw_part(figure.add_subplot(), panel, key, part, styles)
            made.append(figure)
        groups: dict[str, list[Axes]] = {}
        for figure, (key, _) in zip(made, parts, strict=True):
            groups.setdefault(key[0] if panel.each and key else "", []).append(figure.axes[0])
        for axes in groups.values():
            same_scale(panel, axes)
        for figure in made:
            _place(figure, panel)
    return made


def _place(figure: Figure, panel: Panel) -> None:
    """Margins for the titles, and of the names of rows, in inches."""
    (axis,) = figure.axes
    across = axis.get_xlabel()
    bottom, left, height = 0.26 + 0.18 * (bool(across) + across.count("\n")), 0.62, HEIGHT
    if panel.rows:
        longest = max((len(line) for one in axis.get_yticklabels() for line in one.get_text().split("\n")), default=0)
        left = 0.12 + longest * CHARACTER * SIZE / 72
    top = 0.1 + 0.17 * wrap_title(axis, WIDTH - left)
    if panel.rows:
        height = top + bottom + ROW * len(axis.get_yticks()) + LINE * lines(axis)
        figure.set_figheight(height)
    figure.subplots_adjust(left / WIDTH, bottom / height, 1 - 0.12 / WIDTH, 1 - top / height)


def file_figure(
    panel: Panel, frame: pd.DataFrame, styles: Styles, width: float | None = None, height: float | None = None
) -> Drawing:
    """A figure of all parts of a frame, for a file.

    Args:
        width: of the whole figure, in inches; None for a column's width for each of up to three parts side by side.
        height: of each line of drawings, without rows that are more than it has room for.

    Raises:
        ReportError: there is no room, or nothing to draw.
    """
    if not (parts := panel.parts(frame)):
        raise ReportError(f"there is nothing to draw for {panel.name}.")
    columns = min(len(parts), ACROSS) if width is None or width > 1.6 * COLUMN[0] else 1
    columns = -(-len(parts) // -(-len(parts) // columns))
    width = columns * COLUMN[0] if width is None else width
    with styled(SMALL_STYLE):
        figure = Drawing(figsize=(width, 1.0), layout="constrained")
        axes = [figure.add_subplot(-(-len(parts) // columns), columns, place + 1) for place in range(len(parts))]
        most = max(8, int(0.36 * width / columns * 72 / (CHARACTER * SMALL)))
        for axis, (key, part) in zip(axes, parts, strict=True):
            draw_part(axis, panel, key, part, styles, most)
            wrap_title(axis, (1.0 if not panel.rows else 0.64) * width / columns - 0.5)
        one = height or COLUMN[1]
        if panel.rows and height is None:
            one = 0.7 + max(0.09 * len(axis.get_yticks()) + 0.13 * lines(axis) for axis in axes)
        figure.set_figheight(one * -(-len(parts) // columns))
        _add_legend(figure, entries(axes), width, fixed=height is not None)
        _fitted(figure, panel.name)
    return figure


def _add_legend(figure: Figure, found: dict[str, Artist], width: float, *, fixed: bool) -> None:
    """A legend above the drawings, which adds to the height unless that is asked for."""
    if not found:
        return
    columns = max(1, min(len(found), int(width * 72 / (SMALL * (CHARACTER * max(map(len, found)) + HANDLE)))))
    if not fixed:
        figure.set_figheight(figure.get_figheight() + 1.7 * SMALL / 72 * -(-len(found) // columns))
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside upper left",
        ncols=columns,
        handlelength=2.0,
        columnspacing=1.2,
        handletextpad=0.5,
    )


def _fitted(figure: Figure, name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    boxes = [axis.get_position() for axis in figure.axes]
    flat = min(box.width * width for box in boxes) < LEAST or min(box.height * height for box in boxes) < LEAST
    if flat or any("constrained_layout" in str(one.message) for one in caught):
        raise ReportError(
            f"a figure of {width:g} x {height:g} inches has no room for {name!r} with its legend and labels; "
            "give a larger --width or --height."
        )
