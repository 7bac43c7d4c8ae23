from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import runs
from coband.simulator.analysis.traces.chains import Chains
from coband.simulator.analysis.traces.times import CATEGORIES, breakdown
from tests.analysis.report.made import Made, from_rows, synchronisation

KERNEL = {"kind": "gaussian", "gamma": 1.0}


def spent(row: np.ndarray) -> dict[str, float]:
    return {name: time for name, time in zip(CATEGORIES, row.tolist(), strict=True) if time}


def test_a_synchronisation_made_by_hand() -> None:
    first, second = breakdown(synchronisation(), 2, 13.0)
    assert spent(first) == pytest.approx(
        {"compute": 2.0, "handling": 1.0, "others": 3.0, "server": 1.0, "transfer": 1.5, "idle": 1.0, "finished": 3.5}
    )
    assert spent(second) == pytest.approx(
        {"compute": 3.5, "handling": 0.5, "server": 1.0, "transfer": 2.5, "idle": 4.5, "finished": 1.0}
    )


def lost_twice() -> Made:
    """A message sent at 1, lost at once and at 2, and delivered at 7 after it was repeated at 6; agent 0 waits."""
    made = Made()
    asked = made.add(1, "send", -1, peer=0, kind="model")
    made.add(1, "wait", 0)
    made.add(1, "drop", -1, asked, peer=0, value=1)
    made.add(2, "retransmit", -1, asked, peer=0, value=1)
    made.add(2, "drop", -1, asked, peer=0, value=2)
    made.add(6, "retransmit", -1, asked, peer=0, value=2)
    came = made.add(7, "deliver", 0, asked, peer=-1, kind="model", value=3)
    made.add(7, "resume", 0, came)
    return made


def test_retransmission_is_the_time_until_the_first_copy_that_was_not_lost() -> None:
    (row,) = breakdown(lost_twice().events(), 1, 8.0)
    assert spent(row) == pytest.approx({"retransmission": 5.0, "transfer": 1.0, "idle": 2.0})


def test_a_needless_repetition_costs_nothing() -> None:
    made = Made()
    asked = made.add(1, "send", -1, peer=0, kind="model")
    made.add(1, "wait", 0)
    made.add(3, "retransmit", -1, asked, peer=0, value=1)
    made.add(5, "resume", 0, made.add(5, "deliver", 0, asked, peer=-1, kind="model", value=2))
    assert spent(breakdown(made.events(), 1, 5.0)[0]) == pytest.approx({"transfer": 4.0, "idle": 1.0})


def test_who_waits_in_vain_is_stalled_and_who_is_down_is_down() -> None:
    made = Made()
    turn = made.add(1, "turn", 0)
    made.add(2, "down", 0)
    made.add(3, "up", 0)
    made.add(4, "choose", 0, turn)
    made.add(5, "wait", 0)
    made.add(8, "down", 0)
    assert spent(breakdown(made.events(), 1, 10.0)[0]) == pytest.approx(
        {"compute": 2.0, "down": 3.0, "idle": 1.0, "stalled": 3.0, "finished": 1.0}
    )


def test_waiting_for_someone_who_has_not_begun_is_waiting_for_others() -> None:
    made = Made()
    made.add(1, "wait", 0)
    turn = made.add(4, "turn", 1)
    reward = made.add(6, "reward", 1, made.add(6, "choose", 1, turn))
    sent = made.add(6, "send", 1, reward, peer=0, kind="means", value=1)
    made.add(7, "resume", 0, made.add(7, "deliver", 0, sent, peer=1, kind="means"))
    assert spent(breakdown(made.events(), 2, 7.0)[0]) == pytest.approx({"others": 5.0, "transfer": 1.0, "idle": 1.0})


@pytest.mark.parametrize(
    ("name", "config", "network"),
    [
        ("approx_dis_kernel_ucb", {"kernel": KERNEL, "threshold": 0.3}, {"loss": 0.2}),
        ("dis_kernel_ucb", {"kernel": KERNEL, "threshold": 0.3}, {"server": {"uplink": 20.0}}),
        ("async_kernel_ucb", {"kernel": KERNEL, "threshold": 0.3}, {}),
        ("co_kernel_fc", {"delta": 0.1}, {}),
    ],
)
def test_categories_add_up_in_real_runs(name: str, config: dict[str, Any], network: dict[str, Any]) -> None:
    slow = {"kind": "exponential", "rate": 2.0}
    run = runs.run(
        name,
        config,
        agents=4,
        agent={"compute": slow, "handling": slow},
        network={"latency": {"kind": "exponential", "rate": 5.0}, **network},
    )
    events, end = from_rows(run.rows, run.names), run.result.simulated_time
    times = breakdown(events, 4, end)
    assert times.sum(axis=1) == pytest.approx(np.full(4, end), rel=1e-12)
    assert times.min() >= 0
    turns = {seq: row for seq, row in enumerate(run.rows) if events.words[row.event] == "turn"}
    compute = [
        row.time - turns[row.cause].time
        for row in run.rows
        if events.words[row.event] == "choose" and row.cause in turns
    ]
    assert times[:, CATEGORIES.index("compute")].sum() == pytest.approx(sum(compute))


def test_chains_end_where_nothing_led_to_an_event() -> None:
    chains = Chains(synchronisation())
    assert list(chains.back(0)) == []
    assert list(chains.back(5)) == [4, 3, 2, 1, 0]
