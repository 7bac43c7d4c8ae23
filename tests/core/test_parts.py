"""Distributions, streams, schedules, messages: one test per promise."""

import math
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import Field, TypeAdapter, ValidationError

from coband.extensions.conformance.runs import plan_of
from coband.simulator.core.clock.schedule import OneAtATime, Schedule
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine
from coband.simulator.core.hosts.speed import AgentsConfig
from coband.simulator.core.network.bandwidth import Rate, Stage
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.nodes.message import Message, payload, size_of
from coband.simulator.core.nodes.node import Note, Timer
from coband.simulator.core.randomness.distributions import Constant, Distribution, Draws, is_zero
from coband.simulator.core.randomness.streams import Seed, Streams
from coband.simulator.core.records.ledger import DOWN, UP, Ledger
from coband.simulator.scenario_errors import BrokenOff
from tests.core import toys
from tests.every import every

DISTRIBUTION: TypeAdapter[Any] = TypeAdapter(Distribution)
SCHEDULE: TypeAdapter[Any] = TypeAdapter(Schedule)
DISTRIBUTIONS = [
    {"kind": "constant", "value": 2.0},
    {"kind": "uniform", "low": 1.0, "high": 3.0},
    {"kind": "exponential", "rate": 0.5},
    {"kind": "shifted_exponential", "shift": 0.2, "rate": 2.0},
    {"kind": "gamma", "shape": 3.0, "scale": 0.5},
    {"kind": "lognormal", "median": 1.0, "sigma": 0.5},
    {"kind": "pareto", "minimum": 1.0, "shape": 4.0},
    {"kind": "empirical", "values": [1.0, 2.0, 6.0]},
]


@pytest.mark.parametrize("spec", DISTRIBUTIONS, ids=lambda spec: spec["kind"])
def test_distributions_have_their_mean_and_do_not_depend_on_blocks(spec: dict[str, Any]) -> None:
    distribution = DISTRIBUTION.validate_python(spec)
    sample = distribution.draw(np.random.default_rng(0), 40_000)
    assert sample.min() >= 0
    assert sample.mean() == pytest.approx(distribution.mean, rel=0.03)
    draws = Draws(distribution, np.random.default_rng(0), factor=2.0)
    assert [draws() for _ in range(5000)] == pytest.approx(2.0 * sample[:5000], rel=1e-15)


def test_known_quantiles() -> None:
    rng = np.random.default_rng(1)
    lognormal = DISTRIBUTION.validate_python({"kind": "lognormal", "median": 0.05, "sigma": 0.5}).draw(rng, 40_000)
    assert np.median(lognormal) == pytest.approx(0.05, rel=0.02)
    assert np.log(lognormal).std() == pytest.approx(0.5, rel=0.02)
    pareto = DISTRIBUTION.validate_python({"kind": "pareto", "minimum": 2.0, "shape": 1.5}).draw(rng, 40_000)
    assert (pareto > 4.0).mean() == pytest.approx(2.0**-1.5, rel=0.03)


@pytest.mark.parametrize(
    "spec", [{"kind": "lognormal", "median": 0.05, "sigma": 1e3}, {"kind": "pareto", "minimum": 1, "shape": 1e-3}]
)
def test_draws_that_are_too_large_for_a_number_are_refused(spec: dict[str, Any]) -> None:
    distribution = DISTRIBUTION.validate_python(spec)
    assert distribution.mean == math.inf
    draws = Draws(distribution, np.random.default_rng(0))
    with pytest.raises(BrokenOff, match=f"kind='{spec['kind']}'.* draws values too large for a number; give it a "):
        [draws() for _ in range(100)]


def test_a_number_is_a_constant() -> None:
    assert DISTRIBUTION.validate_python(3) == Constant(value=3.0)
    assert is_zero(DISTRIBUTION.validate_python(0))
    assert {"minimum": 0, "type": "number"} in DISTRIBUTION.json_schema()["anyOf"]


def test_empirical_values_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "delays.txt"
    file.write_text("0.5\n1.5\n")
    distribution = DISTRIBUTION.validate_python({"kind": "empirical", "file": str(file)})
    assert set(distribution.draw(np.random.default_rng(0), 50)) == {0.5, 1.5}


