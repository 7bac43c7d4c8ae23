import pytest

from coband.extensions.conformance import runs
from coband.simulator.analysis.traces.rounds import PARTS, rounds, waits
from tests.analysis.report.made import Made, from_rows, synchronisation


def test_a_synchronisation_made_by_hand() -> None:
    events = synchronisation()
    (found,) = rounds(events)
    assert (found.number, found.start, found.end) == (1, 3.0, 12.0)
    assert dict(zip(PARTS, found.parts, strict=True)) == pytest.approx(
        {"agents": 3.5, "server": 1.0, "transfer": 4.5, "retransmission": 0.0}
    )
    assert (found.waited_for, found.waited) == (1, pytest.approx(3.5))
    chain = [events.words[events["event"][index]] for index in found.chain]
    assert chain == ["deliver", "send", "deliver", "send", "deliver", "send", "deliver", "send", "trigger"]
    assert [(wait.agent, wait.rounds, wait.time) for wait in waits([found])] == [(1, 1, pytest.approx(3.5))]


def test_a_round_ends_where_another_one_begins() -> None:
    """A server that takes up one exchange after the other: the second begins when the first has ended."""
    made = Made()
    upload = made.add(5, "send", 0, made.add(0, "turn", 0), peer=-1, kind="upload", round=1, value=1)
    arrived = made.add(6, "deliver", -1, upload, peer=0, kind="upload", round=1)
    answer = made.add(6, "send", -1, arrived, peer=1, kind="dictionary", round=2, value=1)
    made.add(8, "deliver", 1, answer, peer=-1, kind="dictionary", round=2)
    first, second = rounds(made.events())
    assert (first.start, first.end, second.start, second.end) == (0.0, 6.0, 6.0, 8.0)
    assert second.parts == (0.0, 0.0, 2.0, 0.0)
    assert second.waited_for is None


def test_numbers_that_no_message_bears_are_no_rounds() -> None:
    made = Made()
    made.add(1, "eliminate", 0, round=1)
    made.add(2, "eliminate", 0, made.add(1, "turn", 0), round=2)
    assert rounds(made.events()) == []
    assert rounds(Made().events()) == []


def test_the_slow_agent_is_waited_for() -> None:
    run = runs.run(
        "approx_dis_kernel_ucb",
        {"kernel": {"kind": "gaussian", "gamma": 1.0}, "threshold": 0.3},
        agents=4,
        schedule={"kind": "rounds", "turns": 15},
        seed=3,
        agent={"compute": 0.5, "stragglers": {"fraction": 0.25, "slowdown": 20}},
        network={"latency": 0.1},
    )
    events = from_rows(run.rows, run.names)
    found = rounds(events)
    assert len(found) == run.result.rounds
    for one in found:
        assert sum(one.parts) == pytest.approx(one.end - one.start)
    durations = dict.fromkeys(range(4), 0.0)
    for choose in (row for row in run.rows if events.words[row.event] == "choose"):
        durations[choose.node] = max(durations[choose.node], choose.time - run.rows[choose.cause].time)
    assert waits(found)[0].agent == max(durations, key=lambda agent: durations[agent])
