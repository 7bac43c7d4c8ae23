"""The pipeline between a node's outbox and the ledger.

A message is changed once, however often it is sent again; what a stage draws is addressed by the sender and the number
of the message among those that it sends. The node keeps its original: when the message is given up, it is told of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.message import Message, Passage
from coband.simulator.core.nodes.node import SERVER, UnsupportedScenario
from coband.simulator.core.nodes.outbox import Address, Multicast, Recipient
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.adversaries import Adversary, Liars
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.core.wire.defences import SUM, SUMMED, BaseDefence, Defended, Listening
from coband.simulator.core.wire.encodings import Fields, of_the_form, reals, replaced
from coband.simulator.core.wire.layout import Field, Layout, Limits
from coband.simulator.core.wire.noising import Noising
from coband.simulator.core.wire.senders import Encoded, Sender

ONE_HOP = (
    "adversaries: equivocate needs messages for one receiver each, and agents pass these on over several hops; "
    "set hops: 1, or choose another behaviour"
)


class Watch(Protocol):
    """What is told of messages that nodes know nothing of."""

    def leaves(self, message: Message) -> None:
        """It is sent, or handed over, in place of another one."""

    def rejects(self, node: Address, message: Message) -> None:
        """It has arrived, and the node's defence keeps it from the node."""