@every(
    "spec",
    [
        {"kind": "uniform", "low": 3.0, "high": 1.0},
        {"kind": "exponential", "rate": 0.0},
        {"kind": "exponential", "rate": -0.5},
        {"kind": "shifted_exponential", "shift": 0.2, "rate": 0.0},
        {"kind": "shifted_exponential", "shift": 0.2, "rate": -0.5},
        {"kind": "shifted_exponential", "shift": -0.2, "rate": 2.0},
        {"kind": "gamma", "shape": 0.0},
        {"kind": "gamma", "shape": 3.0, "scale": 0.0},
        {"kind": "lognormal", "median": 0.0, "sigma": 0.5},
        {"kind": "lognormal", "median": 1.0, "sigma": -0.5},
        {"kind": "pareto", "minimum": 0.0, "shape": 4.0},
        {"kind": "pareto", "minimum": 1.0, "shape": 0.0},
        -1,
        {"kind": "constant", "value": -1.0},
        {"kind": "empirical"},
        {"kind": "empirical", "values": []},
        {"kind": "empirical", "values": [1.0, -0.5]},
        {"kind": "empirical", "values": [1.0, float("inf")]},
        {"kind": "normal"},
        {"kind": "empirical", "file": "/nowhere"},
    ],
)
def test_impossible_distributions_are_refused(spec: Any) -> None:
    with pytest.raises(ValidationError):
        DISTRIBUTION.validate_python(spec)


def test_streams_are_found_by_name() -> None:
    streams = Streams(7, 2)
    first = streams("world", 3, "arms").random(4)
    assert np.array_equal(first, Streams(7, 2)("world", 3, "arms").random(4))
    others = [
        Streams(7, 1)("world", 3, "arms"),
        Streams(8, 2)("world", 3, "arms"),
        streams("world", 4, "arms"),
        streams("world", 3, "noise"),
        streams("agent", 3, "arms"),
        Streams(9, 0)("world", 3, "arms"),
    ]
    assert all(not np.array_equal(first, other.random(4)) for other in others)
    assert np.array_equal(streams.coin(5).random(3), streams.coin(5).random(3))


@pytest.mark.parametrize("seed", [0, 2**40])
def test_stream_values_never_change(seed: int) -> None:
    expected = {0: 0.8563072453052888, 2**40: 0.9563276045244846}
    value = float(Streams(seed)("world", 0, "arms").random())
    assert value == pytest.approx(expected[seed], rel=1e-15)


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**70 + 5, 2**128 - 1, 2**128, 2**200 + 3])
@pytest.mark.parametrize("key", [(0,), (1, 2**31, 4, 2**32 - 1), (1, 2, 2**32, 3), (2**70, 0)])
def test_a_stream_starts_where_numpy_starts_it(seed: int, key: tuple[int, ...]) -> None:
    for words, kind in ((4, np.uint64), (9, np.uint32)):
        expected = np.random.SeedSequence(seed, spawn_key=key).generate_state(words, kind)
        assert np.array_equal(Seed(seed, key).generate_state(words, kind), expected)


