"""DisKernelUCB: event-triggered synchronisation of raw points (Li et al. 2022; baseline of Pavlovic et al. 2024).
As printed: `tests/oracles/dis_kernel_ucb.py`. Next: `messages/synchronisation.py`, `server/kernel/dis_kernel_ucb.py`.

The data of all agents that has been synchronised is one log in an order that all agents know (synchronisation by
synchronisation, agent by agent); an agent's newest points stand on top of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from coband.agents.common.parameters import KernelBandit, Synchronous, domain_of
from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.messages.synchronisation import MissingPoints, NewPoints, SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.node import Address, NodeContext, Outbox
from coband.simulator.maths.posteriors.choose import shared_log
from coband.simulator.maths.posteriors.look_ahead import ComingTurns
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations


class DisConfig(KernelBandit, Synchronous):
    """Parameters of DisKernelUCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The paper's D: a synchronisation is due when n_new * (gain in log det) exceeds it."""


class DisKernelUCB(SynchronousAgent):
    """The client's side."""

    model = MissingPoints

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: DisConfig = context.config
        domain = domain_of(context)
        self._log = context.sharing.get("log", lambda: shared_log(self.config.kernel, self.config.lam, domain))
        self.posterior = self._log.posterior()
        self._coming = ComingTurns()
        self._new = GrowingObservations(context.dimension)
        self._uploaded = 0  # of the new points
        self._underway: list[NewPoints] = []  # with these points, in the order in which the server takes them in
        self._early: dict[int, MissingPoints] = {}  # by what they follow, which was given up, and will be sent again

    @property
    def pulls_in_model(self) -> int:
        """Those of the last synchronisation, and its own since then."""
        return self.posterior.known + self._new.size

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest mu + alpha * sigma on synchronised and own new data."""
        arm = self.best(self.posterior.scores(arms, self.config.alpha))
        self._coming.announce(self.posterior)
        return arm

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull; ask for a synchronisation when n_new * log(det(I+K_all/lam) / det(I+K_synced/lam)) > D."""
        self.posterior.update(Observations.pull(arms, arm, reward))
        self._new.append(arms.features[arm], reward)
        self.unshared += 1
        gain = self._new.size * self.posterior.log_det_gain
        if self._requested or not exceeds(gain, self.config.threshold):
            return []
        return self.request(gain)

    def upload(self, start: SyncStart) -> NewPoints:
        """The points since the last upload."""
        new, self._uploaded = self._new.since(self._uploaded), self._new.size
        upload = NewPoints(points=new.features, rewards=new.rewards, pulls=len(new), round=start.round)
        self._underway.append(upload)
        return upload

    def take_in(self, message: MissingPoints, server: Address) -> None:
        """Adopt all synchronisations up to this one, in their order; an earlier one that was given up comes again."""
        self._early[message.follows] = message
        while (following := self._early.pop(self._version, None)) is not None:
            self.adopt(following)

    def adopt(self, message: MissingPoints) -> None:
        """Add the points of a synchronisation to the log, those of all earlier ones being there."""
        new, before, own = self._new.since(0), message.before, message.own
        points = np.concatenate([message.points[:before], new.features[:own], message.points[before:]])
        rewards = np.concatenate([message.rewards[:before], new.rewards[:own], message.rewards[before:]])
        known = self.posterior.known
        self._log.extend(known, Observations(points, rewards))
        self.posterior.adopt(known + len(points), own)
        # The synchronisation that ends has come too early for the other own points, which stay new.
        early, self._new = self._new.since(own), GrowingObservations(self.context.dimension)
        self._new.extend(early)
        self._uploaded -= own
        while own > 0:
            own -= len(self._underway.pop(0).rewards)
        self._version = message.version
        self.note("model", version=message.version, round=message.round)

    def take_back(self, message: NewPoints) -> None:
        """Its points are new again: they come after those of the uploads that are under way or have come through."""
        place = [upload.round for upload in self._underway].index(message.round)
        start = sum(len(upload.rewards) for upload in self._underway[:place])
        del self._underway[place]
        points, end = self._new.since(0), start + len(message.rewards)
        order = [*range(start), *range(end, len(points)), *range(start, end)]
        self._new = GrowingObservations(self.context.dimension)
        self._new.extend(Observations(points.features[order], points.rewards[order]))
        self._uploaded -= len(message.rewards)
        self.posterior.adopt(self.posterior.known, len(points))
        self.posterior.update(self._new.since(0))

    # --- ahead of turns

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """Let the arms of coming turns be prepared together with other agents'."""
        self._coming.begin(arm_sets)


ALGORITHM = Algorithm(
    name="dis_kernel_ucb",
    agent=DisKernelUCB,
    server="coband.server.kernel.dis_kernel_ucb:DisKernelUCBServer",
    config=DisConfig,
    summary="Exact kernel bandit; all agents exchange their new raw points when one of them has learnt enough.",
    reference="Li et al. 2022, DisKernelUCB; baseline of Pavlovic et al. 2024",
    needs=Needs(waits_for_all="wait == 'all'", exact=("points",), exact_if="fixed_arms"),
    messages=(
        *OPENING,
        MessageSize(NewPoints, "up", "n*(d + 1)", "from each agent", due=True),
        MessageSize(MissingPoints, "down", "n*(d + 1)", "to each agent", due=True),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "applied*(d + 1)"),
        ClosedForm("downlink_scalars", "applied*(N - 1)*(d + 1)", "wait == 'all'"),
    ),
    cites=("li2022communication",),
    search={"threshold": "0.1..1000"},
    always={"threshold": 0.0},
)
