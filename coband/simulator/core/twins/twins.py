"""Twins: whether nodes know only what they were told.

Every node has a twin, made from the same construction data, with its own arms, rewards and random streams, that is
given copies of exactly what was delivered to the node. Twins share no work, take their turns one by one and never look
ahead. Whatever a node decides, its twin must decide too: which arm to pull, what to send to whom, whether to wait.

A twin follows some steps behind its node, so that what nodes leave for each other outside messages has changed by then.
What nodes say of themselves (``Node.broken_invariants``) is asked for on the way, ``Server.discrepancies`` at the end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.hosts.host import Outstanding, kept_of, observe_late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, BatchAgent, Client, Later, Node, Outbox, Server
from coband.simulator.core.nodes.outbox import Silence, called
from coband.simulator.core.packet import Packet
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.trace import NONE
from coband.simulator.core.twins.payloads import ROUNDING, difference, frozen
from coband.simulator.scenario_errors import RAISED

UNCHANGED = 1e-12
"""Relative; a matrix that is kept in fewer numbers than it has entries is multiplied out to be compared."""
Standing = tuple[bool | int, ...]
Answer = Callable[[Any], Outbox]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a node did.

    Attributes:
        answer: has the twin do the same.
        outbox: what the node sent, frozen when it was sent; ``sent``: the node's own messages.
        standing: what the node said of itself afterwards.
        gone: who took no part then.
    """

    address: Address
    answer: Answer
    outbox: Outbox
    sent: Sequence[Message]
    standing: Standing
    cause: int
    gone: frozenset[Address]


class Post:
    """Frozen copies of the messages that are somewhere: one for each, made when it is sent."""

    def __init__(self) -> None:
        self._copies: WeakKeyDictionary[Message, Message] = WeakKeyDictionary()

    def sent(self, message: Message) -> Message:
        """The copy of a message that is sent now."""
        if message not in self._copies:
            self._copies[message] = frozen(message)
        return self._copies[message]

    def delivered(self, message: Message, node: Address, cause: int) -> Message:
        """The copy of a message that was delivered, which must say what it said when it was sent."""
        made = self._copies.get(message)
        if made is None:
            raise InvariantViolation(f"node {node} was handed a {message.kind!r} that nobody has sent", cause)
        changed = difference(made, message, UNCHANGED)
        if changed is not None:
            text = f"{changed!r} of a {message.kind!r} to node {node} was changed after it was sent"
            raise InvariantViolation(text, cause)
        return made


