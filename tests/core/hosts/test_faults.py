"""Loss in bursts, duplication, order, rates, delays between pairs, outages, availability: each by hand or in the long
run; and all of them at once."""

import itertools
import math
from collections import Counter
from contextlib import nullcontext
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coband.extensions.conformance.runs import plan_of
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.engine import Engine
from coband.simulator.core.hosts import absence
from coband.simulator.core.hosts.availability import BaseAvailability, MarkovOnOff, Recorded
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.hosts.speed import AgentsConfig, Episodes, SlowPeriod
from coband.simulator.core.network.bandwidth import Rate, Stage
from coband.simulator.core.network.links import BurstLoss, GilbertElliott, Matrix
from coband.simulator.core.network.network import Retransmission
from coband.simulator.core.network.partitions import Outage
from coband.simulator.core.network.reliable import ReliableTransport
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.scenario_errors import BrokenOff
from tests.core.network.test_network_runs import plan, times
from tests.core.toys import TOY, ToyConfig, ToyWorld, run
from tests.every import every

EVERYTHING: dict[str, Any] = {
    "latency": {"kind": "exponential", "rate": 2.0},
    "loss": {"kind": "gilbert_elliott", "p": 0.1, "r": 0.4, "k": 0.95},
    "duplicate": 0.2,
    "bandwidth": {"scalars": 30.0, "burst": 10.0},
    "server": {"uplink": 40.0},
    "partitions": [
        {"start": 3.0, "end": 6.0, "groups": [[0]]},
        {"start": 8.0, "end": 9.0, "groups": [[1]], "one_way": True},
    ],
    "outages": [{"start": 4.0, "end": 8.0, "nodes": ["server", 1]}],
}
CHURN: dict[str, Any] = {
    "compute": {"kind": "shifted_exponential", "shift": 0.2, "rate": 2.0},
    "handling": 0.1,
    "stragglers": {"fraction": 0.5, "slowdown": 5.0, "groups": 2, "episodes": {"mean_slow": 4.0, "mean_fast": 8.0}},
    "availability": {"kind": "markov_on_off", "mean_up": 6.0, "mean_down": 3.0},
}


def outage(*nodes: int | str, start: float, end: float) -> dict[str, Any]:
    return {"outages": [{"start": start, "end": end, "nodes": list(nodes)}]}


def test_losses_come_in_bursts() -> None:
    loss = GilbertElliott(kind="gilbert_elliott", p=0.05, r=0.25, h=0.2, k=0.99)
    loses = BurstLoss(loss, np.random.default_rng(0))
    lost = np.array([loses() for _ in range(60_000)])
    assert lost.mean() == pytest.approx(loss.mean, rel=0.05)
    # P(lost after lost): pi_bad and pi_good weighted by their losses, one step of the chain on
    bad, good = 0.05 / 0.3 * 0.8, 0.25 / 0.3 * 0.01
    after = (bad * (0.75 * 0.8 + 0.25 * 0.01) + good * (0.05 * 0.8 + 0.95 * 0.01)) / (bad + good)
    assert lost[1:][lost[:-1]].mean() == pytest.approx(after, rel=0.05)


def test_a_token_bucket_lets_a_burst_pass() -> None:
    stage = Stage(Rate(scalars=2.0, burst=6.0))
    assert [stage.leave(0.0, 4, 0), stage.leave(0.0, 4, 0), stage.leave(0.0, 4, 0)] == [0.0, 1.0, 3.0]
    assert stage.leave(100.0, 10, 0) == 102.0  # six tokens are there, four come at 2 per unit


def test_delays_between_pairs_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "delays.csv"
    file.write_text("0, 1, 2\n1, 0, 5\n0.5, 0.25, 0\n")
    network = {"latency": {"kind": "matrix", "file": str(file)}}
    _, rows, _ = run(plan(agents=2, network=network))
    arrivals = {(row.peer, row.node): row.time for row in rows if row.event == tr.DELIVER and row.round < 2}
    assert arrivals[0, -1] == 3.0
    assert arrivals[1, -1] == 6.0
    assert (arrivals[-1, 0], arrivals[-1, 1]) == (3.5, 3.25)


