"""A run or a sweep on disk, as tables, figures, comparisons and explanations."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from coband.simulator.analysis.report import data
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.listing import listed
from coband.simulator.analysis.traces.causes import Chain, why
from coband.simulator.analysis.traces.exporting import TEXTS
from coband.simulator.analysis.traces.reading import TraceReader, one_job
from coband.simulator.api.errors import RunError, check, fits, translated
from coband.simulator.api.plots import Plots
from coband.simulator.api.rows import StoredTables, best, parameter_names
from coband.simulator.api.scenario import Scenario
from coband.simulator.api.table import Table
from coband.simulator.experiments.store.files import SCENARIO, called, keep_file
from coband.simulator.experiments.store.store import Event, open_run
from coband.simulator.experiments.store.variants import summary


class Comparison:
    """Rankings of the labels on each measure, and the differences between them.

    Attributes:
        differences: a row per measure and pair: ``mean`` is that of ``first`` minus ``second``, ``low`` and ``high``
            are the ends of the 95 % t interval (``bootstrap_low`` and ``bootstrap_high`` those of the bootstrap,
            ``any_time_low`` and ``any_time_high`` those of the confidence sequence, with its ``e_value``),
            where labels make different numbers of pulls, ``first_pulls`` and ``second_pulls`` are their means and
            ``at_pulls`` at how many they are compared, None for the whole run;
            ``paired`` says whether it is taken replication by replication, and ``verdict`` says which one is better.
        rankings: a row per measure: the sentence, and the labels that lead. In a sweep both tables begin with the
            environment, within which labels are compared.
        remarks: what readers must know before they compare numbers.
    """

    def __init__(self, listed: Mapping[str, Any]) -> None:
        self.remarks = tuple(listed["remarks"])
        place = ("environment",) if any("environment" in one for one in listed["rankings"]) else ()
        self.differences = Table.from_dicts(
            (_difference(one, (*place, *_DIFFERENCE)) for one in listed["differences"]),
            (*place, "measure", "first", "second", "verdict"),
            first=(*place, *_DIFFERENCE),
        )
        self.rankings = Table.from_rows(
            (*place, "measure", "sentence", "leaders"),
            (
                (*(one[key] for key in place), one["measure"], one["sentence"], ", ".join(_leaders(one)))
                for one in listed["rankings"]
            ),
            (*place, "measure", "sentence", "leaders"),
        )

    def __repr__(self) -> str:
        return "\n".join([*self.remarks, repr(self.rankings), "", repr(self.differences)])

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in self.remarks)
        return f"{remarks}{self.rankings._repr_html_()}{self.differences._repr_html_()}"


_DIFFERENCE = (
    "measure",
    "first",
    "second",
    "paired",
    "n",
    "mean",
    "relative",
    "low",
    "high",
    "bootstrap_low",
    "bootstrap_high",
    "any_time_low",
    "any_time_high",
    "e_value",
    "first_pulls",
    "second_pulls",
    "at_pulls",
    "verdict",
)


def _difference(one: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """A difference with the ends of intervals in columns of their own."""
    row = {key: one.get(key) for key in keys}
    row["first_pulls"], row["second_pulls"] = (one["pulls"].get(label) for label in (one["first"], one["second"]))
    row["low"], row["high"] = one["ci95_t"] or (None, None)
    row["bootstrap_low"], row["bootstrap_high"] = one["ci95_bootstrap"] or (None, None)
    row["any_time_low"], row["any_time_high"] = one["cs95"] or (None, None)
    return row


def _leaders(ranking: Mapping[str, Any]) -> list[str]:
    """The labels with the best mean, which is the lowest or the highest."""
    return ranking.get("lowest") or ranking.get("highest") or []


class Causes:
    """Why an event happened.

    Attributes:
        events: the event, its cause, the cause of that, and so on.
        sentence: the chain in words.
        messages: number of deliveries in the chain.
        delay: simulated time from the first cause to the event.
    """

    def __init__(self, chain: Chain) -> None:
        self.events = Table.from_rows(Event._fields, chain.events, TEXTS)
        self.sentence = chain.sentence + chain.further("whole=True")
        self.messages, self.delay = chain.messages, chain.delay

    def __repr__(self) -> str:
        return f"{self._shown()!r}\n{self.sentence}"

    def _repr_html_(self) -> str:
        return f"{self._shown()._repr_html_()}<p>{html.escape(self.sentence)}</p>"

    def _shown(self) -> Table:
        """The columns that fit on a line."""
        return self.events.select("seq", "time", "event", "node", "peer", "kind", "message", "cause")


REPORT = "report.html"
MOST_LABELS = 5


class ReportFile(type(Path())):  # type: ignore[misc]  # the class of paths on this system
    """The path of a report, which a notebook shows as the page."""

    def _repr_html_(self) -> str:
        page = html.escape(self.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 80vh; border: 0"></iframe>'


class Run(StoredTables):
    """A run on disk. Its tables are read when they are first used and then kept; `coband.load` reads again.

    Args:
        path: the run directory, its run.sqlite, or ``latest``.

    Raises:
        RunError: there is no run, or its store is of another version.
    """

    @property
    def scenario(self) -> Scenario:
        """The scenario, with all defaults; that of a sweep as it was given."""
        file = self.path / SCENARIO
        return Scenario.from_yaml(file) if file.is_file() else Scenario.from_yaml(self._scenario, base=self.path.parent)

    def why(
        self,
        event: int | Mapping[str, Any],
        *,
        label: str | None = None,
        replication: int | None = None,
        whole: bool = False,
    ) -> Causes:
        """The causes of an event, back to the turn that started the chain.

        Args:
            event: its number (``seq``), or a row of `events`, which names its label and replication.
            label, replication: of the job whose event it is; None if there is one alone.
            whole: go on beyond that turn, to its own causes.

        Raises:
            RunError: there is no such event, or several jobs have one.
        """
        check(Run.why, **locals())
        if isinstance(event, Mapping):
            label, replication = event.get("label", label), event.get("replication", replication)
            number: Any = event.get("seq")
            if not fits(number, float) or number % 1 or not fits(int(number), int):
                raise RunError(f"seq={number!r}: the row of an event has its number there, a whole one.")
            event = int(number)
        with self._opened() as run:
            return Causes(why(TraceReader(one_job(run, label, replication)), event, whole=whole))

    def compare(self, *others: Run | str | PathLike[str], against: str | None = None) -> Comparison:
        """Rankings and paired differences with intervals, as ``coband compare`` computes them.

        Args:
            others: further runs, or their directories.
            against: label that all others are compared with; None for all pairs, or with many labels the first.

        Raises:
            RunError: no job has finished, or there is no such label.
        """
        with self._analysed(*others, against=against) as analysis:
            return Comparison(listed(analysis))

    @property
    def plot(self) -> Plots:
        """Figures."""
        return Plots(self._analysed)

    def report(
        self,
        *others: Run | str | PathLike[str],
        out: str | PathLike[str] | None = None,
        against: str | None = None,
        force: bool = False,
    ) -> ReportFile:
        """Write the report of the run, and of others beside it, as one HTML file.

        Args:
            others: further runs, or their directories.
            out: the file; None for report.html in the run directory.
            against: label that all others are compared with.
            force: replace a file that differs.

        Returns:
            The file; a notebook shows it.

        Raises:
            RunError: no job has finished, or another file is there.
        """
        check(Run.report, out=out, against=against)
        from coband.simulator.analysis.report.page import page

        folder = self.path if self.path.is_dir() else self.path.parent
        file = folder / REPORT if out is None else Path(out)
        with self._analysed(*others, against=against) as analysis:
            keep_file(file, page(analysis).encode("utf-8"), force=force)
        return ReportFile(file)

    @contextmanager
    def _analysed(self, *others: Run | str | PathLike[str], against: str | None = None) -> Iterator[Analysis]:
        with translated(), ExitStack() as stack:
            opened = [stack.enter_context(open_run(_place(run))) for run in (self, *others)]
            yield Analysis(data.load(opened), against)

    def __repr__(self) -> str:
        labels = ", ".join(self.labels[:MOST_LABELS]) + (", ..." if len(self.labels) > MOST_LABELS else "")
        return f"{type(self).__name__}({str(self.path)!r}, {self.status}: {labels})"

    def _repr_html_(self) -> str:
        title = f"{type(self).__name__} <code>{html.escape(str(self.path))}</code>, {html.escape(self.status)}"
        return f"<p>{title}</p>{self.summary._repr_html_()}"


def _place(run: Run | str | PathLike[str]) -> Path:
    if isinstance(run, Run):
        return run.path
    if isinstance(run, (str, PathLike)):
        return called(run)
    raise TypeError(f"a run is a coband.Run or its directory, not {type(run).__name__}")


class Sweep(Run):
    """A sweep on disk: a run whose labels are variants, with the parameters of the grid as columns of its tables."""

    @cached_property
    def best(self) -> Table:
        """The best parameters of each algorithm in each context, if the scenario has ``tuning``.

        Mean and interval are those of the replications that chose them (``tuning_mean``) and of fresh ones
        (``fresh_mean``).

        Raises:
            RunError: the sweep has no tuning, or its results.json is missing or was changed.
        """
        with self._opened() as run:
            lines = summary(run).get("best")
        if lines is None:
            raise RunError(f"{self.path}: nothing was tuned; the summary has all variants.")
        return best(lines)

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters that vary."""
        with self._opened() as run:
            return parameter_names(run)