class Twins:
    """The twins of the nodes of a run; hosts and the wire tell them what nodes do (`core.hosts.host.Inspector`).

    Args:
        twins: by address, agents first, the server's, if there is one, last.
        honest: whether agents are; if not, what nodes say of their own statistics need not hold, and sums are those of
            what was sent.
        gone: who takes no part now.
        known: the same as twins know it, who do everything later than their nodes.
    """

    def __init__(self, twins: Sequence[Node], honest: bool, gone: set[Address], known: set[Address]) -> None:
        self._twins, self._honest, self._gone, self._known = twins, honest, gone, known
        self._post = Post()
        self._uploads: list[tuple[Address, Message]] = []  # that the server was handed
        self._lag = len(twins) + 1  # steps between a node and its twin
        self._steps: deque[Step] = deque()
        self._own: WeakKeyDictionary[Message, Message] = WeakKeyDictionary()  # the twin's, by the node's
        self._scores: dict[Address, tuple[FloatArray, int]] = {}
        self._outstanding: dict[int, Outstanding] = {}  # the twins', by the event of the choice
        for twin in twins:
            if isinstance(twin, Client):
                vars(twin)["best"] = self._noted(twin)

    def _noted(self, twin: Client) -> Callable[..., int]:
        """``best``, which keeps the scores that the twin has compared last, and must give the highest of them."""
        best, address, open_ties = twin.best, twin.context.index, twin.context.open_ties
        ties = None if open_ties is None else open_ties(address)

        def noted(scores: FloatArray, winner: int | None = None, gap: float | None = None) -> int:
            place = best(scores, winner, gap)
            tied = np.flatnonzero(scores == np.max(scores)).tolist()
            drawn = 0 if ties is None or winner is not None or len(tied) < 2 else int(ties.integers(len(tied)))
            if place != tied[drawn]:
                text = f"takes the score of arm {place} for the highest: arm {tied[drawn]} has it"
                text += f", drawn from {len(tied)} tied ones" if len(tied) > 1 else ""
                raise InvariantViolation(f"{_name(twin)} {text}")
            self._scores[address] = scores, place
            return place

        return noted

    # --- what nodes do

    def handled(self, node: Node, packet: Packet, outbox: Outbox, cause: int) -> None:
        message = packet.message
        if packet.timer:
            self._reminded(node, message, outbox, cause)
        elif packet.expired:
            own = message.original
            self._follow(node, lambda twin: twin.undelivered(self._own[own], packet.destination), outbox, cause)
        else:
            if isinstance(node, Server):
                self._uploads.append((packet.origin, message))
            copy = self._post.delivered(message, node.context.index, cause)
            self._follow(node, lambda twin: twin.receive(copy, packet.origin), outbox, cause)

    def ignored(self, node: Node, timer: Message, cause: int) -> None:
        self._reminded(node, timer, None, cause)

    def _reminded(self, node: Node, timer: Message, outbox: Outbox | None, cause: int) -> None:
        """A timer has rung; None: nobody waits for it. A silence comes from the host, others from the node itself."""

        def reminded(twin: Node) -> Outbox:
            found = twin.on_timer(timer if isinstance(timer, Silence) else self._own[timer])
            if (found is None) != (outbox is None):
                use = "no use" if found is None else "a use"
                raise InvariantViolation(f"{_unlike(twin)} has {use} for the timer {timer.kind!r}", cause)
            return found or []

        self._follow(node, reminded, outbox or [], cause)

    def heard(self, node: Agent, messages: Sequence[tuple[Address, Message]], outbox: Outbox, cause: int) -> None:
        copies = [(source, self._post.delivered(message, node.context.index, cause)) for source, message in messages]

        def one_by_one(twin: Node) -> Outbox:
            return [sent for source, copy in copies for sent in twin.receive(copy, source)]

        self._follow(node, one_by_one, outbox, cause)

    def leaves(self, message: Message) -> None:
        """The wire sends a message in place of a node's own."""
        self._post.sent(message)

    def rejects(self, node: Address, message: Message) -> None:
        """The defence of a node keeps a message from it that has arrived."""
        self._post.delivered(message, node, NONE)

    def pulled(self, node: Agent, arms: ArmSet, arm: int, reward: float, outbox: Outbox, cause: int) -> None:
        chosen: ArmSet = getattr(arms, "offered", arms)
        learnt = None if chosen is arms else np.array(arms.features)
        choose = self._chooses(node, chosen, arm, cause)

        def turn(twin: Agent) -> Outbox:
            offered = choose(twin)
            found: Outbox = twin.observe(offered if learnt is None else ArmSet(learnt), arm, reward)
            return found

        self._follow(node, turn, outbox, cause)

    def chose(self, node: Agent, arms: ArmSet, arm: int, cause: int) -> None:
        choose = self._chooses(node, arms, arm, cause)

        def turn(twin: Agent) -> Outbox:
            offered = choose(twin)
            self._outstanding[cause] = Outstanding(offered, arm, math.nan, cause, kept_of(twin))
            return []

        self._follow(node, turn, [], cause)

    def rewarded(self, node: Agent, pull: Outstanding, outbox: Outbox, cause: int) -> None:
        learnt = np.array(pull.arms.features) if hasattr(pull.arms, "offered") else None

        def observe(twin: Agent) -> Outbox:
            own = self._outstanding.pop(pull.choice)
            own.reward, own.arms = pull.reward, own.arms if learnt is None else ArmSet(learnt)
            return observe_late(twin, own)

        self._follow(node, observe, outbox, cause)

    def _chooses(self, node: Agent, arms: ArmSet, arm: int, cause: int) -> Callable[[Agent], ArmSet]:
        """Has a twin choose, and compares; gives what it has chosen from."""
        fixed, features = arms is node.context.domain, np.array(arms.features)

        def choose(twin: Agent) -> ArmSet:
            offered = twin.context.domain if fixed and twin.context.domain is not None else ArmSet(features)
            self._compare_choice(twin, twin.choose(offered), arm, cause)
            return offered

        return choose

    def pulled_batch(self, node: BatchAgent, counts: IntArray, means: FloatArray, outbox: Outbox, cause: int) -> None:
        counts, means = counts.copy(), means.copy()

        def phase(twin: BatchAgent) -> Outbox:
            asked = twin.request()
            if not np.array_equal(asked, counts):
                raise InvariantViolation(
                    f"{_unlike(twin)} asks for {asked.tolist()} pulls, not {counts.tolist()}", cause
                )
            return twin.observe_batch(counts.copy(), means.copy())

        self._follow(node, phase, outbox, cause)

    def at_end(self, nodes: Sequence[Node]) -> None:
        """When no event is left."""
        for node in nodes:
            self._check(node, NONE)
        while self._steps:
            self._take(self._steps.popleft())
        for node in nodes:
            for sentence in node.discrepancies(self._uploads) if isinstance(node, Server) else ():
                raise InvariantViolation(sentence)

    # --- what twins do

    def _follow(self, node: Node, answer: Answer, outbox: Outbox, cause: int) -> None:
        copies = [
            (recipient, message if isinstance(recipient, Later) else self._post.sent(message))
            for recipient, message in outbox
        ]
        sent = [message for _, message in outbox]
        gone = frozenset(self._gone)
        self._steps.append(Step(node.context.index, answer, copies, sent, standing_of(node), cause, gone))
        while len(self._steps) > self._lag:
            self._take(self._steps.popleft())
        self._check(node, cause)

    def _check(self, node: Node, cause: int) -> None:
        """What a node says of its statistics must be true."""
        for sentence in node.broken_invariants() if self._honest else ():
            raise InvariantViolation(sentence, cause)
        if isinstance(node, Client) and node.unshared < 0:
            text = f"agent {node.context.index} has sent more pulls than it had ({node.unshared} are unshared)"
            raise InvariantViolation(text, cause)

    def _take(self, step: Step) -> None:
        twin = self._twins[step.address]
        self._known.clear()
        self._known |= step.gone
        try:
            outbox = step.answer(twin)
        except InvariantViolation:
            raise
        except RAISED as error:
            text = f"the twin of {_name(twin)}, which has only what was delivered, cannot go on: {error!r}"
            raise InvariantViolation(text, step.cause) from error
        twin.notes = ()
        self._compare_outboxes(twin, outbox, step)
        found = standing_of(twin)
        if found != step.standing:
            text = f"{_unlike(twin)} has (waiting, done, pulls held or applied, rounds) = {found}, not {step.standing}"
            raise InvariantViolation(text, step.cause)

    def _compare_choice(self, twin: Agent, place: int, arm: int, cause: int) -> None:
        """Both must choose one arm; or arms whose scores, to the twin, differ by rounding alone."""
        if place == arm:
            return
        scores, best = self._scores.get(twin.context.index, (np.empty(0), -1))
        known = best == place and 0 <= arm < len(scores)
        if known and abs(scores[place] - scores[arm]) <= ROUNDING * max(1.0, abs(scores[place])):
            return
        raise InvariantViolation(f"{_unlike(twin)} chooses arm {place}, not {arm}", cause)

    def _compare_outboxes(self, twin: Node, outbox: Outbox, step: Step) -> None:
        kinds, expected = ([message.kind for _, message in box] for box in (outbox, step.outbox))
        if kinds != expected:
            raise InvariantViolation(f"{_unlike(twin)} sends {_listed(kinds)}, not {_listed(expected)}", step.cause)
        for (recipient, message), (other, copy), sent in zip(outbox, step.outbox, step.sent, strict=True):
            self._own[sent] = message
            if isinstance(recipient, Later) and recipient == other:
                continue
            if recipient != other:
                text = f"{_unlike(twin)} sends {message.kind!r} to {recipient}, not to {other}"
                raise InvariantViolation(text, step.cause)
            field = difference(copy, message)
            if field is not None:
                raise InvariantViolation(f"{_unlike(twin)} sends {message.kind!r} with another {field!r}", step.cause)


def standing_of(node: Node) -> Standing:
    """What a node says of itself: whether it waits, has stopped, its pulls that are not shared or applied, rounds."""
    if isinstance(node, Client):
        return node.waiting, node.done, node.unshared, node.rounds
    assert isinstance(node, Server)
    return False, False, node.applied, node.rounds


def _name(node: Node) -> str:
    return called(node.context.index)


def _unlike(twin: Node) -> str:
    causes = "knows what was not delivered to it, missed what was, or draws from other streams than its own"
    return f"{_name(twin)} {causes}: its twin"


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(map(repr, kinds)) or "nothing"
