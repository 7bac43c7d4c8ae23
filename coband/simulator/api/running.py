"""Running scenarios from Python, by the driver of the command line: same results, same directories."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import coband
from coband.simulator.api.callbacks import Callback, checked
from coband.simulator.api.driving import drive_study, pool_of
from coband.simulator.api.errors import RunWarning, one_of, several, translated
from coband.simulator.api.scenario import Scenario, Settings, is_text
from coband.simulator.api.stored import Run, Sweep
from coband.simulator.experiments.runs import repeating
from coband.simulator.experiments.runs.executor import cores
from coband.simulator.experiments.runs.reporting import Commands, Report
from coband.simulator.experiments.runs.study import Study, load_run
from coband.simulator.experiments.store import directory
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.files import SCENARIO
from coband.simulator.experiments.sweep.job_queue import cluster_of
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.terminal.progress import Bar

Given = Scenario | Mapping[str, Any] | str | PathLike[str]
Entry: TypeAlias = coband.Algorithm | type[coband.Client] | str | Mapping[str, Any]
Entries: TypeAlias = Iterable[Entry] | Entry
Trace = Literal["off", "protocol", "full"]


def run(
    scenario: Given | Run,
    *,
    algorithms: Entries | None = None,
    problem: coband.Problem | None = None,
    set: Settings | None = None,
    only: str | Iterable[str] | None = None,
    replications: int | None = None,
    replication: int | Iterable[int] | None = None,
    seed: int | None = None,
    trace: Trace | None = None,
    checks: Literal["cheap", "full"] | None = None,
    workers: int | None = None,
    out: str | PathLike[str] | None = None,
    progress: bool = True,
    callbacks: Iterable[Callback] = (),
) -> Run:
    """Run a scenario and keep what happens in a run directory, exactly as ``coband run`` does.

    All algorithms meet the same arms and the same noise in each replication. Every job is on disk as soon as it has
    finished, and nothing is ever overwritten.

    Args:
        scenario: a path, YAML text, a mapping, the name of a scenario that comes with coband, or a `Scenario`; or a
            stored run, its directory or ``latest``, which is run again with the changes that the other arguments say,
            on the same arms, noise and draws of links: ``coband.run(run, set=...).compare(run)``.
        algorithms: in the place of the scenario's: names; classes of agents and `coband.Algorithm` objects, which need
            not be installed; and mappings with parameters, ``{"algorithm": ALGORITHM, "alpha": 0.5}``; one or several.
        problem: in the place of the scenario's, such as `Problem.from_arrays` makes.
        set: values to change: ``{"agents.count": 20}``, or texts ``"agents.count=20"``.
        only: labels or algorithms to run alone.
        replications: how many.
        replication: numbers of replications to run alone, from 0.
        seed: of the scenario.
        trace, checks: how much of the trace is kept, and whether nodes are computed twice ("full").
        workers: processes; None for one per job, at most one per core; 1 for this process, unless numpy was imported
            before coband, so that its BLAS may give other last bits. Worker processes do not import the calling script,
            so it needs no ``if __name__ == "__main__":``.
        out: the run directory, new or empty; None for the next free ``runs/NAME-NUMBER``, as on the command line.
        progress: show a bar, on a terminal or in a notebook; elsewhere write a line now and then.
        callbacks: told of every job and label that ends; they may stop the run (`Callback`).

    Returns:
        The run. Jobs that broke off are in `Run.failures`, with a warning.

    Raises:
        ScenarioError: the scenario is wrong, with the lines that the command line prints.
        RunError: a wrong type, no room for results, or no way to go on; what has finished is kept.
        KeyboardInterrupt: Ctrl-C; what has finished is kept, and the text says where.
    """
    changed = given(problem=problem, replications=replications, seed=seed, trace=trace, checks=checks)
    before = _stored(scenario)
    source: Any = scenario if before is None else before.file
    asked = Scenario.of(source).with_(set).with_(given(algorithms=_entries(algorithms)) | changed)
    with asked.errors():
        labels, callbacks = several("only", only), checked(callbacks)
        numbers = tuple(map(int, several("replication", replication)))
        if before is not None:
            labels = labels or (() if algorithms else before.labels)
            numbers = numbers or (() if replications else before.replications)
        study = load_run(asked.source, asked.settings, labels, numbers)
        with pool_of(workers, study.jobs) as pool:
            place = directory.create(study.name, _path(out))
            words = [*_only(labels), *(word for number in numbers for word in ("--replication", str(number)))]
            commands = Commands(_command("run", asked, place), [*_command("run", asked, place), *words])
            report = drive_study(study, place, pool, commands, Bar(study.name) if progress else None, callbacks)
    return Run(report.directory)


def sweep(
    scenario: Given,
    *,
    algorithms: Entries | None = None,
    problem: coband.Problem | None = None,
    set: Settings | None = None,
    only: str | Iterable[str] | None = None,
    replications: int | None = None,
    seed: int | None = None,
    trace: Trace = "off",
    workers: int | None = None,
    cluster: str | None = None,
    cluster_options: Mapping[str, Any] | None = None,
    resume: bool = False,
    again: bool = False,
    out: str | PathLike[str] | None = None,
    progress: bool = True,
    callbacks: Iterable[Callback] = (),
) -> Sweep:
    """Run a scenario at every point of its grid, exactly as ``coband sweep`` does.

    Args:
        scenario, algorithms, problem, only, replications, seed, progress, callbacks: see `coband.run`.
        set: values to change, or to fix keys of the grid.
        trace: how much of the trace of each job is kept.
        workers: processes; None for one per core; 1 for this process.
        cluster: address of a Dask scheduler, such as ``tcp://HOST:8786``, whose workers run the jobs instead; or the
            system of a queue: ``slurm``, ``pbs``, ``sge``, ``lsf``, ``htcondor`` or ``oar``.
        cluster_options: with a queue, ``{"jobs": 10, "cores": 4, "memory": "8GB", "queue": "short"}`` and others.
        resume: go on with the sweep in ``out``, or with the latest of this name: what has finished does not run again.
        again: go on with it, and run again what has finished.
        out: the sweep's directory; None for ``runs/NAME-NUMBER`` in the working directory.

    Raises:
        ScenarioError: the scenario is wrong at any point, with the lines that the command line prints.
        RunError: an argument is of a wrong type, there is no room for results, no sweep to go on with, another driver
            in the directory, or nobody to run the jobs; what has finished is kept.
        KeyboardInterrupt: Ctrl-C; what has finished is kept, and ``resume=True`` goes on.
    """
    one_of("trace", trace, Trace)
    changed = given(algorithms=_entries(algorithms), problem=problem, replications=replications, seed=seed)
    asked = Scenario.of(scenario).with_(set).with_(changed)
    with asked.errors():
        labels, callbacks = several("only", only), checked(callbacks)
        study = load_study(asked.source, asked.settings, trace=trace).selected(labels)
        report = swept(
            "sweep",
            asked,
            study,
            _only(labels),
            workers=workers,
            cluster=cluster,
            cluster_options=cluster_options,
            resume=resume,
            out=out,
            again=again,
            progress=progress,
            callbacks=callbacks,
        )
    return Sweep(report.directory)


def swept(
    name: str,
    asked: Scenario,
    study: Study,
    words: Sequence[str],
    *,
    workers: int | None,
    cluster: str | None,
    cluster_options: Mapping[str, Any] | None,
    resume: bool,
    out: str | PathLike[str] | None,
    again: bool = False,
    progress: bool = True,
    callbacks: Iterable[Callback] = (),
) -> Report:
    """Run a study in a directory of a sweep, as the command of that ``name`` does with options ``words``."""
    with cluster_of(cluster, cluster_options or {}, workers) or pool_of(workers, cores()) as pool:
        folder = directory.create(study.name, _path(out), swept=True, resume=resume, again=again)
        if (other := folder.other_hardware()) is not None:
            warnings.warn(other, RunWarning, stacklevel=3)
        begun = [*_command(name, asked, folder), *words]
        onwards = shlex.join([*begun, "--resume", "--out", str(folder.path)])
        commands = Commands(_command("run", asked, folder), begun, onwards)
        return drive_study(study, folder, pool, commands, Bar(study.name) if progress else None, callbacks)


def _stored(given: Given | Run) -> repeating.Repeated | None:
    """The stored run that is meant; None for a scenario."""
    place = given.path if isinstance(given, Run) else given
    if is_text(place) or not isinstance(place, (str, PathLike)):
        return None
    with translated():
        return repeating.repeated(Path(place))


def _command(name: str, asked: Scenario, place: RunDirectory) -> list[str]:
    """The command line that does the same; of a scenario that is not a file, with the copy in the run's directory."""
    file = asked.source if isinstance(asked.source, Path) else place.path / SCENARIO
    return ["coband", name, str(file), *(word for setting in asked.settings for word in ("--set", setting))]


def _entries(algorithms: Entries | None) -> list[Any] | None:
    """Entries of ``algorithms``; one that stands alone is a list of one."""
    if algorithms is None:
        return None
    if isinstance(algorithms, coband.Algorithm | type | str | Mapping):
        algorithms = [algorithms]
    return [{"algorithm": entry} if isinstance(entry, str) else entry for entry in algorithms]


def _only(labels: Iterable[str]) -> list[str]:
    return [word for name in labels for word in ("--only", name)]


def given(**values: object) -> dict[str, object]:
    """The arguments that were given."""
    return {key: value for key, value in values.items() if value is not None}


def _path(out: str | PathLike[str] | None) -> Path | None:
    return None if out is None else Path(out)
