"""OneKernelUCB: every point is shared at once and all agents learn one exact model (baseline of paper 000, section 5).

With link delays an agent acts on what has reached it. The server numbers the points; since messages keep their order, a
number that an agent was not sent is that of its own next point, so the agent knows the first part of the server's log
and keeps its newest points on top of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coband.agents.domains import domain_of
from coband.agents.messages.sharing import Point
from coband.agents.parameters import KernelBandit
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, Agent, NodeContext, Outbox
from coband.simulator.maths.posteriors.choose import shared_log
from coband.simulator.maths.posteriors.look_ahead import ComingTurns
from coband.simulator.maths.posteriors.observations import Observations


class OneKernelUCB(Agent):
    """Exact kernel ridge regression on all that has been shared and the agent's own points."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: KernelBandit = context.config
        domain = domain_of(context)
        self._log = context.sharing.get("log", lambda: shared_log(self.config.kernel, self.config.lam, domain))
        self.posterior = self._log.posterior()
        self._coming = ComingTurns()
        self._own: list[Observations] = []  # points that are not known to stand in the log
        self._known = 0  # entries of the log that are known; the posterior catches up at the next turn
        self._own_known = 0

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest mu + alpha * sigma (paper 000, equations 1 and 3)."""
        if self._known != self.posterior.known:
            self.posterior.adopt(self._known, self._own_known)
            self._own_known = 0
        arm = self.best(self.posterior.scores(arms, self.config.alpha))
        self._coming.announce(self.posterior)
        return arm

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """Let the arms of coming turns be prepared together with other agents'."""
        self._coming.begin(arm_sets)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull and share it."""
        pull = Observations.pull(arms, arm, reward)
        self.posterior.update(pull)
        self._own.append(pull)
        return [(SERVER, Point(point=arms.features[arm], reward=reward, pulls=1))]

    def receive(self, message: Message, source: Address) -> Outbox:
        """Another agent's point; the numbers left out since the last one are the agent's own points."""
        assert isinstance(message, Point)
        while self._known < message.position:
            self._log.extend(self._known, self._own.pop(0))
            self._known += 1
            self._own_known += 1
        if self._log.size == self._known:
            self._log.extend(self._known, Observations(message.point[None], np.array([message.reward])))
        self._known += 1
        return []


ALGORITHM = Algorithm(
    name="one_kernel_ucb",
    agent=OneKernelUCB,
    server="coband.server.one_kernel_ucb:OneKernelUCBServer",
    config=KernelBandit,
    summary="Every point is sent to everybody at once; all agents act on one exact kernel model.",
    reference="paper 000, section 5 (OneKernelUCB); Valko et al. 2013",
    needs=Needs(ordered=True),
    messages=(
        MessageSize(Point, "up", "d + 1"),
        MessageSize(Point, "down", "d + 1", "to each of the other agents"),
    ),
    counts=(ClosedForm("uplink_scalars", "T*(d + 1)"), ClosedForm("downlink_scalars", "T*(N - 1)*(d + 1)")),
    cites=("li2023asynchronous", "valko2013finite"),
)
