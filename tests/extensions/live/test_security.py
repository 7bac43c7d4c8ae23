"""What comes in from outside: wrong tokens, malformed, oversized and impossible frames."""

import asyncio
import hmac
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coband.extensions.live import codec, frames, listener
from coband.extensions.live.codec import pack
from coband.extensions.live.config import PROTOCOL
from coband.extensions.live.frames import FROM_HUB, framed, parts, written
from coband.extensions.live.listener import STRANGERS
from coband.extensions.live.schema import Hello, Ready, Refused, Task, Welcome
from coband.simulator.experiments.runs.code_version import source_digest
from tests.extensions.live.tampering import DEEP, nested
from tests.extensions.live.together import SERIAL, TOKEN, Live, live, simulated

HELLO = Hello(source_digest(), "x", 1)
Visitor = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def visited(*visits: Visitor) -> Live:
    """A run that some connections try to disturb before its stations come; it ends as it would without them."""
    one = live(SERIAL, "Dis")

    async def main() -> Any:
        await one.open()
        for visit in visits:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            async with asyncio.timeout(10):
                await visit(reader, writer)
                while await reader.read(1000):  # until the hub closes the connection
                    pass
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


def knowing(token: str) -> Visitor:
    """A station with this token."""

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with pytest.raises(asyncio.IncompleteReadError):
            await listener.enter(reader, writer, token)

    return visit


def complaints(one: Live) -> list[str]:
    return [line.partition("closed: ")[2] for line in one.said if "closed: " in line]


NO_GREETING = f"no greeting of live mode {PROTOCOL}, which this version of coband has"
OTHER = f"coband live {PROTOCOL + 1}".encode().ljust(16, b"\n")


def test_who_does_not_greet_with_the_token_is_named_in_one_line() -> None:
    """The others: a digest of another token, another version, a frame, deep bytes, a browser, a length, a pickle."""
    raws = (
        OTHER + bytes(64),
        framed(pack(parts(HELLO))),
        framed(nested(200)),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        struct.pack(">I", 1 << 17) + bytes(100),
        b"\x80\x04\x95" + bytes(200),
    )
    tokens = ("another", TOKEN + "x", TOKEN[:-1], "ümlaut", "")
    one = visited(sending(listener.HEAD + bytes(64)), *map(sending, raws), *map(knowing, tokens))
    assert complaints(one) == ["wrong token", *[NO_GREETING] * len(raws), *["wrong token"] * len(tokens)]


def test_a_greeting_that_was_overheard_opens_nothing_and_has_no_token_in_it() -> None:
    heard: list[bytes] = []

    async def overhear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        class Tap:
            def write(self, raw: bytes) -> None:
                heard.append(raw)
                writer.write(raw)

        await listener.enter(reader, Tap(), TOKEN)  # type: ignore[arg-type]
        writer.close()

    async def replay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(heard))

    one = visited(overhear, replay)
    assert complaints(one) == ["wrong token"]
    assert TOKEN.encode() not in b"".join(heard)
    assert not any(TOKEN in line for line in one.said)


def test_nothing_is_decoded_before_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    real = codec.unpack

    def unpack(raw: bytes) -> Any:
        read.append(raw)
        return real(raw)

    monkeypatch.setattr(frames, "unpack", unpack)
    visited(*(sending(start + deep) for deep in DEEP for start in (b"", listener.HEAD + bytes(64))))
    assert read
    assert not any(deep[:40] in raw for raw in read for deep in DEEP)


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Any, Any]] = []
    real = hmac.compare_digest

    def compare(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr("coband.extensions.live.listener.hmac.compare_digest", compare)
    visited(knowing("guess"))
    assert len(compared) == 7  # once for the guess, at both ends for each station
    assert all(len(one) == len(other) == listener.DIGEST for one, other in compared)


def test_strangers_that_say_nothing_keep_nobody_out() -> None:
    one = live(SERIAL, "Dis")

    async def main() -> Any:
        await one.open()
        idle = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(STRANGERS + 20)]
        for _ in range(3):
            one.join()
        result = await one.result()
        for _, writer in idle:
            writer.close()
        return result

    assert asyncio.run(main()).turns == 60
    assert one.said == []


def joined(*raws: bytes) -> Live:
    """A run whose first station goes astray after it was admitted, and is told why it has to leave."""
    one = live(SERIAL, "Dis", largest=1 << 20)

    async def main() -> None:
        await one.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        await listener.enter(reader, writer, TOKEN)
        writer.write(written(HELLO))
        assert isinstance(FROM_HUB.read(await frames.read(reader, 1 << 20))[1], Welcome)
        writer.write(written(Ready()))
        for raw in raws:
            writer.write(raw)
        async with asyncio.timeout(10):
            _, refused = FROM_HUB.read(await frames.read(reader, 1 << 20))
            assert isinstance(refused, Refused)
            assert complaints(one) == [refused.why]
            assert await reader.read() == b""
        writer.close()
        assert one.hub is not None
        await one.hub.close()

    asyncio.run(main())
    assert [line.partition(":")[0] for line in one.said] == ["agent 0 (x)"]
    return one


COPY = ["f", 1, "copy", 0, -1, 1, 5, 3, 1, 0.5]
GOOD = pack(["SyncRequest", [-1, 0, 0, -1, 0, 0, 0]])
ROW = [1 << 40, 0.0, 0, 0, -3, -1, -1, -1, 0, 0, -1, -1, 1.0, -1, None]


