"""Nodes that talk, and a wire on which the test decides what becomes of each message."""

from dataclasses import dataclass
from typing import Any, ClassVar

from coband.simulator.arms import ArmSet
from coband.simulator.core.conversations import Talks, Unanswered, on
from coband.simulator.core.nodes.context import RetryPolicy, Sharing
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import (
    ALL_AGENTS,
    SERVER,
    Address,
    Agent,
    Later,
    Multicast,
    Node,
    NodeContext,
    Outbox,
    Server,
)
from coband.simulator.core.nodes.outbox import Silence


class Ask(Message):
    kind: ClassVar[str] = "ask"
    number: int = 0


class Reply(Message):
    kind: ClassVar[str] = "reply"
    number: int = 0


class Call(Message):
    kind: ClassVar[str] = "call"


class News(Message):
    kind: ClassVar[str] = "news"
    number: int = 0


def context(index: Address, agents: int = 2, **recovery: Any) -> NodeContext:
    policy = RetryPolicy(**{"timeout": 1.0, "backoff": 2.0, "attempts": 2, "patience": 50.0, **recovery})
    made: Any = NodeContext(index, agents, 2, None, Sharing(True), None, recovery=policy)  # type: ignore[arg-type]
    return made


class Talker(Talks, Agent):
    """An agent without arms; ``log``: what came of its questions."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.log: list[Any] = []
        self.undone: list[Message] = []

    def choose(self, arms: ArmSet) -> int:
        raise AssertionError("it takes no turns")

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        raise AssertionError("it takes no turns")

    def start(self, message: Message, **how: Any) -> Outbox:
        """Ask the server, and note the outcome."""
        return self.begin(self._ask(message, **how))

    async def _ask(self, message: Message, **how: Any) -> None:
        answer = await self.ask(SERVER, message, reply=Reply, undo=self.undone.append, **how)
        self.log.append(answer.reason if isinstance(answer, Unanswered) else answer)


class Centre(Talks, Server):
    """Answers every question with its number."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.heard: list[tuple[Message, Address]] = []

    @on(Ask)
    def reply(self, ask: Ask, agent: Address) -> Reply:
        self.heard.append((ask, agent))
        return Reply(number=ask.number)


@dataclass(eq=False)
class Packet:
    """A message on its way."""

    source: Address
    to: Address
    message: Message
    delivered: bool = False


class Wire:
    """What is on its way between nodes, and the timers that they have set."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {node.context.index: node for node in nodes}
        self.packets: list[Packet] = []
        self.timers: list[tuple[float, Address, Message]] = []
        self.sent: list[Packet] = []
        self.now = 0.0

    def post(self, source: Address, outbox: Outbox | None) -> None:
        """Put on the wire what a node has answered."""
        for recipient, message in outbox or ():
            if isinstance(recipient, Later):
                self.timers.append((self.now + recipient.delay, source, message))
                continue
            agents = [node for node in sorted(self.nodes) if node != SERVER]
            skipped = recipient.excluding if isinstance(recipient, Multicast) else None
            for to in [recipient] if isinstance(recipient, int) else [node for node in agents if node != skipped]:
                packet = Packet(source, to, message)
                self.sent.append(packet)
                self.packets.append(packet)

    def deliver(self, place: int = 0, *, keep: bool = False) -> Message:
        """Hand over a message; ``keep``: it comes a second time later."""
        packet = self.packets[place] if keep else self.packets.pop(place)
        packet.delivered = True
        self.post(packet.to, self.nodes[packet.to].receive(packet.message, packet.source))
        return packet.message

    def lose(self, place: int = 0) -> Message:
        """The transport gives a message up: its sender is told now, its receiver notices later."""
        packet = self.packets.pop(place)
        if packet.delivered:  # a second copy, about which nobody is told
            return packet.message
        self.timers.append((self.now + 1.0, packet.to, Silence(about=packet.source)))
        self.post(packet.source, self.nodes[packet.source].undelivered(packet.message, packet.to))
        return packet.message

    def ring(self, place: int | None = None) -> Message:
        """Let a timer ring: the next one, or that at a place of the list."""
        if place is None:
            place = min(range(len(self.timers)), key=lambda one: self.timers[one][0])
        time, node, timer = self.timers.pop(place)
        self.now = max(self.now, time)
        self.post(node, self.nodes[node].on_timer(timer))
        return timer

    def settle(self) -> None:
        """Deliver everything, and let all timers ring."""
        for _ in range(10_000):
            if self.packets:
                self.deliver()
            elif self.timers:
                self.ring()
            else:
                return
        raise AssertionError("it never ends")


def pair(**recovery: Any) -> tuple[Talker, Centre, Wire]:
    """An agent, a server, and the wire between them."""
    agent, server = Talker(context(0, 1, **recovery)), Centre(context(SERVER, 1, **recovery))
    return agent, server, Wire(agent, server)


__all__ = ["ALL_AGENTS", "Ask", "Call", "Centre", "News", "Packet", "Reply", "Talker", "Wire", "context", "pair"]
