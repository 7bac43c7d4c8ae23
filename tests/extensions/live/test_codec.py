import math
from contextlib import suppress
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coband.agents.messages.asynchronous import NewModel, Request, ServerModel, Upload
from coband.agents.messages.linear import LinearUpload
from coband.agents.messages.sharing import Point
from coband.extensions.live.codec import Codec, WireError, pack, unpack
from coband.simulator.core.conversations import Declined
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.linalg.gram import Downdate, Gram, ScaledIdentity
from tests.every import every
from tests.extensions.live.tampering import nested

CODEC = Codec([Request, ServerModel, Upload, NewModel, Declined, LinearUpload, Point], 3)
rng = np.random.default_rng(0)


def upload(**changes: Any) -> Upload:
    values: dict[str, Any] = {"points": rng.random((2, 3)), "rewards": rng.random(2), "A": np.eye(4), "b": np.ones(4)}
    return Upload(**values | changes, version=3, round=2, pulls=5)


def raw_of(message: Message, **changes: Any) -> bytes:
    values = {item.name: getattr(message, item.name) for item in fields(message)} | changes
    return pack([type(message).__name__, list(values.values())])


def test_a_message_comes_back_with_the_same_bits() -> None:
    sent = upload(A=np.asfortranarray(rng.random((4, 4))))
    found = CODEC.decode(CODEC.encode(sent))
    assert type(found) is Upload
    assert (found.version, found.round, found.pulls, found.scalars) == (3, 2, 5, sent.scalars)
    for name in ("points", "rewards", "A", "b"):
        one, other = getattr(sent, name), getattr(found, name)
        np.testing.assert_array_equal(one, other)
        assert other.dtype == one.dtype
        assert not other.flags.writeable
    assert found.A.flags.f_contiguous  # products of it have the same last bits


def test_empty_arrays_none_and_tuples() -> None:
    model = ServerModel(points=np.empty((0, 3)), rewards=np.empty(0), A=None, b=None)
    found = CODEC.decode(CODEC.encode(model))
    assert isinstance(found, ServerModel)
    assert found.points.shape == (0, 3)
    assert found.A is None
    point = CODEC.decode(CODEC.encode(Point(point=np.ones(3), reward=np.float64(0.5), before=(1, 2, 3))))  # type: ignore[arg-type]
    assert isinstance(point, Point)
    assert (point.reward, point.before) == (0.5, (1, 2, 3))


@pytest.mark.parametrize("kind", [Gram, Downdate])
@pytest.mark.parametrize("base", [None, np.eye(3), ScaledIdentity(3, 2.5)])
def test_sums_of_squares_travel_as_their_rows(kind: type[Gram], base: Any) -> None:
    W = kind(rng.random((7, 3)), base)
    found = CODEC.decode(CODEC.encode(LinearUpload(W=W, b=np.ones(3))))
    assert isinstance(found, LinearUpload)
    assert type(found.W) is kind
    np.testing.assert_array_equal(found.W.rows, W.rows)
    np.testing.assert_array_equal(found.W.dense(), W.dense())
    assert isinstance(found.W.base, type(base))


@every(
    ("changes", "wrong"),
    [
        ({"points": rng.random((2, 4))}, r"Upload.points has shape \(2, 4\), where d is 3 in \(n, d\)"),
        ({"points": rng.random((3, 3))}, r"Upload.rewards has shape \(2,\), where n is 3 in \(n\)"),
        ({"A": np.ones(16)}, r"Upload.A has shape \(16,\) instead of \(k, k\)"),
        ({"A": np.ones((4, 5))}, r"Upload.A has shape \(4, 5\), where k is 4 in \(k, k\)"),
        ({"b": np.full(4, np.nan)}, "Upload.b has entries that are not finite"),
        ({"b": np.full(4, np.inf)}, "Upload.b has entries that are not finite"),
        ({"b": [1.0, 2.0, 3.0, 4.0]}, "Upload.b is not an array of float64"),
        ({"b": np.arange(4)}, "Upload.b is not an array of float64"),
        ({"b": None}, "Upload.b is not an array of float64"),
        ({"pulls": 1.5}, "Upload.pulls is not an integer"),
        ({"pulls": True}, "Upload.pulls is not an integer"),
        ({"round": None}, "Upload.round is not an integer"),
        ({"pulls": 1 << 63}, "Upload.pulls is too large"),
        ({"version": 1 << 31}, "an? Upload of round 2 and version 2147483648"),
    ],
)
def test_what_is_not_as_declared_is_refused(changes: dict[str, Any], wrong: str) -> None:
    with pytest.raises(WireError, match=wrong):
        CODEC.decode(raw_of(upload(), **changes))