@pytest.mark.parametrize("delay", ["-0.5", "inf", "nan"])
def test_delays_between_pairs_are_finite_and_not_negative(tmp_path: Path, delay: str) -> None:
    file = tmp_path / "delays.csv"
    file.write_text(f"0, 1\n{delay}, 0\n")
    with pytest.raises(ValidationError, match="(row 1 has a delay that|:2: .*) is not a finite number"):
        Matrix(kind="matrix", file=str(file))


def test_links_that_keep_order_make_copies_wait() -> None:
    latency = {"kind": "uniform", "low": 0.0, "high": 9.0}
    network = {"latency": latency, "transport": "datagram", "reorder": "fifo"}
    _, _, engine = run(plan(turns=40, network=network), seed=3)
    values = [value for _, value in engine.server.order]  # type: ignore[union-attr]
    assert values == [float(turn) for turn in range(1, 41)]


def test_the_order_of_a_pair_is_kept_in_front_of_the_servers_capacity() -> None:
    network = {"latency": {"kind": "uniform", "low": 0.0, "high": 9.0}, "server": {"uplink": 100.0}}
    _, _, engine = run(plan(agents=2, turns=40, network=network), seed=3)
    order = engine.server.order  # type: ignore[union-attr]
    for agent in range(2):
        assert [value for source, value in order if source == agent] == [float(turn) for turn in range(1, 41)]


def test_a_link_doubles_datagrams() -> None:
    network = {"transport": "datagram", "links": [{"direction": "down", "duplicate": 0.25}], "latency": 0.1}
    result, rows, engine = run(plan(turns=2000, network=network), seed=1)
    doubled = sum(1 for row in rows if row.event == tr.DUPLICATE)
    assert doubled == pytest.approx(500, rel=0.15)
    assert len(engine.agents[0].heard) == 2000 + doubled  # type: ignore[attr-defined]
    assert result.audit.copies["news"].duplicated == doubled


def test_reliable_transport_suppresses_what_links_double() -> None:
    result, rows, engine = run(plan(turns=50, network={"duplicate": 1.0, "latency": 0.1}))
    assert [value for _, value in engine.server.order] == [float(turn) for turn in range(1, 51)]  # type: ignore[union-attr]
    assert result.audit.copies["report"].duplicates == 50
    suppressed = [row for row in rows if row.event == tr.DUPLICATE and row.reason == engine.trace.names["suppressed"]]
    assert Counter(row.peer for row in suppressed) == {-1: 50, 0: 50}
    assert not times(rows, tr.RETRANSMIT)


def test_waits_for_acknowledgements_grow_up_to_a_limit() -> None:
    waits = Retransmission(backoff=2.0, max_timeout=10.0)
    assert [waits.wait(1.5, attempts) for attempts in (1, 2, 3, 4, 999)] == [1.5, 3.0, 6.0, 10.0, 10.0]
    assert Retransmission().wait(1.0, 10**6) == 64.0


@every("first", [0.5, 3.0])
@every("max_timeout", [None, 10.0])
@every("attempts", [1, 2, 6, 7, 8, 20])
def test_a_message_is_given_up_when_all_waits_are_over(attempts: int, max_timeout: float | None, first: float) -> None:
    policy = Retransmission(backoff=1.5, max_timeout=max_timeout, max_attempts=attempts)
    waits = [policy.wait(first, copies) for copies in range(1, attempts + 1)]
    assert policy.until_given_up(first) == pytest.approx(sum(waits), rel=1e-12)


