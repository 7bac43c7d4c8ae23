"""What-if runs of stored runs: identical where nothing changes, and never mistaken for ordinary runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.analysis.whatif.answer import Answer, answers
from coband.simulator.analysis.whatif.question import Question, QuestionError
from coband.simulator.analysis.whatif.split import STEPS, Split, _split, split_study, splits
from coband.simulator.analysis.whatif.study import WhatIfStudy, place, study_of
from coband.simulator.experiments.runs.counterfactual import NotRepeatableError
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.reporting import Commands, Report
from coband.simulator.experiments.statistics.estimates import estimate
from coband.simulator.experiments.store.store import StoredJob, StoredRun, StoreError, open_run
from coband.simulator.experiments.store.variants import variants
from tests.analysis.frontier import searches
from tests.analysis.traces.runs import DOMAIN, GRAPH, STAR, TASKS, perform

LOSSY = ("network.loss=0.2", "agents.handling={kind: exponential, rate: 20}", "replications=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lossy star with five algorithms and two replications."""
    return perform(STAR, tmp_path_factory.mktemp("stored") / "lossy", *LOSSY)


@pytest.fixture
def stored(folder: Path) -> Iterator[StoredRun]:
    with open_run(folder) as run:
        yield run


def ran(study: WhatIfStudy, out: Path) -> Report:
    command = ["coband", "whatif", "RUN"]
    report = drive(study, place(study, out), commands=Commands(command, command))
    assert not report.failures, report.failures
    return report


def answered(run: StoredRun, study: WhatIfStudy, out: Path) -> list[Answer]:
    with open_run(ran(study, out).directory) as changed:
        return list(answers(run, changed, study.of))


def first_event(job: StoredJob, event: str) -> int:
    return next(found.seq for found in map(TraceReader(job).decode, TraceReader(job).raw()) if found.event == event)


def test_a_value_that_stays_changes_nothing(stored: StoredRun, tmp_path: Path) -> None:
    """Five algorithms over lossy links, with stragglers and times of handling."""
    found = answered(stored, study_of(stored, Question(settings=("network.loss=0.2",))), tmp_path / "out")
    assert [answer.label for answer in found] == ["Async", "Sync", "Dis", "One", "Alone"]
    with open_run(tmp_path / "out") as changed:
        assert len({job.record["fingerprint"] for job in changed.jobs if job.record is not None}) == 10
    for answer in found:
        assert answer.replications == (0, 1)
        assert all(parting.same for parting in answer.parting.values())
        assert [change.name for change in answer.changes if change.difference.mean] == []


@pytest.mark.parametrize("text", [GRAPH, DOMAIN, TASKS], ids=["graph", "domain", "tasks"])
def test_a_value_that_stays_changes_nothing_elsewhere(text: str, tmp_path: Path) -> None:
    with open_run(perform(text, tmp_path / "stored")) as run:
        (answer,) = answered(run, study_of(run, Question(settings=("share=false",))), tmp_path / "out")
    assert [parting.same for parting in answer.parting.values()] == [True]


def test_a_graph_whose_copies_travel_one_by_one(tmp_path: Path) -> None:
    """A lost copy reaches nobody over this link; on a line there is no other way."""
    folder = perform(GRAPH, tmp_path / "stored", "network.local.mode=hop_by_hop", "network.latency=0.25")
    with open_run(folder) as run:
        (job,) = run.jobs
        send = first_event(job, "send")
        copies = TraceReader(job).at(send).value
        (answer,) = answered(run, study_of(run, Question(drops=(send,))), tmp_path / "out")
    changes = {change.name: change.difference.mean for change in answer.changes}
    assert (changes["dropped"], changes["deliveries"], changes["expired"]) == (copies, 0, 0)
    assert changes["wire_messages"] == copies
    assert changes["simulated_time"] >= 0


def test_a_what_if_run_says_so(stored: StoredRun, folder: Path, tmp_path: Path) -> None:
    asked = Question(settings=("network.loss=0",), agents=((3, "speed=1"), (3, "compute=0.5")))
    report = ran(study_of(stored, asked, "Async"), tmp_path / "out")
    with open_run(report.directory) as changed:
        about = changed.manifest["whatif"]
        assert about["run"] == str(folder)
        assert (about["agent"], about["set"]) == ([[3, "speed=1"], [3, "compute=0.5"]], ["network.loss=0"])
        records = [job.record for job in stored.select("Async")]
        assert [one["fingerprint"] for one in about["jobs"]] == [record["fingerprint"] for record in records if record]
        assert list(changed.labels) == ["Async [agent 3 speed=1, agent 3 compute=0.5, network.loss=0]"]
        (variant,) = variants(changed).values()
        assert (variant.entry, variant.scenario()["network"]["loss"]) == ("Async", 0.0)
        with pytest.raises(QuestionError, match="is itself a what-if run"):
            study_of(changed, Question(settings=("network.loss=0",)))