@pytest.mark.parametrize(("seed", "key"), [(-1, (1,)), (1, (2, -1))])
def test_a_stream_has_no_negative_name(seed: int, key: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        Seed(seed, key).generate_state(1)


def ticks(spec: dict[str, Any], agents: int, seed: int = 0) -> list[tuple[float, int]]:
    return list(SCHEDULE.validate_python(spec).ticks(agents, Streams(seed)))


def test_rounds_visit_everybody_in_order() -> None:
    assert ticks({"kind": "rounds", "turns": 2, "interval": 0.5}, 2) == [(0.5, 0), (0.5, 1), (1.0, 0), (1.0, 1)]


def test_one_at_a_time_orders() -> None:
    robin = ticks({"kind": "one_at_a_time", "turns": 5, "order": "round_robin"}, 3)
    assert robin == [(1.0, 0), (2.0, 1), (3.0, 2), (4.0, 0), (5.0, 1)]
    uniform = np.bincount([agent for _, agent in ticks({"kind": "one_at_a_time", "turns": 30_000}, 5)])
    assert uniform == pytest.approx(np.full(5, 6000), rel=0.05)
    weighted = {"kind": "one_at_a_time", "turns": 30_000, "order": "weighted", "weights": [0, 1, 3, 0]}
    counts = np.bincount([agent for _, agent in ticks(weighted, 4)], minlength=4)
    assert counts == pytest.approx([0, 7500, 22_500, 0], rel=0.05)


def test_weights_of_agents_need_not_add_up_to_one() -> None:
    """Only their ratios count."""
    fractions = {"kind": "one_at_a_time", "turns": 500, "order": "weighted", "weights": [0.125, 0.25, 0.125]}
    assert ticks(fractions, 3) == ticks(fractions | {"weights": [1, 2, 1]}, 3)


def test_a_longer_horizon_keeps_the_beginning() -> None:
    short = ticks({"kind": "one_at_a_time", "turns": 100}, 7)
    assert ticks({"kind": "one_at_a_time", "turns": 3000}, 7)[:100] == short


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "one_at_a_time", "turns": 0},
        {"kind": "one_at_a_time", "turns": 5, "order": "weighted"},
        {"kind": "one_at_a_time", "turns": 5, "weights": [1.0]},
        {"kind": "rounds"},
        {"kind": "renewal", "think": 1.0},
        {"kind": "renewal", "think": 0.0, "duration": 5.0},
        {"kind": "rounds", "turns": 5, "duration": 0},
        {"kind": "one_at_a_time", "turns": 5, "order": "weighted", "weights": [0.0, 0.0]},
    ],
)
def test_impossible_schedules_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SCHEDULE.validate_python(spec)


class Parcel(Message):
    kind: ClassVar[str] = "parcel"
    matrix: Any = payload()
    number: Any = payload()
    absent: Any = payload()
    nested: Any = payload()
    header: Any = None


def test_size_is_computed_from_the_payload_alone() -> None:
    parcel = Parcel(matrix=np.ones((3, 4)), number=2.5, absent=None, nested=[np.ones(2), 1], header=(1,) * 100)
    assert parcel.scalars == 12 + 1 + 0 + 3
    with pytest.raises(TypeError, match="has no size in scalars"):
        size_of("text")


class Rows(Message, n="rows", p="columns of the square"):
    kind: ClassVar[str] = "rows"
    rows: Any = payload("m", "n")
    square: Any = payload("p", "p")


def test_a_letter_of_the_shapes_is_how_many_there_are() -> None:
    assert (Rows(rows=np.ones((2, 3)), square=np.eye(4)).n, Rows(rows=np.ones((2, 3)), square=None).p) == (3, 0)
    assert (Rows.n.__doc__, Rows.p.__doc__) == ("rows", "columns of the square")
    assert not hasattr(Rows, "m")


@pytest.mark.parametrize("number", [True, 3, 2.5, np.int64(3), np.uint8(3), np.float32(2.5), np.float64(2.5)])
def test_every_kind_of_number_is_one_scalar(number: Any) -> None:
    assert size_of(number) == 1
    assert size_of((number, [number, None])) == 2
    assert Parcel(matrix=np.array(number), number=number, absent=None, nested=[number]).scalars == 3


@dataclass(frozen=True)
class Pareto:
    minimum: float
    shape: Any


@pytest.mark.parametrize(("shape", "scalars"), [((3, 4), 12), (2.5, 2), ([3, 4], 3), (np.ones(2), 3)])
def test_an_array_is_what_has_a_tuple_as_its_shape(shape: Any, scalars: int) -> None:
    """A parameter that happens to be called shape is a number of its own."""
    assert size_of(Pareto(1.0, shape)) == scalars


def test_a_message_or_timer_that_has_no_kind_and_a_note_that_says_nothing_more() -> None:
    message = Message()
    assert (message.kind, message.round, message.version, message.pulls, message.known) == ("message", -1, -1, 0, -1)
    node = toys.ToyServer.__new__(toys.ToyServer)
    node.notes = []
    node.note("apply")
    assert node.notes == [Note("apply", -1, -1, 0.0)]
    timer = Timer()
    assert (timer.kind, timer.about, timer.scalars) == ("timer", None, 0)


