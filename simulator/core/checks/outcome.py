"""The result of a run, summed up a second time from what was seen while it went on."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coband.simulator.core.checks.accounts import Accounts
from coband.simulator.core.nodes.node import Address, Client, Node
from coband.simulator.core.result import RunResult

ROUNDING = 1e-9
NEVER = -1.0


@dataclass(slots=True)
class Seen:
    """A pull or batch.

    Attributes:
        scalars: that were sent until after it; None where copies are booked hop by hop.
        known: pulls in the model that chose, by a node's twin; None where nobody counts.
        newest: when the newest message was sent from which that twin had learnt.
    """

    agent: Address
    time: float
    regret: float
    reward: float
    scalars: int | None
    pulls: int = 1
    known: int | None = None
    newest: float = NEVER


class Outcome(list[Seen]):
    """All pulls and batches, in their order."""

    def mismatches(
        self,
        result: RunResult,
        accounts: Accounts,
        nodes: Sequence[Node],
        last_delivery: float,
        due: int | None,
        before: Mapping[Address, int],
    ) -> Iterator[str]:
        """One sentence for each number of the result that is another here.

        Args:
            last_delivery: when a message or a reward last reached a node.
            due: turns that the schedule has; None where it does not say.
            before: rounds of nodes that have begun anew, before that.
        """
        ledger = result.ledger
        rounds = max(node.rounds + before.get(node.context.index, 0) for node in nodes)  # type: ignore[attr-defined]
        expected = {
            "turns": sum(one.pulls for one in self),
            "regret": math.fsum(one.regret for one in self),
            "reward": math.fsum(one.reward for one in self),
            "rounds": rounds,
            "simulated_time": max([*(one.time for one in self), last_delivery], default=0.0),
        }
        found = {name: float(getattr(result, name)) for name in expected}
        totals = accounts.totals(ledger.scalar_bits, ledger.header_bits)
        totals["dropped"] = sum(copies.dropped for copies in result.audit.copies.values())
        totals["expired"] = sum(copies.expired for copies in result.audit.copies.values())
        for name, number in (expected | totals).items():
            said = found[name] if name in found else result.totals[name]
            if not math.isclose(said, number, rel_tol=ROUNDING, abs_tol=ROUNDING):
                yield f"the result says {name} = {said:.12g}, what was seen makes it {number:.12g}"
        stopped = any(isinstance(node, Client) and node.done for node in nodes)
        if due is not None and not stopped and result.turns + result.stalled != due:
            yield f"{result.turns} turns were taken and {result.stalled} never; the schedule has {due}"
        yield from self._curves(result)
        yield from self._each(result)
        yield from self._ages(result)

    def _curves(self, result: RunResult) -> Iterator[str]:
        if len(result.times) != len(self):
            yield f"the result has {len(result.times)} pulls or batches, {len(self)} were seen"
            return
        known = np.array([one.scalars is not None for one in self], dtype=bool)
        curves: dict[str, tuple[ArrayLike, ArrayLike]] = {
            "times": (result.times, [one.time for one in self]),
            "regret": (result.regret_series, np.cumsum([one.regret for one in self])),
            "scalars": (result.scalars_series[known], [one.scalars for one in self if one.scalars is not None]),
            "turns": (result.turns_series, np.cumsum([one.pulls for one in self])),
        }
        for name, (said, seen) in curves.items():
            if not np.allclose(said, seen, rtol=ROUNDING, atol=ROUNDING):
                yield f"the curve of {name} is not that of the pulls"

    def _each(self, result: RunResult) -> Iterator[str]:
        turns, regrets = Counter[int](), defaultdict[int, list[float]](list)
        for one in self:
            turns[one.agent] += one.pulls
            regrets[one.agent].append(one.regret)
        for index, said in enumerate(result.by_agent):
            regret = math.fsum(regrets[index])
            same = math.isclose(said["regret"] or 0.0, regret, rel_tol=ROUNDING, abs_tol=ROUNDING)
            if said["turns"] != turns[index] or not same:
                text = f"agent {index} has {said['turns']} turns and regret {said['regret']:.9g}"
                yield f"the result says that {text}, what was seen makes it {turns[index]} and {regret:.9g}"

    def _ages(self, result: RunResult) -> Iterator[str]:
        """Pulls by anybody that a decision did not know of, and the time since its newest news were sent."""
        if not result.ages.known:
            return
        for place, (pulls, time) in enumerate(zip(result.ages.pulls.tolist(), result.ages.times.tolist(), strict=True)):
            known, newest = self[place].known, self[place].newest
            if known is None or pulls != place - known:
                yield f"the age of decision {place} is noted as {pulls} pulls, by the agent's twin it knows of {known}"
                return
            since = math.nan if newest == NEVER else self[place].time - newest
            if not (math.isnan(since) and math.isnan(time)) and not math.isclose(since, time, abs_tol=ROUNDING):
                yield f"the age of decision {place} is noted as {time:g}, its agent's twin heard {since:g} before it"
                return
