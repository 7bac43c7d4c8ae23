"""The checks of ``checks: full``, beside the cheap ones of ``core.audit.invariants``.

After every message and turn: the node's own invariants; every pull is with its agent, on the way, lost for good, or
with the server, once; the node's twin does the same (`twins`); messages cost what they carry (`payloads`) and come to
whom they are for (`receivers`). For every copy: the link's streams say what becomes of it (`draws`), and it arrives
when it was to arrive. Every pull costs what the world's means say (`truth`), and everything happens at its time
(`timing`). At the end: per link and kind sent + duplicated = delivered + dropped + suppressed; the ledger is that of
the copies (`accounts`); the server's statistics are the sum over the uploads that it has taken in; and the result is
what was seen (`outcome`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from weakref import WeakKeyDictionary

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.audit.ledger import DOWN, UP, Ledger
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.audit.restarts import Restarts
from coband.simulator.core.audit.trace import NONE
from coband.simulator.core.checks.full_audit import FullAudit
from coband.simulator.core.checks.outcome import NEVER, Outcome, Seen
from coband.simulator.core.checks.payloads import stowaway, unfinite
from coband.simulator.core.checks.receivers import Receivers
from coband.simulator.core.checks.timing import Timing
from coband.simulator.core.checks.truth import Truth
from coband.simulator.core.checks.twins import Post, Twins
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.hosts.batteries import Batteries
from coband.simulator.core.hosts.outstanding import Outstanding
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Agent, BatchAgent, Client, Node, Server
from coband.simulator.core.nodes.outbox import SERVER, Address, Later, Neighbours, Outbox
from coband.simulator.core.packet import Packet
from coband.simulator.core.result import RunResult

UNTOLD = (
    "no message carries pulls, so that what the server has applied cannot be checked; give uploads pulls=self.unshared"
)
ROUNDING = 1e-9  # relative, of sums of the same numbers in another order


class Inspection:
    """Watches nodes, what they send and what they are handed.

    Args:
        agents, server: the nodes; server None where there is none.
        twins: of the nodes, by address, the server's last.
        graph: of the agents, where LOCAL messages are handed over without walking the hops; else None.
    """

    def __init__(
        self,
        audit: FullAudit,
        progress: Progress,
        agents: Sequence[Client],
        server: Server | None,
        twins: Sequence[Node],
        receivers: Receivers,
        graph: Graph | None,
        clock: Clock,
        timing: Timing,
        truth: Truth,
    ) -> None:
        self._audit, self._progress, self._agents, self._server = audit, progress, agents, server
        self._post, self._receivers, self._graph = Post(), receivers, graph
        self._clock, self._timing, self._truth, self._outcome = clock, timing, truth, Outcome()
        self._twins = Twins(twins, self._post, len(twins) + 1)
        self._uploads: list[tuple[Address, Message]] = []
        self._unshared, self._unshared_by = 0, dict[Address, int]()
        self._sent_at: WeakKeyDictionary[Message, dict[Address | None, float]] = WeakKeyDictionary()  # None: to several

    as_sent = False
    """Whether agents may lie: what nodes say of their statistics need not hold, and sums are those of what was sent."""

    energy: Batteries | None = None
    restarts: Restarts | None = None
    there: Callable[[Address], bool]

    # --- what nodes do

    def handled(self, node: Node, packet: Packet, outbox: Outbox, cause: int) -> None:
        self._sent(node, outbox, cause)
        if node is self._server and packet.source != SERVER:
            self._take_in(packet, cause)
        message = packet.message
        if packet.timer:
            self._timing.timer_rang(node.context.index, message, self._clock.now, cause)
            self._twins.reminded(node, message, outbox, cause)
        elif packet.expired:
            self._twins.told(node, message.original, packet.destination, outbox, cause)
        else:
            self._handed(node, packet.origin, message, packet.hop or None, cause)
            self._twins.received(node, packet.origin, message, outbox, cause, self._when_sent(message, node))
        self._check(node, packet, cause)

    def leaves(self, message: Message) -> None:
        """The wire sends a message in place of a node's own."""
        self._post.sent(message)

    def rejects(self, node: Address, source: Address, message: Message) -> None:
        """The defence of a node has kept a message from it that has arrived."""
        self._post.delivered(message, node, NONE)
        self._receivers.handed(node, source, message.original, None, NONE)

    def outdated(self, node: Node, packet: Packet, cause: int) -> None:
        message = packet.message
        if packet.timer:
            self._timing.timer_rang(node.context.index, message, self._clock.now, cause)
        elif not packet.expired:
            self._handed(node, packet.origin, message, packet.hop or None, cause)
            self._audit.underway -= message.pulls

    def restarted(self, node: Node, cause: int) -> None:
        if node is self._server:
            self._uploads.clear()
        self._twins.restarted(node, cause)

    def told_epoch(self, node: Node, outbox: Outbox, cause: int) -> None:
        self._sent(node, outbox, cause)
        for _, message in outbox:
            self._post.sent(message)

    def ignored(self, node: Node, timer: Message, cause: int) -> None:
        self._timing.timer_rang(node.context.index, timer, self._clock.now, cause)
        self._twins.reminded(node, timer, None, cause)

    def heard(self, node: Agent, messages: Sequence[tuple[Address, Message]], outbox: Outbox, cause: int) -> None:
        self._sent(node, outbox, cause)
        for source, message in messages:
            self._handed(node, source, message, None, cause)
        newest = max((self._when_sent(message, node) for _, message in messages), default=NEVER)
        self._twins.heard(node, messages, outbox, cause, newest)
        self._check(node, None, cause)

    def pulled(self, node: Agent, arms: ArmSet, arm: int, reward: float, outbox: Outbox, cause: int) -> None:
        self._sent(node, outbox, cause)
        self._twins.pulled(node, arms, arm, reward, outbox, cause, self._seen(node, arm, reward, cause))
        self._check(node, None, cause)

    def chose(self, node: Agent, arms: ArmSet, arm: int, reward: float, cause: int) -> None:
        self._twins.chose(node, arms, arm, cause, self._seen(node, arm, reward, cause))
        self._check(node, None, cause)

    def rewarded(self, node: Agent, pull: Outstanding, outbox: Outbox, cause: int) -> None:
        self._sent(node, outbox, cause)
        self._twins.rewarded(node, pull, outbox, cause)
        self._check(node, None, cause)

    def _seen(self, node: Agent, arm: int, reward: float, cause: int) -> Seen:
        agent, regret = node.context.index, self._progress.regrets[-1]
        self._truth.pulled(agent, arm, reward, regret, cause)
        self._outcome.append(Seen(agent, self._clock.now, regret, reward, self._scalars))
        return self._outcome[-1]

    def pulled_batch(self, node: BatchAgent, counts: IntArray, means: FloatArray, outbox: Outbox, cause: int) -> None:
        self._sent(node, outbox, cause)
        agent, regret, pulls = node.context.index, self._progress.regrets[-1], int(counts.sum())
        self._truth.pulled_batch(agent, counts, regret, cause)
        self._outcome.append(Seen(agent, self._clock.now, regret, float(counts @ means), self._scalars, pulls))
        self._twins.pulled_batch(node, counts, means, outbox, cause)
        self._check(node, None, cause)

    def _when_sent(self, message: Message, node: Node) -> float:
        """When a message that a node was handed was sent to it: once more to it alone, if the first was given up."""
        times = self._sent_at.get(message.original, {})
        return times.get(node.context.index, times.get(None, NEVER))

    @property
    def _scalars(self) -> int | None:
        return self._audit.accounts.scalars if self._graph is None else None

    # --- what must hold

    def _sent(self, node: Node, outbox: Outbox, cause: int) -> None:
        """Messages cost what they carry; what costs nothing carries nothing."""
        address = node.context.index
        for recipient, message in outbox:
            if isinstance(recipient, Later):  # the node to itself
                self._timing.timer_set(message, self._clock.now, recipient.delay)
                continue
            to = recipient if isinstance(recipient, int) else None
            self._sent_at.setdefault(message, {})[to] = self._clock.now
            size, hidden = self._audit.size(message), stowaway(message)
            if size != message.scalars:
                text = (
                    f"a {message.kind!r} of node {address} is counted as {message.scalars} scalars and carries {size}"
                )
                raise InvariantViolation(text, cause)
            if hidden is not None:
                text = f"{hidden!r} of a {message.kind!r} of node {address} is no payload and more than a header may be"
                raise InvariantViolation(text, cause)
            if (name := unfinite(message)) is not None:
                raise InvariantViolation(f"{type(message).__name__}.{name} of node {address} is not finite", cause)
            self._receivers.sent(address, recipient, message, cause)
            if message.sent_as and recipient not in message.sent_as:
                continue  # it went to each receiver by itself
            if self._graph is not None and isinstance(recipient, Neighbours):
                sent = message.sent_as.get(recipient, message)
                self._audit.accounts.flooded(sent, self._graph, address, recipient.hops, size)

    def _handed(self, node: Node, source: Address, message: Message, hop: int | None, cause: int) -> None:
        self._post.delivered(message, node.context.index, cause)
        self._receivers.handed(node.context.index, source, message.original, hop, cause)

    def _take_in(self, packet: Packet, cause: int) -> None:
        self._audit.underway -= packet.message.pulls
        if self._audit.underway < 0:
            raise InvariantViolation(f"{-self._audit.underway} pulls were taken in that nobody had sent", cause)
        self._uploads.append((packet.origin, packet.message))

    def _check(self, node: Node, packet: Packet | None, cause: int) -> None:
        """The node's own invariants, and that every pull is somewhere, once."""
        for sentence in () if self.as_sent else node.broken_invariants():
            raise InvariantViolation(sentence, cause)
        if isinstance(node, Client) and node.unshared < 0:
            text = f"agent {node.context.index} has sent more pulls than it had ({node.unshared} are unshared)"
            raise InvariantViolation(text, cause)
        missing = self._missing(node)
        if packet is not None and packet.expired and 0 < -missing <= packet.message.pulls:
            self._audit.lost += missing  # the sender has taken its pulls back
            self._audit.given_up_by[node.context.index] += missing
        elif missing:
            what = "lost" if missing > 0 else "counted twice"
            raise InvariantViolation(f"{abs(missing)} of {self._progress.made} pulls were {what}", cause)

    def _missing(self, node: Node) -> int:
        """Pulls that nobody has, less those that somebody has too often; the node alone seems to have changed."""
        if isinstance(node, Client):
            self._unshared += node.unshared - self._unshared_by.get(node.context.index, 0)
            self._unshared_by[node.context.index] = node.unshared
        return self._unaccounted() and self._unaccounted(anew=True)

    def _unaccounted(self, anew: bool = False) -> int:
        if anew:
            self._unshared_by = {agent.context.index: agent.unshared for agent in self._agents}
            self._unshared = sum(self._unshared_by.values())
        held = self._unshared + self._audit.underway + self._applied
        forgotten = 0 if self.restarts is None else self.restarts.forgotten
        return self._progress.made - self._progress.outstanding - forgotten - held - self._audit.lost

    def _check_given_up(self, down: Set[Address]) -> None:
        """Who was told that an upload was given up has its pulls again, or has sent them again."""
        for agent, pulls in self._audit.given_up_by.items() if self.restarts is None else ():
            if pulls > 0 and agent not in down and self.there(agent):
                raise InvariantViolation(
                    f"{pulls} pulls of agent {agent} were in uploads that were given up, and nobody has them: "
                    "the agent must keep them (Client.unshared) and send them again"
                )

    def at_end(self, ledger: Ledger, regret: float, down: Set[Address]) -> None:
        """When no event is left; ``down``: who is down for good."""
        self._unaccounted(anew=True)
        for node in [*self._agents, *([] if self._server is None else [self._server])]:
            self._check(node, None, NONE)
        self._check_given_up(down)
        self._twins.catch_up()
        if not self._audit.lost_for_good:
            self._receivers.at_end(down)
        self._audit.check_links(ledger)
        self._timing.at_end()
        self._truth.at_end()
        self._check_energy()
        if not math.isclose(math.fsum(self._progress.regrets), regret, rel_tol=ROUNDING, abs_tol=ROUNDING):
            raise InvariantViolation(f"the total regret is {regret}, the sum over all turns another number")
        if self._server is not None:
            for sentence in self._server.discrepancies(self._uploads):
                raise InvariantViolation(sentence)

    @property
    def unchecked(self) -> Iterator[str]:
        """One sentence for what could not be checked, since nodes do not say enough of it."""
        uploads = [message for _, message in self._uploads]
        if any(one.scalars for one in uploads) and not any(one.pulls for one in uploads) and not self._applied:
            yield UNTOLD

    @property
    def _applied(self) -> int:
        return 0 if self._server is None else self._server.applied

    def _check_energy(self) -> None:
        """Every agent has paid for its pulls and for its bits."""
        if self.energy is None:
            return
        turns = Counter[Address]()
        for seen in self._outcome:
            turns[seen.agent] += seen.pulls
        for agent in range(len(self._agents)):
            due = self.energy.due(turns[agent], self._audit.bits[agent, UP], self._audit.bits[agent, DOWN])
            paid = self.energy.spent_by(agent)
            if not math.isclose(due, paid, rel_tol=ROUNDING, abs_tol=ROUNDING):
                raise InvariantViolation(f"agent {agent} has paid {paid:g} J; its pulls and bits take {due:g} J")

    def summed_up(self, result: RunResult, due: int | None) -> None:
        nodes = [*self._agents, *([] if self._server is None else [self._server])]
        before = {} if self.restarts is None else self.restarts.rounds
        parts = (result, self._audit.accounts, nodes, self._timing.last_delivery, due, before)
        for sentence in self._outcome.mismatches(*parts):
            raise InvariantViolation(sentence)
