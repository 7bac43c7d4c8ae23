"""In virtual time a live run is the simulated one."""

import numpy as np
import pytest

from coband.extensions.live.codec import pack
from coband.extensions.live.config import Terms
from coband.extensions.live.machine import Machine, Share
from coband.extensions.live.schema import Copy, Passing, Silence, Skip, Skipped, Start
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.scenario import loading
from tests.everyday import everyday
from tests.extensions.live.together import SERIAL, TOKEN, Live, job_of, live, run, simulated

DELAYS = (
    "schedule={kind: rounds, turns: 15}",
    "agents.compute={kind: shifted_exponential, shift: 0.2, rate: 2.0}",
    "agents.stragglers={fraction: 0.34, slowdown: 5}",
    "network.latency={kind: lognormal, median: 0.3, sigma: 0.4}",
    "network.bandwidth=500",
)
LATE = (*DELAYS, "agents.reward_delay={kind: exponential, rate: 0.3}")
LOSS = (*DELAYS, "network.loss=0.2", "network.duplicate=0.1")
FEATURES = (
    "network.loss=0.5",
    "network.latency=0.75",
    "network.latency={kind: exponential, rate: 2.0}",
    "network.duplicate=0.5",
    "network.bandwidth=50",
    "network.reorder=fifo",
    "network.server={uplink: 40, downlink: 60}",
    "network.links=[{agents: [0], loss: 0.3, latency: 0.5}]",
    "network.partitions=[{groups: [[0], [1, 2]], start: 2, end: 5}]",
    "network.retransmission={max_attempts: 2, timeout: 0.5}",
    "network.recovery={patience: 3, attempts: 2, timeout: 0.5}",
    "agents.compute=0.5",
    "agents.handling=0.5",
    "agents.reward_delay=0.5",
    "server.handling=0.25",
    "schedule={kind: renewal, think: 1, turns: 8}",
)


def test_async_on_a_serial_schedule_is_the_simulated_run_event_by_event() -> None:
    """Arm by arm, scalar by scalar: the trace, the series and the ledger, and so the fingerprint."""
    one = live(SERIAL, "Async", share=2)
    measured = run(one)
    predicted, rows = simulated(one.scenario, "Async")
    assert measured.fingerprint == predicted.fingerprint
    arms = [[row.value for row in events if row.event == tr.CHOOSE] for events in (one.rows, rows)]
    assert arms[0] == arms[1]
    assert len(arms[0]) == 60
    assert measured.reward == predicted.reward
    for name in ("times", "regret_series", "scalars_series", "turns_series"):
        np.testing.assert_array_equal(getattr(measured, name), getattr(predicted, name))
    assert measured.ledger.by_kind == predicted.ledger.by_kind
    assert measured.ledger.by_round == predicted.ledger.by_round
    assert measured.by_agent == predicted.by_agent
    assert measured.totals | predicted.totals == measured.totals
    assert measured.totals["live_bytes"] > 8 * predicted.totals["scalars"]


@pytest.mark.parametrize("label", everyday(3, ["Approx-Dis", "One", "DisLin", "Dis", "Alone"]))
def test_other_algorithms_too(label: str) -> None:
    one = live(SERIAL, label, share=1)
    measured = run(one)
    predicted, _ = simulated(one.scenario, label)
    assert measured.regret == predicted.regret
    assert measured.by_agent == predicted.by_agent
    assert measured.totals | predicted.totals == measured.totals


@pytest.mark.parametrize("changes", [DELAYS, LATE, LOSS], ids=["delays", "late rewards", "losses"])
@pytest.mark.parametrize("label", ["Async", "Dis"])
def test_delays_and_losses_are_those_of_the_simulator(label: str, changes: tuple[str, ...]) -> None:
    assert_same_events(label, changes, share=2)


@pytest.mark.parametrize("number", everyday(6, range(40)))
def test_whatever_links_do_it_is_the_simulated_run_event_by_event(number: int) -> None:
    """What is simultaneous happens in the order of the one clock, and a copy is counted as the copy that it is."""
    draws = np.random.default_rng(number)
    changes = draws.choice(FEATURES, size=draws.integers(1, 5), replace=False)
    label = ("Async", "Approx-Dis", "Dis", "DisLin", "FedLin")[number % 5]
    assert_same_events(label, ("schedule={kind: rounds, turns: 10}", *changes), share=1 + number % 3)


