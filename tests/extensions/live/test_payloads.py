"""Live runs with a wire: the bytes on the socket are the ledger's bits, and virtual time gives the simulated run."""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from math import ceil
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.extensions.conformance.runs import Run, algorithm, batches, registry
from coband.extensions.conformance.runs import run as simulate
from coband.extensions.live import frames
from coband.extensions.live.codec import WireError, pack
from coband.extensions.live.payloads import PayloadCodec
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.conversations import Declined
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import NoBestArm, UnsupportedScenario
from coband.simulator.core.records import trace as tr
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.core.wire.layout import Layout
from coband.simulator.maths.linalg.gram import Gram
from tests.agents.test_conformance import VARIANTS
from tests.core.wire.test_robustness import ENCODINGS, SMALL
from tests.every import every
from tests.extensions.live.together import SERIAL, live, run, simulated

DELAYS = ("network.latency={kind: lognormal, median: 0.3, sigma: 0.4}", "network.bandwidth=5000")
LOSS = (*DELAYS, "network.loss=0.2", "network.duplicate=0.1")
APART = ("network.latency=0.013", "network.retransmission.timeout=0.37", "network.recovery.timeout=0.29")
"""No two nodes do something at the same time."""


def sent(encoding: str, **more: str) -> str:
    return f"messages={{encoding: {{default: {encoding}}}, {', '.join(f'{key}: {its}' for key, its in more.items())}}}"


def lying(behaviour: str) -> str:
    return f"adversaries=[{{agents: [1], behaviour: {behaviour}, start: 3}}]"


def private(mechanism: str) -> str:
    return f"messages={{privacy: {{mechanism: {mechanism}, leak: allow}}}}"


EIGHT = "{kind: stochastic, bits: 8}"
CASES: list[tuple[str, tuple[str, ...]]] = [
    ("DisLin", (sent("float64", counting="packed"),)),
    ("DisLin", (sent("bfloat16", counting="packed"), *LOSS)),
    ("DisLin", (sent(f"{{kind: delta, of: {EIGHT}}}"),)),
    ("Async", (sent(f"{{kind: delta, of: {EIGHT}}}"), *LOSS)),
    ("Async", (sent("{kind: error_feedback, of: {kind: top, keep: 3}}", counting="packed"), *DELAYS)),
    ("DisLin", (sent("float32"), lying("{kind: sign_flip, scale: 3}"), "server.aggregate=geometric_median")),
    ("Async", (lying("{kind: stale, age: 2}"),)),
    ("Async", (lying("{kind: equivocate}"),)),
    ("DisLin", (lying("{kind: silent}"), *APART)),
    ("Async", (lying("{kind: silent}"), *APART)),
    ("DisLin", (lying("{kind: reward_poisoning, budget: 3}"),)),
    ("DisLin", (private("gaussian, sigma: 0.5"), *LOSS)),
    ("DisLin", (private("tree, epsilon: 50"),)),
    ("DisLin", (private("gaussian, sigma: 0.5, adversary: others"),)),
    ("Async", (private("laplace_local, sigma: 0.1"),)),
]


def alone(label: str) -> str:
    """The scenario with one algorithm."""
    return "\n".join(line for line in SERIAL.splitlines() if "label: " not in line or f"label: {label}," in line)


def without_attempts(rows: list[tr.Row]) -> list[tuple[Any, ...]]:
    """Events as they are everywhere: a receiver knows of a copy only which one it is when it leaves."""
    return [(*row[:12], 0 if row.event == tr.DELIVER else row.value, row.reason, detail(row)) for row in rows]


def detail(row: tr.Row) -> Any:
    """The detail of an event, but for the bytes that only live runs have."""
    return json.loads(row.detail or "{}").get("wire") if row.event == tr.SEND else row.detail


@every("label, changes", CASES)
def test_a_live_run_with_a_wire_is_the_simulated_one_event_by_event(label: str, changes: tuple[str, ...]) -> None:
    one = live(alone(label), label, changes, share=2)
    measured = run(one)
    predicted, rows = simulated(one.scenario, label)
    assert without_attempts(one.rows) == without_attempts(rows)
    assert measured.totals | predicted.totals == measured.totals
    assert measured.by_agent == predicted.by_agent
    assert measured.warnings == predicted.warnings
    assert measured.ledger.by_field() == predicted.ledger.by_field()


