"""In virtual time a live run is the simulated one."""

from __future__ import annotations

import numpy as np
import pytest

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.scenario import loading
from coband.simulator.live.terms import Terms
from tests.live.together import SERIAL, TOKEN, Live, live, run, simulated

DELAYS = (
    "schedule={kind: rounds, turns: 15}",
    "agents.compute={kind: shifted_exponential, shift: 0.2, rate: 2.0}",
    "agents.stragglers={fraction: 0.34, slowdown: 5}",
    "network.latency={kind: lognormal, median: 0.3, sigma: 0.4}",
    "network.bandwidth=500",
)
LOSS = (*DELAYS, "network.loss=0.2", "network.duplicate=0.1")


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


@pytest.mark.parametrize("label", ["Approx-Dis", "Dis", "One", "Alone", "DisLin"])
def test_other_algorithms_too(label: str) -> None:
    one = live(SERIAL, label, share=1)
    measured = run(one)
    predicted, _ = simulated(one.scenario, label)
    assert measured.regret == predicted.regret
    assert measured.by_agent == predicted.by_agent
    assert measured.totals | predicted.totals == measured.totals


@pytest.mark.parametrize("changes", [DELAYS, LOSS], ids=["delays", "losses"])
@pytest.mark.parametrize("label", ["Async", "Dis"])
def test_delays_and_losses_are_those_of_the_simulator(label: str, changes: tuple[str, ...]) -> None:
    one = live(SERIAL, label, changes, share=2)
    measured = run(one)
    predicted, rows = simulated(one.scenario, label)
    np.testing.assert_array_equal(measured.times, predicted.times)
    np.testing.assert_array_equal(measured.regret_series, predicted.regret_series)
    assert measured.totals | predicted.totals == measured.totals
    assert len(one.rows) == len(rows)
    assert measured.audit.copies == predicted.audit.copies


def test_messages_that_are_given_up_are_given_up_at_both_ends() -> None:
    changes = (*DELAYS, "network.loss=0.5", "network.retransmission.max_attempts=2", "network.recovery.attempts=2")
    one = live(SERIAL, "Async", changes, share=2)
    measured = run(one)
    predicted, _ = simulated(one.scenario, "Async")
    assert measured.totals["expired"] == predicted.totals["expired"] > 0
    assert measured.regret == predicted.regret
    assert measured.totals | predicted.totals == measured.totals


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
