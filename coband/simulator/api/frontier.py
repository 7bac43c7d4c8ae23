"""The Pareto front of a scenario: searched for, and measured on fresh seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from coband.simulator.analysis.frontier.finalists import choose
from coband.simulator.analysis.frontier.study import Request, load_search
from coband.simulator.api import running
from coband.simulator.api.errors import RunError, several, translated
from coband.simulator.api.running import Given
from coband.simulator.api.scenario import Scenario, Settings, simple
from coband.simulator.api.stored import Sweep
from coband.simulator.experiments.store.files import called
from coband.simulator.experiments.store.store import open_run
from coband.simulator.experiments.store.variants import summary

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    import coband

Range = str | tuple[float, float] | list[Any] | Mapping[str, Any]
"""What a parameter may be: ``"0.01..100"``, ``"0..1 linear"``, ``(0.01, 100)``, a list of values, or label -> value."""


class Frontier:
    """A search on disk, finished or not: its finalists, and which one to choose.

    Args:
        path: its directory, or ``latest``.

    Raises:
        RunError: there is no search, or its files are damaged or were changed.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        with translated(), open_run(place := called(path)) as run:
            found = summary(run).get("frontier")
        self.path = place
        if found is None:
            raise RunError(f"{self.path} holds no search for a frontier; coband.frontier(...) makes one.")
        self._found: Mapping[str, Any] = found
        self._better = {one["name"]: one["better"] for one in found["objectives"]}

    @property
    def objectives(self) -> list[str]:
        """Names of the numbers that are traded."""
        return list(self._better)

    @property
    def run(self) -> Sweep:
        """All that has been run, as a sweep: the search has the phase ``tuning``, the finalists ``fresh``."""
        return Sweep(self.path)

    @property
    def points(self) -> pd.DataFrame:
        """A row per finalist: its parameters, how it stands, and means with 95 % intervals on fresh replications.

        ``verdict`` is ``frontier`` where every other point is shown to be worse in some objective, ``beaten`` where
        ``beaten_by`` is shown to be at least as good in all, and ``undecided`` where the replications show neither.
        ``best_mean`` says whether no point has better means.
        """
        from coband.simulator.analysis.frames import frame

        return frame(map(self._point, self._found["points"]))

    def _point(self, point: Mapping[str, Any]) -> dict[str, Any]:
        row = {"label": point["label"], "entry": point["entry"], **point["parameters"]}
        row |= {key: point[key] for key in ("verdict", "beaten_by", "best_mean")}
        return row | self._numbers(point["fresh"])

    @property
    def candidates(self) -> pd.DataFrame:
        """A row per candidate of the search: its parameters, and means on the replications that chose."""
        from coband.simulator.analysis.frames import frame

        return frame(
            {"label": one["label"], "entry": one["entry"], **one["parameters"], **self._numbers(one["search"])}
            for one in self._found["candidates"]
        )

    @staticmethod
    def _numbers(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        row: dict[str, Any] = {"n": min(one["n"] for one in found.values())}
        for name, one in found.items():
            low, high = one["ci95"] or (None, None)
            row |= {name: one["mean"], f"{name}_low": low, f"{name}_high": high}
        return row

    def best(self, on: str | None = None, **limits: float) -> dict[str, Any]:
        """What to choose: the best finalist within limits, chosen by the search and reported on fresh replications.

        Args:
            on: the objective; None for the point that loses least in its worst objective.
            limits: the worst mean that other objectives may have: ``best("regret", scalars=1e5)``.

        Returns:
            Its row of `points`, and ``settings``: what ``set=`` of `coband.run` takes.

        Raises:
            RunError: there is no such objective, or nothing within the limits.
        """
        with translated():
            point = choose(self._found["points"], self._better, on, limits)
        if point is None:
            raise RunError("no finalist is within these limits; its points are in the table `points`.")
        return {**self._point(point), "settings": list(point["settings"])}

    def plot(self) -> Figure:
        """The finalists with 95 % intervals in both directions, and what their best means reach.

        Raises:
            RunError: fewer than two finalists have finished.
        """
        return self.run.plot.trade_off()  # type: ignore[return-value]  # without axes it is a figure

    def __repr__(self) -> str:
        return f"Frontier({str(self.path)!r}: {', '.join(self.objectives)})\n{self.points.to_string()}"


def frontier(
    scenario: Given,
    *,
    problem: coband.Problem | None = None,
    objectives: Iterable[str] | None = None,
    vary: Mapping[str, Range] | None = None,
    only: str | Iterable[str] | None = None,
    budget: int = Request.jobs,
    trials: int = Request.trials,
    replications: int | None = None,
    set: Settings | None = None,
    seed: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    cluster_options: Mapping[str, Any] | None = None,
    resume: bool = False,
    out: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Frontier:
    """Search for the algorithms and parameters that are not dominated, exactly as ``coband frontier`` does.

    Args:
        scenario, problem, only, set, seed, progress: see `coband.run`.
        objectives: metrics that are traded; None for the problem's aim and scalars.
        vary: what is searched: ``{"algorithms.Async.threshold": "0.01..100"}``, a pair of ends, or a list of values;
            None for the grid of the scenario, or else what the algorithms declare.
        budget: the largest number of jobs.
        trials: replications of each candidate in the search.
        replications: fresh ones of each finalist; None for the scenario's, at least 10.
        workers, cluster, cluster_options, out: see `coband.sweep`.
        resume: go on with the search in ``out``, or with the latest of this name, with the same arguments.

    Raises:
        ScenarioError: the scenario, a range or an objective is wrong, with the lines that the command line prints.
        RunError: the budget is too small; Optuna is not installed, and the space is too large to try everything; or as
            for `coband.sweep`.
        KeyboardInterrupt: Ctrl-C; what has finished is kept, and ``resume=True`` goes on.
    """
    asked = Scenario.of(scenario).with_(set).with_(running.given(problem=problem, seed=seed))
    if not isinstance(vary or {}, Mapping):
        raise RunError(f"vary is a mapping, such as {{'algorithms.Async.threshold': '0.01..100'}}, not {vary!r}.")
    varied = tuple(f"{key}={_spelled(found)}" for key, found in (vary or {}).items())
    with asked.errors():
        labels = several("only", only)
        request = Request(tuple(objectives or ()), varied, labels, int(budget), int(trials))
        study = load_search(asked.source, asked.settings, request, replications=replications)
        report = running.swept(
            "frontier",
            asked,
            study,
            _words(request, replications),
            workers=workers,
            cluster=cluster,
            cluster_options=cluster_options,
            resume=resume,
            out=out,
            progress=progress,
        )
    return Frontier(report.directory)


def _words(request: Request, replications: int | None) -> list[str]:
    """The options of ``coband frontier`` that ask for the same."""
    words = [word for one in request.vary for word in ("--vary", one)]
    words += [word for one in request.only for word in ("--only", one)]
    words += ["--objectives", ",".join(request.objectives)] if request.objectives else []
    words += ["--budget", str(request.jobs), "--trials", str(request.trials)]
    return words if replications is None else [*words, "--replications", str(replications)]


def _spelled(found: Range) -> str:
    """A range as ``--vary`` reads it."""
    if isinstance(found, str):
        return found
    if isinstance(found, tuple):
        low, high = found
        return f"{low}..{high}"
    return json.dumps(simple(found, "vary"))
