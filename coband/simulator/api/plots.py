"""Figures of a run for notebooks and papers, with the colours and bands of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from coband.simulator.api.errors import RunError, one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from coband.simulator.analysis.report.analysis import Analysis

Against = Literal["turns", "time", "scalars", "energy"]
SIZE = (5.6, 3.6)
INSIDE = 8
"""So many labels have room in the legend of a figure of its own; that of more stands below the panel."""
LEGEND_LINE = 0.2
"""Height of a line of it, in inches."""
METHODS = ("regret(x=...)", "turns()", "figure(name)")


class Plots:
    """The figures of a run.

    Args:
        analysed: opens and analyses the run.
    """

    def __init__(self, analysed: Callable[[], AbstractContextManager[Analysis]]) -> None:
        self._analysed = analysed

    def regret(
        self, x: Against = "turns", *, ax: Axes | None = None, labels: str | Iterable[str] | None = None
    ) -> Axes:
        """Cumulative regret: means over replications, with 95 % t intervals of the mean.

        Args:
            x: against turns, simulated time, scalars sent, or the energy of turns and messages.
            ax: where to draw; None for a figure of its own.
            labels: only these, in the colours that they have among all.

        Raises:
            RunError: there is no such label or axis, agents have no batteries, or no job has finished.
        """
        return self._curves(x, "regret", ax, labels)

    def turns(self, *, ax: Axes | None = None, labels: str | Iterable[str] | None = None) -> Axes:
        """Turns taken against simulated time: how fast each algorithm is.

        Args:
            ax: where to draw; None for a figure of its own.
            labels: only these.

        Raises:
            RunError: there is no such label, or no job has finished.
        """
        return self._curves("time", "turns", ax, labels)

    def figure(self, name: str) -> Figure:
        """A whole figure of the report, such as ``"communication"``, ``"differences"`` or ``"times"``.

        Raises:
            RunError: there is no such figure, or nothing to draw in it.
        """
        from coband.simulator.analysis.report import contents

        if name not in contents.NAMES:
            raise RunError(f"there is no figure {name!r}; there is {', '.join(contents.NAMES)}.")
        with self._analysed() as analysis:
            found = next(contents.figures(analysis, [name]), None)
        if found is None:
            raise RunError(f"this run has nothing to draw for {name}; its report says why.")
        return found.figure

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"there is no plot {name!r}; there is {', '.join(METHODS)}.")

    def _curves(
        self, x: Against, y: Literal["regret", "turns"], ax: Axes | None, labels: str | Iterable[str] | None
    ) -> Axes:
        axes = {"turns": "turns", "time": "times", "scalars": "scalars", "energy": "energy"}
        one_of("x", x, Against)
        from matplotlib import pyplot

        from coband.simulator.analysis.report import contents, figures
        from coband.simulator.analysis.report.drawing import legend_columns, styled

        panel: Any = figures.Panel(axes[x], y)  # type: ignore[arg-type]  # one of the three
        with self._analysed() as analysis, styled():
            wanted = _chosen(labels, analysis.labels)
            lines = [one for one in contents.lines(analysis) if one.label in wanted]
            many, (width, height) = ax is None and len(lines) > INSIDE, SIZE
            columns = legend_columns(wanted, width)
            size = (width, height + many * LEGEND_LINE * -(-len(wanted) // columns))
            axis = pyplot.subplots(figsize=size, layout="constrained", facecolor="white")[1] if ax is None else ax
            if x == "energy" and not figures.with_energy((), lines):
                raise RunError('x="energy": the agents of this run have no batteries; see agents.energy')
            figures.draw_panel(axis, lines, panel)
            handles = figures.legend_handles(lines)
            if many:  # they would cover the curves
                axis.figure.legend(handles=handles, loc="outside lower left", ncols=columns)
            else:
                axis.legend(handles=handles)
        return axis

    def __repr__(self) -> str:
        return f"Plots: {', '.join(METHODS)}"


def _chosen(labels: str | Iterable[str] | None, known: list[str]) -> list[str]:
    if labels is None:
        return known
    chosen = [labels] if isinstance(labels, str) else list(labels)
    for label in chosen:
        if label not in known:
            raise RunError(f"there is no label {label!r} in this run; there is {', '.join(known)}.")
    return chosen