@pytest.mark.parametrize("latency", [0.3, 0.75])
def test_half_of_the_copies_are_lost_and_much_is_simultaneous(latency: float) -> None:
    for label in ("DisLin", "FedLin"):
        changes = ("schedule={kind: rounds, turns: 10}", "network.loss=0.5", f"network.latency={latency}")
        assert_same_events(label, changes)


def assert_same_events(label: str, changes: tuple[str, ...], share: int = 1) -> None:
    one = live(SERIAL, label, changes, share=share)
    measured = run(one)
    predicted, rows = simulated(one.scenario, label)
    assert [row[:13] for row in one.rows] == [row[:13] for row in rows]
    assert measured.fingerprint == predicted.fingerprint
    np.testing.assert_array_equal(measured.times, predicted.times)
    np.testing.assert_array_equal(measured.regret_series, predicted.regret_series)
    assert measured.totals | predicted.totals == measured.totals
    assert measured.audit.copies == predicted.audit.copies


def test_messages_that_are_given_up_are_given_up_at_both_ends() -> None:
    changes = (*DELAYS, "network.loss=0.5", "network.retransmission.max_attempts=2", "network.recovery.attempts=2")
    one = live(SERIAL, "Async", changes, share=2)
    measured = run(one)
    predicted, _ = simulated(one.scenario, "Async")
    assert measured.totals["expired"] == predicted.totals["expired"] > 0
    assert measured.regret == predicted.regret
    assert measured.totals | predicted.totals == measured.totals


def test_what_came_early_is_handed_over_when_its_predecessor_is_given_up() -> None:
    one, posted, handed = live(SERIAL, "Dis", LOSS), list[Passing](), list[int]()
    hub = Share(one.scenario, job_of(one.scenario, "Dis"), 0, frozenset([SERVER]))
    machine = Machine(hub, lambda node, frame: posted.append(frame))
    transport = machine.transport
    transport._handler.deliver = lambda packet: handed.append(packet.number)  # type: ignore[method-assign]
    machine.take(0.0, Start(0.0))
    frame = Copy(0, SERVER, 2, 3, 1, 1, 0.5, pack(["SyncRequest", [-1, 0, 0, -1, 0, 0, 0]]))
    machine.take(0.5, frame, transport.packet_of(frame))
    for _ in range(2):  # a skip that comes again changes nothing
        machine.take(1.0, Skip(0, SERVER, 1, 1.0))
    assert handed == []
    machine.take(1.0, Silence(0, SERVER, 1, 1.0))
    assert handed == [2]
    assert [frame for frame in posted if isinstance(frame, Skipped)] == [
        Skipped(0, SERVER, 1, False, 1.0),
        Skipped(0, SERVER, 1, False, 1.0),
    ]


def test_a_full_trace_of_large_arm_sets_travels_in_frames_that_have_room() -> None:
    one = live(SERIAL, "Alone", ("trace=full", "problem.arms.count=600"), largest=1 << 19)
    measured = run(one)
    predicted, rows = simulated(one.scenario, "Alone")
    assert measured.fingerprint == predicted.fingerprint
    assert [row.detail for row in one.rows] == [row.detail for row in rows]
    assert sum(len(row.detail or "") for row in rows) > 3 << 19


def test_phases_run_too_with_messages_from_agent_to_agent() -> None:
    scenario = loading.load("cope_kb/fixed_budget_same_quick", ["agents.count=4", "replications=1"])
    for label in ("CoKernelFB", "IndUniformFB"):
        one = Live(scenario, label, Terms(0.0, 2, TOKEN, start=False))
        measured = run(one)
        predicted, _ = simulated(scenario, label)
        assert measured.by_agent == predicted.by_agent
        assert measured.totals | predicted.totals == measured.totals


def test_real_time_takes_its_time_and_counts_the_same() -> None:
    one = live(SERIAL, "Dis", ("schedule={kind: rounds, turns: 8}", "network.latency=0.2"), share=2, speed=0.03)
    measured = run(one)
    predicted, _ = simulated(one.scenario, "Dis")
    assert measured.turns == predicted.turns == 24
    assert measured.simulated_time > 7.9
    assert measured.stalled == 0
    seqs = {row.seq: row for row in one.rows}
    assert all(row.time >= seqs[row.cause].time for row in one.rows if row.cause >= 0)
    assert all(row.cause < row.seq for row in one.rows)
