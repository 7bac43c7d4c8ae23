"""How many jobs each part of a search may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coband.simulator.analysis.frontier.space import Space
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
