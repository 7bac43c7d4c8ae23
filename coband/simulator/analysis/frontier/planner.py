"""What a search has to run: candidates generation by generation, the best of them again, and then on fresh seeds; and
how many jobs each part may cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from coband.simulator.analysis.frontier import objectives
from coband.simulator.analysis.frontier.explorer import Explorer
from coband.simulator.analysis.frontier.finalists import finalists
from coband.simulator.analysis.frontier.space import Point, Space
from coband.simulator.experiments.runs.planner import (
    FIRST_REPLICATION,
    FRESH,
    TUNING,
    Planner,
    Tally,
    Task,
    Variant,
    all_of,
    together,
)
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import RequestError

SEARCH_REPLICATIONS = 3
LEAST_FRESH = 10
"""Fresh replications unless the user says otherwise; a scenario with more has its own number."""
LEAST_CANDIDATES = 4
"""Candidates of each space that is searched."""


class BudgetError(RequestError):
    """A budget that is too small; the text says what is needed."""


@dataclass(frozen=True)
class Budget:
    """Jobs, and what they are spent on: about half for the search, half for its winners.

    Attributes:
        trials: replications of each candidate in the search.
        fresh: replications of each finalist that nothing is chosen by; a finalist has as many for the choice.
    """

    jobs: int
    trials: int
    fresh: int

    @property
    def per_finalist(self) -> int:
        """Jobs of a finalist in addition to those of the search."""
        return 2 * self.fresh - self.trials

    def candidates(self, spaces: Sequence[Space]) -> list[int]:
        """How many points each space may have tried: equally many, but none more than it has.

        Raises:
            BudgetError: there are too few jobs, or no replications.
        """
        if self.trials < 1:
            raise BudgetError("the search needs at least 1 replication of each candidate: --trials 3")
        wanted = [LEAST_CANDIDATES if one.size is None else min(one.size, LEAST_CANDIDATES) for one in spaces]
        least = sum(wanted) * self.trials + len(spaces) * self.per_finalist
        if self.jobs < least:
            raise BudgetError(
                f"{self.jobs} jobs are too few for {len(spaces)} algorithms with {self.trials} replications in the "
                f"search and {self.fresh} fresh ones: at least {least} are needed"
            )
        half = max(self.jobs // 2, sum(wanted) * self.trials)
        rest = min(half, self.jobs - len(spaces) * self.per_finalist) // self.trials
        found = [0] * len(spaces)
        by_size = sorted(range(len(spaces)), key=lambda i: spaces[i].size or self.jobs)
        for place, number in enumerate(by_size):
            share = rest // (len(spaces) - place)
            size = spaces[number].size
            found[number] = share if size is None else min(size, share)
            rest -= found[number]
        return found

    def finalists(self, used: int) -> int:
        """How many candidates the rest of the budget evaluates again, when the search has used so many jobs."""
        return max(1, (self.jobs - used) // self.per_finalist)


@dataclass
class Track:
    """The search in one space.

    Attributes:
        left: how many points it may still try.
        candidates: numbers of the variants that were tried.
    """

    space: Space
    explorer: Explorer
    left: int
    candidates: list[int] = field(default_factory=list)


New = Callable[[Space, Point], Variant | None]
"""Makes the variant of a point, and adds it to the study; None where the point is not a valid scenario."""


def searched(tracks: Sequence[Track], budget: Budget, chosen: Sequence[Metric], new: New, tally: Tally) -> Planner:
    """Candidates generation by generation, then further replications of the best, then fresh ones.

    The user's choice among finalists is made by the replications of the search, so these run as often as fresh ones.

    Args:
        chosen: the objectives.
    """

    def means(variants: Iterable[int]) -> dict[int, list[float]]:
        """The means of the objectives, low being better; none of a variant of which a replication broke off."""
        found = objectives.values(chosen, tally.sides(variants, TUNING), tally.stops_itself)
        whole = {number: list(one.values()) for number, one in found.items() if len(one) >= budget.trials}
        return {number: np.mean(one, axis=0).tolist() for number, one in whole.items()}

    def search(track: Track) -> Planner:
        tally.foreseen[track.space.label] += track.left * budget.trials
        while track.left > 0 and (points := track.explorer.ask(track.left)):
            track.left -= len(points)
            tally.foreseen[track.space.label] -= len(points) * budget.trials
            made = [(point, new(track.space, point)) for point in points]
            numbers = [variant.number for _, variant in made if variant is not None]
            track.candidates += numbers
            yield from all_of(_tasks(numbers, TUNING, 0, budget.trials))
            found = means(numbers)
            for point, variant in made:
                track.explorer.tell(point, None if variant is None else found.get(variant.number))
        tally.foreseen[track.space.label] -= track.left * budget.trials

    yield from together(map(search, tracks))
    of = {number: track.space.number for track in tracks for number in track.candidates}
    if not (found := means(of)):
        return
    entries, numbers = [of[number] for number in found], list(found)
    most = max(budget.finalists(len(of) * budget.trials), len(set(entries)))
    tally.chosen += [numbers[i] for i in finalists(entries, np.array(list(found.values())), most)]
    yield from all_of(_tasks(tally.chosen, TUNING, budget.trials, budget.fresh))
    yield from all_of(_tasks(tally.chosen, FRESH, 0, budget.fresh))


def _tasks(variants: Sequence[int], phase: str, first: int, end: int) -> list[Task]:
    """Some replications of some variants, replication by replication."""
    start = FIRST_REPLICATION if phase == TUNING else 0
    return [Task(variant, phase, start + number) for number in range(first, end) for variant in variants]