def test_messages_that_are_lost(stored: StoredRun, tmp_path: Path) -> None:
    """A lost first request is sent again; with --for-good its agent is told, and asks again later."""
    job = stored.select("Async", 1)[0]
    delivery = first_event(job, "deliver")
    for good in (False, True):
        asked = Question(drops=(delivery,), for_good=good)
        (answer,) = answered(stored, study_of(stored, asked, "Async", 1), tmp_path / str(good))
        changes = {change.name: change.difference.mean for change in answer.changes}
        assert (answer.replications, changes["expired"]) == ((1,), int(good))
        (parting,) = answer.parting.values()
        assert parting.here is not None
        assert parting.here.seq == delivery


@pytest.mark.parametrize(
    ("changes", "label", "text"),
    [
        ({}, "Async", "nothing is changed; give --drop"),
        ({"for_good": True, "settings": ("share=true",)}, "Async", "give --drop EVENT"),
        ({"delays": ((5, -1.0),)}, "Async", "--delay 5 -1: give a simulated time >= 0"),
        ({"settings": ("seed=5",)}, "Async", "nothing else would be equal"),
        ({"settings": ("replications=9",)}, "Async", "--set replications changes nothing here"),
        ({"settings": ("algorithms.Async.label=X",)}, "Async", "--set takes the label 'Async' out of the scenario"),
        ({"drops": (0,)}, "Async", "event 0 is no message but a 'turn' of agent"),
        ({"drops": (10**6,)}, "Async", "has no event 1000000; they go from 0 to"),
        ({"agents": ((4, "speed=1"),)}, "Async", "no such agent; they are numbered from 0 to 3"),
        ({"settings": ("checks=full",)}, "Async", "--set checks changes nothing here"),
        ({"agents": ((1, "speed=0"),)}, "Async", "speed is a number > 0"),
        ({"agents": ((1, "speed=1e-300"),)}, "Async", "speed is a number > 0, between 1e-100 and 1e+100"),
        ({"agents": ((1, "mood=1"),)}, "Async", "give speed=NUMBER, compute=DISTRIBUTION"),
        ({"agents": ((1, "compute={kind: nope}"),)}, "Async", "no distribution ('nope' is not a known kind; known: c"),
        ({"drops": (0,)}, "Nobody", "there is no label 'Nobody'"),
    ],
)
def test_a_bad_question_has_one_answer(stored: StoredRun, changes: dict[str, object], label: str, text: str) -> None:
    with pytest.raises(StoreError) as error:
        study_of(stored, Question(**changes), label, 0)  # type: ignore[arg-type]
    assert text in str(error.value)


def test_events_belong_to_one_job(stored: StoredRun) -> None:
    with pytest.raises(StoreError, match=r"choose --label \(Async, .*\) and --replication \(0, 1\)"):
        study_of(stored, Question(drops=(5,)))


def test_a_run_without_trace_has_no_events(tmp_path: Path) -> None:
    with open_run(perform(STAR, tmp_path / "stored", "trace=off", only=("Async",))) as run:
        with pytest.raises(StoreError, match="kept no trace"):
            study_of(run, Question(drops=(5,)))
        (answer,) = answered(run, study_of(run, Question(settings=("network.loss=0.3",))), tmp_path / "out")
        assert not answer.parting
        assert {change.name: change.difference.mean for change in answer.changes}["dropped"] > 0


def test_messages_that_are_handed_over_together_cannot_be_lost_one_by_one(tmp_path: Path) -> None:
    with open_run(perform(GRAPH, tmp_path / "stored")) as run:
        send = first_event(run.jobs[0], "send")
        with pytest.raises(QuestionError, match="local.mode=hop_by_hop"):
            study_of(run, Question(drops=(send,)))


