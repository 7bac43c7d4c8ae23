"""Live runs in which somebody changes what hub and stations say to each other.

A proxy on loopback passes greetings on as they are, and hands every frame after them to a function that may answer
with other bytes. `Tampering` makes such changes: of a frame that is valid it keeps all but one thing.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

from coband.extensions.live import frames, listener, schema
from coband.extensions.live.station import Invitation, Station
from coband.simulator.core.nodes.node import NoBestArm
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.runs.job import JobFailure
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from tests.extensions.live.together import Live

UP, DOWN = "up", "down"
GREETING = (len(listener.HEAD) + listener.NONCE, listener.DIGEST)
"""Bytes of the two parts of a greeting."""
LINGER = 0.15
"""Seconds after which whoever has sent something wrong leaves, if the other end has not sent it away."""
PATIENCE = 3.0
"""Seconds in which a hub ends that has lost a station."""
SECONDS = 30.0
"""So long nothing may take, whatever goes wrong."""
Change = Callable[[str, bytes], list[bytes]]
"""What goes on instead of a frame, given its way and its body: bytes as they are written."""


def nested(levels: int) -> bytes:
    """Sums of squares in sums of squares."""
    raw: bytes = msgpack.packb(None)
    for _ in range(levels):
        raw = msgpack.packb(msgpack.ExtType(2, raw))
    return raw


DEEP = (
    b"\x91" * 400 + b"\xc0",
    b"\x91" * 3000 + b"\xc0",
    nested(200),
    b"\xdd\x00\x00\xff\xff" * 500,
    b"\x81\xa1a" * 700,
)
"""Bytes that msgpack cannot be made to write: deep, or claiming to hold much more than there is."""
HERE = "@@deep@@"
"""Where they go."""
STRANGE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 99, 2**15, 2**31, 2**40, 2**53, 2**63 - 1, 2**64 - 1, -(2**63)),
    *(0.5, -0.5, math.nan, math.inf, -math.inf, 1e300, 5e-324),
    *("", "x", "\x1b[2J\r\n", "x" * 5000, b"", b"\x93", b"\x00" * 5000),
    *([], [[]], [1, 2], {}, {"a": 1}, {"a": {"b": []}}, [[1, 2], "x"], HERE, [HERE]),
    *(msgpack.ExtType(1, b""), msgpack.ExtType(2, b"\xc0"), msgpack.ExtType(5, b"x"), msgpack.Timestamp(1, 1)),
)
KINDS = [kind.__name__.lower() for kinds in (*schema.FROM_STATION, *schema.FROM_HUB) for kind in kinds]


def decoded(raw: bytes) -> Any:
    """What bytes of msgpack say, with nothing checked."""
    return msgpack.unpackb(raw, ext_hook=msgpack.ExtType, use_list=True, strict_map_key=False)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a value, but for those in its first hundred items."""
    yield path
    items = enumerate(value[:100]) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, item in items:
        yield from places(item, (*path, key))


class Tampering:
    """Changes a number of frames, each in one way; ``tried``: what it has done, in words.

    Args:
        seed: of what it does; two with the same do the same.
        known: frames that were said in another run, to be said again.
    """

    def __init__(self, seed: int, known: list[bytes]) -> None:
        self._rng, self._known = np.random.default_rng(seed), known

    def pick(self, items: Any) -> Any:
        """One of them."""
        return items[int(self._rng.integers(len(items)))]

    def written(self, body: bytes) -> tuple[str, list[bytes]]:
        """(what was done, what is sent in place of a frame)."""
        way = self.pick(("value",) * 8 + ("list",) * 3 + ("kind", "replay", "drop", "twice", "cut", "length", "bytes"))
        if way in ("value", "list", "kind"):
            said, raw = self.body(way, body)
            return said, [frames.framed(raw)]
        if way == "replay":
            return "an old frame", [frames.framed(self.pick(self._known)), frames.framed(body)]
        if way == "twice":
            return "twice", [frames.framed(body)] * int(self.pick((2, 50)))
        if way == "cut":
            return "cut", [frames.framed(body)[: int(self._rng.integers(len(body) + 4))]]
        if way == "length":
            length = int(self.pick((0, 1, len(body) - 1, len(body) + 1, 1 << 20, 1 << 31, (1 << 32) - 1)))
            return f"length {length}", [frames.LENGTH.pack(max(0, length)) + body]
        return ("dropped", []) if way == "drop" else ("other bytes", [frames.framed(self.flipped(body))])

    def flipped(self, body: bytes) -> bytes:
        """Some bytes are others."""
        raw = bytearray(body)
        for _ in range(int(self._rng.integers(1, 5))):
            raw[int(self._rng.integers(len(raw)))] = int(self._rng.integers(256))
        return bytes(raw)

    def body(self, way: str, body: bytes) -> tuple[str, bytes]:
        """A frame or a message with one part that is another."""
        value = decoded(body)
        path = self.pick([path for path in places(value) if self._fits(way, value, path)] or [()])
        *above, key = path or (None,)
        holder = value
        for step in above:
            holder = holder[step]
        old = holder[key] if path else value
        if isinstance(old, bytes) and len(old) > 2 and self._rng.random() < 0.8:  # a message
            said, new = self.body(way, old)
        else:
            said, new = "", self._other(way, old)
        if path:
            holder[key] = new
        else:
            value = new
        raw: bytes = msgpack.packb(value)
        return f"{list(path)} {said}".strip(), raw.replace(msgpack.packb(HERE), self.pick(DEEP))

    def _fits(self, way: str, value: Any, path: tuple[Any, ...]) -> bool:
        for step in path:
            value = value[step]
        if way == "value":
            return True
        return isinstance(value, bytes) or (isinstance(value, list) if way == "list" else isinstance(value, str))

    def _other(self, way: str, old: Any) -> Any:
        if way == "kind":
            return self.pick([*KINDS, "f", "SyncRequest", "Upload"])
        if way == "list" and isinstance(old, list):
            where = int(self._rng.integers(len(old) + 1))
            return self.pick((old[:where], old[where:], [*old, *old], [*old, None], [old], old[::-1]))
        if isinstance(old, (int, float)) and not isinstance(old, bool) and self._rng.random() < 0.5:
            return self.pick((old + 1, old - 1, -old, float(old), str(old), [old]))
        return self.pick(STRANGE)