@pytest.mark.parametrize(
    ("label", "spec"),
    [("DisLin", sent(EIGHT, counting="packed")), ("Async", sent(f"{{kind: delta, of: {EIGHT}}}", counting="packed"))],
)
def test_every_message_on_the_socket_has_the_bits_of_the_ledger(
    label: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What hub and stations read from their sockets, message by message: whole bytes of the bits that are counted."""
    bodies, read = list[bytes](), frames.read

    async def listening(reader: asyncio.StreamReader, largest: int) -> bytes:
        bodies.append(await read(reader, largest))
        return bodies[-1]

    monkeypatch.setattr(frames, "read", listening)
    measured = run(live(SERIAL, label, (spec,), share=2))
    copies = [frame[-1] for frame in map(msgpack.unpackb, bodies) if frame[0] == "f" and frame[2] == "copy"]
    carried = Counter[tuple[str, int]]()
    for (_, kind, _, bits), count in measured.ledger.carried.items():
        carried[kind.__name__, ceil(sum(bits or ()) / 8)] += count
    assert Counter((name, len(payload)) for name, *_, payload in map(msgpack.unpackb, copies)) == carried
    assert len(copies) == measured.totals["messages"] > 20
    assert 0 <= 8 * sum(len(msgpack.unpackb(body)[-1]) for body in copies) - measured.totals["bits"] < 8 * len(copies)
    assert sum(map(len, copies)) == measured.totals["live_bytes"]


def equal(one: Any, other: Any) -> bool:
    """Whether two payload values are the same to the last bit; of sums of squares, their entries."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, Gram):
        return type(one) is type(other) and np.array_equal(one.dense(), other.dense())
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and np.array_equal(one, other))
    return bool(type(np.asarray(one).item()) is type(other) and one == other)


def check_comes_back(name: str, made: Run) -> None:
    """Every message that was sent is the same when it has been bytes, as many as the ledger counts."""
    wire = made.engine.wire
    assert wire is not None
    kinds = [*(size.message for size in algorithm(name).messages), Declined]
    codec = PayloadCodec(kinds, made.engine.world.dimension, wire.layout, False)
    for row, message in zip(made.events(tr.SEND), made.sent, strict=True):
        raw = codec.encode(message)
        found = codec.decode(raw, row.node)
        assert found.field_bits == message.field_bits is not None
        assert len(msgpack.unpackb(raw)[-1]) == ceil(sum(message.field_bits) / 8)
        assert (found.round, found.version, found.talk) == (message.round, message.version, message.talk)
        for field in message.payload_fields():
            assert equal(getattr(message, field), getattr(found, field)), (name, field)


FLAT = [spec | {"counting": "packed"} for spec in ENCODINGS.values()]


@settings(deadline=None)
@given(st.data(), st.sampled_from(FLAT))
def test_damaged_messages_are_refused_or_messages(data: st.DataObject, spec: dict[str, Any]) -> None:
    layout = Layout(MessagesConfig.model_validate(spec), {}, 64)
    message = simulate("dis_lin_ucb", {}, messages=spec, schedule={"kind": "rounds", "turns": 4}).sent[-1]
    codec = PayloadCodec([type(message)], 3, layout, True)
    raw = bytearray(codec.encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        found = codec.decode(bytes(raw[: data.draw(st.integers(0, len(raw)))]), 0)
        assert isinstance(found, Message)
        assert found.field_bits is not None


class Told(Message):
    """Fields of all forms."""

    which: int = payload(kind="index", of="arms")
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True)


class Levels(Message):
    levels: IntArray = payload("d", kind="count", code="unary")


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=3))
def test_whole_numbers_in_a_unary_code(levels: list[int]) -> None:
    codec = PayloadCodec([Levels], 3, PACKED, True)
    raw = codec.encode(Levels(levels=np.array(levels)))
    assert codec.decode(raw, 0).levels.tolist() == levels
    text = "".join("1" * abs(m) + "0" + (str(int(m < 0)) if m else "") for m in levels)
    assert msgpack.unpackb(raw)[-1] == int(text.ljust(-len(text) % 8 + len(text), "0"), 2).to_bytes(ceil(len(text) / 8))
    damaged = [*HEADERS], [[False, ["u", [3, len(text) + 8]]]], None, msgpack.unpackb(raw)[-1] + b"\0"
    with pytest.raises(WireError, match="that are not a unary code of 3 numbers"):
        codec.decode(msgpack.packb(["Levels", *damaged]), 0)