def test_a_message_to_a_node_that_is_down_waits_or_is_lost() -> None:
    network = {"latency": 0.5, "retransmission": {"timeout": 1.0}, **outage("server", start=1.2, end=3.0)}
    result, rows, engine = run(plan(network=network))
    assert times(rows, tr.RETRANSMIT) == [2.0, 4.0]  # copies arrive at 1.5 and 2.5, when it is down, and at 4.5
    assert engine.server.order == [(0, 1.0)]  # type: ignore[union-attr]
    assert [row.time for row in rows if row.event == tr.DELIVER and row.node == -1] == [4.5]
    result, rows, engine = run(plan(network={**network, "transport": "datagram"}))
    assert engine.server.order == []  # type: ignore[union-attr]
    assert result.totals["dropped"] == 1


def test_a_node_that_is_down_takes_its_turns_later() -> None:
    _, rows, _ = run(plan(turns=4, network=outage(0, start=2.0, end=3.5)))
    turns = [row for row in rows if row.event == tr.TURN]
    assert [row.time for row in turns] == [1.0, 3.5, 3.5, 4.0]
    assert [rows[row.cause].event if row.cause >= 0 else None for row in turns] == [None, tr.UP, None, None]
    assert (times(rows, tr.DOWN), times(rows, tr.UP)) == ([2.0], [3.5])


def test_work_is_suspended_while_its_node_is_down() -> None:
    network = {"outages": [{"start": 2.0, "end": 3.0, "nodes": [0]}, {"start": 5.0, "end": 9.0, "nodes": [0]}]}
    _, rows, _ = run(plan(agent={"compute": 5.0}, network=network))
    assert times(rows, tr.TURN) == [1.0]
    assert times(rows, tr.CHOOSE) == [1.0 + 5.0 + 1.0 + 4.0]


def test_work_takes_longer_by_an_outage_that_is_over_before_its_end() -> None:
    _, rows, _ = run(plan(agent={"compute": 5.0}, network=outage(0, start=2.0, end=3.5)))
    assert (times(rows, tr.TURN), times(rows, tr.CHOOSE)) == ([1.0], [1.0 + 5.0 + 1.5])


@pytest.mark.parametrize(("turn_is_due", "downs"), [(True, [1.5, 5.0]), (False, [1.5])])
def test_nodes_go_down_as_long_as_one_that_is_down_has_a_turn_to_take(
    tmp_path: Path, turn_is_due: bool, downs: list[float]
) -> None:
    """Agent 0 is down from 1.5 on; the last turn of the file, at 2, is that of agent 0 or of agent 1."""
    file = tmp_path / "turns.csv"
    file.write_text(f"agent,time\n0,1\n{0 if turn_is_due else 1},2\n")
    network = {
        "transport": "datagram",
        "outages": [{"start": 1.5, "end": 20.0, "nodes": [0]}, {"start": 5.0, "end": 6.0, "nodes": [1]}],
    }
    schedule = {"kind": "trace", "file": str(file)}
    _, rows, _ = run({"agents": {"count": 2}, "schedule": schedule, "network": network})
    assert times(rows, tr.DOWN) == downs


def test_a_sender_that_is_down_repeats_when_it_is_up() -> None:
    network = {
        "retransmission": {"timeout": 1.0},
        "latency": 0.25,
        "outages": [{"start": 1.1, "end": 4.0, "nodes": [0]}, {"start": 1.0, "end": 2.0, "nodes": ["server"]}],
    }
    _, rows, engine = run(plan(network=network))
    assert times(rows, tr.RETRANSMIT)[0] == 4.0
    assert engine.server.order == [(0, 1.0)]  # type: ignore[union-attr]


def test_two_reasons_to_be_down_count_once() -> None:
    network = {"outages": [{"start": 1.5, "end": 4.0, "nodes": [0]}, {"start": 2.0, "end": 6.0, "nodes": [0]}]}
    _, rows, _ = run(plan(turns=2, network=network))
    assert (times(rows, tr.DOWN), times(rows, tr.UP)) == ([1.5], [6.0])
    assert times(rows, tr.TURN) == [1.0, 6.0]


