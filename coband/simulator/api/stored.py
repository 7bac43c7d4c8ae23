"""A run or a sweep on disk: its tables as pandas data frames, its figures, comparisons and explanations."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from coband.simulator.api.errors import RunError, RunWarning, one_of, translated
from coband.simulator.experiments.store.files import SCENARIO, called, keep_file
from coband.simulator.experiments.store.opening import facts

if TYPE_CHECKING:
    import pandas as pd

    from coband.simulator.analysis.comparison.analysis import Analysis
    from coband.simulator.analysis.traces.causes import Chain
    from coband.simulator.api.plots import Plots
    from coband.simulator.api.scenario import Scenario
    from coband.simulator.experiments.store.store import StoredRun
    from coband.simulator.terminal.results import Part

Intervals = Literal["t", "all"]
QUERY_SECONDS = 60.0
REPORT = "report.html"
LINK = ("seq", "time", "event", "node", "peer", "kind", "message", "cause")
"""Columns of an event that fit on a line."""


class Causes:
    """Why an event happened.

    Attributes:
        events: a data frame of the event, its cause, the cause of that, and so on.
        sentence: the chain in words.
        messages: number of deliveries in the chain.
        delay: simulated time from the first cause to the event.
    """

    def __init__(self, chain: Chain, run: StoredRun) -> None:
        from coband.simulator.analysis.frames import of_events

        self.events = of_events(chain.events)
        self.sentence = chain.told(run, "whole=True")
        self.messages, self.delay = chain.messages, chain.delay

    def __repr__(self) -> str:
        return f"{self.events[list(LINK)].to_string()}\n{self.sentence}"


def _table(name: str, text: str) -> cached_property[pd.DataFrame]:
    """A table of a run that is read when it is first used, and then kept."""

    def read(run: Run) -> pd.DataFrame:
        return run._table(name)

    read.__doc__ = text
    return cached_property(read)


class Run:
    """A run on disk. Its tables are read when they are first used and then kept; `coband.load` reads again.

    ``print(run)`` shows what ``coband show`` prints.

    Args:
        path: the run directory, its run.sqlite, or ``latest``.

    Raises:
        RunError: there is no run, or its store is of another version.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        with translated():
            self.path = called(path)
            found = facts(self.path)
        self.manifest: Mapping[str, Any] = found[0]
        self.labels: list[str] = found[1]

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.manifest.get("scenario", ""))

    @property
    def status(self) -> str:
        """``finished``, ``failed`` (some jobs broke off), ``interrupted``, ``stopped``, or ``running``.

        The last is also the status of a run that was killed.
        """
        return str(self.manifest.get("status", ""))

    @property
    def scenario(self) -> Scenario:
        """The scenario, with all defaults; that of a sweep as it was given."""
        from coband.simulator.api.scenario import Scenario

        file = self.path / SCENARIO
        if file.is_file():
            return Scenario.of(file)
        with self._opened() as run:
            return Scenario.of(run.scenario, base=self.path.parent)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Means and 95 % intervals (Student t; of proportions Wilson's): ``mean low high n`` by label and measure.

        Measures are the aim of the problem, pulls where they differ, regret, scalars, messages, rounds and simulated
        time, and what problem and algorithms declare to be better low or high; `estimates` has others.
        """
        return self.estimates()

    def estimates(self, *measures: str) -> pd.DataFrame:
        """`summary` of other numbers: any of `results` and `details`, such as ``run.estimates("uplink_scalars")``.

        Raises:
            RunError: nobody reports such a number.
        """
        return self._table("summary", measures)

    results = _table("results", "A row per label and replication: pulls, measures, seconds, fingerprint, parameters.")
    details = _table("details", "A row per label and replication: every other number that is reported.")
    series = _table("series", "Time, cumulative regret and scalars after up to 1000 turns of each job.")
    ledger = _table("ledger", "Sends, messages and scalars by label, replication, kind of message and direction.")
    fields = _table("fields", "The ledger by field of messages, with what each holds, and in bits too.")
    agents = _table("agents", "A row per label, replication and agent: turns, regret, scalars, what algorithms report.")
    failures = _table("failures", "The jobs that broke off, with the error.")

    @cached_property
    def pulls(self) -> pd.DataFrame:
        """A row per pull: label, replication, agent, turn, time, arm, pulls, reward, regret; with or without a trace.

        ``turn`` counts the turns of the agent, from 1 (phases, where it pulls in batches), ``arm`` the arms of that
        turn, from 0; ``pulls`` is how often the arm is pulled at once, 1 but in batches, of which ``reward`` is the
        mean and ``regret`` the sum. A store keeps nothing of this, so all jobs run again, in one process per core,
        with the same random draws; their fingerprints show that they are the stored ones.

        Raises:
            RunError: a job cannot be repeated here, bit by bit.
        """
        from coband.simulator.api.driving import pulls

        with self._opened() as run:
            return pulls(run)

    def events(self, where: str = "1", *values: object) -> pd.DataFrame:
        """Events of the trace, such as ``run.events("label = 'Async' AND event = 'deliver'")``.

        Args:
            where: a condition of SQL on the columns of events.
            values: of the question marks in it, in their order.

        Raises:
            RunError: no trace was kept, or the condition is wrong.
        """
        from coband.simulator.analysis import frames

        with self._opened() as run:
            return frames.events(run, where, values)

    def sql(self, query: str, *, seconds: float = QUERY_SECONDS) -> pd.DataFrame:
        """The answer to one SELECT on the run's store, whose tables the documentation of the store describes.

        Raises:
            RunError: the query is wrong, or takes longer than so many seconds.
        """
        from coband.simulator.analysis import frames

        with self._opened() as run:
            return frames.answer(run, query, seconds)

    def why(
        self,
        event: int | Mapping[str, Any] | pd.Series[Any],
        *,
        label: str | None = None,
        replication: int | None = None,
        whole: bool = False,
    ) -> Causes:
        """The causes of an event, back to the turn that started the chain.

        Args:
            event: its number (``seq``), or a row of `events`, which names its label and replication.
            label, replication: of the job whose event it is; None if there is only one.
            whole: go on beyond that turn, to its own causes.

        Raises:
            RunError: there is no such event, or several jobs have one.
        """
        from coband.simulator.analysis.traces.causes import why
        from coband.simulator.analysis.traces.reading import TraceReader, one_job

        given: Any = event
        if hasattr(event, "get"):
            row = cast(Mapping[str, Any], event)
            label, replication, given = row.get("label", label), row.get("replication", replication), row.get("seq")
        try:
            seq = index(given)
        except TypeError:
            raise RunError("event is the number of one (seq), or a row of `events`.") from None
        with self._opened() as run:
            return Causes(why(TraceReader(one_job(run, label, replication)), seq, whole=whole), run)

    def compare(
        self,
        *others: Run | str | PathLike[str],
        measure: str | None = None,
        against: str | None = None,
        intervals: Intervals = "t",
    ) -> pd.DataFrame:
        """Compare labels on one measure, as ``coband compare`` does: a row per pair, ``first`` minus ``second``.

        ``low`` and ``high`` are the ends of the 95 % t interval, ``paired`` says whether differences are taken
        replication by replication, and ``better`` is the label that is better by all intervals, None if undecided.
        Where labels make different numbers of pulls, ``at_pulls`` is at how many they are compared, and ``verdict``
        says so; NaN is the whole run. In a sweep labels are compared within each environment. What one must know
        of runs before one compares them is a `RunWarning`.

        Args:
            others: further runs, or their directories.
            measure: what is compared; None for the aim of the problem.
            against: label that all others are compared with; None for all pairs, or with many labels the first.
            intervals: "all" for those of the bootstrap and of the confidence sequence too, with its e-value.

        Raises:
            RunError: no job has finished, or there is no such label or measure.
        """
        from coband.simulator.analysis.comparison import listing

        one_of("intervals", intervals, Intervals)
        with self._analysed(*others, against=against, told=True, measure=measure) as analysis:
            return listing.differences(analysis, everything=intervals == "all")

    def words(self, *others: Run | str | PathLike[str]) -> pd.DataFrame:
        """Who wins: of each measure the labels with the best mean, and a sentence, with all pairs judged at once."""
        from coband.simulator.analysis.comparison import listing

        with self._analysed(*others, told=True) as analysis:
            return listing.rankings(analysis)

    @property
    def plot(self) -> Plots:
        """Figures."""
        from coband.simulator.api.plots import Plots

        return Plots(self._analysed)

    def report(
        self,
        *others: Run | str | PathLike[str],
        out: str | PathLike[str] | None = None,
        against: str | None = None,
        force: bool = False,
    ) -> Path:
        """Write the report of the run, and of others with it, as one HTML file.

        Args:
            others: further runs, or their directories.
            out: the file; None for report.html in the run directory.
            against: label that all others are compared with.
            force: replace a file that differs.

        Returns:
            The file.

        Raises:
            RunError: no job has finished, or another file is there.
        """
        from coband.simulator.analysis.report.page import page

        folder = self.path if self.path.is_dir() else self.path.parent
        file = folder / REPORT if out is None else Path(out)
        with self._analysed(*others, against=against) as analysis:
            keep_file(file, page(analysis).encode("utf-8"), force=force)
        return file

    @contextmanager
    def _opened(self) -> Iterator[StoredRun]:
        from coband.simulator.experiments.store.store import open_run

        with translated(), open_run(self.path) as run:
            yield run

    def _table(self, name: str, *arguments: Sequence[str]) -> pd.DataFrame:
        from coband.simulator.analysis.comparison.listing import TABLES

        with self._opened() as run:
            return TABLES[name](run, *arguments)

    @contextmanager
    def _analysed(
        self,
        *others: Run | str | PathLike[str],
        against: str | None = None,
        told: bool = False,
        measure: str | None = None,
    ) -> Iterator[Analysis]:
        from coband.simulator.analysis.comparison import data
        from coband.simulator.analysis.comparison.analysis import Analysis
        from coband.simulator.experiments.store.store import open_run

        with translated(), ExitStack() as stack:
            paths = [self.path, *(one.path if isinstance(one, Run) else called(one) for one in others)]
            loaded = data.load([stack.enter_context(open_run(path)) for path in paths])
            analysis = Analysis(loaded, against, measure=measure)
            for remark in analysis.comparison.remarks() if told else ():
                warnings.warn(remark, RunWarning, stacklevel=4)
            yield analysis

    def _parts(self) -> Iterable[Part]:
        from coband.simulator.terminal import results

        with self._opened() as run:
            return list(results.of_stored(run, self.path))

    def __repr__(self) -> str:
        from coband.simulator.terminal import tables

        parts = self._parts()
        return "\n".join(one if isinstance(one, str) else tables.plain(one.header, one.rows, one.left) for one in parts)

    def _repr_html_(self) -> str:
        import pandas as pd

        return "".join(
            f"<p>{html.escape(one)}</p>"
            if isinstance(one, str)
            else pd.DataFrame(list(one.rows), columns=list(one.header)).to_html(index=False)
            for one in self._parts()
        )


class Sweep(Run):
    """A sweep on disk: a run whose labels are variants, with the parameters of the grid as columns of `results`."""

    parameters = _table("parameters", "For each label the entry, phase, environment, and a column per key of the grid.")

    @cached_property
    def best(self) -> pd.DataFrame:
        """The best parameters of each algorithm in each context, if the scenario has ``tuning``.

        Mean and interval are those of the replications that chose them (``tuning_mean``) and of fresh ones
        (``fresh_mean``).

        Raises:
            RunError: the sweep has no tuning, or its results.json is missing or was changed.
        """
        from coband.simulator.analysis import frames
        from coband.simulator.experiments.store.variants import summary

        with self._opened() as run:
            lines = summary(run).get("best")
        if lines is None:
            raise RunError(f"{self.path}: nothing was tuned; the summary has all variants.")
        return frames.best(lines)
