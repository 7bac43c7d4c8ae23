"""What is compared: the finished jobs of one or several runs, by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.footing import Label, waiting
from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.scenario import yaml_nodes
from coband.simulator.experiments.scenario.yaml_nodes import plain
from coband.simulator.experiments.store.files import RUN
from coband.simulator.experiments.store.store import Series, StoredJob, StoredRun
from coband.simulator.experiments.store.variants import StoredVariant, variants
from coband.simulator.metrics import Metric, by_name
from coband.simulator.scenario_errors import RequestError

WORLD = ("seed", "agents.count", "problem", "network.topology")
"""Keys of a scenario that determine arms and noise; the topology matters only to problems on a graph."""
REGRET = "regret"
SETTING = ("agents", "schedule", "network", "server", "messages", "adversaries")
"""Further keys in which two runs should agree for their numbers to be comparable."""


class ReportError(RequestError):
    """The runs cannot be compared or reported; the text gives the reason and the remedy."""


@dataclass(frozen=True, eq=False)
class Contender:
    """One label of one run, as a participant of a comparison.

    Attributes:
        label: name in the comparison, unique.
        own: the label in its run.
        algorithm: registered name of the algorithm.
        variant: the variant of a sweep; None in a single run.
        family: the name that all variants of an algorithm share, where the label does not tell it.
    """

    label: str
    own: str
    algorithm: str
    run: StoredRun
    variant: StoredVariant | None = None
    family: str = ""

    @property
    def entry(self) -> str:
        """The label of the algorithm in the scenario file; all its variants in a sweep share it."""
        prefix = self.label.removesuffix(self.own) if self.label.endswith(self.own) else ""
        return self.family or prefix + (self.own if self.variant is None else self.variant.entry)

    @property
    def chosen(self) -> dict[str, str]:
        """Name -> value of the parameters of the algorithm, which one chooses; empty in a single run."""
        return {} if self.variant is None else self.variant.choices

    @property
    def faced(self) -> dict[str, str]:
        """Name -> value of all other keys of the grid: world, network, schedule, agents, which one faces."""
        return {} if self.variant is None else self.variant.faced

    @cached_property
    def jobs(self) -> list[StoredJob]:
        """The finished jobs, in order of replication."""
        return [job for job in self.run.select(self.own) if job.record is not None]

    @cached_property
    def records(self) -> dict[int, Record]:
        """Replication -> results."""
        return {job.replication: job.record for job in self.jobs if job.record is not None}

    @cached_property
    def series(self) -> list[Series]:
        """The series of the finished jobs that have at least one turn."""
        return [series for series in self.run.series(self.own) if len(series.turns)]

    @cached_property
    def own_scenario(self) -> Mapping[str, Any] | None:
        """The scenario of a variant of a sweep; None in a single run, where all labels have the run's scenario."""
        return None if self.variant is None else self.variant.scenario()

    @property
    def traced(self) -> bool:
        """Whether all finished jobs have a trace."""
        return all(job.trace != "off" for job in self.jobs)

    def values(self, key: str) -> dict[int, float]:
        """Replication -> the number ``key`` of its results, for replications that have it."""
        return Label(list(self.records.values())).values(key)


@dataclass(frozen=True, eq=False)
class RunComparison:
    """The contenders of one or several runs, in the order of runs and labels.

    Attributes:
        scenarios: the resolved scenario of each run.
        missing: sentences about jobs that did not finish.
    """

    runs: tuple[StoredRun, ...]
    scenarios: tuple[Mapping[str, Any], ...]
    contenders: tuple[Contender, ...]
    missing: tuple[str, ...]

    def scenario_of(self, contender: Contender) -> Mapping[str, Any]:
        """The resolved scenario of a contender; in a sweep, that of its variant."""
        own = contender.own_scenario
        return self.scenarios[self.runs.index(contender.run)] if own is None else own

    def why_unpaired(self, first: Contender, second: Contender) -> tuple[str, ...]:
        """Keys of the scenarios that make the two worlds different; empty if replications can be paired."""
        if first.run is second.run and first.own_scenario is None:
            return ()
        return differing(self.scenario_of(first), self.scenario_of(second), WORLD)

    @property
    def title(self) -> str:
        names = [str(run.manifest.get("scenario") or run.path.name) for run in self.runs]
        return " and ".join(dict.fromkeys(names))

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of all runs by name: those that problems and algorithms declare, then coband's own."""
        return by_name(*(tuple(run.metrics.values()) for run in self.runs))

    @cached_property
    def aim(self) -> str:
        """The metric that the problem optimises; regret if the runs have different aims, or a result lacks it."""
        faced = [scenario for run in dict.fromkeys(one.run for one in self.contenders) for scenario in self._faced(run)]
        kinds = {(scenario.get("problem") or {}).get("kind") for scenario in faced}
        aims = {Registry.installed().aim_of(str(kind)) for kind in kinds}
        aim = aims.pop() if len(aims) == 1 else REGRET
        records = (record for one in self.contenders for record in one.records.values())
        reported = all(isinstance(record.get(aim), (int, float)) for record in records)
        return aim if aim in self.metrics and reported else REGRET

    def stops_itself(self) -> bool:
        """Whether algorithms decide themselves when to stop, so that their pulls are what they are judged by."""
        return self.aim != REGRET

    @cached_property
    def waiting(self) -> frozenset[str]:
        """The labels that are not ranked, since they have waited while others pulled (`runs.footing`)."""
        late = waiting(self.contenders, self.stops_itself)
        return frozenset(one.label for one, out in zip(self.contenders, late, strict=True) if out)

    def remarks(self) -> tuple[str, ...]:
        """Remarks that readers need before they compare numbers."""
        remarks = list(self.missing)
        for run in self.runs[1:]:
            worlds = self._apart(self.runs[0], run, WORLD)
            names = f"{name_of(self.runs[0])} and {name_of(run)}"
            if worlds:
                remarks.append(
                    f"{names} met different worlds (they differ in {', '.join(worlds)}), so their "
                    "differences are unpaired: they compare means over independent replications."
                )
            others = [key for key in self._apart(self.runs[0], run, SETTING) if key not in worlds]
            if others:
                remarks.append(f"{names} also differ in {', '.join(others)}.")
        return tuple(remarks)

    def _apart(self, first: StoredRun, second: StoredRun, keys: Sequence[str]) -> tuple[str, ...]:
        """The keys at which two runs differ; of sweeps, those at which all environments do."""
        found = [differing(*pair, keys) for pair in product(self._faced(first), self._faced(second))]
        return tuple(key for key in found[0] if all(key in one for one in found[1:]))

    def _faced(self, run: StoredRun) -> list[Mapping[str, Any]]:
        """The scenario of a run, or one for each environment of a sweep."""
        known = {tuple(one.faced.items()): one for one in self.contenders if one.run is run and one.variant is not None}
        return [self.scenario_of(one) for one in known.values()] or [self.scenarios[self.runs.index(run)]]