def test_what_is_given_up_is_told_to_the_sender_and_in_the_result() -> None:
    network = {"retransmission": {"timeout": 1.0, "max_attempts": 2}, **outage("server", start=0.5, end=10.0)}
    result, rows, engine = run(plan(network=network))
    assert times(rows, tr.EXPIRE) == [4.0]
    assert result.totals["expired"] == 1
    assert engine.agents[0].given_up == [(-1, 1.0)]  # type: ignore[attr-defined]


def test_markov_availability_has_its_means() -> None:
    windows = list(
        islice(MarkovOnOff(kind="markov_on_off", mean_up=6.0, mean_down=2.0).windows(0, Streams(1)("a", 0, "b")), 4000)
    )
    downs = np.array([end - start for start, end in windows])
    ups = np.array([later[0] - earlier[1] for earlier, later in pairwise(windows)])
    assert downs.mean() == pytest.approx(2.0, rel=0.06)
    assert ups.mean() == pytest.approx(6.0, rel=0.06)


def test_as_many_are_down_at_time_0_as_later() -> None:
    """mean_down / (mean_up + mean_down) of them."""
    markov = MarkovOnOff(kind="markov_on_off", mean_up=6.0, mean_down=2.0)
    starts = np.array([next(markov.windows(agent, np.random.default_rng(agent)))[0] for agent in range(2000)])
    assert starts.min() == 0.0
    assert (starts == 0.0).mean() == pytest.approx(0.25, abs=0.05)
    assert starts[starts > 0.0].mean() == pytest.approx(6.0, rel=0.1)


def test_availability_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text("agent,up,down\n0,0,2.5\n0,4,\n1,3,6\n")
    recorded = Recorded(kind="trace", file=str(file))
    found = [list(recorded.windows(agent, np.random.default_rng())) for agent in range(3)]
    assert found == [[(2.5, 4.0)], [(0.0, 3.0), (6.0, math.inf)], []]
    agent = {"availability": {"kind": "trace", "file": str(file)}}
    result, rows, _ = run(plan(agents=3, turns=8, agent=agent))
    assert [row.time for row in rows if row.event == tr.TURN and row.node == 0] == [
        1.0,
        2.0,
        4.0,
        4.0,
        5.0,
        6.0,
        7.0,
        8.0,
    ]
    assert [row.time for row in rows if row.event == tr.TURN and row.node == 1] == [3.0, 3.0, 3.0, 4.0, 5.0]
    assert result.stalled == 3


END = 9.5
WAYS_TO_GO: dict[str, dict[str, Any]] = {
    "availability": {"availability": {"kind": "trace", "file": "times.csv"}},
    "outage": {},
    "leaves": {"leaves": {"kind": "times", "times": [[0, END]]}},
}