def tampered(seed: int, way: str, at: int, known: list[bytes], done: list[str]) -> Change:
    """The change that is made to frame number ``at`` on one way, and to no other; ``done`` says which."""
    tampering, left = Tampering(seed, known), [at]

    def change(direction: str, body: bytes) -> list[bytes]:
        if direction == way:
            left[0] -= 1
            if left[0] == -1:
                said, raws = tampering.written(body)
                done.append(f"{way} {at} {decoded(body)!r:.60}: {said} -> {b''.join(raws)[:60]!r}")
                return raws
        return [frames.framed(body)]

    return change


def recorded(said: dict[str, list[bytes]]) -> Change:
    """Changes nothing, and keeps all frames."""

    def change(way: str, body: bytes) -> list[bytes]:
        said[way].append(body)
        return [frames.framed(body)]

    return change


@asynccontextmanager
async def served(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[int]:
    """A port on loopback; in the end nobody is connected any more."""
    serving = set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        await closed(writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        if serving:
            await asyncio.wait(serving, timeout=2.0)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, when all that was written is on its way."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            await writer.wait_closed()
    writer.transport.abort()


@dataclass
class Proxied:
    """A run whose stations are connected through a proxy.

    Attributes:
        ends: what came of the hub and of every station: an exception, or None.
    """

    one: Live
    change: Change
    ends: list[BaseException | None] = field(default_factory=list)

    async def run(self, *shares: int) -> None:
        """Run with stations of so many agents.

        Raises:
            TimeoutError: there is no end.
        """
        await self.one.open()
        async with served(self._connection) as port, asyncio.timeout(SECONDS):
            for share in shares:
                invitation = Invitation("127.0.0.1", port, self.one.terms.token, share, 0.5)
                self.one.tasks.append(asyncio.create_task(Station(invitation).run()))
                await asyncio.sleep(0)  # they join in this order
            hub = asyncio.create_task(self.one.result())
            await asyncio.wait([hub, *self.one.tasks], return_when=asyncio.FIRST_COMPLETED)
            if not (await asyncio.wait([hub], timeout=PATIENCE))[0]:
                self.one.join()  # a station was never let in, and the hub waits for another one
            await asyncio.wait([hub, *self.one.tasks])
            tasks = [hub, *self.one.tasks]
        self.ends = [asyncio.CancelledError() if task.cancelled() else task.exception() for task in tasks]

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionRefusedError):
            from_hub, to_hub = await asyncio.open_connection("127.0.0.1", self.one.port)
            ways = (self._pass_on(UP, reader, to_hub), self._pass_on(DOWN, from_hub, writer))
            tasks = [asyncio.create_task(way) for way in ways]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0.02)  # what one end has said last reaches the other
            finally:
                for task in tasks:
                    task.cancel()
                await closed(to_hub)

    async def _pass_on(self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            for part in GREETING:
                writer.write(await reader.readexactly(part))
            while True:
                body = await frames.read(reader, frames.LARGEST)
                raws = self.change(way, body)
                for raw in raws:
                    writer.write(raw)
                if raws != [frames.framed(body)]:
                    asyncio.get_running_loop().call_later(LINGER, writer.close)

    @property
    def words(self) -> list[str]:
        """All that anybody would have read."""
        return [*self.one.said, *(str(end) for end in self.ends if end is not None)]

    @property
    def complaints(self) -> list[str]:
        """Why the hub has closed connections of stations."""
        return [line for line in self.one.said if "connection closed: " in line]

    def faults(self) -> Iterator[str]:
        """What must never be."""
        fine = (JobFailure, InvariantViolation, NoBestArm, asyncio.CancelledError, *BAD_INPUT)
        for who, end in enumerate(self.ends):
            if end is not None and not isinstance(end, fine):
                yield f"{f'station {who}' if who else 'the hub'} ended with {end!r:.300}"
        for words in self.words:
            if "Traceback" in words or "\x1b" in words:
                yield f"somebody reads {words!r:.600}"
        for line in self.one.said:
            if "\n" in line:
                yield f"more than one line: {line!r:.300}"
        for line in self.complaints:
            if not line.startswith("agent"):
                yield f"a line without its station: {line!r:.300}"
