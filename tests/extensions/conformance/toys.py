"""A small protocol that goes on after any fault, and ways to spoil it."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox, Server
from coband.simulator.core.nodes.outbox import Silence


class ToyConfig(Config):
    """Parameters of the toy."""

    period: int = 2
    """An agent tells the server of its pulls after so many of them."""


class Tally(Message):
    """Up: pulls that are new. Down: those of all agents."""

    kind: ClassVar[str] = "tally"
    total: float = payload()


class Teller(Agent):
    """Tells the server how many pulls are new, and goes on without its answer; ``asking``: until that is here."""

    asking = blocking = False

    def choose(self, arms: ArmSet) -> int:
        return int(arms.features[:, 0].argmax())

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        if self.asking or self.unshared < self.context.config.period:
            return []
        self.asking, self.waiting = True, self.blocking
        pulls, self.unshared = self.unshared, 0
        return [(SERVER, Tally(total=pulls, pulls=pulls))]

    def receive(self, message: Message, source: Address) -> Outbox:
        return self.settle()

    def settle(self) -> Outbox:
        """Nothing is waited for any more."""
        self.asking = self.waiting = False
        return []

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        self.unshared += message.pulls
        return self.settle()

    def on_timer(self, timer: Message) -> Outbox | None:
        assert isinstance(timer, Silence)
        assert timer.about is not None
        return self.missed(timer.about)

    def missed(self, source: Address) -> Outbox | None:
        """Something does not come."""
        return self.settle() if self.asking else None


class Adder(Server):
    """Adds up, and tells who has told it."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.total = 0.0

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, Tally)
        self.add(message)
        return [(source, Tally(total=self.total))]

    def add(self, message: Tally) -> None:
        """Take a tally in."""
        self.total += message.total
        self.applied += message.pulls
        self.rounds += 1

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        sent = sum(message.total for _, message in uploads if isinstance(message, Tally))
        if sent != self.total:
            yield f"{sent} pulls were sent, the total is {self.total}"


def toy(agent: type[Agent] = Teller, server: type[Server] = Adder, **needs: Any) -> Algorithm:
    """The protocol with other nodes."""
    return Algorithm(
        name="toy",
        agent=agent,
        server=f"{server.__module__}:{server.__name__}",
        config=ToyConfig,
        summary="Agents count together.",
        reference="none",
        needs=Needs(**needs),
        messages=(MessageSize(Tally, "up", "1"), MessageSize(Tally, "down", "1")),
    )