def test_numbers_must_be_finite() -> None:
    for reward in (math.nan, math.inf, "1", None, True):
        with pytest.raises(WireError, match=r"Point.reward is not (finite|a number)"):
            CODEC.decode(raw_of(Point(point=np.ones(3), reward=0.0), reward=reward))


def test_a_sum_of_squares_must_fit_and_be_finite() -> None:
    infinite = ScaledIdentity(3, math.inf)
    for W in (Gram(np.full((1, 3), np.inf)), Gram(np.ones((2, 4))), Downdate(np.ones((1, 3)), infinite)):
        with pytest.raises(WireError, match=r"LinearUpload.W"):
            CODEC.decode(raw_of(LinearUpload(W=W, b=np.ones(3))))


@pytest.mark.parametrize("value", [3, None, "x", [], ["Upload"], ["Upload", 3], [["Upload"], []], [3, []], {"a": 1}])
def test_what_is_no_message_is_refused(value: Any) -> None:
    with pytest.raises(WireError):
        CODEC.decode(pack(value))


@given(st.binary(max_size=200))
def test_bytes_are_a_message_or_refused(raw: bytes) -> None:
    with pytest.raises(WireError):
        CODEC.decode(raw)


@given(st.data())
def test_damaged_messages_are_refused_or_messages(data: st.DataObject) -> None:
    raw = bytearray(CODEC.encode(LinearUpload(W=Gram(np.ones((2, 3)), np.eye(3)), b=np.ones(3))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = CODEC.decode(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except WireError:
        return
    assert isinstance(found, Message)
    assert found.scalars >= 0


def test_arrays_whose_head_lies_are_refused() -> None:
    import msgpack

    for head in (("fC", (1 << 39,)), ("fC", (-1,)), ("oC", (2,)), ("fX", (2,)), ("fC", (2, 2)), ("fC", 2), (3, (2,))):
        lie = msgpack.ExtType(1, msgpack.packb(head) + bytes(16))
        with pytest.raises(WireError, match="an array"):
            CODEC.decode(raw_of(Point(point=np.ones(3), reward=0.0), point=lie))


def test_sums_of_squares_hold_arrays_alone_and_no_more_columns_than_anybody_needs() -> None:
    import msgpack

    rows = msgpack.ExtType(1, msgpack.packb(("fC", (0, 1 << 21))))
    for parts, wrong in (([False, nested(1), None], "not made of matrices"), ([False, rows, 1.0], "2097152 columns")):
        W = msgpack.ExtType(2, msgpack.packb(parts))
        with pytest.raises(WireError, match=wrong):
            CODEC.decode(raw_of(LinearUpload(W=Gram(np.ones((1, 3))), b=np.ones(3)), W=W))
    with pytest.raises(WireError, match="extension 2, where none is allowed"):
        CODEC.decode(raw_of(LinearUpload(W=Gram(np.ones((1, 3))), b=np.ones(3)), W=msgpack.ExtType(2, nested(1))))
    with pytest.raises(WireError, match="extension 1, where none is allowed"):
        unpack(pack(np.ones(3)))


def test_undeclared_messages_and_fields_that_cannot_be_sent_are_named() -> None:
    class Secret(Message):
        kind: ClassVar[str] = "secret"
        what: dict[str, int] = payload()

    with pytest.raises(UnsupportedScenario, match=r"Secret.what is declared as dict\[str, int\], which cannot be sent"):
        Codec([Secret], 3)
    with pytest.raises(UnsupportedScenario, match="a Request was sent, which the algorithm does not declare"):
        Codec([Declined], 3).encode(Request())


def _sendable(kinds: set[type[Message]]) -> set[type[Message]]:
    """The kinds whose every field a codec can check and send."""
    found = set()
    for kind in kinds:
        with suppress(UnsupportedScenario):
            Codec([kind], 3)
            found.add(kind)
    return found


@every("name", sorted(Registry.installed().algorithms))
def test_all_messages_of_all_algorithms_can_be_sent(name: str) -> None:
    kinds = {size.message for size in Registry.installed().algorithms[name].messages}
    assert kinds == _sendable(kinds)
