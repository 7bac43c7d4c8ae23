"""The pipeline between a node's outbox and the ledger.

A message is changed once, however often it is sent again; what a stage draws is addressed by the sender and the number
of the message among those that it sends. The node keeps its original: when the message is given up, it is told of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import EXACT, Message, Passage, size_of
from coband.simulator.core.nodes.outbox import Address, Multicast, Recipient
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.core.wire.encodings import BaseEncoding, Sender, index_bits

Limits = Mapping[str, int | None]
"""How many agents, arms, turns and pulls there are at most; None where nobody knows."""


@dataclass(frozen=True, slots=True)
class Field:
    """What a payload field is, and how it is written.

    Attributes:
        matrix: its matrices are symmetric.
        encoding: of its real numbers; None: they are exact.
        width: bits of each of its whole numbers; 0: it has none, or they count as any number.
    """

    name: str
    matrix: bool
    encoding: BaseEncoding | None
    width: int


class Wire:
    """The stages of a run.

    Args:
        config: what is done to messages.
        limits: for the width of indices.
        scalar_bits: of a number that is sent as it is.
        streams: of the replication.
        agents: how many there are.

    Attributes:
        watch: told of every message that is sent in place of another one; None: nobody is.
    """

    watch: Callable[[Message], None] | None = None

    def __init__(self, config: MessagesConfig, limits: Limits, scalar_bits: int, streams: Streams, agents: int) -> None:
        self._config, self._limits, self._scalar_bits, self._streams = config, limits, scalar_bits, streams
        self._agents, self._packed = agents, config.counting == "packed"
        self._fields: dict[type[Message], tuple[Field, ...]] = {}
        self._senders: dict[tuple[Address, Recipient, type[Message]], dict[tuple[str, int], Sender]] = {}
        self._numbers: dict[Address, int] = {}

    def leave(self, source: Address, recipient: Recipient, message: Message) -> Message:
        """What goes on the network in place of a message: the same one, if it is sent once more."""
        sent = message.sent_as.get(recipient)
        if sent is not None:
            self._again(source, recipient, sent)
            return sent
        number = self._numbers[source] = self._numbers.get(source, 0) + 1
        values, bits = self._encoded(source, recipient, message, number)
        if not values:
            message.__dict__["field_bits"] = bits
            return message
        done = {"encoding": {name: self._name(message, name) for name in values}}
        sent = replaced(message, values)
        passage = Passage(message, done, number, self._receivers(recipient))
        sent.__dict__.update(field_bits=bits, passage=passage)
        message.__dict__["sent_as"] = {**message.sent_as, recipient: sent}
        if self.watch is not None:
            self.watch(sent)
        return sent

    # --- what becomes of it

    def heard(self, packet: Packet) -> None:
        """The sender of a packet knows that its receiver has it."""
        passage = packet.message.passage
        if passage is not None:
            passage.unheard -= 1
            if not passage.unheard:
                self._tell(packet, Sender.acknowledged)

    def lost(self, packet: Packet) -> None:
        """The sender of a packet knows that its receiver will never have it."""
        passage = packet.message.passage
        if passage is not None and passage.unheard == 1 and not passage.lost:
            passage.lost = True
            self._tell(packet, Sender.lost)

    def _tell(self, packet: Packet, what: Callable[[Sender, int], None]) -> None:
        passage = packet.message.passage
        assert passage is not None
        for recipient, sent in passage.original.sent_as.items():
            if sent is packet.message:
                for sender in self._senders.get((packet.source, recipient, type(sent)), {}).values():
                    what(sender, passage.number)

    def _again(self, source: Address, recipient: Recipient, sent: Message) -> None:
        """A message is sent once more by its node."""
        passage = sent.passage
        assert passage is not None
        if passage.lost:
            passage.lost, passage.unheard = False, self._receivers(recipient)
            for sender in self._senders.get((source, recipient, type(sent)), {}).values():
                sender.repeated(passage.number)

    def _receivers(self, recipient: Recipient) -> int:
        """How many nodes acknowledge a message; LOCAL messages are not acknowledged."""
        if isinstance(recipient, Multicast):
            return self._agents - (recipient.excluding is not None)
        return 1 if isinstance(recipient, int) else 0

    # --- encoding

    def _fields_of(self, kind: type[Message]) -> tuple[Field, ...]:
        if kind not in self._fields:
            self._fields[kind] = tuple(self._field(kind, name) for name in kind.payload_fields())
        return self._fields[kind]

    def _field(self, kind: type[Message], name: str) -> Field:
        declared, encoding = kind.declared(name), self._config.encoding.of(kind, name)
        limit, width = self._limits.get(declared["of"]), 0
        if self._packed and declared["kind"] in EXACT:
            whole = {"flag": 2, "index": limit, "count": None if limit is None else limit + 1}[declared["kind"]]
            width = self._scalar_bits if whole is None else index_bits(whole)
        return Field(name, declared["symmetric"], None if encoding.exact else encoding, width)

    def _encoded(
        self, source: Address, recipient: Recipient, message: Message, number: int
    ) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The values of fields that arrive otherwise than they are, and the bits of all fields."""
        values, bits, rng = dict[str, Any](), list[int](), None
        for field in self._fields_of(type(message)):
            value = getattr(message, field.name)
            if field.encoding is None or value is None:
                bits.append(self._exact_bits(field, value))
                continue
            rng = self._stream(source, number, "encoding") if rng is None else rng
            senders = self._senders.setdefault((source, recipient, type(message)), {})
            items = value if isinstance(value, tuple) else (value,)
            coded = []
            for place, item in enumerate(items):
                sender = senders.setdefault((field.name, place), field.encoding.sender())
                coded.append(self._coded(field, item, sender, number, rng))
            values[field.name] = tuple(item for item, _ in coded) if isinstance(value, tuple) else coded[0][0]
            bits.append(sum(size for _, size in coded))
        return values, tuple(bits)

    def _exact_bits(self, field: Field, value: Any) -> int:
        if isinstance(value, tuple):
            return sum(self._exact_bits(field, item) for item in value)
        if field.width:
            return size_of(value) * field.width
        return self._scalar_bits * (_halved(value.shape[0]) if self._halves(field, value) else size_of(value))

    def _halves(self, field: Field, value: Any) -> bool:
        """Whether only one of two symmetric entries is sent."""
        return self._packed and field.matrix and len(getattr(value, "shape", ())) == 2

    def _coded(
        self, field: Field, value: Any, sender: Sender, number: int, rng: np.random.Generator
    ) -> tuple[Any, int]:
        """What arrives of a value, and its bits."""
        entries, encoding = np.asarray(value, dtype=np.float64), field.encoding
        assert encoding is not None
        halves = self._halves(field, value)
        upper = np.triu_indices(len(entries)) if halves else None
        numbers = entries.ravel() if upper is None else entries[upper]
        decoded, bits = sender.encode(number, numbers, rng).decoded, encoding.size(len(numbers))
        if upper is None:
            arrived = decoded.reshape(entries.shape)
        else:
            arrived = np.zeros(entries.shape)
            arrived[upper] = decoded
            arrived += np.triu(arrived, 1).T
        if field.matrix and arrived.ndim == 2:
            arrived = semidefinite(arrived)
        return of_the_form(value, arrived), bits

    def _name(self, message: Message, name: str) -> str:
        return self._config.encoding.of(type(message), name).kind  # type: ignore[attr-defined,no-any-return]

    def _stream(self, source: Address, number: int, stage: str) -> np.random.Generator:
        return self._streams("wire", source if source >= 0 else self._agents, f"{stage} {number}")


def _halved(m: int) -> int:
    return m * (m + 1) // 2


def semidefinite(matrix: FloatArray) -> FloatArray:
    """The matrix symmetrised, and with the smallest multiple of the identity that makes it positive semidefinite."""
    symmetric = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(symmetric)[0]) if len(matrix) else 0.0
    if smallest < 0.0:
        symmetric.flat[:: len(matrix) + 1] -= smallest
    return symmetric


def of_the_form(value: Any, entries: FloatArray) -> Any:
    """Entries in the form in which a payload had its value: a number, an array, or what stands for a matrix."""
    if isinstance(value, int | float | np.number):
        return float(entries)
    entries.flags.writeable = False
    return entries if isinstance(value, np.ndarray) else value.with_entries(entries)


def replaced(message: Message, values: Mapping[str, Any]) -> Message:
    """A message with other values in some fields and the same headers."""
    made: Message = object.__new__(type(message))
    made.__dict__.update({item.name: getattr(message, item.name) for item in fields(message)} | dict(values))
    return made
