"""Figures of a run for notebooks and papers: the panels of the report, by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from coband.simulator.api.errors import RunError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from coband.simulator.analysis.comparison.analysis import Analysis


class Plots:
    """The figures of a run: ``run.plot.NAME(ax=None, width=None, height=None, COLUMN=value, ...)``.

    A figure shows the rows of its panel's frame that have the values given: ``run.plot.regret(x="time")``,
    ``run.plot.results(measure="regret", label=["Async", "Dis"])``. `frame` is the frame itself, in which the columns
    are. What is returned is a `matplotlib.figure.Figure`, or the axes that were given.

    Args:
        analysed: opens and analyses the run.
    """

    def __init__(self, analysed: Callable[[], AbstractContextManager[Analysis]]) -> None:
        self._analysed = analysed

    def frame(self, name: str, **only: object) -> pd.DataFrame:
        """The numbers of a panel, those rows that have the values given.

        Raises:
            RunError: there is no such panel, column or value, or no job has finished.
        """
        from coband.simulator.analysis.report.catalogue import panel

        with self._analysed() as analysis:
            return panel(name).numbers(analysis, **only)

    def __getattr__(self, name: str) -> Callable[..., Figure | Axes]:
        if name.startswith("_") or name not in self.__dir__():
            raise AttributeError(f"there is no panel {name!r}; the panels are {', '.join(self.__dir__())}.")
        return partial(self._draw, name)

    def __dir__(self) -> list[str]:
        from coband.simulator.analysis.report.catalogue import panels

        return [name for name, one in panels().items() if one.draw is not None]

    def _draw(
        self, name: str, *, ax: Axes | None = None, width: float | None = None, height: float | None = None, **only: Any
    ) -> Figure | Axes:
        from coband.simulator.analysis.report.catalogue import panel
        from coband.simulator.analysis.report.drawing import draw_part, file_figure
        from coband.simulator.analysis.report.style import Styles, styled

        one = panel(name)
        with self._analysed() as analysis:
            frame, styles = one.numbers(analysis, **only), Styles(analysis)
            parts = one.parts(frame)
            if not parts:
                raise RunError(f"this run has nothing to draw for {name}. It shows: {one.caption}")
            if ax is None:
                return file_figure(one, frame, styles, width, height)
            if len(parts) > 1:
                keys = " or ".join(key for key in (one.each, "environment") if key is not None and key in frame)
                raise RunError(f"{name} has {len(parts)} drawings, and axes have room for one; choose by {keys}.")
            with styled():
                draw_part(ax, one, *parts[0], styles)
                if ax.get_legend_handles_labels()[1] and not one.rows:
                    ax.legend()
        return ax

    def __repr__(self) -> str:
        return f"Plots: {', '.join(self.__dir__())}, frame(name)"
