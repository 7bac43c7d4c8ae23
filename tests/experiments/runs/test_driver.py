import errno
import gc
import json
import os
import signal
import weakref
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.runs import PROBLEM
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.wire import accounting
from coband.simulator.experiments.runs import attempt as attempts
from coband.simulator.experiments.runs import driver, executor, results
from coband.simulator.experiments.runs import status as statuses
from coband.simulator.experiments.runs.attempt import Outcome, attempt
from coband.simulator.experiments.runs.executor import WORKER_DIED, Dispatcher, Local
from coband.simulator.experiments.runs.job import DriverGone, Job, check_driver
from coband.simulator.experiments.runs.planner import Tally
from coband.simulator.experiments.runs.reporting import Report
from coband.simulator.experiments.runs.status import Status
from coband.simulator.experiments.runs.study import Study, study_of
from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store import directory, files, store
from coband.simulator.experiments.store.recording import sampled_turns
from coband.simulator.problems.datasets import DataError
from tests.experiments.runs import fakes
from tests.experiments.runs.fake_runs import Notes, perform, results_of, started, wait_until
from tests.experiments.runs.fakes import FakeScenario

SMALL: dict[str, Any] = {"name": "small", "agents": {"count": 2}, "schedule": {"kind": "rounds", "turns": 8}}
SMALL |= {"problem": PROBLEM, "algorithms": [{"algorithm": "fed_lin_ucb", "label": "Lin"}]}


def fingerprints(report: Report) -> dict[tuple[str, int], Any]:
    return {
        (entry["label"], record["replication"]): record["fingerprint"]
        for entry in report.object["results"]
        for record in entry["replications"]
    }


def tasks(study: Study) -> list[tuple[str, int]]:
    return [(study.title(task), task.replication) for task in next(study.planner(Tally(study.variants, study.entries)))]


def test_jobs_are_every_label_on_every_replication() -> None:
    fake: Any = FakeScenario(replications=2)
    assert tasks(fakes.study(fake)) == [("Often", 0), ("Seldom", 0), ("Often", 1), ("Seldom", 1)]
    assert tasks(fakes.study(fake, ["Seldom"], [7, 3])) == [("Seldom", 3), ("Seldom", 7)]
    assert len(tasks(fakes.study(fake, ["fake"]))) == 4


def test_results_hold_every_replication_with_means_and_intervals(tmp_path: Path) -> None:
    report = perform(tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "results.json").read_text())
    assert stored == report.object
    often = stored["results"][0]
    assert (often["label"], often["algorithm"], len(often["replications"])) == ("Often", "fake", 2)
    first = often["replications"][0]
    assert set(results.KEYS) <= set(first)
    counts = ("turns", "messages", "uplink_scalars", "downlink_scalars", "rounds")
    assert [first[key] for key in counts] == [200, 600, 200, 500, 100]
    assert first["dictionary_size"] == 100
    assert often["mean"]["scalars"] == 700
    assert often["ci95"]["scalars"] == [700, 700]
    low, high = often["ci95"]["regret"]
    assert low < often["mean"]["regret"] < high


def test_workers_change_nothing(tmp_path: Path) -> None:
    alone, parallel = perform(tmp_path / "a", replications=3), perform(tmp_path / "b", workers=2, replications=3)
    assert fingerprints(alone) == fingerprints(parallel)
    assert len(fingerprints(alone)) == 6


def test_there_are_no_more_processes_than_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    processes = executor.processes

    def noted(count: int) -> Executor:
        asked.append(count)
        return processes(1)

    monkeypatch.setattr(executor, "processes", noted)
    assert len(fingerprints(perform(tmp_path / "few", workers=40, replications=2))) == 4
    assert asked == [4]


def test_progress_counts_pulls_inside_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LOOK_SECONDS", 0.0)
    notes = Notes()
    perform(tmp_path / "run", listener=notes, labels=("Often",))
    assert notes.total == 2
    assert notes.progress == [64 / 200, 128 / 200, 192 / 200, 1, 1 + 64 / 200, 1 + 128 / 200, 1 + 192 / 200, 2]