WRONG: list[tuple[Any, str]] = [
    (["f", 1, "nonsense", 2], "a frame 'nonsense', which there is not"),
    (["f", 1, ["a"], 2], "a frame of type tuple, which there is not"),
    (["f", 1], "a frame of a session without its number and kind"),
    (["f", True, "copy"], "a frame of a session without its number and kind"),
    (["f", 3, "ack", 0, -1, 1, 0.0], "frame 3 where frame 1 was due"),
    (["f", 1, "status", 0, 0, [0.0, 0, 0], 0], "a frame 'status', which there is not"),
    (["copy", *COPY[3:], GOOD], "a frame 'copy', which there is not"),
    (["status", 5, 0, [0.0, 0, 0], 0], "5 frames received of 0 sent"),
    (["status", 0, 5, [0.0, 0, 0], 0], "a status after 5 frames, where 0 have come"),
    (
        ["status", 0, 0, [float("nan"), 0, 0], 0],
        "a status whose due.0 is wrong: input should be greater than or equal to 0",
    ),
    (["status", 0, 0, [0.0, 0, 0], "1"], "a status whose pulls is wrong: input should be a valid integer"),
    (["status", 0, 0, [0.0, 0, 0], True], "a status whose pulls is wrong: input should be a valid integer"),
    (["ready"], "a ready after the station was ready"),
    (["what"], "a frame 'what', which there is not"),
    ([], "a frame that is not a list"),
    ({"a": 1}, "a frame that is not a list"),
    (["f", 1, "rows", [[1, 2], "x"]], "rows whose rows.0.2 is wrong: field required"),
    (["f", 1, "rows", [[*ROW[:12], "1", *ROW[13:]]]], "rows whose rows.0.12 is wrong: input should be a valid number"),
    (["f", 1, "rows", [ROW]], "rows before the start"),
    (["f", 1, "report", {"a": 1}], "a report with 1 fields instead of 13"),
    (["f", 1, "failed", "somehow", ""], "a failed whose how is wrong: input should be 'violated' or 'failed'"),
    ([*COPY[:3], 1, *COPY[4:], GOOD], "a copy of node 1, which is not of this station"),
    ([*COPY[:4], 99, *COPY[5:], GOOD], "a copy between nodes 0 and 99, which there are not"),
    ([*COPY, 7], "a copy whose message is wrong: input should be a valid bytes"),
    ([*COPY, GOOD], "a copy before the start"),
    ([*COPY, b"\x93"], "these bytes cannot be read (ValueError)"),
    ([*COPY, nested(200)], "extension 2, where none is allowed"),
    ([*COPY, pack(["Popen", [1]])], "a message 'Popen' that this algorithm does not have"),
    ([*COPY, pack(["Upload", [-1, 0, 0]])], "a message 'Upload' that this algorithm does not have"),
    ([*COPY, pack(["SyncRequest", [-1, 0]])], "a SyncRequest with 2 fields instead of 7"),
    ([*COPY, pack(["SyncRequest", [-1, "0", 0, -1, 0, 0, 0]])], "SyncRequest.version is not an integer"),
    ([*COPY, pack(["SyncRequest", [-1, 1 << 40, 0, -1, 0, 0, 0]])], f"a SyncRequest of round -1 and version {1 << 40}"),
    ([*COPY, pack(["SyncRequest", [-1, 0, (1 << 64) - 1, -1, 0, 0, 0]])], "SyncRequest.pulls is too large"),
    (["f", 1, "ack", 0, -1, 1, 0.0], "an ack, for which there is no use where nothing is lost"),
]


def test_a_station_that_sends_what_it_may_not_is_told_why_and_has_to_leave() -> None:
    assert [complaints(joined(framed(pack(frame)))) for frame, _ in WRONG] == [[complaint] for _, complaint in WRONG]


def test_what_is_deep_or_claims_much_or_is_too_long_is_refused() -> None:
    for deep in DEEP:
        assert len(complaints(joined(framed(b"\x93\xa1f\x01" + deep)))) == 1
    one = joined(struct.pack(">I", (1 << 20) + 1) + bytes(100))
    more = "; `coband live run --max-frame MIB` allows larger ones"
    assert complaints(one) == [f"a frame of {(1 << 20) + 1} bytes, where {1 << 20} are allowed{more}"]


def test_frames_may_be_as_large_as_the_command_line_says() -> None:
    task = Task(0, "Dis", "dis_kernel_ucb", 0, 1, "off", None)
    for largest, fine in ((1, True), (2047 << 20, True), ((1 << 31) - 1, True), (0, False), (1 << 31, False)):
        welcome = parts(Welcome("", "/", task, 1, (0,), 0.0, largest))
        if fine:
            assert FROM_HUB.frame(unpacked(welcome)) == Welcome(*welcome[1:])
        else:
            with pytest.raises(codec.WireError, match=r"a welcome whose largest is wrong"):
                FROM_HUB.frame(unpacked(welcome))


def unpacked(value: Any) -> Any:
    return codec.unpack(pack(value))


def test_another_coband_is_refused() -> None:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await listener.enter(reader, writer, TOKEN)
        writer.write(written(HELLO._replace(code="older")))
        _, answer = FROM_HUB.read(await frames.read(reader, frames.GREETING))
        assert isinstance(answer, Refused)
        assert "install the same one" in answer.why

    one = visited(visit)
    assert one.said == ["a station was refused: it has another coband than the hub; install the same one"]