@pytest.mark.parametrize("way", WAYS_TO_GO)
@pytest.mark.parametrize("transport", ["reliable", "datagram"])
def test_nobody_counts_on_a_node_that_is_down_for_good(
    way: str, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent to it or repeated, what was to be repeated is given up, and what comes behind that arrives."""
    monkeypatch.chdir(tmp_path)
    Path("times.csv").write_text(f"agent,up,down\n0,0,{END}\n")
    network = {"latency": {"kind": "uniform", "low": 0.1, "high": 1.5}, "loss": 0.4, "transport": transport}
    if way == "outage":  # as those of plugins may be
        network |= outage(0, start=END, end=1e9)
        monkeypatch.setattr(Outage, "windows", lambda *_: {0: [(END, math.inf)]})
    made = plan(agents=2, turns=20, agent=WAYS_TO_GO[way], network=network, checks="full")
    result, rows, engine = run(made, seed=2)
    gone = next(row for row in rows if (row.event, row.node) == (tr.DOWN, 0))
    after = [row for row in rows if row.seq > gone.seq]
    assert not [row for row in after if row.node == 0 and row.event in (tr.TURN, tr.SEND, tr.RETRANSMIT)]
    assert not [row for row in after if row.peer == 0 and row.event in (tr.SEND, tr.RETRANSMIT)]
    assert {row.value for row in after if row.event == tr.SEND and row.node == -1} <= {1}
    name = engine.trace.names["gone"]
    given_up = {(row.node, row.peer) for row in rows if row.event == tr.EXPIRE and row.reason == name}
    assert given_up == ({(0, -1), (-1, 0)} if transport == "reliable" else set())
    assert sum(row.event == tr.TURN and row.node == 1 for row in rows) == 20
    assert result.stalled == (
        0 if way == "leaves" else 20 - sum(row.event == tr.TURN and row.node == 0 for row in rows)
    )
    assert result.totals["expired"] == sum(row.event == tr.EXPIRE for row in rows)
    assert engine.audit.dropped_copies == sum(row.event == tr.DROP for row in rows)


@pytest.mark.parametrize(("rows", "agents"), [("", 0), ("0,1,2\n", 1), ("4,1,2\n3,0,\n", 5)])
def test_a_file_speaks_of_agents_up_to_its_largest(tmp_path: Path, rows: str, agents: int) -> None:
    file = tmp_path / "times.csv"
    file.write_text("agent,up,down\n" + rows)
    recorded = Recorded(kind="trace", file=str(file))
    assert recorded.agents == agents
    assert list(recorded.windows(agents, np.random.default_rng())) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent,up\n0,1\n", "must begin with the line agent,up,down"),
        ("agent,up,down\n0,1\n", ":2: the header names 3 columns, but the row has 2"),
        ("agent,up,down\n0,2,1\n", ":2: '0,2,1' must have a whole agent >= 0 and 0 <= up < down"),
        ("agent,up,down\n-1,1,2\n", ":2: '-1,1,2' must have a whole agent >= 0 and 0 <= up < down"),
        ("agent,up,down\n0,-1,2\n", ":2: '0,-1,2' must have a whole agent >= 0 and 0 <= up < down"),
        ("agent,up,down\n0,1,1\n", ":2: '0,1,1' must have a whole agent >= 0 and 0 <= up < down"),
        ("agent,up,down\n0,1,5\n0,4,6\n", "the times of agent 0 overlap"),
        ("agent,up,down\n7,1,5\n", "names agent 7: must be < 2"),
    ],
)
def test_broken_files_of_availability(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "times.csv"
    file.write_text(text)
    with pytest.raises(ValidationError) as caught:
        AgentsConfig.model_validate({"count": 2, "availability": {"kind": "trace", "file": str(file)}})
    assert message in str(caught.value)


def test_groups_of_agents_are_slow_together() -> None:
    agents = AgentsConfig.model_validate({"count": 12, "stragglers": {"fraction": 0.5, "slowdown": 3.0, "groups": 4}})
    slow = np.array(agents.slowness(Streams(3))).reshape(4, 3)
    assert sorted(slow.mean(axis=1).tolist()) == [1.0, 1.0, 3.0, 3.0]


def test_slowness_that_comes_and_goes() -> None:
    clock = Clock()
    slow_period = SlowPeriod(Episodes(mean_slow=2.0, mean_fast=6.0), 5.0, np.random.default_rng(0), clock)
    factors = []
    for time in range(1, 20_000):
        clock.at(float(time), 0, 0, lambda event: factors.append(slow_period.factor()))
    clock.run()
    assert set(factors) == {1.0, 5.0}
    assert factors.count(5.0) / len(factors) == pytest.approx(0.25, rel=0.1)


def test_as_many_are_slow_at_the_start_as_later() -> None:
    """mean_slow / (mean_slow + mean_fast) of them."""
    episodes = Episodes(mean_slow=2.0, mean_fast=6.0)
    factors = [SlowPeriod(episodes, 5.0, np.random.default_rng(seed), Clock()).factor() for seed in range(800)]
    assert factors.count(5.0) / len(factors) == pytest.approx(0.25, abs=0.05)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), agents=st.integers(2, 4), blocking=st.booleans())
def test_reliable_transport_delivers_everything_once_under_all_faults(seed: int, agents: int, blocking: bool) -> None:
    made = plan(agents=agents, turns=8, network=EVERYTHING, agent=CHURN, checks="full")
    result, _, engine = run(made, seed=seed, blocking=blocking)
    order = engine.server.order  # type: ignore[union-attr]
    assert result.turns == 8 * agents
    for agent in range(agents):
        assert [value for source, value in order if source == agent] == [float(turn) for turn in range(1, 9)]
    for agent in engine.agents:
        assert agent.heard == [float(total) for total in range(1, 8 * agents + 1)]  # type: ignore[attr-defined]


class Opened(Streams):
    """Streams that remember who has opened which."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.addresses: list[tuple[str, int, str]] = []

    def __call__(self, *address: Any) -> np.random.Generator:
        self.addresses.append(address)
        return super().__call__(*address)


def test_no_two_parts_of_a_run_draw_from_one_stream() -> None:
    """Streams of worlds and coins, which may be opened again to be replayed, aside."""
    streams = Opened(2)
    made = plan_of(plan(agents=4, turns=10, network=EVERYTHING, agent=CHURN))
    Engine(made, TOY, ToyConfig(), ToyWorld(), streams).run()
    drawn = [address for address in streams.addresses if address[0] in ("network", "compute", "faults")]
    assert len(drawn) == len(set(drawn)) > 40


def test_nothing_happens_at_a_node_that_is_down() -> None:
    _, rows, _ = run(plan(agents=4, turns=30, network=EVERYTHING, agent=CHURN, checks="full"), seed=2)
    down: set[int] = set()
    acts = Counter[int]()
    for row in rows:
        if row.event == tr.DOWN:
            down.add(row.node)
        elif row.event == tr.UP:
            down.remove(row.node)
        elif row.event not in (tr.DROP, tr.DUPLICATE):  # these tell of copies on links
            assert row.node not in down, row
            acts[row.event] += 1
    assert acts[tr.SEND] > 100
    assert len(times(rows, tr.DOWN)) > 10


def test_availability_is_the_agents_own_stream() -> None:
    agent = {"availability": CHURN["availability"]}
    _, few, _ = run(plan(agents=2, turns=90, agent=agent), seed=4)
    _, many, _ = run(plan(agents=5, turns=90, agent=agent, network=EVERYTHING | {"outages": []}), seed=4)
    stream = Streams(4)("faults", 1, "availability")
    starts = [start for start, _ in islice(MarkovOnOff(**agent["availability"]).windows(1, stream), 1000)]
    for rows in (few, many):
        met = [row.time - row.value for row in rows if row.event == tr.DOWN and row.node == 1]
        assert len(met) > 1
        assert all(any(start == pytest.approx(since) for start in starts) for since in met)


@pytest.mark.parametrize("windows", [[(5.0, 3.0)], [(1.0, 2.0), (1.5, 3.0)], [(2.0, 2.0)]])
def test_times_down_that_are_not_in_order_are_refused(
    windows: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MarkovOnOff, "windows", lambda *_: iter(windows))
    monkeypatch.setattr(MarkovOnOff, "blocks", BaseAvailability.blocks)
    monkeypatch.setattr(MarkovOnOff, "leaves", lambda *_: None)
    with pytest.raises(BrokenOff, match=r"node 0 is to go down at .*: windows are \(time of going down, of"):
        run(plan(agents=2, turns=90, agent={"availability": CHURN["availability"]}))


@pytest.mark.parametrize("long", ["compute", "reward_delay", "plugin"])
def test_more_times_down_in_one_wait_than_a_run_can_go_through_are_refused(
    monkeypatch: pytest.MonkeyPatch, long: str
) -> None:
    """In the middle of work, and where nobody has asked for the agent for long."""
    monkeypatch.setattr(absence, "MOST_AT_ONCE", 1000)
    if long == "plugin":  # whose times depend on those before
        monkeypatch.setattr(MarkovOnOff, "later", BaseAvailability.later)
        monkeypatch.setattr(MarkovOnOff, "blocks", lambda *_: (np.array([[n, n + 0.5]]) for n in itertools.count()))
    key = "reward_delay" if long == "plugin" else long
    for long_time, refused in ((5e2, False), (1e16, long != "reward_delay")):
        made = plan(turns=3, agent={"availability": CHURN["availability"], key: long_time})
        with pytest.raises(BrokenOff, match="down more than 1,000 times before 1e.16") if refused else nullcontext():
            run(made)


BATTERY = {"energy": {"capacity": 100.0, "level": 1.0, "per_turn": 1.0}}


@pytest.mark.parametrize("agent", [{}, BATTERY, {"leaves": {"kind": "times", "times": [[1, 1e10]]}}])
@pytest.mark.parametrize("end", [1e9, math.inf])
def test_times_down_within_a_longer_one_are_passed_over(agent: dict[str, Any], end: float) -> None:
    """Up to 1e9, 300 million of them; numbers near the end show no shorter ones than 1e-7."""
    away = {"availability": {"kind": "markov_on_off", "mean_up": 2.0, "mean_down": 1.0}, **agent}
    made = plan(agents=2, turns=8, agent=away, network=outage(1, start=1.5, end=end), checks="full")
    result, rows, _ = run(made, seed=3)
    assert result.turns + result.stalled == 16
    why = f"{result.stalled} turns were never taken: agents were down for good"
    assert (result.never_taken, result.warnings) == ((why, (why,)) if end == math.inf else ("", ()))
    assert all(row.time <= 2.5 or row.time >= end for row in rows if row.node == 1 and row.event in (tr.UP, tr.TURN))


@pytest.mark.parametrize("speed", [{}, {"compute": CHURN["compute"], "handling": 0.1}])
@pytest.mark.parametrize("network", [{}, EVERYTHING, {**EVERYTHING, "outages": [], "heals": 30.0}])
@pytest.mark.parametrize("up", [0.3, 3.0, 40.0])
def test_absences_that_nobody_meets_make_no_difference(
    monkeypatch: pytest.MonkeyPatch, up: float, network: dict[str, Any], speed: dict[str, Any]
) -> None:
    """The same run with every change of every agent as an event, and with those that matter alone."""
    away = {"availability": {"kind": "markov_on_off", "mean_up": up, "mean_down": 1.5}, **speed}
    made = plan(agents=4, turns=12, network=network, agent=away, checks="full")
    met, rows, _ = run(made, seed=3)
    monkeypatch.setattr(MarkovOnOff, "leaves", lambda self, agent: None)
    every, all_rows, _ = run(made, seed=3)
    assert (every.totals, every.by_agent, every.simulated_time) == (met.totals, met.by_agent, met.simulated_time)
    for series in ("times", "regret_series", "scalars_series"):
        assert np.array_equal(getattr(every, series), getattr(met, series))
    assert len(times(rows, tr.DOWN)) <= len(times(all_rows, tr.DOWN))
    acts = [[row[1:5] + row[7:14] for row in some if row.event not in (tr.DOWN, tr.UP)] for some in (rows, all_rows)]
    assert acts[0] == acts[1]


@pytest.mark.parametrize(
    ("put_off", "timers", "work"), [(None, [], False), ((0.0, 1, print, 0), [], True), (None, [0], True)]
)
def test_a_node_that_is_down_has_work_if_something_was_put_off(put_off: Any, timers: list[int], work: bool) -> None:
    host: Any = object.__new__(Host)
    host._postponed, host._unnoticed = put_off, timers
    assert host.has_work == work


@pytest.mark.parametrize(("put_off", "kept"), [({}, {}), ({1: [0]}, {}), ({}, {1: [0]})])
def test_copies_wait_for_nodes_that_are_down_at_either_end(put_off: Any, kept: Any) -> None:
    transport: Any = object.__new__(ReliableTransport)
    transport._put_off, transport._kept = put_off, kept
    assert transport.postponed == bool(put_off or kept)
