"""OneKernelUCB: every point is shared at once, and all learn one exact model (baseline of Li et al. 2023, section 5).
As printed: `tests/oracles/one_kernel_ucb.py`. Next: `messages/sharing.py`, `server/kernel/one_kernel_ucb.py`.

With link delays an agent acts on what has reached it. The server numbers the points and says how many of each agent
come before a point, so an agent knows which numbers are those of its own points. It knows the first part of the
server's log and keeps its newest points on top of it.

When the transport gives up a point, the agent sees from the numbers of later ones, or from the silence, that it lacks
something and asks for it. Its own points are numbered too, and the server takes them in by their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coband.agents.common.parameters import KernelBandit, domain_of
from coband.agents.messages.sharing import LostPoints, LostPointsRequest, Point
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.conversations import Talks, lost, on
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox
from coband.simulator.core.nodes.outbox import Silence
from coband.simulator.maths.posteriors.choose import shared_log
from coband.simulator.maths.posteriors.look_ahead import ComingTurns
from coband.simulator.maths.posteriors.observations import Observations


class OneKernelUCB(Talks, Agent):
    """Exact kernel ridge regression on all that has been shared and the agent's own points."""

    each = (Point,)

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
        self._settled = 0  # own points among the known entries
        self._pulls = 0
        self._early: dict[int, tuple[int, Point | Observations]] = {}  # by number: own points before it, the point
        self._asking = False  # for points that it lacks
        self._unsent: list[Point] = []

    @property
    def pulls_in_model(self) -> int:
        """The known part of the log, and its own pulls that stand elsewhere in it."""
        return self._known + len(self._own)

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest mu + alpha * sigma (Li et al. 2023, equations 1 and 3)."""
        if self._known != self.posterior.known:
            self.posterior.adopt(self._known, self._own_known)
            self._own_known = 0
        arm = self.best(self.posterior.scores(arms, self.config.alpha))
        self._coming.announce(self.posterior)
        return arm

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull and share it."""
        pull = Observations.pull(arms, arm, reward)
        self.posterior.update(pull)
        self._own.append(pull)
        self.unshared += 1
        unsent, self._unsent = self._unsent, []
        for point in unsent:
            self.tell(SERVER, replace(point))
        self._pulls += 1
        self.tell(SERVER, Point(point=arms.features[arm], reward=reward, position=self._pulls - 1, pulls=1))
        return self.sent()

    @on(Point)
    def take(self, message: Point, server: Address) -> None:
        """Another agent's point."""
        position, own = message.position, message.before[self.context.index]
        if not self._early and self._is_due(position, own):
            self._take(position, message)
            return
        self._early[position] = own, message
        self._line_up()

    def _take(self, position: int, point: Point | Observations) -> None:
        """Extend the known part by own points up to a position, and by the point there; not by one that is known."""
        if position < self._known:
            return
        while self._known < position:
            self._extend(self._own.pop(0))
            self._own_known += 1
            self._settled += 1
        self._extend(point)

    def _extend(self, point: Point | Observations) -> None:
        if self._log.size == self._known:
            if isinstance(point, Point):
                point = Observations(point.point[None], np.array([point.reward]))
            self._log.extend(self._known, point)
        self._known += 1

    # --- points that do not get through

    @lost(Point)
    def keep(self, point: Point, server: Address) -> None:
        """A point that did not get through goes with the next one."""
        self._unsent.append(point)

    @on(Silence)
    def catch_up(self, silence: Silence, server: Address) -> None:
        """Something from the server does not come."""
        self.begin(self._ask(None))

    async def _ask(self, last: int | None) -> None:
        """Ask for the entries of the log from the first unknown one to ``last``, or for all that there are."""
        if self._asking:
            return
        self._asking = True
        found = await self.ask(SERVER, LostPointsRequest(first=self._known, last=last), reply=LostPoints)
        self._asking = False
        if isinstance(found, LostPoints):
            points = zip(found.positions, found.before, found.points, found.rewards, strict=True)
            for position, own, x, y in points:
                self._early[position] = own, Observations(x[None], np.array([y]))
            self._line_up()

    def _is_due(self, position: int, own: int) -> bool:
        """Whether all entries before a position are known, as there are so many ``own`` points among them."""
        return position - self._known <= own - self._settled

    def _line_up(self) -> None:
        """Extend the known part of the log as far as the points go; ask for what is missing before the next one."""
        while self._early:
            position = min(self._early)
            own, point = self._early[position]
            if not self._is_due(position, own):
                self.begin(self._ask(position - 1))
                return
            del self._early[position]
            self._take(position, point)

    # --- ahead of turns

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """Let the arms of coming turns be prepared together with other agents'."""
        self._coming.begin(arm_sets)


ALGORITHM = Algorithm(
    name="one_kernel_ucb",
    agent=OneKernelUCB,
    server="coband.server.kernel.one_kernel_ucb:OneKernelUCBServer",
    config=KernelBandit,
    summary="Every point is sent to everybody at once; all agents act on one exact kernel model.",
    reference="Li et al. 2023, section 5 (OneKernelUCB); Valko et al. 2013",
    needs=Needs(ordered=True, exact=("points",), exact_if="fixed_arms"),
    messages=(
        MessageSize(Point, "up", "d + 1", due=True),
        MessageSize(Point, "down", "d + 1", "to each of the other agents", due=True),
        MessageSize(LostPointsRequest, "up", "0", "from an agent that lacks points"),
        MessageSize(LostPoints, "down", "n*(d + 1)", "to an agent that asks for them"),
    ),
    counts=(ClosedForm("uplink_scalars", "T*(d + 1)"), ClosedForm("downlink_scalars", "T*(N - 1)*(d + 1)")),
    cites=("li2023asynchronous", "valko2013finite"),
)
