"""Encodings: exact bits, rounding, no bias, and differences and residuals that survive loss and reordering."""

import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from coband.simulator.arrays import FloatArray
from coband.simulator.core.wire.encodings import AnyEncoding, BaseEncoding, Float32
from coband.simulator.core.wire.packing import packed, unpacked
from coband.simulator.scenario_errors import BrokenOff

ADAPTER: TypeAdapter[BaseEncoding] = TypeAdapter(AnyEncoding)
PLAIN: tuple[Any, ...] = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "sign",
    {"kind": "stochastic", "bits": 1},
    {"kind": "stochastic", "bits": 5, "scale": "norm"},
    {"kind": "stochastic", "bits": 32},
    {"kind": "top", "keep": 3},
)
VALUES = st.lists(st.floats(-1e38, 1e38, width=64), max_size=9).map(np.array)


def encoding(spec: Any) -> BaseEncoding:
    return ADAPTER.validate_python(spec)


@pytest.mark.parametrize("spec", PLAIN, ids=str)
@settings(max_examples=40)
@given(VALUES, st.integers(0, 5))
def test_what_is_packed_into_bytes_is_unpacked_and_has_the_bits_that_are_stated(
    spec: Any, values: np.ndarray, seed: int
) -> None:
    made, n = encoding(spec), len(values)
    parts = made.encode(values.astype(float), np.random.default_rng(seed))
    widths = made.widths(n)
    assert [len(part) for part in parts] == [count for count, _ in widths]
    raw = packed(parts, widths)
    assert len(raw) == -(-made.size(n) // 8)
    again = unpacked(raw, widths)
    decoded = made.decode(parts, n)
    assert np.array_equal(made.decode(again, n), decoded)
    assert np.isfinite(decoded).all()
    assert decoded.shape == (n,)
    if made.exact:
        assert np.array_equal(decoded, values)


@pytest.mark.parametrize(
    ("spec", "n", "bits"),
    [
        ("float32", 7, 7 * 32),
        ("bfloat16", 7, 7 * 16),
        ("sign", 7, 7 + 32),
        ({"kind": "stochastic", "bits": 8}, 7, 7 * 8 + 32),
        ({"kind": "top", "keep": 3}, 7, 3 * (64 + 3)),
        ({"kind": "top", "keep": 3}, 8, 3 * (64 + 3)),
        ({"kind": "top", "keep": 3}, 9, 3 * (64 + 4)),
        ({"kind": "top", "keep": 3}, 1, 64),
        ({"kind": "top", "keep": 3}, 0, 0),
        ({"kind": "delta", "of": {"kind": "delta", "of": "sign"}}, 7, 7 + 32),
    ],
    ids=str,
)
def test_bits_by_hand(spec: Any, n: int, bits: int) -> None:
    assert encoding(spec).size(n) == bits


@pytest.mark.parametrize("kinds", [("delta", "error_feedback"), ("error_feedback", "delta"), ("error_feedback",) * 2])
def test_what_was_left_out_is_not_added_twice(kinds: tuple[str, str]) -> None:
    """With top, keep: 1 the same twelve numbers were off by 2,600 times their length after forty messages."""
    with pytest.raises(ValidationError, match="leave one of them out"):
        encoding({"kind": kinds[0], "of": {"kind": kinds[1], "of": "sign"}})


@pytest.mark.parametrize(
    ("kind", "significant", "least"), [("float32", 24, -149), ("float16", 11, -24), ("bfloat16", 8, -133)]
)
@given(value=st.floats(-6e4, 6e4, width=64))
def test_floats_are_rounded_to_the_nearest_one_half_to_even(
    kind: str, significant: int, least: int, value: float
) -> None:
    made = encoding(kind)
    (found,) = made.decode(made.encode(np.array([value]), np.random.default_rng(0)), 1)
    numerator, denominator = value.as_integer_ratio()
    exponent = max(int(np.frexp(value)[1]) - significant, least)
    up, down = (denominator, 1 << -exponent) if exponent < 0 else (denominator << exponent, 1)
    whole, rest = divmod(abs(numerator) * down, up)
    whole += 2 * rest > up or (2 * rest == up and whole % 2 == 1)
    assert found == np.copysign(np.ldexp(float(whole), exponent), value)


def test_known_words_and_numbers_that_are_too_large() -> None:
    def code(kind: str, value: float) -> int:
        return int(encoding(kind).encode(np.array([value]), np.random.default_rng(0))[0][0])

    assert code("float32", 0.1) == struct.unpack("<I", struct.pack("<f", 0.1))[0]
    assert code("float16", 0.1) == struct.unpack("<H", struct.pack("<e", 0.1))[0]
    assert code("bfloat16", 1.0) == 0x3F80
    assert code("bfloat16", 1.00390625) == 0x3F80  # half-way between two: to the even one
    assert code("bfloat16", 1e300) == 0x7F7F
    made = encoding("float16")
    assert made.decode(made.encode(np.array([-1e9]), np.random.default_rng(0)), 1)[0] == -65504.0


@pytest.mark.parametrize(
    "spec", [{"kind": "stochastic", "bits": b, "scale": s} for b, s in ((1, "norm"), (2, "max"), (4, "norm"))]
)
def test_stochastic_rounding_has_no_bias(spec: Any) -> None:
    """The mean of many encodings is within 4 standard errors, and each lies on the grid next to the number."""
    made, rng, values = encoding(spec), np.random.default_rng(1), np.array([0.3, -1.0, 0.0, 0.77, -0.05])
    found = np.array([made.decode(made.encode(values, rng), 5) for _ in range(20_000)])
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - values) <= 4.0 * error + 1e-6).all()
    size = 1.0 if spec["scale"] == "max" else np.linalg.norm(values)
    assert np.abs(found - values).max() <= 2.0 * size / (2 ** spec["bits"] - 1) * (1 + 1e-6)