def test_replications_that_chose_parameters_are_asked_about_by_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = "grid: {algorithms.Async.threshold: [0.3, 3]}\n"
    searches.perform(searches.search(tmp_path, grid, replications=2, trials=2), tmp_path / "out")
    asked = Question(settings=("network.loss=0.1",))
    with open_run(tmp_path / "out") as run:
        results = {name for name, one in variants(run).items() if one.phase == "fresh"}
        tuning = [name for name in run.labels if name not in results]
        assert set(study_of(run, asked).of.values()) == results
        for label in tuning:
            assert set(study_of(run, asked, label).of.values()) == {label}
        kept = [job for job in run.jobs if job.label in results and (job.label == "Alone") == (job.replication == 0)]
        monkeypatch.setattr(run, "jobs", kept)
        with pytest.raises(QuestionError, match=r"no finished replication in common; choose .* --label \(.*Alone.*\)"):
            study_of(run, asked)


def test_a_run_that_cannot_be_repeated_is_refused(folder: Path, tmp_path: Path) -> None:
    with open_run(folder) as run:
        for job in run.jobs:
            assert job.record is not None
            job.record["fingerprint"] = "0" * 64
        study = study_of(run, Question(settings=("network.loss=0",)), "Async", 0)
        with pytest.raises(NotRepeatableError, match="cannot be repeated here"):
            ran(study, tmp_path / "out")


def split_of(run: StoredRun, label: str, out: Path) -> tuple[Split, dict[int, float]]:
    """The split of a label, and its regret without losses by replication."""
    study = split_study(run, label)
    with open_run(ran(study, out).directory) as changed:
        (found,) = splits(run, changed, study)
        jobs = changed.select(f"{label} [split=no loss]")
        return found, {job.replication: job.record["regret"] for job in jobs if job.record is not None}


def test_regret_is_split_in_order(stored: StoredRun, tmp_path: Path) -> None:
    """The shares and the rest add up."""
    found, without_loss = split_of(stored, "Async", tmp_path / "out")
    before = {job.replication: job.record["regret"] for job in stored.select("Async") if job.record is not None}
    assert [share.cause for share in found.shares] == [step.cause for step in STEPS]
    first = found.shares[0].owed
    assert first is not None
    assert first.mean == pytest.approx(sum(before[number] - without_loss[number] for number in (0, 1)) / 2)
    assert first.interval is not None
    owed = [share.owed.mean for share in found.shares if share.owed is not None]
    assert len(owed) == 4
    assert sum(owed) + found.rest.mean == pytest.approx(found.regret.mean)


def test_who_sends_nothing_owes_nothing_to_messages(stored: StoredRun, tmp_path: Path) -> None:
    found, _ = split_of(stored, "Alone", tmp_path / "out")
    assert [None if share.owed is None else share.owed.mean for share in found.shares] == [0.0, 0.0, 0.0, None]


def test_nothing_to_split(tmp_path: Path) -> None:
    with (
        open_run(perform(GRAPH, tmp_path / "stored")) as run,
        pytest.raises(QuestionError, match="there is nothing to split"),
    ):
        split_study(run)


# --- replications are paired by their numbers


@dataclass(frozen=True)
class FakeJob:
    """A finished job without a trace."""

    replication: int
    record: dict[str, float]
    trace: str = "off"


class FakeRun:
    """A stored run with these regrets of one label, in the order in which they came."""

    def __init__(self, **regrets: dict[int, float]) -> None:
        self._regrets = regrets

    def select(self, label: str) -> list[FakeJob]:
        return [FakeJob(number, {"regret": regret}) for number, regret in self._regrets[label].items()]


STORED = {2: 1000.0, 0: 10.0, 1: 100.0, 4: 7.0}
CHANGED = {1: 101.0, 3: 5.0, 2: 1002.0, 0: 13.0}


def test_an_answer_pairs_replications_by_their_numbers() -> None:
    stored: Any = FakeRun(A=STORED)
    changed: Any = FakeRun(B=CHANGED)
    (found,) = answers(stored, changed, {"B": "A"})
    assert (found.label, found.changed_label, found.replications) == ("A", "B", (0, 1, 2))
    (change,) = found.changes
    assert (change.stored, change.changed) == (370.0, 372.0)
    assert change.difference == estimate([3.0, 1.0, 2.0])


def test_a_split_pairs_replications_by_their_numbers() -> None:
    step = STEPS[0].name
    shares = _split("A", (0, 1, 2), STORED, {step: CHANGED}).shares
    assert shares[0].owed == estimate([-3.0, -1.0, -2.0])
    assert [share.owed for share in shares[1:]] == [None] * (len(STEPS) - 1)
