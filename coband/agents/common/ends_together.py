"""Agents whose epochs or rounds end for all of them together or not at all (server: `coband.server.common`).

Elimination needs the numbers of all agents. Where those of one cannot be had, exchanging ends for good and for
everybody: each agent goes on alone with what it knows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import MessageSize, Needs
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.node import SERVER, Address, Agent, Client, Outbox
from coband.simulator.maths.exploration.g_optimal import WHOLE
from coband.simulator.metrics import Metric

PARTING = (
    MessageSize(SyncAbandoned, "up", "0", "from an agent that has to go on alone"),
    MessageSize(SyncAbandoned, "down", "0", "to all, when exchanging has to end"),
)
IN_PHASES = Needs(
    schedules=("rounds", "renewal"), steady_arms=True, prompt_rewards=True, ends_together=True, waits_for_all="1"
)
"""What agents need that pull what a design deals out."""
IN_EPOCHS = Needs(
    problems=("fixed_domain", "clusters", "arrays"),
    horizon=True,
    fixed_arms=True,
    prompt_rewards=True,
    ends_together=True,
    waits_for_all="1",
)
"""What agents need that thin out the points of a domain."""
DEALT = {"1": "its agents send results of arms that each is dealt alone, which nobody else's can be compared with"}
"""Why it has no defence where each agent pulls its own arms."""
ARMS_LEFT = Metric("arms_left", "arms", "arms that an average agent has left", aggregate="mean")


class InStepClient(Talks, Client):
    """What such agents have in common.

    Attributes:
        alone: exchanging has ended for good.
    """

    alone: bool = False

    @on(SyncAbandoned)
    def abandoned(self, message: SyncAbandoned, source: Address) -> None:
        """Somebody goes on alone."""
        self.part()
        self.end()

    def part(self) -> None:
        """Go on alone, unless that is so already."""
        if not (self.alone or self.done):
            self.alone = True
            self.leave()

    @abstractmethod
    def leave(self) -> None:
        """Wait for the others no longer, and tell them."""


class PhasedAgent(InStepClient, Agent):
    """An agent that pulls what it was dealt, arm by arm, and then ends the phase in a conversation.

    Attributes:
        phase: number of the phase under way.
    """

    phase: int
    _best = -1

    def start(self, arms: IntArray, counts: IntArray) -> None:
        """Begin a phase; ``counts``: how often to pull each arm, at least once."""
        self._arms, self._counts = arms, counts
        self._ends, self._place, self._at = np.cumsum(counts).tolist(), 0, 0
        self._sums = np.zeros(len(arms))

    def choose(self, arms: ArmSet) -> int:
        """The next of the dealt pulls; after them, and without the others, the best arm so far."""
        return int(self._arms[self._at]) if self._at < len(self._ends) else self._best

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add up the rewards of each arm; the last pull ends the phase."""
        self.unshared += 1
        if self._at == len(self._ends):
            return []
        self._sums[self._at] += reward
        self._place += 1
        self._at += self._place == self._ends[self._at]
        over = self._at == len(self._ends) and not self.alone
        return self.begin(self.end_phase(), blocking=True) if over else []

    def least_squares(self, X: FloatArray) -> FloatArray:
        """theta by the pulls of this phase, (d,); ``X``: all arms (n, d)."""
        rows = X[self._arms]
        V = (rows.T * self._counts) @ rows
        return np.asarray(np.linalg.pinv(V, rcond=WHOLE, hermitian=True) @ (self._sums @ rows))

    def never_ending(self, pulls: int) -> Iterator[str]:
        """Warns of a first phase of so many pulls, where there are fewer turns."""
        known = (self.context.horizon, getattr(self.context.config, "horizon", None))
        turns = min((one for one in known if one is not None), default=pulls)
        if pulls > turns:
            yield (
                f"the first phase has {pulls} pulls of each agent, but there are {turns} turns, "
                "so that nothing is sent; give a smaller C or more turns"
            )

    @abstractmethod
    async def end_phase(self) -> None:
        """Talk to the server, and start the next phase."""

    def leave(self) -> None:
        """Without the others: stay with the arm of the highest own mean in this phase."""
        pulls = np.minimum(self._counts, self._place - np.array(self._ends) + self._counts)
        means = np.where(pulls > 0, self._sums / np.maximum(pulls, 1), -np.inf)
        self._best, self._at = int(self._arms[int(means.argmax())]), len(self._ends)
        self.tell(SERVER, SyncAbandoned(round=self.phase))