def load(runs: Sequence[StoredRun]) -> RunComparison:
    """Load the comparison of all labels that have a finished job.

    Raises:
        ReportError: a run is given twice, or no job has finished.
    """
    places = Counter(run.path.resolve() for run in runs)
    for place, count in places.items():
        if count > 1:
            raise ReportError(f"{place} is given {count} times; give each run once.")
    contenders = _contenders(runs)
    if not contenders:
        where = ", ".join(str(run.path) for run in runs)
        raise ReportError(
            f"{where}: no job has finished, so there is nothing to report. `coband trace` reads the rest."
        )
    missing = [sentence for run in runs if (sentence := _unfinished(run))]
    return RunComparison(tuple(runs), tuple(map(parsed, runs)), tuple(contenders), tuple(missing))


def _contenders(runs: Sequence[StoredRun]) -> list[Contender]:
    own = Counter(label for run in runs for label in run.labels)
    names = _names(runs)
    swept = [variants(run) for run in runs]
    tuning = [{label for label, one in found.items() if one.phase == "tuning"} for found in swept]
    contenders = [
        Contender(label if own[label] == 1 else f"{name}: {label}", label, algorithm, run, found.get(label))
        for run, name, found, tuned in zip(runs, names, swept, tuning, strict=True)
        for label, algorithm in run.labels.items()
        if label not in tuned  # replications that choose parameters are not results
    ]
    return [contender for contender in contenders if contender.jobs]


def _names(runs: Sequence[StoredRun]) -> list[str]:
    """A name for each run: the name of its directory, or its path if several directories have that name."""
    names = [name_of(run) for run in runs]
    return [name if names.count(name) == 1 else str(run.path) for run, name in zip(runs, names, strict=True)]


def name_of(run: StoredRun) -> str:
    """The name of a run's directory."""
    place = run.path.resolve()
    return place.name if run.path.is_dir() else place.parent.name


def _unfinished(run: StoredRun) -> str | None:
    states = Counter(job.status for job in run.jobs if job.record is None)
    if not states:
        return None
    counts = ", ".join(f"{count} {status}" for status, count in sorted(states.items()))
    return f"{name_of(run)}: {sum(states.values())} of {len(run.jobs)} jobs did not finish ({counts}) and are left out."


def as_given(run: StoredRun) -> bool:
    """Whether the scenario of a run is a file as it was given, that of a sweep or search, and not a resolved one."""
    return run.kind != RUN


def parsed(run: StoredRun) -> Mapping[str, Any]:
    """The resolved scenario of a run as plain values, of a sweep at its first point; empty if it has none.

    What varies in a sweep is under ``grid``, key by key, as results call its values.
    """
    root, _ = yaml_nodes.read(run.scenario, str(Path(run.path) / "scenario.yaml"))
    document = plain(root)
    given = document if isinstance(document, dict) else {}
    if not as_given(run) or not (swept := variants(run)):
        return given
    firsts: dict[str, StoredVariant] = {}
    grid: dict[str, list[str]] = {}
    for one in swept.values():
        firsts.setdefault(one.entry, one)
        for parameter in one.parameters:
            values = grid.setdefault(parameter.key, [])
            values += [parameter.text] * (parameter.text not in values)
    resolved: list[dict[str, Any]] = [dict(one.scenario()) for one in firsts.values()]
    algorithms = [entry for one in resolved for entry in one["algorithms"]]
    rest = {key: value for key, value in given.items() if key not in resolved[0] and key not in ("grid", "zip")}
    return {**resolved[0], "algorithms": algorithms, **({"grid": grid} if grid else {}), **rest}


def differing(first: Mapping[str, Any], second: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    """The deepest keys below ``keys`` at which two scenarios differ."""
    return tuple(dict.fromkeys(path for key in keys for path in _differences(_at(first, key), _at(second, key), key)))


def _differences(first: Any, second: Any, path: str) -> list[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys([*first, *second])
        return [found for key in keys for found in _differences(first.get(key), second.get(key), f"{path}.{key}")]
    return [] if first == second else [path]


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document
