"""GosInE: agents play few arms each, and recommend arms to each other.
As printed: `tests/oracles/k_armed/gosine.py`. Next: `agent.py`, `messages/k_armed.py`.

"The Gossiping Insert-Eliminate Algorithm for Multi-Agent Bandits" (Chawla, Sankararaman, Ganesh and Shakkottai 2020,
Algorithms 1 and 2), with N agents numbered from 0:

1. Agent v has the ceil(K/N) + 2 arms v ceil(K/N), the next one, ..., modulo K. The first ceil(K/N) stay for the whole
   run; the next is U, the last L.
2. In its phase j it plays the arm of these with the largest mean + sqrt(alpha ln(t + 1) / n), t its own pulls so far;
   an arm that it never pulled comes first, in the order of the list. Counts of an arm that leaves are kept for its
   return.
3. Phase j ends at turn j^g, g the growth, for all agents alike. With ``mode: asynchronous`` each phase of an agent has
   a length of its own, uniform on the integers from j^g - (j-1)^g to ceil((1 + slack) (j^g - (j-1)^g)).
4. At its end, of U and L the one that was pulled more in this phase becomes U. The agent asks one of its neighbours,
   drawn uniformly, which answers with the arm that it pulled most in its last phase (before its first has ended: its
   first arm). An arm that the agent does not have takes the place of L.

Where an answer takes time it is applied when it comes, unless the next phase has ended by then. A message that is lost
costs that phase its recommendation; one that is lost on the way there has no answer, so that fewer come than were sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.agents.k_armed.agent import KArmed
from coband.agents.messages.k_armed import ArmAnswer, ArmRequest
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext, Outbox


class GosineConfig(Config):
    """Parameters of GosInE."""

    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    """Whether the phases of all agents end at the same turns (Algorithm 1) or at their own (Algorithm 2)."""
    alpha: float = Field(default=4.0, gt=0)
    """Exploration."""
    growth: float = Field(default=3.0, gt=1)
    """Phase j ends at turn j^growth."""
    slack: float = Field(default=0.5, ge=0)
    """With mode asynchronous: phases may be longer by this share."""

    @model_validator(mode="after")
    def _check(self) -> GosineConfig:
        if self.mode == "synchronous" and self.slack != 0.5:
            raise ValueError(f"slack(={self.slack:g}) goes with mode: asynchronous; leave it out, or write that mode.")
        return self


class Gosine(KArmed):
    """UCB on the arms that it has, and a recommendation at the end of each phase.

    Attributes:
        held: the numbers of its arms; the last two are U and L.
    """

    noted: ClassVar[Mapping[str, str]] = {"model": "number of the arm that was recommended"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        arms = len(self.counts)
        sticky = math.ceil(arms / context.agents)
        first = context.index * sticky
        self.held = list(dict.fromkeys((first + place) % arms for place in range(sticky + 2)))
        self.phase, self.recommended = 1, self.held[0]
        self.in_phase = np.zeros(arms)
        self.ends = self._length()

    def _length(self) -> int:
        """Turns of the phase that begins."""
        growth, j = self.config.growth, self.phase
        shortest = int(math.ceil(j**growth) - math.ceil((j - 1) ** growth))
        if self.config.mode == "synchronous":
            return shortest
        return int(self.context.rng.integers(shortest, math.ceil((1.0 + self.config.slack) * shortest) + 1))

    def decide(self) -> int:
        """Step 2."""
        never = next((arm for arm in self.held if not self.counts[arm]), None)
        return sorted(self.held)[self.best(self.scores())] if never is None else never

    def scores(self) -> FloatArray:
        """Those of the arms that it has, ascending."""
        held = sorted(self.held)
        n = self.counts[held]
        scores: FloatArray = self.sums[held] / n + np.sqrt(self.config.alpha * math.log(self.turns + 1) / n)
        return scores

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        super().observe(arms, arm, reward)
        self.in_phase[arm] += 1.0
        return self._end_phase() if self.turns == self.ends else []

    def _end_phase(self) -> Outbox:
        """Step 4."""
        self.recommended = max(self.held, key=self.in_phase.__getitem__)
        if len(self.held) > 1 and self.in_phase[self.held[-1]] > self.in_phase[self.held[-2]]:
            self.held[-2:] = self.held[:-3:-1]
        self.in_phase[:] = 0.0
        self.phase += 1
        chosen = int(self.context.rng.integers(len(self.neighbours))) if self.neighbours else -1
        self.ends += self._length()
        return [(self.neighbours[chosen], ArmRequest(round=self.phase))] if self.neighbours else []

    def receive(self, message: Message, source: Address) -> Outbox:
        """Answer a request; take in an answer to the request of the last phase."""
        if isinstance(message, ArmRequest):
            return [(source, ArmAnswer(arm=self.recommended, round=message.round))]
        assert isinstance(message, ArmAnswer)
        if message.round == self.phase and message.arm not in self.held:
            self.held[-1] = message.arm
            self.note("model", round=self.phase, value=float(message.arm))
        return []


ALGORITHM = Algorithm(
    name="gosine",
    agent=Gosine,
    server=None,
    config=GosineConfig,
    summary="K arms on a graph: agents play few arms each, and recommend arms to each other.",
    reference="Chawla et al. 2020, Algorithms 1 and 2",
    needs=Needs(topologies=("graph",), reliable=False, fixed_arms=True),
    messages=(
        MessageSize(ArmRequest, "peer", "0", "to one neighbour, at the end of a phase", due=True),
        MessageSize(ArmAnswer, "peer", "1", "back", due=True),
    ),
    counts=(ClosedForm("peer_scalars", "transmissions / 2"),),
    cites=("chawla2020gossiping",),
    search={"alpha": "0.1..8"},
)
