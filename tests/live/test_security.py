"""What comes in from outside: wrong tokens, malformed, oversized and impossible frames."""

from __future__ import annotations

import asyncio
import hmac
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coband.simulator.experiments.runs.code_version import source_digest
from coband.simulator.live import frames
from coband.simulator.live.codec import pack, unpack
from coband.simulator.live.terms import PROTOCOL
from tests.live.together import SERIAL, TOKEN, Live, live, simulated

HELLO = {"protocol": PROTOCOL, "code": source_digest(), "token": TOKEN, "name": "x", "agents": 1, "origin": None}
Visitor = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def visited(*visits: Visitor, **terms: float) -> Live:
    """A run that some connections try to disturb before its stations come; it ends as it would without them."""
    one = live(SERIAL, "Dis", **terms)

    async def main() -> Any:
        await one.open()
        for visit in visits:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            async with asyncio.timeout(10):
                await visit(reader, writer)
                assert await reader.read() == b""  # the hub has closed the connection
            writer.close()
        for _ in range(3):
            one.join()
        return await one.result()

    measured = asyncio.run(main())
    predicted, _ = simulated(one.scenario, "Dis")
    assert measured.fingerprint == predicted.fingerprint
    return one


def sending(raw: bytes) -> Visitor:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return visit


def complaints(one: Live) -> list[str]:
    return [line.partition("closed: ")[2] for line in one.said if "closed: " in line]


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (frames.framed(pack({**HELLO, "token": "another"})), "wrong token"),
        (frames.framed(pack({**HELLO, "token": TOKEN + "x"})), "wrong token"),
        (frames.framed(pack({**HELLO, "token": "ümlaut"})), "wrong token"),
        (frames.framed(pack({**HELLO, "token": None})), "no greeting"),
        (frames.framed(pack(["hello"])), "no greeting"),
        (frames.framed(b"\xc1\xc1\xc1"), "these bytes cannot be read"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a frame of 1195725856 bytes, where 65536 are allowed"),
        (struct.pack(">I", 1 << 17), "a frame of 131072 bytes, where 65536 are allowed"),
        (b"\x80\x04\x95" + bytes(200), "a frame of 2147783936 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "raw",
)
def test_a_greeting_that_is_none_closes_the_connection_with_one_line(raw: bytes, complaint: str) -> None:
    one = visited(sending(raw))
    (found,) = complaints(one)
    assert found.startswith(complaint)


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Any, Any]] = []
    real = hmac.compare_digest

    def compare(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr("coband.simulator.live.hub.hmac.compare_digest", compare)
    visited(sending(frames.framed(pack({**HELLO, "token": "guess"}))))
    assert compared[0] == (b"guess", TOKEN.encode())
    assert len(compared) == 4


def test_the_token_goes_nowhere() -> None:
    one = visited(sending(frames.framed(pack({**HELLO, "token": "secret guess"}))))
    assert not any(TOKEN in line or "secret guess" in line for line in one.said)


def joined(*raws: bytes) -> Live:
    """A run whose first station goes astray after it was admitted; it starts again and is what it should be."""
    one = live(SERIAL, "Dis", rejoin=5.0, largest=1 << 20)

    async def main() -> Any:
        await one.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(frames.framed(pack(HELLO)))
        welcome = unpack(await frames.read(reader, 1 << 20))
        assert welcome[0] == "welcome"
        writer.write(frames.framed(pack(["ready", 0])))
        for raw in raws:
            writer.write(raw)
        async with asyncio.timeout(10):
            await reader.read()
        writer.close()
        await one.hub.close()  # type: ignore[union-attr]

    asyncio.run(main())
    return one


COPY = ["f", 1, "copy", 0, -1, 1, 5, 3, 1, 0.5]
GOOD = pack(["SyncRequest", [-1, 0, 0, -1]])


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (["f", 1, "nonsense", 2], "a frame 'nonsense', which there is not"),
        (["f", 3, "copy"], "frame 3 where frame 1 was due"),
        (["status", 5, 0, 0.0, 0], "5 frames received of 0 sent"),
        (["status", 0, 0, float("nan"), 0], "a status that says nothing"),
        (["what"], "a frame 'what', which there is not"),
        ([], "a frame that is no list"),
        ({"a": 1}, "a frame that is no list"),
        ([*COPY[:3], 1, *COPY[4:], GOOD], "a copy of node 1, which is not of this station"),
        ([*COPY[:4], 99, *COPY[5:], GOOD], "a copy between nodes 0 and 99, which there are not"),
        ([*COPY, 7], "a copy whose parts are not what they should be"),
        ([*COPY, b"\x93"], "these bytes cannot be read"),
        ([*COPY, pack(["Popen", [1]])], "a message 'Popen' that this algorithm does not have"),
        ([*COPY, pack(["Upload", [-1, 0, 0]])], "a message 'Upload' that this algorithm does not have"),
        ([*COPY, pack(["SyncRequest", [-1, 0]])], "a SyncRequest with 2 fields instead of 4"),
        ([*COPY, pack(["SyncRequest", [-1, "0", 0, -1]])], "SyncRequest.version is no integer"),
    ],
)
def test_a_station_that_sends_what_it_may_not_loses_its_connection(frame: Any, complaint: str) -> None:
    one = joined(frames.framed(pack(frame)))
    assert complaints(one) == [complaint] or complaints(one)[0].startswith(complaint)
    assert len(complaints(one)) == 1


def test_an_oversized_frame_is_not_read() -> None:
    one = joined(struct.pack(">I", (1 << 20) + 1) + bytes(100))
    assert complaints(one) == [f"a frame of {(1 << 20) + 1} bytes, where {1 << 20} are allowed"]


def test_another_coband_is_refused() -> None:
    one = visited(_refused({**HELLO, "code": "older"}), _refused({**HELLO, "protocol": PROTOCOL + 1}))
    assert sum("another coband" in line for line in one.said) == 2


def _refused(hello: dict[str, Any]) -> Visitor:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.framed(pack(hello)))
        answer = unpack(await frames.read(reader, frames.GREETING))
        assert answer[0] == "refused"
        assert "install the same one" in answer[1]

    return visit
