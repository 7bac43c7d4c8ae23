"""What CoKernelFC and CoKernelFB have in common: rounds of design, pulls, exchange and estimation (Du et al. 2023).

Everybody knows all pairs, so with ``allocation: global`` every agent computes the same design and pulls its own part
of it. A round ends for an agent when it has the counts and means of all others; a faster agent may be one round ahead,
and what it sends waits. The last round is not announced: from the same numbers all agents see that it was the last.

The result says how hard the instance was, from the hidden means and after the run: ``hardness`` rho*(xi),
``effective_dimension`` d_eff, ``task_rank`` rank(K_Z) (sections 3 and 4.3), and whether the theorem's conditions held.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from coband.agents.common.ends_together import PARTING, InStepClient
from coband.agents.exploration.pure_exploration import PureExplorationAgent
from coband.agents.messages.exploration import AllArmMeans, ArmMeans
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.conversations import lost
from coband.simulator.core.nodes.node import SERVER, Address, Multicast, NodeContext, Outbox
from coband.simulator.maths.exploration.conditions import Difficulty, difficulty
from coband.simulator.maths.exploration.design import Design

MESSAGES = (
    MessageSize(ArmMeans, "peer", "2*arms", "to each of the others", "via == 'peers'"),
    MessageSize(ArmMeans, "up", "2*arms", "from each agent", "via == 'server'"),
    MessageSize(AllArmMeans, "down", "2*arms*N", "to each agent", "via == 'server'"),
    MessageSize(SyncAbandoned, "peer", "0", "to each of the others, from an agent that has to go on alone"),
    *PARTING,
)
COUNTS = (
    ClosedForm("peer_scalars", "2*arms*N*(N - 1)*rounds", "via == 'peers'"),
    ClosedForm("uplink_scalars", "2*arms*N*rounds", "via == 'server'"),
    ClosedForm("downlink_scalars", "2*arms*N^2*rounds", "via == 'server'"),
)
NEEDS = Needs(
    problems=("pure_exploration",), schedules=("phases",), ends_together=True, waits_for_all="via == 'server'"
)
Known = tuple[IntArray, FloatArray] | None
"""Counts and means of all agents, each (V, n); None: those of one of them cannot be had."""


class CoKernelConfig(Config):
    """How agents share out and exchange."""

    xi: float = Field(default=1e-9, gt=0)
    """Regularisation xi. The paper prints no value; this one meets the condition of Theorem 1 on its instances. Too
    large a xi biases estimates towards 0: the result says whether the theorem's conditions hold, theorem_1_holds or
    theorem_2_holds."""
    allocation: Literal["global", "individual"] = "global"
    """global: one design over the pairs of all agents; individual: each agent a design over its own arms."""
    via: Literal["peers", "server"] = "peers"
    """peers: means go to all others directly; server: to a server that passes them on."""


class CoKernelAgent(InStepClient, PureExplorationAgent):
    """One agent's side of the rounds.

    When it has to go on alone, it declares the arm with the highest mean of its last round the best.
    """

    keeps = each = (ArmMeans,)
    ignores = (AllArmMeans,)
    noted: ClassVar[Mapping[str, str]] = {"eliminate": "pairs eliminated"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.shared: CoKernelConfig = context.config
        self.alive = np.ones((context.agents, self.pairs.arms), dtype=np.bool_)
        self._apart = self.shared.allocation == "individual"
        self._start: FloatArray | None = None
        self._own_means: FloatArray = np.full(self.pairs.arms, -np.inf)
        self._space = self.pairs.of(self.index) if self._apart else self.pairs

    # --- what the two algorithms differ in

    @abstractmethod
    def samples(self, design: Design) -> int:
        """Samples of this round for the whole design."""

    @abstractmethod
    def eliminate(self, estimates: FloatArray) -> None:
        """Thin out ``alive`` by the estimated rewards (V, n) of this round."""

    @abstractmethod
    def finished(self) -> bool:
        """Whether the round that has just ended was the last."""

    # --- a round

    def request(self) -> IntArray:
        """Lines 4-7: the design, whole numbers of samples, and this agent's part of them."""
        alive = self.alive[self.index : self.index + 1] if self._apart else self.alive
        if not (alive.sum(axis=1) > 1).any():
            return np.zeros(self.pairs.arms, dtype=np.int64)
        key = ("design", self.index if self._apart else SERVER, self.round, alive.tobytes())
        design, counts = self.context.sharing.get(key, lambda: self._allocation(alive))
        self._start = design.weights
        part: IntArray = counts[0 if self._apart else self.index]
        return part

    def _allocation(self, alive: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[Design, IntArray]:
        design = self._space.design(alive, self.shared.xi, self._start)
        epsilon = self.context.config.epsilon
        return design, self._space.allot(design, self.samples(design), alive, self.shared.xi, epsilon)

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Lines 9-10: broadcast count and mean of every own arm."""
        self.pulled(counts)
        self._own_means = np.where(counts > 0, means, -np.inf)
        if self.alone:
            self._stop_alone()
            return []
        return self.begin(self._exchange(counts, means), blocking=True)

    async def _exchange(self, counts: IntArray, means: FloatArray) -> None:
        """Lines 9-16: exchange means, estimate, eliminate, stop or go on."""
        by_server = self.shared.via == "server"
        own = ArmMeans(counts=counts, means=means, round=self.round, pulls=int(counts.sum()) if by_server else 0)
        known = await (self._by_server(own) if by_server else self._among_peers(own))  # line 10
        if known is None:
            self.part()
        else:
            self._end_round(*known)  # lines 11-16

    async def _by_server(self, own: ArmMeans) -> Known:
        found = await self.ask(SERVER, own, reply=AllArmMeans, public=True)
        return (found.counts, found.means) if isinstance(found, AllArmMeans) else None

    async def _among_peers(self, own: ArmMeans) -> Known:
        others = [agent for agent in range(self.context.agents) if agent != self.index]
        if others:
            self.tell(Multicast(excluding=self.index), own)
        this = lambda means: means.round == own.round  # noqa: E731
        found = await self.gather(None, reply=ArmMeans, to=others, where=this, together=True)
        if found.left:
            return None
        parts = [found.get(agent, own) for agent in range(self.context.agents)]
        return np.stack([part.counts for part in parts]), np.stack([part.means for part in parts])

    @lost(ArmMeans)
    def unreachable(self, own: ArmMeans, agent: Address) -> None:
        """Without this agent no round will end."""
        self.part()
        self.end()

    def leave(self) -> None:
        """Stop, at once or when the pulls of this round are over, and tell the others not to wait."""
        if self.waiting:
            self._stop_alone()
        if self.context.agents > 1:
            whom = SERVER if self.shared.via == "server" else Multicast(excluding=self.index)
            self.tell(whom, SyncAbandoned(round=self.round))

    def _stop_alone(self) -> None:
        alive = np.where(self.alive[self.index], self._own_means, -np.inf)
        self.stop(int(alive.argmax()) if np.isfinite(alive).any() else int(self.alive[self.index].argmax()))

    def _end_round(self, counts: IntArray, means: FloatArray) -> None:
        """Lines 11-16."""
        before = int(self.alive.sum())
        self.eliminate(self.pairs.estimate(counts, means, self.shared.xi))
        self.rounds += 1
        self.note("eliminate", round=self.round, value=before - int(self.alive.sum()))
        if self.finished():
            self.stop(self.chosen())
        self.round += 1

    def chosen(self) -> int:
        """The own arm to declare the best."""
        return int(np.flatnonzero(self.alive[self.index])[0])

    # --- after the run

    @abstractmethod
    def conditions(self, means: FloatArray, found: Difficulty) -> dict[str, float | int]:
        """Whether the conditions of the algorithm's theorem held."""

    def report_in_hindsight(self, means: FloatArray) -> dict[str, float | int]:
        """The difficulty of the instance and the theorem's conditions; agent 0 tells for all."""
        if self.index != 0:
            return {}
        found = difficulty(self.pairs, means, self.shared.xi)
        return {
            "hardness": found.hardness,
            "effective_dimension": found.effective_dimension,
            "task_rank": found.task_rank,
            **self.conditions(means, found),
        }
