"""What a search has to run: candidates generation by generation, the best of them again, and then on fresh seeds; and
how many jobs each part may cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.analysis.frontier import objectives
from coband.simulator.analysis.frontier.explorer import Explorer
from coband.simulator.analysis.frontier.finalists import finalists
from coband.simulator.analysis.frontier.space import Point, Space
from coband.simulator.experiments.runs.planner import Planner, Task, Variant
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.sweep.planner import FIRST_REPLICATION, TUNING
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import RequestError

SEARCH_REPLICATIONS = 3
LEAST_FRESH = 10
"""Fresh replications unless the user says otherwise; a scenario with more has its own number."""
LEAST_CANDIDATES = 4
"""Of each space that is searched."""


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
        """Jobs of a finalist beside those of the search."""
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


class Track:
    """The search in one space.

    Args:
        allowed: how many points it may try.
    """

    def __init__(self, space: Space, explorer: Explorer, allowed: int) -> None:
        self.space, self.explorer, self.left = space, explorer, allowed
        self.generation: dict[int, Point] = {}
        self.over = False


class FrontierPlanner(Planner):
    """Decides what runs; the same decisions whatever the order in which jobs end.

    Args:
        study: what there is to run; the first generation becomes its first variants.
        chosen: the objectives.
        new: makes the variant of a point, and adds it to the study; None where the point is no valid scenario.

    Attributes:
        finalists: numbers of the variants that are evaluated again; empty before the search is over.
        candidates: how many points were tried.
    """

    def __init__(
        self,
        study: Study,
        tracks: Sequence[Track],
        budget: Budget,
        chosen: Sequence[Metric],
        new: Callable[[Space, Point], Variant | None],
    ) -> None:
        super().__init__(study)
        self._tracks, self.budget, self._objectives, self._new = tracks, budget, chosen, new
        self._of_variant: dict[int, Track] = {}
        self.finalists: list[int] = []
        self.candidates = 0
        self._first_tasks = [task for track in tracks for task in self._generation(track)]

    def begin(self) -> list[Task]:
        """The first generation of every search, whose variants there are already."""
        return self._first_tasks

    def _generation(self, track: Track) -> list[Task]:
        """The tasks of the next points; none when the search is over."""
        track.generation = {}
        while track.left > 0 and not track.generation:
            points = track.explorer.ask(track.left)
            if not points:
                break
            track.left -= len(points)
            for point in points:
                variant = self._new(track.space, point)
                if variant is None:
                    track.explorer.tell(point, None)
                else:
                    track.generation[variant.number] = point
                    self._of_variant[variant.number] = track
        track.over = not track.generation
        self.candidates += len(track.generation)
        numbers = range(FIRST_REPLICATION, FIRST_REPLICATION + self.budget.trials)
        return self._add(Task(variant, TUNING, number) for number in numbers for variant in track.generation)

    def _next(self, variant: int, phase: str) -> list[Task]:
        """The next generation when one has ended; when all searches are over, what their winners are to run."""
        if phase != TUNING:
            return []
        if self.finalists:
            refined = not any(self._open[number, TUNING] for number in self.finalists)
            return self._first(self.finalists) if refined else []
        track = self._of_variant[variant]
        if any(self._open[number, TUNING] for number in track.generation):
            return []
        means = self._means(track.generation)
        for number, point in track.generation.items():
            track.explorer.tell(point, means.get(number))
        return self._generation(track) or self._refined()

    def _means(self, variants: Iterable[int]) -> dict[int, list[float]]:
        """The means of the objectives, low being better; none of a variant of which a replication broke off."""
        found = objectives.values(self._objectives, self.sides(variants, TUNING), self.stops_itself)
        whole = {number: list(one.values()) for number, one in found.items() if len(one) >= self.budget.trials}
        return {number: np.mean(one, axis=0).tolist() for number, one in whole.items()}

    def _refined(self) -> list[Task]:
        """Further replications of the winners, by which the user's choice among them is made."""
        if not all(track.over for track in self._tracks):
            return []
        found = self._means(self._of_variant)
        if not found:
            return []
        used = self.candidates * self.budget.trials
        entries = [self._of_variant[number].space.number for number in found]
        most = max(self.budget.finalists(used), len(set(entries)))
        numbers = list(found)
        self.finalists = [numbers[i] for i in finalists(entries, np.array(list(found.values())), most)]
        more = range(FIRST_REPLICATION + self.budget.trials, FIRST_REPLICATION + self.budget.fresh)
        tasks = [Task(variant, TUNING, number) for number in more for variant in self.finalists]
        return self._add(tasks) if tasks else self._first(self.finalists)

    @property
    def chosen(self) -> list[int]:
        """Numbers of the variants that are evaluated again."""
        return self.finalists

    def expected(self) -> dict[str, int]:
        """Entry -> how many jobs it will have at least, those of the search that are not decided yet included."""
        total = super().expected()
        for track in self._tracks:
            tried = sum(1 for other in self._of_variant.values() if other is track)
            total[track.space.label] += (tried + (0 if track.over else track.left)) * self.budget.trials
        for number in self.finalists:
            total[self._of_variant[number].space.label] += self.budget.fresh - self.budget.trials
        return total