def test_sign_and_top_by_hand() -> None:
    values, rng = np.array([3.0, -1.0, 0.0, -2.0]), np.random.default_rng(0)
    sign, top = encoding("sign"), encoding({"kind": "top", "keep": 2})
    assert np.array_equal(sign.decode(sign.encode(values, rng), 4), [1.5, -1.5, 1.5, -1.5])
    assert np.array_equal(top.decode(top.encode(values, rng), 4), [3.0, 0.0, 0.0, -2.0])


class Receiver:
    """The receiving end of a delta, from its description: what came by number, and differences to it."""

    def __init__(self, inner: BaseEncoding) -> None:
        self.inner, self.known = inner, {0: np.zeros(4)}

    def take(self, number: int, parts: Any, reference: int) -> np.ndarray:
        self.known[number] = self.known[reference] + self.inner.decode(parts, 4)
        return self.known[number]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from("sadlr"), max_size=60),
    st.integers(0, 9),
    st.sampled_from(["float16", {"kind": "stochastic", "bits": 3}]),
)
def test_deltas_are_the_same_at_both_ends_whatever_is_lost_or_late(events: list[str], seed: int, spec: Any) -> None:
    """s: send; d: the oldest on the way arrives; r: the newest; l: the oldest is lost; a: it is acknowledged."""
    inner, rng = encoding(spec), np.random.default_rng(seed)
    sender, receiver = encoding({"kind": "delta", "of": spec}).sender(), Receiver(inner)
    way: deque[Any] = deque()
    arrived: deque[int] = deque()
    number, value = 0, np.zeros(4)
    for event in events:
        if event == "s":
            number, value = number + 1, value + rng.normal(size=4)
            way.append((number, sender.encode(number, value, rng), value))
        elif event == "a" and arrived:
            sender.acknowledged(arrived.popleft())
        elif event == "l" and way:
            sender.lost(way.popleft()[0])
        elif event in "dr" and way:
            place, sent, meant = way.popleft() if event == "d" else way.pop()
            assert np.array_equal(receiver.take(place, sent.parts, sent.reference), sent.decoded)
            assert np.abs(sent.decoded - meant).max() <= 2.0 * np.abs(meant).max() + 2 * number
            arrived.append(place)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.integers(0, 9))
def test_what_is_left_out_comes_later_whatever_is_lost(fates: list[tuple[bool, bool]], seed: int) -> None:
    """Sums of what arrived and of what was meant to arrive differ by the residual alone, which stays bounded."""
    rng = np.random.default_rng(seed)
    sender = encoding({"kind": "error_feedback", "of": {"kind": "stochastic", "bits": 2}}).sender()
    arrived, meant = np.zeros(4), np.zeros(4)
    for number, (lost, again) in enumerate(fates, 1):
        value = rng.normal(size=4)
        sent = sender.encode(number, value, rng)
        if lost:
            sender.lost(number)
        if lost and again:
            sender.repeated(number)
        if not lost or again:
            arrived, meant = arrived + sent.decoded, meant + value
            sender.acknowledged(number)
    assert np.allclose(meant - arrived, sender._left_out, atol=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "spec",
    [
        "flot32",
        {"kind": "stochastic"},
        {"kind": "stochastic", "bits": 0},
        {"kind": "top", "keep": 0},
        {"kind": "delta"},
    ],
)
def test_what_is_no_encoding_is_refused(spec: Any) -> None:
    with pytest.raises(ValidationError):
        encoding(spec)


def test_bytes_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 bytes, where codes of"):
        unpacked(b"ab", [(1, 3)])


class Slips(Float32):
    """Sends something else than it declares."""

    codes: int = 0
    numbers: int = 0

    def encode(self, values: FloatArray, rng: np.random.Generator) -> list[Any]:
        return [np.full(len(values), self.codes, dtype=np.uint64)]

    def decode(self, parts: Sequence[Any], n: int) -> FloatArray:
        return np.zeros(n - self.numbers)


def test_what_is_not_as_declared_is_told_of() -> None:
    values, rng = np.ones(3), np.random.default_rng(0)
    Slips(kind="float32", codes=2**32 - 1).sender().encode(1, values, rng)
    with pytest.raises(
        BrokenOff, match=r"Slips\.encode returned no uint64 codes whose numbers and bits are \[\(3, 32\)\]"
    ):
        Slips(kind="float32", codes=2**32).sender().encode(1, values, rng)
    with pytest.raises(BrokenOff, match=r"Slips\.decode returned numbers of shape \(2,\), and was asked for 3"):
        Slips(kind="float32", numbers=1).sender().encode(1, values, rng)
