"""How hub and station show each other that they know the token, before either reads anything else of the other.

Both send a text of a fixed size and a random number, and answer the other's number with a digest of both and the token.
So nothing is decoded before, a recorded greeting is worth nothing, and neither the token nor anything that would do in
its place goes over the wire. The station answers first: a hub tells nobody anything who does not know the token.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets

from coband.simulator.live.codec import WireError
from coband.simulator.live.terms import PROTOCOL

HEAD = f"coband live {PROTOCOL}".encode().ljust(16, b"\n")
NONCE = DIGEST = 32
SECONDS = 10.0
"""So long a greeting may take."""


async def admit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The hub's side.

    Raises:
        WireError: this is no station, or one that has another token.
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
        WireError: this is no hub, or one that has another token.
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
