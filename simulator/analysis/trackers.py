"""Stored runs for experiment trackers: MLflow and TensorBoard.

Each finished job becomes one run of the tracker: what it was configured with, its numbers, and its curves against turns
(cumulative regret, scalars, simulated time), at the turns that the store has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from coband.simulator.experiments.scenario.nodes import plain
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.experiments.store.store import StoredJob, StoredRun
from coband.simulator.experiments.store.variants import variants
from coband.simulator.scenario_errors import RequestError

CURVES = ("regret", "scalars", "time")
BATCH = 1000
"""Most numbers that MLflow takes at once."""


class ExportError(RequestError):
    """A run cannot be exported; the text says why and what to do."""


@dataclass(frozen=True)
class Tracked:
    """A finished job as trackers see it.

    Attributes:
        name: label and replication.
        parameters: key path of the scenario -> value, as text.
        tags: what it is.
        numbers: final results.
        curves: (turn, values of `CURVES`) at the stored turns.
    """

    name: str
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    numbers: Mapping[str, float]
    curves: list[tuple[int, tuple[float, ...]]]


def tracked(run: StoredRun) -> Iterator[Tracked]:
    """The finished jobs of a run.

    Raises:
        ExportError: there are none.
    """
    jobs = [job for job in run.select() if job.record is not None]
    if not jobs:
        raise ExportError(f"{run.path}: no job has finished, so there is nothing to export.")
    described = variants(run)
    for job in jobs:
        variant = described.get(job.label)
        scenario: Any = plain(read(run.scenario if variant is None else variant.text, str(run.path))[0])
        yield _tracked(run, job, scenario, job.label if variant is None else variant.entry)


def _tracked(run: StoredRun, job: StoredJob, scenario: Mapping[str, Any], entry: str) -> Tracked:
    assert job.record is not None
    entries: list[Mapping[str, Any]] = scenario["algorithms"]
    own = next((one for one in entries if entry in (one.get("label"), one["algorithm"])), {})
    sections = {key: scenario[key] for key in ("agents", "schedule", "network", "problem") if key in scenario}
    parameters = dict(_flat({**{key: value for key, value in own.items() if key != "label"}, **sections}))
    seed = job.record["seed"]
    tags = {"scenario": str(run.manifest.get("scenario", "")), "label": job.label, "algorithm": job.algorithm}
    tags |= {"replication": str(job.replication), "seed": str(seed), "fingerprint": str(job.record["fingerprint"])}
    numbers = {
        key: float(value)
        for key, value in job.record.items()
        if isinstance(value, (int, float)) and key not in ("seed", "replication")
    }
    query = f"SELECT turn, {', '.join(CURVES)} FROM series WHERE job = ? ORDER BY turn"
    curves = [(int(turn), tuple(map(float, values))) for turn, *values in job.part.execute(query, (job.id,))]
    return Tracked(f"{job.label}, replication {job.replication}", parameters, tags, numbers, curves)


def _flat(part: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(key path, value as text) of what a mapping holds."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif part is not None:
        yield path, str(part)


def to_mlflow(run: StoredRun, place: str | None = None, experiment: str | None = None) -> tuple[str, int]:
    """Log the finished jobs of a run to MLflow, below a parent run with the scenario's name.

    Args:
        place: tracking URI, or a directory for a database ``mlflow.db``; None for MLflow's own default.
        experiment: its name; None for that of the scenario. It is made where it is not there.

    Returns:
        The tracking URI, and how many jobs were logged.

    Raises:
        ExportError: nothing has finished, or MLflow refuses.
        ImportError: MLflow is not installed.
    """
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    jobs = list(tracked(run))
    name = str(run.manifest.get("scenario", "coband"))
    uri = place
    if place is not None and "://" not in place:  # MLflow wants a database in the place of plain files
        Path(place).mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{(Path(place) / 'mlflow.db').absolute()}"
    try:
        client = MlflowClient(tracking_uri=uri)
        found = client.get_experiment_by_name(experiment or name)
        home = client.create_experiment(experiment or name) if found is None else found.experiment_id
        parent = client.create_run(home, run_name=name, tags={"coband.run": str(run.path.absolute())}).info.run_id
        for job in jobs:
            tags = {"mlflow.parentRunId": parent, **{f"coband.{key}": value for key, value in job.tags.items()}}
            made = client.create_run(home, run_name=job.name, tags=tags).info.run_id
            values = [(key, value, turn) for turn, row in job.curves for key, value in zip(CURVES, row, strict=True)]
            last = job.curves[-1][0] if job.curves else 0
            final = [(key, value, last) for key, value in job.numbers.items() if key not in CURVES]
            metrics = iter([Metric(key, value, 0, step) for key, value, step in values + final])
            params = [Param(key, value[:500]) for key, value in job.parameters.items()][:100]
            client.log_batch(made, params=params, tags=[RunTag("coband.label", job.tags["label"])])
            while batch := list(islice(metrics, BATCH)):
                client.log_batch(made, metrics=batch)
            client.set_terminated(made)
        client.set_terminated(parent)
    except (MlflowException, OSError) as error:
        raise ExportError(f"MLflow refuses: {error}") from error
    return str(client.tracking_uri if uri is None else uri), len(jobs)


def to_tensorboard(run: StoredRun, place: Path) -> int:
    """Write the finished jobs of a run as TensorBoard event files: a folder for each label and replication.

    Args:
        place: the log directory, new or empty.

    Returns:
        How many jobs were written.

    Raises:
        ExportError: nothing has finished, or the directory holds something.
        ImportError: tensorboardX is not installed.
    """
    from tensorboardX import SummaryWriter

    jobs = list(tracked(run))
    if place.exists() and any(place.iterdir()):
        raise ExportError(f"{place} is not empty, and an export overwrites nothing. Choose another with --out DIR.")
    for job in jobs:
        folder = place / job.tags["label"].replace("/", "-") / f"replication-{job.tags['replication']}"
        with SummaryWriter(str(folder)) as writer:
            for turn, row in job.curves:
                for key, value in zip(CURVES, row, strict=True):
                    writer.add_scalar(key, value, turn, walltime=0.0)
            lines = "\n".join(f"| {key} | {value} |" for key, value in {**job.tags, **job.parameters}.items())
            writer.add_text("configuration", f"| key | value |\n|---|---|\n{lines}", 0, walltime=0.0)
            for key, value in job.numbers.items():
                if key not in CURVES:
                    writer.add_scalar(f"results/{key}", value, job.curves[-1][0] if job.curves else 0, walltime=0.0)
    return len(jobs)