def test_a_violation_is_reported_and_others_go_on(tmp_path: Path) -> None:
    notes = Notes()
    report = perform(tmp_path / "run", listener=notes, mischief=((1, "negative"),))
    expected = [("Often", 1, "violated"), ("Seldom", 1, "violated")]
    assert [(failure.label, failure.replication, failure.kind) for failure in report.failures] == expected
    assert notes.failures == report.failures
    text = report.failures[0].error
    assert text.startswith("the pseudo-regret of a turn is -1.0")
    assert "<- event 736 at time 20: choose at agent 0" in text
    replay = "coband run 'my file.yaml' --seed 3 --replication 1 --only Often --trace full"
    assert report.failures[0].replay == replay
    assert [len(entry["replications"]) for entry in report.object["results"]] == [1, 1]
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "failed"
    with store.open_run(tmp_path / "run") as run:
        last = list(run.events("Often", 1))[-1]
    assert last.event == "violation"


def test_a_job_that_kills_its_worker_costs_only_itself(tmp_path: Path) -> None:
    report = perform(tmp_path / "run", workers=2, mischief=((0, "kill"),), replications=4, labels=("Often",))
    assert [(failure.replication, failure.error) for failure in report.failures] == [(0, WORKER_DIED)]
    assert len(fingerprints(report)) == 3


def test_jobs_that_had_ended_before_their_pool_broke_count() -> None:
    """And others are tried again alone."""
    ended, gone, cancelled, running = (Future[Outcome]() for _ in range(4))
    result, settled = Outcome("failed"), list[tuple[str, Outcome]]()
    ended.set_result(result)
    gone.set_exception(BrokenExecutor())
    cancelled.cancel()
    here = Local(1)
    jobs = Dispatcher[str](here, lambda _, key: pytest.fail(key), lambda *pair: settled.append(pair), lambda: None)
    ends = [jobs._came_in_time(here, "a", future) for future in (ended, gone, cancelled, running)]
    assert ends == [True, *[False] * 3]
    assert settled == [("a", result)]


def test_an_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    report = perform(tmp_path / "run", mischief=((1, "interrupt"),), replications=3)
    assert (report.interrupted, report.missing) == (True, 4)
    assert set(fingerprints(report)) == {("Often", 0), ("Seldom", 0)}
    with store.open_run(tmp_path / "run") as run:
        assert [job.status for job in run.jobs] == ["finished", "finished", "interrupted", *["waiting"] * 3]
        assert sum(1 for _ in run.events("Often", 1)) > 700
        assert run.manifest["status"] == "interrupted"
    assert not (tmp_path / "run" / "jobs").exists()


@pytest.mark.parametrize(
    ("seconds", "counts"), [(0.0, [*range(31), 30]), (1e9, [0, 30])], ids=["at any time", "seldom"]
)
def test_a_status_is_written_now_and_then_and_results_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, counts: list[int]
) -> None:
    written = list[int]()

    class Watched(directory.RunDirectory):
        def write(self, status: Status) -> None:
            super().write(status)
            assert not (self.path / "results.json").exists()
            assert statuses.read(self.path).done == status.done
            written.append(results_of(self.path))

    monkeypatch.setattr(directory, "RunDirectory", Watched)
    monkeypatch.setattr(driver, "WRITE_SECONDS", seconds)
    perform(tmp_path / "run", replications=30, labels=("Often",), turns=2)
    assert written == counts
    assert len(json.loads((tmp_path / "run" / "results.json").read_text())["results"][0]["replications"]) == 30