class Wire:
    """The stages of a run.

    Args:
        config: what is done to messages.
        limits: for the width of indices.
        scalar_bits: of a number that is sent as it is.
        streams: of the replication.
        agents: how many there are.
        liars: those of them that are dishonest; None: nobody is.
        graph: of the agents; None in a star.
        defence: what the server takes in place of sums, or agents of a graph of what others tell.
        noising: the noise of the run; None: there is none.
        gone: the agents that take no part now.
        watch: what looks at everything, with ``checks: full``.

    Attributes:
        layout: how fields are written.
    """

    def __init__(
        self,
        config: MessagesConfig,
        limits: Limits,
        scalar_bits: int,
        streams: Streams,
        agents: int,
        liars: Liars | None = None,
        graph: Graph | None = None,
        defence: BaseDefence = SUM,
        noising: Noising | None = None,
        gone: Set[Address] = frozenset(),
        watch: Watch | None = None,
    ) -> None:
        self._liars, self._graph, self.noising, self._gone, self._watch = liars, graph, noising, gone, watch
        self._defended = None if defence.sums or graph is not None else Defended(defence)
        self._listening = None if defence.sums or graph is None else Listening(defence)
        self.layout = Layout(config, limits, scalar_bits)
        self._config, self._streams, self._agents = config, streams, agents
        self._senders: dict[tuple[Address, Recipient, type[Message]], dict[tuple[str, int], Sender]] = {}
        self._numbers: dict[Address, int] = {}
        self._audience: dict[tuple[Address, Recipient, type[Message]], set[Address]] = {}  # of broadcasts, so far

    @property
    def dishonest(self) -> frozenset[Address]:
        """The agents that are not honest."""
        return frozenset() if self._liars is None else self._liars.dishonest

    def leave(self, source: Address, recipient: Recipient, message: Message) -> list[tuple[Recipient, Message]]:
        """What goes on the network in place of a message, and to whom: the same, if it is sent once more."""
        if self._listening is not None and not message.sent_as:
            self._listening.note(source, source, message)
        lie = None if self._liars is None else self._liars.lie(source, message)
        if lie is not None and lie.behaviour.each and not isinstance(recipient, int):
            return [(one, self._sent(source, one, message, lie)) for one in self._each(source, recipient)]
        return [(recipient, self._sent(source, recipient, message, lie))]

    def _sent(self, source: Address, recipient: Recipient, message: Message, lie: Adversary | None) -> Message:
        sent = message.sent_as.get(recipient)
        if sent is not None:
            self._again(source, recipient, sent)
            return sent
        number = self._numbers[source] = self._numbers.get(source, 0) + 1
        lies: Fields = {}
        if self._liars is not None:
            lies = self._liars.told(source, message, lie, lambda: self._stream(source, number, "adversary"))
        noised: Fields = {}
        if self.noising is not None:
            noised = self.noising.noised(source, message, {**reals(message), **lies})
        values, bits, coded = self._encoded(source, recipient, message, number, {**lies, **noised})
        withheld = lie is not None and lie.behaviour.withholds
        if not values and not withheld:
            message.__dict__["field_bits"] = bits
            return message
        done: dict[str, Any] = {"encoding": self.layout.kinds(type(message), coded)} if coded else {}
        if lie is not None and (lies or withheld):
            done["adversary"] = lie.behaviour.kind  # type: ignore[attr-defined]
        if noised:
            assert self.noising is not None
            done["noised"] = dict.fromkeys(noised, self.noising.kind)
        if self.noising is not None and source >= 0 and self.noising.clipped[source]:
            done["clipped"] = self.noising.clipped[source]
        sent = replaced(message, values)
        passage = Passage(message, done, number, recipient, self._receivers(recipient), coded, withheld=withheld)
        sent.__dict__.update(field_bits=bits, passage=passage)
        message.__dict__["sent_as"] = {**message.sent_as, recipient: sent}
        if self._watch is not None:
            self._watch.leaves(sent)
        return sent

    def _each(self, source: Address, recipient: Recipient) -> Sequence[Address]:
        """The receivers of a message one by one."""
        if isinstance(recipient, Multicast):
            return [agent for agent in range(self._agents) if agent != recipient.excluding]
        assert self._graph is not None
        if getattr(recipient, "hops", 1) > 1:
            raise UnsupportedScenario(ONE_HOP)
        return self._graph.adjacency[source]

    def taken(self, packet: Packet) -> Packet:
        """What the server is handed in place of a packet."""
        message = packet.message
        if self._defended is None or packet.destination != SERVER:
            return packet
        adding = {name: value for name, value in reals(message).items() if message.declared(name)["adds"] in SUMMED}
        if not adding:
            return packet
        changes = self._defended.taken(packet.origin, message, adding)
        found = replaced(message, {name: of_the_form(getattr(message, name), new) for name, new in changes.items()})
        found.__dict__.update(field_bits=message.field_bits, passage=Passage(message.original, {}, 0, SERVER, 0, {}))
        if self._watch is not None:
            self._watch.leaves(found)
        return replace(packet, message=found)

    def heard_by(self, agent: Address, origin: Address, message: Message) -> Message | None:
        """What an agent of a graph is handed in place of another one's message; None: nothing."""
        found = message if self._listening is None else self._listening.heard(agent, origin, message)
        if self._watch is not None and found is None:
            self._watch.rejects(agent, message)
        elif self._watch is not None and found is not None and found is not message:
            self._watch.leaves(found)
        return found

    # --- what becomes of it

    def heard(self, packet: Packet) -> None:
        """The sender of a packet knows that its receiver has it."""
        passage = packet.message.passage
        if passage is not None:
            passage.unheard -= 1
            if not passage.unheard:
                for end in self._ends(packet.source, passage.recipient, type(packet.message)):
                    end.acknowledged(passage.number)

    def lost(self, packet: Packet) -> None:
        """The sender of a packet knows that its receiver will never have it."""
        passage = packet.message.passage
        if passage is None:
            return
        if isinstance(passage.recipient, Multicast) and packet.destination in self._gone:
            self.heard(packet)  # of those that still take part
        elif passage.unheard == 1 and not passage.lost:
            passage.lost = True
            if self.noising is not None and "noised" in passage.done:
                self.noising.lost(packet.source)
            for end in self._ends(packet.source, passage.recipient, type(packet.message)):
                end.lost(passage.number)

    def _ends(self, source: Address, recipient: Recipient, kind: type[Message]) -> Iterable[Sender]:
        """The sending ends of a kind of message."""
        return self._senders.get((source, recipient, kind), {}).values()

    def _again(self, source: Address, recipient: Recipient, sent: Message) -> None:
        """A message is sent once more by its node."""
        passage = sent.passage
        assert passage is not None
        if passage.lost:
            passage.lost, passage.unheard = False, self._receivers(recipient)
            for end in self._ends(source, recipient, type(sent)):
                end.repeated(passage.number)

    def _receivers(self, recipient: Recipient) -> int:
        """How many nodes acknowledge a message; LOCAL messages are not acknowledged."""
        if isinstance(recipient, Multicast):
            return len(self._audience_of(recipient))
        return 1 if isinstance(recipient, int) else 0

    def _audience_of(self, recipient: Multicast) -> set[Address]:
        """To whom a broadcast goes."""
        return {one for one in range(self._agents) if one != recipient.excluding and one not in self._gone}

    # --- encoding

    def _encoded(
        self, source: Address, recipient: Recipient, message: Message, number: int, lies: Fields
    ) -> tuple[dict[str, Any], tuple[int, ...], dict[str, list[Encoded]]]:
        """The values of fields that arrive otherwise than they are, the bits of all, and the codes of some."""
        values, bits, coded = dict[str, Any](), list[int](), dict[str, list[Encoded]]()
        layout, rng, link = self.layout, None, (source, recipient, type(message))
        if isinstance(recipient, Multicast):
            before, now = self._audience.setdefault(link, set()), self._audience_of(recipient)
            for end in self._ends(*link) if now - before else ():
                end.joined()
            before |= now
        for field in layout.of(type(message)):
            value = getattr(message, field.name)
            if field.encoding is None or value is None:
                bits.append(layout.exact_bits(field, value))
                if field.name in lies:
                    values[field.name] = self._arrived(field, value, lies[field.name])
                continue
            rng = self._stream(source, number, "encoding") if rng is None else rng
            senders = self._senders.setdefault(link, {})
            items = value if isinstance(value, tuple) else (value,)
            coded[field.name], arrived = [], []
            for place, item in enumerate(items):
                sender = senders.setdefault((field.name, place), field.encoding.sender())
                entries = np.asarray(lies.get(field.name, item), dtype=np.float64)
                found = sender.encode(number, layout.numbers(field, entries), rng)
                coded[field.name].append(found)
                arrived.append(self._arrived(field, item, layout.entries(field, found.decoded, entries.shape)))
            values[field.name] = tuple(arrived) if isinstance(value, tuple) else arrived[0]
            bits.append(sum(field.encoding.size(len(one.decoded)) for one in coded[field.name]))
        return values, tuple(bits), coded

    def _arrived(self, field: Field, value: Any, entries: FloatArray) -> Any:
        return of_the_form(value, self.layout.repaired(field, entries))

    def _stream(self, source: Address, number: int, stage: str) -> np.random.Generator:
        return self._streams("wire", source if source >= 0 else self._agents, f"{stage} {number}")