def test_a_class_of_messages_is_a_frozen_dataclass_whose_fields_are_given_by_name() -> None:
    class Postcard(Message):
        kind: ClassVar[str] = "postcard"
        text: Any = payload()
        stamp: int = 3

    postcard = Postcard(text=np.ones(3), round=2)
    assert (postcard.scalars, postcard.stamp, postcard.round, postcard.version) == (3, 3, 2, -1)
    with pytest.raises(TypeError, match="positional argument"):
        Postcard(np.ones(3))  # type: ignore[misc]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'text'"):
        Postcard()  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        postcard.stamp = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="Cannot overwrite attribute __setattr__ in class Postcard"):
        dataclass(frozen=True, kw_only=True, eq=False)(Postcard)


class Pool(Config):
    """Where points come from."""

    shape: str = Field(default="ball", alias="from")
    """What they are drawn from."""
    size: int = 3


def test_a_key_may_be_given_by_its_name_in_a_scenario_or_in_the_program() -> None:
    assert Pool.model_validate({"from": "box"}) == Pool.model_validate({"shape": "box"})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Pool.model_validate({"form": "box"})


def test_a_schema_describes_keys_by_the_texts_below_them() -> None:
    keys = Pool.model_json_schema()["properties"]
    assert {key: found.get("description") for key, found in keys.items()} == {
        "from": "What they are drawn from.",
        "size": None,
    }


def test_stage_handles_one_copy_at_a_time() -> None:
    stage = Stage(2.0)
    assert [stage.leave(0.0, 4, 0), stage.leave(1.0, 2, 0), stage.leave(10.0, 2, 0)] == [2.0, 3.0, 11.0]
    assert Stage(Rate(bits=64.0)).leave(0.0, 99, 128) == 2.0


def test_reliable_transport_needs_a_finite_timeout() -> None:
    endless = {"kind": "pareto", "minimum": 1.0, "shape": 0.9}
    with pytest.raises(ValidationError, match="timeout"):
        NetworkConfig.model_validate({"latency": endless, "loss": 0.1})
    NetworkConfig.model_validate({"latency": endless, "loss": 0.1, "retransmission": {"timeout": 3.0}})
    with pytest.raises(ValidationError, match="loss: 1 never"):
        NetworkConfig.model_validate({"links": [{"loss": 1.0}]})


def test_stragglers_are_as_many_as_asked_and_the_same_for_everyone() -> None:
    config = AgentsConfig.model_validate({"count": 50, "stragglers": {"fraction": 0.1, "slowdown": 10}})
    factors = config.slowness(Streams(1))
    assert sorted(factors) == [1.0] * 45 + [10.0] * 5
    assert factors == config.slowness(Streams(1))
    assert factors != config.slowness(Streams(2))


def test_a_speed_of_0_that_is_drawn_breaks_the_job_off() -> None:
    slow = AgentsConfig.model_validate({"count": 9, "speed": {"kind": "empirical", "values": [0, 1]}})
    with pytest.raises(BrokenOff, match=r"agents.speed has drawn 0"):
        slow.slowness(Streams(1))


def test_ledger_totals() -> None:
    ledger = Ledger(3, scalar_bits=32, header_bits=8)
    ledger.first_copies("a", "up", [1], 10, -1)
    ledger.first_copies("b", "down", [0, 1, 2], 5, 4)
    ledger.first_copies("c", "down", [2], 0, 4)
    ledger.repetition(10)
    ledger.acknowledgement()
    totals = ledger.totals()
    assert totals["messages"] == 5
    assert (totals["uplink_scalars"], totals["downlink_scalars"], totals["scalars"]) == (10, 15, 25)
    assert totals["scalars_broadcast_once"] == 15
    assert totals["scalars_per_agent"] == 25 / 3
    assert totals["bits"] == 25 * 32 + 5 * 8
    assert totals["wire_scalars"] == 35
    assert totals["wire_bits"] == 35 * 32 + 7 * 8
    assert ledger.by_round == {4: 15}


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_ledgers_of_other_agents_are_not_equal(direction: str) -> None:
    ledgers = [Ledger(2) for _ in range(3)]
    for ledger, agent in zip(ledgers, (0, 0, 1), strict=True):
        ledger.first_copies("news", direction, [agent], 3, 1)
    assert ledgers[0] == ledgers[1] != ledgers[2]


