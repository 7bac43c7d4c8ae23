"""Lives of messages: retransmissions, multicasts, hops."""

from collections import Counter
from pathlib import Path

import pytest

from coband.simulator.analysis.traces.causes import MessageHistory, follow
from coband.simulator.analysis.traces.reading import TraceReader, one_job
from coband.simulator.experiments.store.store import StoreError, open_run
from tests.analysis.traces import runs


def lives(run: Path) -> list[MessageHistory]:
    with open_run(run) as stored:
        reader = TraceReader(one_job(stored))
        sends = [event for event in stored.events() if event.event == "send" and event.hop <= 1]
        assert all(event.message is not None for event in sends)
        return [follow(reader, event.message or 0) for event in sends]


def test_lost_copies_are_sent_again_until_they_arrive(tmp_path: Path) -> None:
    out = runs.perform(runs.STAR, tmp_path / "run", "network.loss=0.3", only=("One",))
    found = lives(out)
    totals = Counter[str]()
    for life in found:
        totals.update({event: life.count(event) for event in ("drop", "retransmit", "duplicate", "deliver")})
        assert life.count("deliver") == life.copies
        assert life.copies + life.count("retransmit") == life.count("deliver") + life.count("drop") + life.count(
            "duplicate"
        )
        assert 0 < (life.first or 0) <= (life.last or 0)
        assert len({event.message for event in life.events}) == 1
        assert life.events[0] == life.origin
    with open_run(out) as run:
        traced = Counter(event.event for event in run.events())
    assert totals["retransmit"] > 0
    assert totals == {event: traced[event] for event in totals}


@pytest.mark.parametrize("mode", ["direct", "hop_by_hop"])
def test_on_a_graph_a_message_reaches_all_within_its_hops(mode: str, tmp_path: Path) -> None:
    out = runs.perform(runs.GRAPH, tmp_path / "run", f"network.local.mode={mode}")
    found = lives(out)
    assert len(found) == 6 * 6
    for life in found:
        agent = int(str(life.origin.node).removeprefix("agent "))
        distances = [abs(agent - other) for other in range(6) if other != agent]
        assert life.count("deliver") == sum(distance <= 3 for distance in distances)
        assert life.hops == min(3, max(distances))
        assert life.last == min(3, max(distances)) - 1  # passed on one trial after it came, on links without delay
        middle = next(event for event in life.events if event.event == "send" and event.hop == 2)
        with open_run(out) as run:
            assert follow(TraceReader(one_job(run)), middle.message or 0) == life


def test_of_a_job_that_sent_nothing_no_message_can_be_followed(tmp_path: Path) -> None:
    out, said = runs.perform(runs.STAR, tmp_path / "run", only=("Alone",)), r"has no message 0; nothing was sent\."
    with open_run(out) as run, pytest.raises(StoreError, match=said):
        follow(TraceReader(one_job(run)), 0)
