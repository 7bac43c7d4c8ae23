"""The longest waits: for whom an agent waited, and what that one did."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.simulator.analysis.traces import times
from coband.simulator.analysis.traces import waits as module
from coband.simulator.analysis.traces.columns import Events, read_events
from coband.simulator.analysis.traces.waits import AWAY, DOING, ELSE, MESSAGES, ON_THE_WAY, OWN_TURNS, REPEATED, waits
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.made import Made, synchronisation
from tests.analysis.report.test_times import lost_twice
from tests.analysis.traces import runs

JOB: Any = SimpleNamespace(label="Made", replication=0)


def made(monkeypatch: pytest.MonkeyPatch, events: Events, limit: int = 10) -> module.Waits:
    monkeypatch.setattr(module, "read_events", lambda job: events)
    return waits([JOB], limit)


def did(wait: module.LongWait) -> dict[str, float]:
    return {what: time for what, time in wait.doing.items() if time}


def test_an_agent_that_waits_for_the_turn_of_a_straggler(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(monkeypatch, synchronisation())
    assert (found.count, found.time) == (2, 9.5)
    first, second = found.longest
    assert (first.agent, first.start, first.end, first.waited_for) == ("agent 0", 5.5, 11.5, "agent 1")
    # Agent 1 is in its turn until 8, and handles the question until 8.5; its answer is half a unit on the way, the
    # server sums up for one, its model is on the way for one, and agent 0 takes it in for half a unit.
    assert did(first) == pytest.approx({OWN_TURNS: 2.5, MESSAGES: 2.0, ON_THE_WAY: 1.5})
    assert did(second) == pytest.approx({MESSAGES: 1.0, ON_THE_WAY: 2.5})


def test_a_message_that_was_lost_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    (wait,) = made(monkeypatch, lost_twice().events()).longest
    assert (wait.waited_for, did(wait)) == ("server", {REPEATED: 5.0, ON_THE_WAY: 1.0})


def test_a_message_that_is_repeated_since_its_receiver_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Made()
    events.add(1, "wait", 0)
    asked = events.add(1, "send", -1, peer=1, kind="question")
    events.add(2, "down", 1)
    events.add(2, "drop", -1, asked, peer=1, value=1)
    events.add(6, "up", 1)
    events.add(6.5, "retransmit", -1, asked, peer=1, value=1)
    came = events.add(7, "deliver", 1, asked, peer=-1, kind="question", value=2)
    answer = events.add(7, "send", 1, came, peer=0, kind="mean")
    back = events.add(8, "deliver", 0, answer, peer=1, kind="mean")
    events.add(8, "resume", 0, back)
    (wait,) = made(monkeypatch, events.events()).longest
    assert (wait.waited_for, did(wait)) == ("agent 1", {AWAY: 4.0, REPEATED: 1.5, ON_THE_WAY: 1.5})


def test_who_was_away_or_had_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Made()
    events.add(1, "wait", 0)
    events.add(2, "down", 1)
    events.add(5, "up", 1)
    turn = events.add(6, "turn", 1)
    told = events.add(8, "choose", 1, turn)
    sent = events.add(8, "send", 1, told, peer=0, kind="mean", value=1)
    came = events.add(9, "deliver", 0, sent, peer=1, kind="mean")
    events.add(9, "resume", 0, came)
    events.add(10, "wait", 1)
    events.add(12, "turn", 2)
    never, wait = sorted(made(monkeypatch, events.events()).longest, key=lambda one: one.time)
    assert (wait.waited_for, did(wait)) == ("agent 1", {AWAY: 3.0, ELSE: 2.0, OWN_TURNS: 2.0, ON_THE_WAY: 1.0})
    assert (never.agent, never.time, never.resume, never.waited_for, did(never)) == ("agent 1", 2.0, None, None, {})
    assert [one.agent for one in made(monkeypatch, events.events(), limit=1).longest] == ["agent 0"]
    events.add(11, "down", 1)  # for good: who has left waits no longer
    events.add(20, "turn", 2)
    assert min(one.time for one in made(monkeypatch, events.events()).longest) == 1.0


def test_all_waits_together_are_what_the_report_shows(tmp_path: Path) -> None:
    out = runs.perform(runs.STAR, tmp_path / "run", "network.loss=0.2", only=("Sync", "Dis"))
    with open_run(out) as run:
        for job in run.jobs:
            found, events = waits([job], 10_000), read_events(job)
            assert len(found.longest) == found.count > 0
            for one in found.longest:
                assert sum(one.doing.values()) == pytest.approx(one.time)
            report = times.breakdown(events, 4, float(events["time"][-1])).sum(axis=0)
            table = dict(zip(times.CATEGORIES, report.tolist(), strict=True))
            total = {what: sum(one.doing.get(what, 0.0) for one in found.longest) for what in DOING}
            assert total[REPEATED] == pytest.approx(table[times.RETRANSMISSION])
            assert total[ON_THE_WAY] == pytest.approx(table[times.TRANSFER])
            assert np.isclose(found.time, sum(total.values()))


def test_a_message_that_is_given_up_is_no_work_of_its_sender(tmp_path: Path) -> None:
    settings = "network.loss=0.7", "network.recovery.patience=8"
    out = runs.perform(runs.STAR, tmp_path / "run", *settings, only=("Sync", "Dis"))
    with open_run(out) as run:
        assert any(event.event == "expire" for event in run.events())
        found = waits(run.jobs, 10_000).longest
        assert sum(one.doing[REPEATED] for one in found) > 0
        assert sum(one.doing[MESSAGES] for one in found) == 0  # handling takes no time there
        for job in run.jobs:
            events = read_events(job)
            report = times.breakdown(events, 4, float(events["time"][-1])).sum(axis=0)
            assert dict(zip(times.CATEGORIES, report.tolist(), strict=True))[times.HANDLING] == 0