def test_an_interruption_stops_the_workers(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started(out, workers=2, mischief=((1, "endless"),), turns=5000, count=1, labels=("Often",)) as process:
        wait_until(lambda: results_of(out) == 1 and stored_events(out, 1) > 0, process)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert output.split() == ["True", "1"]
    with store.open_run(out) as run:
        assert [job.status for job in run.jobs] == ["finished", "interrupted"]


def test_a_killed_run_loses_nothing_finished_and_keeps_partial_traces(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started(out, mischief=((1, "endless"),), turns=5000, count=1, labels=("Often",)) as process:
        wait_until(lambda: results_of(out) == 1 and stored_events(out, 1) > 0, process)
    assert results_of(out) == 1
    with store.open_run(out) as run:
        assert [job.status for job in run.jobs] == ["finished", "running"]
        assert [event.seq for event in run.events(replication=1)] == list(range(stored_events(out, 1)))
        assert [len(entry["replications"]) for entry in run.results()["results"]] == [1]
    assert statuses.read(out).state == "killed"


def stored_events(out: Path, replication: int) -> int:
    with store.open_run(out) as run:
        return sum(1 for _ in run.events(replication=replication))


def test_until_adds_replications_to_each_label_until_its_mean_is_known(tmp_path: Path) -> None:
    until = Until(half_width=4.0, max_replications=12)
    notes = Notes()
    report = perform(tmp_path / "run", until=until, listener=notes)
    for entry in report.object["results"]:
        low, high = entry["ci95"]["regret"]
        count = len(entry["replications"])
        assert 2 < count <= 12
        assert high - low <= 8.0 or count == 12
        assert [record["replication"] for record in entry["replications"]] == list(range(count))
    total = sum(len(entry["replications"]) for entry in report.object["results"])
    assert (notes.total, report.status.done, report.missing) == (total, total, 0)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["jobs"] == total
    assert "until:" in (tmp_path / "run" / "scenario.yaml").read_text()
    assert fingerprints(perform(tmp_path / "parallel", workers=2, until=until)) == fingerprints(report)


def test_replications_that_are_named_are_all_there_are(tmp_path: Path) -> None:
    report = perform(tmp_path / "run", numbers=[5, 7], until=Until(half_width=0.001))
    assert {replication for _, replication in fingerprints(report)} == {5, 7}


def test_bad_input_ends_a_run_and_what_has_finished_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = [attempts.attempt]

    def refuse(*arguments: Any) -> Any:
        if usual:
            return usual.pop()(*arguments)
        raise DataError("the file is gone")

    monkeypatch.setattr(attempts, "attempt", refuse)
    with pytest.raises(DataError, match="the file is gone"):
        perform(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "failed"
    with store.open_run(tmp_path / "run") as run:
        assert [job.status for job in run.jobs] == ["finished", "interrupted", "waiting", "waiting"]
    for _ in range(2):  # the same command again is refused for the same reason
        with pytest.raises(DataError, match="the file is gone"):
            perform(tmp_path / "refused")
        assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize(("mechanism", "refused"), [("gaussian", True), ("tree", True), ("laplace_local", False)])
def test_privacy_without_its_accountant_is_refused_once_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str, refused: bool
) -> None:
    monkeypatch.setattr(accounting, "installed", lambda: False)
    privacy = {"mechanism": mechanism, "sigma": 2.0, "leak": "allow"}
    scenario = loads(json.dumps({**SMALL, "messages": {"privacy": privacy}}))
    place = directory.create("private", tmp_path / "runs")
    if refused:
        with pytest.raises(UnsupportedScenario, match=r"^Lin: messages.privacy is .* pip install 'coband\[privacy\]'$"):
            driver.drive(study_of(scenario), place)
        assert not list(tmp_path.rglob("*.sqlite"))
    else:
        assert not driver.drive(study_of(scenario), place).failures


def test_a_full_disk_stops_a_run_and_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, calls = directory.RunDirectory.take, []

    def full_after_two(self: directory.RunDirectory, tasks: Any, result: Any) -> None:
        calls.append(tasks)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run.sqlite")
        take(self, tasks, result)

    monkeypatch.setattr(directory.RunDirectory, "take", full_after_two)
    report = perform(tmp_path / "run")
    assert (report.status.state, report.status.message) == ("stopped", "run.sqlite: No space left on device")
    assert (report.status.done, report.missing) == (3, 1)  # the third was in a file of its own
    assert set(fingerprints(report)) == {("Often", 0), ("Seldom", 0), ("Often", 1)}


def test_a_scenario_that_was_damaged_on_its_way_is_refused() -> None:
    scenario: Any = FakeScenario()
    good = attempts.PickledScenario.of(scenario)
    assert good.load() == scenario
    assert good.load() is good.load()
    with pytest.raises(ValueError, match="damaged on its way"):
        attempts.PickledScenario(good.content[:-1] + b"x", "another digest").load()


@pytest.fixture
def _collector() -> Iterator[None]:
    yield
    gc.freeze()  # as it is in the whole suite


@pytest.mark.usefixtures("_collector")
@pytest.mark.parametrize("set_aside", [False, True])
def test_a_job_leaves_no_garbage_and_no_trace_in_the_collector(set_aside: bool) -> None:
    """Whether or not somebody else has set things aside."""
    (gc.freeze if set_aside else gc.unfreeze)()
    scenario: Any = FakeScenario()
    nodes: list[weakref.ref[Any]] = []
    thresholds = gc.get_threshold()
    gc.disable()
    try:
        outcome = attempt(
            Job(0, "Often", "fake", 0, 3, "off"), scenario, lambda result: nodes.extend(map(weakref.ref, result.agents))
        )
    finally:
        gc.enable()
    assert outcome.status == "finished"
    assert len(nodes) == 5
    assert [node() for node in nodes] == [None] * 5
    assert (gc.get_freeze_count() > 0, gc.get_threshold()) == (set_aside, thresholds)


def test_scores_that_are_no_numbers_fail_the_job_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from coband.agents.alone.lin_ucb import LinUCB

    monkeypatch.setattr(LinUCB, "scores", lambda self, arms: np.full(len(arms), np.nan))
    scenario = loads(json.dumps({**SMALL, "algorithms": [{"algorithm": "lin_ucb"}]}))
    outcome = attempt(Job(0, "lin_ucb", "lin_ucb", 0, 0, "off"), scenario, lambda result: None)
    said = "agent 0 cannot choose an arm: its score of arm 0 is not a number; parameters or rewards are too large to "
    assert (outcome.status, outcome.error) == ("failed", f"{said}compute with.")


def test_a_design_that_is_not_found_fails_the_job_in_a_sentence() -> None:
    """The budget pays for rounding in the first round, and not in the second, on the arms that are left then."""
    kernel = {"kind": "gaussian", "gamma": 1.0}
    features = {"kind": "kernel", "kernel": kernel, "count": 6, "spread": 3.0}
    problem = {"kind": "pure_exploration", "features": features, "gap": 0.8}
    entry = {"algorithm": "co_kernel_fb", "budget": 30, "kernel": kernel, "rounds": "own_task"}
    document = {"name": "few", "agents": {"count": 5}, "schedule": {"kind": "phases"}, "problem": problem}
    scenario = loads(json.dumps({**document, "algorithms": [entry]}))
    outcome = attempt(Job(0, "co_kernel_fb", "co_kernel_fb", 0, 1022, "off"), scenario, lambda result: None)
    assert outcome.status == "failed"
    assert outcome.error.startswith("rounding to 37 samples makes the largest variance 2.4")
    assert outcome.error.endswith("allows 2.2. Give more samples (a larger budget).")


def test_a_worker_whose_driver_is_gone_stops() -> None:
    job = Job(0, "Often", "fake", 0, 3, "off")
    check_driver(job)
    with pytest.raises(DriverGone):
        check_driver(Job(**{**vars(job), "driver": os.getpid()}))


def test_run_directories_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "study-0007").mkdir(parents=True)
    (tmp_path / "runs" / "study-extra-0009").mkdir()
    paths = [str(directory.create(name).path) for name in ("study", "study", "a/b")]
    assert paths == ["runs/study-0008", "runs/study-0009", "runs/a-b-0001"]


def test_a_run_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(files.OutputError, match="is not empty, and a run overwrites nothing"):
        directory.create("x", tmp_path / "full")
    with pytest.raises(files.OutputError, match=r"no run directory can be made: .*Choose another place with --out DIR"):
        directory.create("x", tmp_path / "full" / "file")
    (tmp_path / "empty").mkdir()
    first, second = directory.create("x", tmp_path / "empty"), directory.create("x", tmp_path / "empty")
    fake: Any = FakeScenario()
    first.open(fakes.study(fake))
    with pytest.raises(files.OutputError, match="another run has just started"):
        second.open(fakes.study(fake))
    first.close()


@pytest.mark.parametrize("turns", [0, 1, 7, 999, 1000, 1001, 2500, 10_000, 12_345])
def test_sampled_turns_are_even_and_end_with_the_last(turns: int) -> None:
    sampled = sampled_turns(turns)
    assert len(sampled) == min(turns, 1000)
    assert sampled[-1:] == [turns][:turns]
    gaps = {after - before for before, after in zip([0, *sampled], sampled, strict=False)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_numbers_that_json_cannot_hold_become_null() -> None:
    assert [results.plain(value) for value in (float("nan"), float("inf"), 2, None, "x")] == [None, None, 2, None, "x"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.dump({"x": float("nan")})