PACKED = Layout(MessagesConfig(counting="packed"), {"arms": 4}, 64)
DELTA = MessagesConfig.model_validate({"encoding": {"default": {"kind": "delta", "of": "float32"}}})
DIFFERENCES = Layout(DELTA, {}, 64)
HEADERS = [-1, -1, 0, -1, 0, 0, 0]
W8 = [False, ["fC", [2, 2]]]


@every(
    "layout, parts, wrong",
    [
        (PACKED, [HEADERS, [[False, ["i", []]], W8], None, bytes(24)], "24 bytes, where codes of"),
        (PACKED, [HEADERS, [[False, ["i", []]]], None, b""], "with other payload fields"),
        (PACKED, [HEADERS[:-1], [[False, ["i", []]], W8], None, bytes(25)], "with other header fields"),
        (PACKED, [HEADERS, [[False, ["i", []]], [True]], None, b"\0"], r"Told.W is not an array"),
        (PACKED, [HEADERS, [[False], W8], None, b""], "of unknown form"),
        (PACKED, [HEADERS, [[False, ["i", [2]]], W8], None, b""], "a value of unknown form"),
        (PACKED, [HEADERS, [[False, ["i", []]], [False, ["fC", [1 << 20, 1 << 20]]]], None, b""], "of unknown form"),
        (PACKED, [HEADERS, [[False, ["i", []]], [False, ["G", [2, 3]]]], None, b""], "of unknown form"),
        (PACKED, [HEADERS, [[False, ["i", []]], W8], 5, bytes(25)], "on no link"),
        (PACKED, [HEADERS, [[False, ["i", []]], W8], None], "without header and payload"),
        (DIFFERENCES, [HEADERS, [[False, ["i", []]], W8], None, bytes(24)], "a difference to message -1"),
        (DIFFERENCES, [HEADERS, [[False, ["i", []]], W8], [0, 3, [2]], bytes(24)], "a difference to message 2"),
    ],
)
def test_what_does_not_fit_together_is_refused(layout: Layout, parts: list[Any], wrong: str) -> None:
    with pytest.raises(WireError, match=wrong):
        PayloadCodec([Told], 2, layout, True).decode(pack(["Told", *parts]), 0)


def test_a_number_that_its_bits_cannot_say_is_refused() -> None:
    codec = PayloadCodec([Told], 2, PACKED, True)
    assert codec.decode(codec.encode(Told(which=3, W=np.eye(2)))).field_bits == (2, 192)
    with pytest.raises(UnsupportedScenario, match=r"Told.which is 4, for which 2 bits are too few"):
        codec.encode(Told(which=4, W=np.eye(2)))


STARS = [name for name, one in registry().algorithms.items() if one.messages and "star" in one.needs.topologies]


MEETINGS = [(name, encoding) for name in STARS for encoding in ENCODINGS]


def few(name: str, encoding: str) -> bool:
    """Whether it is one of those that meet every day."""
    return STARS.index(name) % len(ENCODINGS) == list(ENCODINGS).index(encoding)


@every("name, encoding", [one if few(*one) else pytest.param(*one, marks=pytest.mark.slow) for one in MEETINGS])
def test_messages_of_every_algorithm_come_back_under_every_encoding(name: str, encoding: str) -> None:
    small = {key: value for key, value in SMALL.items() if key in algorithm(name).config.model_fields}
    options = VARIANTS.get(name, [{}])[0] | small
    try:
        short = {} if batches(name) else {"schedule": {"kind": "rounds", "turns": 12}}
        made = simulate(name, options, messages=ENCODINGS[encoding], **short)
    except (UnsupportedScenario, NoBestArm):
        return
    assert made.sent or name == "ucb1"  # which talks on graphs only
    check_comes_back(name, made)
