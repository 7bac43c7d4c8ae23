"""The hub's port, and who comes in: whoever knows the token. Of anybody else nothing is decoded.

Both ends send a text of a fixed size and a random number, and answer the other's number with a digest of both and the
token. So a recorded handshake is worth nothing, and the token never goes over the wire. The station answers first: the
hub tells nothing to anybody who does not know the token.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress

from coband import UnsupportedScenario
from coband.extensions.live import frames
from coband.extensions.live.codec import WireError
from coband.extensions.live.config import PROTOCOL, check_token
from coband.extensions.live.frames import FROM_STATION, named, written
from coband.extensions.live.schema import Hello, Refused

HEAD = f"coband live {PROTOCOL}".encode().ljust(16, b"\n")
NONCE = DIGEST = 32
SECONDS = 10.0
"""So long a greeting may take."""


async def admit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The hub's side.

    Raises:
        WireError: this is not a station, or one that has another token.
        asyncio.IncompleteReadError: the connection has ended.
    """
    ours, theirs = await _numbers(reader, writer)
    answer = await reader.readexactly(DIGEST)
    if not hmac.compare_digest(answer, _answer(token, b"station", ours, theirs)):
        raise WireError("wrong token")
    writer.write(_answer(token, b"hub", ours, theirs))


async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The station's side.

    Raises:
        WireError: this is not a hub, or one that has another token.
        asyncio.IncompleteReadError: the connection has ended.
    """
    ours, theirs = await _numbers(reader, writer)
    writer.write(_answer(token, b"station", theirs, ours))
    answer = await reader.readexactly(DIGEST)
    if not hmac.compare_digest(answer, _answer(token, b"hub", theirs, ours)):
        raise WireError("wrong token")


async def _numbers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, bytes]:
    ours = secrets.token_bytes(NONCE)
    writer.write(HEAD + ours)
    if await reader.readexactly(len(HEAD)) != HEAD:
        raise WireError(f"no greeting of live mode {PROTOCOL}, which this version of coband has")
    return ours, await reader.readexactly(NONCE)


def _answer(token: str, who: bytes, hubs: bytes, stations: bytes) -> bytes:
    return hmac.digest(token.encode(errors="surrogateescape"), b"".join((HEAD, who, hubs, stations)), "sha256")


Serve = Callable[[Hello, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
STRANGERS = 64
"""So many connections may be about to show that they know the token; for another one the oldest is closed."""
PARTING_SECONDS = 1.0
"""So long a station that has to leave may take to read why."""


class Door:
    """A port.

    Args:
        token: what one has to know.
        serve: called with every station that has come in, until its connection ends.
        say: tells the user something, in one line.
        fail: called with an exception of ``serve``.
    """

    def __init__(
        self, token: str, serve: Serve, say: Callable[[str], None], fail: Callable[[BaseException], None]
    ) -> None:
        self._token, self._serve, self._say, self._fail = token, serve, say, fail
        self._strangers: dict[asyncio.StreamWriter, None] = {}  # in the order in which they came
        self._connections: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int:
        """Open the port; returns its number.

        Raises:
            UnsupportedScenario: it cannot be opened, or the token is too short for this address.
        """
        check_token(host, self._token)
        try:
            self._server = await asyncio.start_server(self._enter, host, port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error
            raise UnsupportedScenario(
                f"{host}:{port} cannot be opened: {reason}; choose another --host, of this machine, or --port"
            ) from None
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self, seconds: float) -> None:
        """Close the port and all connections; wait for so long until nobody is served any more."""
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._connections):
            writer.close()
        if self._serving:
            await asyncio.wait(self._serving, timeout=seconds)

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = (writer.get_extra_info("peername") or ("an unknown address", 0))[:2]  # it may be gone already
        self._connections.add(writer)
        frames.watch(writer)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            await self._serve(await self._greeted(reader, writer), reader, writer)
        except WireError as error:
            self._say(f"connection from {host}:{port} closed: {error}")
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, asyncio.CancelledError):
            pass
        except Exception as error:
            self._fail(error)
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Hello:
        """What a station says first, when it has shown that it knows the token.

        Raises:
            WireError: it does not, or says something else.
        """
        if len(self._strangers) >= STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close()
        self._strangers[writer] = None
        try:
            async with asyncio.timeout(SECONDS):
                await admit(reader, writer, self._token)
                _, hello = FROM_STATION.read(await frames.read(reader, frames.GREETING))
        finally:
            self._strangers.pop(writer, None)
        if not isinstance(hello, Hello):
            raise WireError(f"{named(hello)} instead of a hello")
        return hello


async def part(why: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Tell a station why it has to leave. What it has on its way is read, or closing would keep the reason from it."""
    with suppress(OSError, TimeoutError):
        writer.write(written(Refused(why)))
        writer.write_eof()
        async with asyncio.timeout(PARTING_SECONDS):
            while await reader.read(frames.GREETING):
                pass
