"""LOCAL messages over ideal links: what would arrive is handed over at once, without walking the hops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from coband.simulator.core.clock.clock import DELIVERY
from coband.simulator.core.network.local import SEEN, Local
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Neighbours, Recipient
from coband.simulator.core.packet import Packet
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.ledger import PEER
from coband.simulator.core.run_context import RunContext

FEW = 8
"""Messages of one moment from which on it takes less time to record them together than one by one."""


@dataclass(slots=True)
class _Sent:
    """A message of one moment: ``seq`` of the send whose copies arrive next, and that send's number."""

    message: Message
    scalars: int
    kind: int
    seq: int
    id: int = -1


class Direct(Local):
    """Hands messages over when they would arrive on ideal links, without walking the hops.

    Messages sent at one moment travel together; a trace row stands for all copies of a message that make the same hop.

    Args:
        hear: called with an agent, the messages that reach it at one moment with their origins, the cause, which is the
            send of the last of them, and when they were sent. Messages that the agent does not look at are left out.
        accepts: whose messages an agent looks at; None for all.
    """

    def __init__(
        self,
        graph: Graph,
        trial: float,
        run: RunContext,
        transport: Transport,
        deliver: Callable[[Packet], None],
        hear: Callable[[Address, Sequence[tuple[Address, Message]], int, float], None],
        accepts: Callable[[Address], frozenset[Address] | None],
    ) -> None:
        super().__init__(graph, trial, run, transport, deliver)
        self._hear, self._accepts = hear, accepts
        self._open: dict[int, dict[Address, list[_Sent]]] = {}
        self._layers = lru_cache(maxsize=None)(self._layers_of)
        self._hops = int(graph.distances.max()) + 1  # those who are farthest away pass on as well, and nobody later

    def _flood(self, origin: Address, hops: int, message: Message, cause: int) -> None:
        """Note the message; all that is sent now is carried together."""
        run = self._run
        sent = _Sent(message, message.scalars, run.trace.names[message.kind], cause)
        self._put(sent, origin, 1, {origin: self._graph.degrees[origin]})
        self._opened(hops).setdefault(origin, []).append(sent)

    def send_together(
        self, origins: Sequence[Address], outboxes: Sequence[tuple[Recipient, Message]], rows: tr.Block
    ) -> list[int]:
        """Send LOCAL messages of several agents, one each, and write the events of sending them to ``rows`` (n,).

        ``rows`` have seq, time, node and cause already.

        Returns:
            Scalars in the ledger after each of them.
        """
        ledger, degrees, names = self._run.ledger, self._graph.degrees, self._run.trace.names
        batch = [_Sent(message, message.scalars, names[message.kind], 0) for _, message in outboxes]
        counted = []
        for origin, (recipient, message), sent, seq in zip(origins, outboxes, batch, rows["seq"].tolist(), strict=True):
            assert isinstance(recipient, Neighbours)
            ledger.peer_copies(message.kind, {origin: degrees[origin]}, sent.scalars, message.round)
            ledger.carry(message, PEER, degrees[origin])
            sent.seq, sent.id = seq, self._transport.take_number()
            self._opened(recipient.hops).setdefault(origin, []).append(sent)
            counted.append(ledger.scalars)
        rows["event"], rows["peer"] = tr.SEND, tr.EVERYONE
        _describe(rows, batch, [degrees[origin] for origin in origins])
        return counted

    def _opened(self, hops: int) -> dict[Address, list[_Sent]]:
        """The messages of so many hops that are sent now, which leave together."""
        if hops not in self._open:
            self._open[hops] = {}
            self._run.clock.at(self._run.clock.now, DELIVERY, 0, self._leave, hops)
        return self._open[hops]

    def _leave(self, hops: int) -> None:
        self._hop(self._open.pop(hops), hops, 1)

    def _hop(self, batch: dict[Address, list[_Sent]], hops: int, hop: int) -> None:
        """All messages of a batch make one hop."""
        run = self._run
        if hop == 1 and len(batch) >= FEW:
            self._record_arrivals(batch)
        else:
            for origin, messages in batch.items():
                arriving, put = self._copies(origin, hop)
                copies, node = sum(put.values()), origin if hop == 1 else tr.EVERYONE
                for sent in messages if copies else ():
                    if hop > 1:
                        self._put(sent, tr.EVERYONE, hop, put)
                    self._record_arrival(sent, node, hop, arriving, copies - arriving)
        self._hand_over(batch, hop)
        if hop < min(hops, self._hops):
            run.clock.at(self._next_trial(), DELIVERY, 0, lambda _: self._hop(batch, hops, hop + 1))

    def _copies(self, origin: Address, hop: int) -> tuple[int, dict[Address, int]]:
        """Agents at distance ``hop`` of the origin, and how many copies which agents put on links for that hop."""
        degrees, row = self._graph.degrees, self._graph.distances[origin]
        if hop == 1:
            return degrees[origin], {origin: degrees[origin]}
        onwards = (row == hop - 1).nonzero()[0].tolist()
        return int((row == hop).sum()), {node: degrees[node] - 1 for node in onwards if degrees[node] > 1}

    def _layers_of(self, hop: int) -> list[tuple[list[Address], list[Address]]]:
        """For every agent, the agents at distance ``hop``, and those of them whose messages it looks at."""
        found = []
        for node, row in enumerate(self._graph.distances):
            origins, accepts = (row == hop).nonzero()[0].tolist(), self._accepts(node)
            found.append((origins, origins if accepts is None else [o for o in origins if o in accepts]))
        return found

    def _hand_over(self, batch: dict[Address, list[_Sent]], hop: int) -> None:
        said = {origin: [(origin, sent.message) for sent in messages] for origin, messages in batch.items()}
        causes = {origin: messages[-1].seq for origin, messages in batch.items()}
        everyone = len(batch) == self._graph.nodes and all(len(messages) == 1 for messages in said.values())
        first = {origin: messages[0] for origin, messages in said.items()}
        ledger, sent_at = self._run.ledger, self._run.clock.now - (hop - 1) * self._trial
        for node, (origins, accepted) in enumerate(self._layers(hop)):
            if everyone:
                arriving, last = len(origins), origins[-1] if origins else node
                heard = list(map(first.__getitem__, accepted))
            else:
                speaking = [origin for origin in origins if origin in said]
                arriving, last = sum(len(said[origin]) for origin in speaking), speaking[-1] if speaking else node
                heard = [item for origin in accepted if origin in said for item in said[origin]]
            if arriving:
                ledger.deliveries = (ledger.deliveries or 0) + arriving
                self._hear(node, heard, causes[last], sent_at)

    def _put(self, sent: _Sent, node: Address, hop: int, put: Mapping[Address, int]) -> None:
        """Count and record the copies of one message that are put on links for one hop."""
        run, message, copies = self._run, sent.message, sum(put.values())
        run.ledger.peer_copies(message.kind, put, sent.scalars, message.round)
        run.ledger.carry(message, PEER, copies)
        sent.id = self._transport.take_number()
        detail = None if (describe := self._transport.describe) is None else describe(message)
        sent.seq = run.trace.record_send(
            run.clock.now,
            node,
            tr.EVERYONE,
            message,
            id=sent.id,
            cause=sent.seq,
            copies=copies,
            hop=hop,
            detail=detail,
        )

    def _record_arrivals(self, batch: dict[Address, list[_Sent]]) -> None:
        """Record that all messages of a batch have made their first hop."""
        run, degrees = self._run, self._graph.degrees
        arrivals = [(origin, sent) for origin, messages in batch.items() if degrees[origin] for sent in messages]
        for origin, sent in arrivals:
            run.audit.flooded(sent.message.kind, degrees[origin], degrees[origin], sent.scalars)
        rows = run.trace.block(run.clock.now, (len(arrivals),))
        rows["event"], rows["node"] = tr.DELIVER, tr.EVERYONE
        rows["peer"] = [origin for origin, _ in arrivals]
        rows["cause"] = [sent.seq for _, sent in arrivals]
        _describe(rows, [sent for _, sent in arrivals], [degrees[origin] for origin, _ in arrivals])
        run.trace.record_block(rows)

    def _record_arrival(self, sent: _Sent, source: Address, hop: int, first: int, duplicates: int) -> None:
        run, message = self._run, sent.message
        run.audit.flooded(message.kind, first + duplicates, first, sent.scalars)
        for event, copies, reason in ((tr.DELIVER, first, tr.NONE), (tr.DUPLICATE, duplicates, SEEN)):
            if copies:
                run.trace.record(
                    run.clock.now,
                    event,
                    tr.EVERYONE,
                    source,
                    message=sent.id,
                    cause=sent.seq,
                    kind=sent.kind,
                    scalars=sent.scalars,
                    hop=hop,
                    round=message.round,
                    version=message.version,
                    value=copies,
                    reason=reason if reason == tr.NONE else run.trace.names[SEEN],
                )


def _describe(rows: tr.Block, messages: Sequence[_Sent], copies: Sequence[int]) -> None:
    """Write to events (n,) of the first hop which messages they are about, and how many copies of each."""
    rows["message"] = [sent.id for sent in messages]
    rows["kind"] = [sent.kind for sent in messages]
    rows["scalars"] = [sent.scalars for sent in messages]
    rows["round"] = [sent.message.round for sent in messages]
    rows["version"] = [sent.message.version for sent in messages]
    rows["hop"], rows["value"] = 1, copies
