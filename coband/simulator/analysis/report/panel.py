"""A panel: one figure of the report as an object. The page, ``coband plot`` and ``run.plot`` all show the same panels.

A panel has a tidy frame of its numbers and a function that draws some of its rows into one pair of axes. It knows
nothing of sweeps, pages or files: the frame is split by the column that `Panel.each` names and by environment, and
each part is drawn by itself (`analysis.report.drawing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coband.simulator.analysis.comparison.data import ReportError
from coband.simulator.scenario_errors import nearest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from coband.simulator.analysis.comparison.analysis import Analysis
    from coband.simulator.analysis.report.style import Styles


@dataclass(frozen=True)
class Panel:
    """One figure, with its table.

    Attributes:
        name: in ``coband plot RUN NAME`` and ``run.plot.NAME()``, and its anchor in the page.
        title: the heading of its section.
        caption: one or two sentences below it.
        frame: given the labels of one environment, returns the numbers: columns that say what a row is (``label``,
            the column of ``each``), then ``mean``, ``low``, ``high``, ``n``. Without rows the panel is not shown.
        draw: draws a part of the frame into a pair of axes: artists with ``label=`` are in the legend, and those with
            ``gid="tip:TEXT"`` show a text under the pointer. It makes no figure, title or legend. None: a table only.
        each: the column whose values have a drawing each.
        rows: whether the drawing has a row per label, so that its height grows with them.
        table: what of the frame is the table below the figure, with texts such as "41.4 ± 2.7" for its means.
        whole: whether ``frame`` is given all environments of a sweep at once and has a column ``environment`` itself.
        main: whether the page of a sweep with many environments shows it at once; others are folded.
        html: makes what the page shows in place of drawings, from the analysis.
        after: the name of the panel that it follows in the page.
    """

    name: str
    title: str
    caption: str
    frame: Callable[[Analysis], pd.DataFrame]
    draw: Callable[[Axes, pd.DataFrame, Styles], object] | None = None
    each: str | None = None
    rows: bool = False
    table: Callable[[pd.DataFrame], pd.DataFrame] = field(default=lambda frame: frame)
    whole: bool = False
    main: bool = False
    html: Callable[[Analysis], str] | None = None
    after: str = ""

    def numbers(self, analysis: Analysis, **only: object) -> pd.DataFrame:
        """The frame; in a sweep that of each environment, named in the first column.

        Args:
            only: conditions on columns: a value, or several.

        Raises:
            ReportError: there is no such column, or no row with such a value.
        """
        import pandas as pd

        if self.whole or not analysis.swept:
            found = self.frame(analysis)
        else:
            frames = [(one.environment, self.frame(one)) for one in analysis.within]
            found = pd.concat([frame.assign(environment=name) for name, frame in frames], ignore_index=True)
            found = found[["environment", *found.columns.drop("environment")]]
            if self.each is not None and self.each in found:  # the drawings of one value stand side by side
                order = {value: place for place, value in enumerate(found[self.each].unique())}
                found = found.sort_values(self.each, key=lambda values: values.map(order), kind="stable")
            if len(analysis.within) == 1:
                found = found.drop(columns="environment")
            elif sole(analysis) and "label" in found:  # its environments are rows, and no drawings
                found = found.assign(label=found["environment"]).drop(columns="environment")
        return _selected(found.reset_index(drop=True), only)

    def parts(self, frame: pd.DataFrame) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
        """(value of ``each`` and environment, rows) of each drawing."""
        keys = [key for key in (self.each, "environment") if key in frame]
        if frame.empty:
            return []
        if not keys:
            return [((), frame)]
        return [(tuple(map(str, key)), part) for key, part in frame.groupby(keys, sort=False)]


def sole(analysis: Analysis) -> bool:
    """Whether there are several environments with the same one label in each."""
    labels = {tuple(one.labels) for one in analysis.within}
    return len(analysis.within) > 1 and len(labels) == 1 == len(analysis.within[0].labels)


def _selected(frame: pd.DataFrame, only: Mapping[str, Any]) -> pd.DataFrame:
    for column, value in only.items():
        if column not in frame:
            raise ReportError(f"there is no column {column!r}; the columns are {', '.join(map(str, frame.columns))}.")
        wanted = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
        texts = frame[column].map(str)
        for text in map(str, wanted):
            if text not in set(texts):
                raise ReportError(
                    f"there is no row with {column}={text}; its values are {nearest(text, texts.unique().tolist())}."
                )
        frame = frame[texts.isin(list(map(str, wanted)))]
    return frame