def test_rounds_are_counted_from_0_and_messages_without_a_round_are_in_none() -> None:
    ledger = Ledger(3)
    for round in (-1, 0, 0, 1):
        ledger.first_copies("a", "up", [1], 10, round)
        ledger.peer_copies("b", {0: 2}, 3, round)
    assert ledger.by_round == {0: 2 * (10 + 6), 1: 10 + 6}
    assert ledger.scalars == 4 * (10 + 6)


def test_the_servers_coin_is_its_own() -> None:
    streams = Streams(3)
    assert np.array_equal(streams.coin(-1).random(3), streams.coin(-1).random(3))
    assert not np.array_equal(streams.coin(-1).random(3), streams.coin(0).random(3))
    assert np.array_equal(streams.coin(-1).random(3), streams("server", 0, "coin").random(3))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"kind": "rounds", "turns": 7}, 7),
        ({"kind": "rounds", "turns": 7, "duration": 3.0}, None),
        ({"kind": "one_at_a_time", "turns": 17, "order": "round_robin"}, 4),
        ({"kind": "one_at_a_time", "turns": 17, "order": "weighted", "weights": [1, 0, 1, 1]}, 0),
        ({"kind": "one_at_a_time", "turns": 17, "duration": 3.0}, None),
        ({"kind": "renewal", "turns": 7, "think": 1.0}, 7),
        ({"kind": "renewal", "duration": 7.0, "think": 1.0}, None),
    ],
)
def test_turns_that_every_agent_gets(schedule: dict[str, Any], expected: int | None) -> None:
    assert SCHEDULE.validate_python(schedule).turns_per_agent(4, Streams(1)) == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"kind": "rounds", "turns": 7}, 28),
        ({"kind": "one_at_a_time", "turns": 17}, 17),
        ({"kind": "renewal", "turns": 7, "think": 1.0}, 28),
        ({"kind": "renewal", "duration": 7.0, "think": 1.0}, None),
    ],
)
def test_turns_of_all_agents_together(schedule: dict[str, Any], expected: int | None) -> None:
    assert SCHEDULE.validate_python(schedule).total_turns(4) == expected


def test_turns_that_every_agent_gets_are_counted_tick_by_tick() -> None:
    schedule = OneAtATime(kind="one_at_a_time", turns=90)
    counts = np.bincount([agent for _, agent in schedule.ticks(5, Streams(2))], minlength=5)
    assert schedule.turns_per_agent(5, Streams(2)) == counts.min() > 0


TIMES: dict[str, Any] = {
    "latency": 0.1,
    "bandwidth": 9.0,
    "server": {"uplink": 9.0},
    "links": [{"latency": 0.1}, {"bandwidth": 9.0}],
}
FAULTS: dict[str, Any] = {
    "loss": 0.1,
    "duplicate": 0.1,
    "partitions": [{"start": 1, "end": 2, "groups": [[0]]}],
    "outages": [{"start": 1, "end": 2, "nodes": [0]}],
}
NEITHER: dict[str, Any] = {
    "topology": {"kind": "line"},
    "reorder": "fifo",
    "heals": 3.0,
    "local": {"trial": 2.0},
    "transport": "datagram",
    "retransmission": {"timeout": 9.0},
    "recovery": {"patience": 9.0},
    "scalar_bits": 32,
    "header_bits": 8,
}


def test_every_key_of_the_network_says_whether_it_takes_time_and_whether_it_loses() -> None:
    assert {*TIMES, *FAULTS, *NEITHER} == {*NetworkConfig.model_fields}
    for table, found in ((TIMES, (True, False)), (FAULTS, (False, True)), (NEITHER, (False, False))):
        for key, value in table.items():
            for one in value if key == "links" else [value]:
                config = {key: [one] if key == "links" else one}
                plan = plan_of({"agents": {"count": 2}, "schedule": {"kind": "rounds", "turns": 1}, "network": config})
                assert (plan.delays, plan.faulty, plan.ideal) == (*found, not any(found)), config
                if plan.network.graph is None:
                    transport = Engine(plan, toys.TOY, toys.ToyConfig(), toys.ToyWorld(), Streams(0)).transport
                    mended = plan.network.transport == "reliable" and plan.faulty
                    assert (transport.mends, transport._ideal) == (mended, not any(found)), config
