"""A scenario file as a search for its frontier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coband.simulator.analysis.frontier.explorer import explorer
from coband.simulator.analysis.frontier.objectives import objectives
from coband.simulator.analysis.frontier.planner import (
    LEAST_FRESH,
    SEARCH_REPLICATIONS,
    Budget,
    BudgetError,
    New,
    Track,
    searched,
)
from coband.simulator.analysis.frontier.space import Candidates, Space, spaces
from coband.simulator.analysis.frontier.summary import summary
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.address import configuration_digest
from coband.simulator.experiments.runs.planner import Planner, Tally
from coband.simulator.experiments.runs.results import Failure, Results
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.sweep.study import divided
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import ScenarioError


@dataclass(frozen=True)
class Request:
    """What is searched, and how.

    Attributes:
        objectives: names of metrics; empty for the problem's aim and scalars.
        vary: ``KEY=RANGE``: what may vary; empty for the file's grid, or what algorithms declare.
        only: labels or names of algorithms; empty for all.
        jobs: how many may run in all.
        trials: replications of each candidate in the search.
        limited: names of metrics that have a limit, and so are objectives too.
    """

    objectives: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    jobs: int = 400
    trials: int = SEARCH_REPLICATIONS
    limited: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Search(Study):
    """A search for the frontier of a scenario; its variants come into being as it goes on. It is driven once.

    Attributes:
        tracks: the search among the parameters of each algorithm.
        new: makes the variant of a point.
        chosen: the objectives.
    """

    tracks: tuple[Track, ...]
    new: New
    chosen: tuple[Metric, ...]
    budget: Budget

    @property
    def spaces(self) -> list[Space]:
        """The parameters of each algorithm."""
        return [track.space for track in self.tracks]

    @property
    def entries(self) -> list[str]:
        return [space.label for space in self.spaces]

    @property
    def jobs(self) -> int:
        """How many jobs there are at most."""
        return self.budget.jobs

    def facts(self) -> Manifest:
        return {"objectives": [metric.name for metric in self.chosen], "budget": self.budget.jobs}

    def planner(self, tally: Tally) -> Planner:
        return searched(self.tracks, self.budget, self.chosen, self.new, tally)

    def summary(self, tally: Tally, failures: Sequence[Failure]) -> Results:
        """The object that ``coband frontier --json`` prints and results.json holds."""
        return summary(self, self.chosen, self.spaces, tally, failures)


def load_search(
    path: str | Path | ScenarioText,
    overrides: Sequence[str] = (),
    request: Request | None = None,
    *,
    replications: int | None = None,
) -> Search:
    """Read a scenario file as a search for its frontier.

    Args:
        path: the file, or the name of a scenario that comes with coband, or the text itself.
        overrides: ``key.path=value``, as given to ``--set``; one of a key of the grid fixes that key.
        replications: fresh ones of each finalist; None for the scenario's, at least `LEAST_FRESH`.

    Raises:
        ScenarioError: with what is wrong with the scenario, the ranges or the objectives.
        BudgetError: there are too few jobs.
        ModuleNotFoundError: candidates have to be proposed, and Optuna is not installed.
    """
    asked, registry = request or Request(), Registry.installed()
    text, base = read_scenario(path)
    _, rest, grid, problems = divided(text, str(path), overrides, registry)
    if problems:
        raise ScenarioError(problems)
    point = next(grid.points())
    first, more = grid.apply(rest, point, registry.takes)
    if more:
        raise ScenarioError(more)
    settings = [f"{key.path}={value.text}" for key, value in grid.chosen(point)]
    candidates = Candidates(first, base, registry, settings, path if isinstance(path, Path) else None)
    scenario = candidates.scenario(Space(0, ""), ())  # which finds what is wrong without regard to ranges
    configuration_digest(scenario, candidates.files)  # which finds out whether data sets are there
    found = spaces(rest, grid, asked.vary, asked.only, registry)
    aim = registry.aim_of(str(getattr(scenario.problem, "kind", "")))
    fresh = replications or max(LEAST_FRESH, scenario.replications)
    if fresh < 2:
        raise BudgetError("a frontier needs intervals, so at least 2 replications of each finalist: --replications 5")
    metrics = objectives(asked.objectives, aim, scenario.metrics, asked.limited)
    budget = Budget(asked.jobs, min(asked.trials, fresh), fresh)
    checked = [candidates.checked(space) for space in found]
    tracks = tuple(
        Track(space, explorer(space, most, len(metrics), scenario.seed + number), most)
        for number, (space, most) in enumerate(zip(checked, budget.candidates(checked), strict=True))
    )
    return Search(
        scenario.name,
        text,
        candidates.made,
        tuple(range(fresh)),
        missing=candidates.files.missing,
        unknown=tuple(candidates.files.code.unknown),
        tracks=tracks,
        new=candidates.new,
        chosen=metrics,
        budget=budget,
    )
