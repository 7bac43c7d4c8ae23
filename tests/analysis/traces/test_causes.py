"""Why something happened, in real runs of several algorithms."""

from itertools import pairwise
from pathlib import Path

import pytest

from coband.simulator.analysis.traces.causes import why
from coband.simulator.analysis.traces.reading import TraceReader, one_job
from coband.simulator.core.records.trace import CODES, Trace
from coband.simulator.experiments.runs.planner import Tally
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store import directory
from coband.simulator.experiments.store.recording import Recording
from coband.simulator.experiments.store.store import open_run
from tests.analysis.traces import runs


@pytest.mark.parametrize(
    "text", [runs.STAR, runs.GRAPH, runs.DOMAIN, runs.TASKS], ids=["star", "graph", "domain", "tasks"]
)
def test_every_chain_ends_at_a_turn(text: str, tmp_path: Path) -> None:
    with open_run(runs.perform(text, tmp_path / "run")) as run:
        for job in run.jobs:
            reader = TraceReader(job)
            kinds = set()
            for event in map(reader.decode, reader.raw()):
                if event.seq % 3 and event.event not in ("apply", "model", "eliminate", "stop"):
                    continue
                chain = why(reader, event.seq)
                assert chain.events[0] == event
                assert chain.origin.event == "turn"
                assert all(later.cause == earlier.seq for later, earlier in pairwise(chain.events))
                waits = [later.time - earlier.time for later, earlier in pairwise(chain.events)]
                assert all(wait >= 0 for wait in waits)
                assert chain.delay == pytest.approx(sum(waits))
                kinds.add(event.event)
            assert {"turn", "choose", "reward"} <= kinds
            assert (job.label == "Alone") == (not {"send", "deliver"} & kinds)


def test_a_model_goes_back_through_upload_and_request_to_the_pull_that_triggered_it(tmp_path: Path) -> None:
    with open_run(runs.perform(runs.STAR, tmp_path / "run", only=("Async",))) as run:
        reader = TraceReader(one_job(run))
        model = next(event for event in run.events() if event.event == "deliver" and event.kind == "model")
        chain = why(reader, model.seq)
        assert [(event.event, event.kind) for event in chain.events] == [
            ("deliver", "model"),
            ("send", "model"),
            ("deliver", "upload"),
            ("send", "upload"),
            ("deliver", "dictionary"),
            ("send", "dictionary"),
            ("deliver", "request"),
            ("send", "request"),
            ("trigger", None),
            ("reward", None),
            ("choose", None),
            ("turn", None),
        ]
        assert {event.node for event in chain.events} == {"server", model.node}
        assert chain.messages == 4
        gap = max(one.time - cause.time for one, cause in pairwise(chain.events))
        (end,) = (one for one, cause in pairwise(chain.events) if one.time - cause.time == gap)
        assert chain.sentence.endswith(f" before; {gap:.6g} of them until event {end.seq}, {end.event} at {end.node}.")


def test_a_turn_after_waiting_goes_on_to_what_ended_the_wait(tmp_path: Path) -> None:
    with open_run(runs.perform(runs.STAR, tmp_path / "run", only=("Sync",))) as run:
        reader = TraceReader(one_job(run))
        turn = next(event for event in run.events() if event.event == "turn" and event.cause is not None)
        assert why(reader, turn.seq).events == (turn,)
        whole = why(reader, turn.seq, whole=True)
        assert whole.events[1].event == "resume"
        assert whole.origin.cause is None


def test_the_trace_of_a_killed_job_is_read_by_place(tmp_path: Path) -> None:
    study = study_of(loads(runs.STAR), only=["One"])
    (task,) = next(study.planner(Tally(study.variants, study.entries)))
    unfinished = directory.create("x", tmp_path / "run")
    unfinished.open(study)
    unfinished.begin({})
    unfinished.add([task])
    file = unfinished.job_file(task)
    assert file is not None
    recording = Recording(file, unfinished.job(task))
    trace = Trace(recording.sink)
    cause = -1
    for _ in range(5):
        cause = trace.record(1.0, CODES["down"], 0, cause=cause)
    trace.flush()
    for path in (tmp_path / "run", file):
        with open_run(path) as run:
            reader = TraceReader(one_job(run))
            assert len(run.uncollected) == path.is_dir()
            assert reader.at(3).cause == 2
            chain = why(reader, 4)
            assert [event.seq for event in chain.events] == [4, 3, 2, 1, 0]
            assert chain.origin.event == "down"
    recording.close("interrupted")
    unfinished.close()
