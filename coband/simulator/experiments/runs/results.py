"""What a run reports: one record per replication, means and intervals per label, as strict JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from coband.simulator.core.metrics import ALWAYS, METRICS
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.plugins.promises import in_words
from coband.simulator.scenario_errors import RAISED

if TYPE_CHECKING:
    from coband.simulator.core.engine import RunResult
    from coband.simulator.metrics import Metric, RunMetric

Value = int | float | str | None
Record = dict[str, Any]
"""Values of a replication, and where its algorithm reports of single agents, ``agents``: a list of such values; where
its nodes warn of something, ``warnings``: a list of sentences."""

KEYS = (
    *("seed", "replication", *(metric.name for metric in ALWAYS)),
    *("graph", "fingerprint", "wall_seconds", "cpu_seconds"),
)
"""Keys that every record has, null where they do not apply; an algorithm's own numbers follow them."""
NOT_AVERAGED = ("seed", "replication", "graph", "fingerprint", "agents", "warnings")
AGENT_KEYS = ("agent", "turns", "regret", "rounds", "uplink_scalars", "downlink_scalars", "peer_scalars")
"""What is known of every agent of every algorithm; the store has it all, a record only next to what agents report."""


Entry = dict[str, Any]
"""One entry of ``results``: ``label``, ``algorithm``, ``replications`` (records), ``mean`` and ``ci95`` (by key); of a
sweep also ``entry``, ``phase`` and ``parameters``."""
Results = dict[str, Any]
"""What results.json holds: ``scenario``, ``results`` (entries) and ``failures``; ``best`` after tuning, ``frontier``
after a search."""


@dataclass(frozen=True)
class Failure:
    """A job that broke off.

    Attributes:
        kind: "violated" (an invariant did not hold) or "failed" (an error, or a process that died).
        error: what happened, with the causal chain or the traceback.
        replay: command that repeats this job alone, with a full trace.
    """

    label: str
    replication: int
    kind: str
    error: str
    replay: str

    @property
    def gist(self) -> str:
        """One line of the error: the last of a traceback, the first of a causal chain."""
        return self.error.strip().splitlines()[-1 if self.kind == "failed" else 0]


def record(result: RunResult, seed: int, replication: int, wall_seconds: float, cpu_seconds: float) -> Record:
    """The record of one finished job; seconds by the clock, and those that its process computed."""
    known: Record = {
        "seed": seed,
        "replication": replication,
        "turns": result.turns,
        "regret": result.regret,
        "reward": result.reward,
        "rounds": result.rounds,
        "simulated_time": result.simulated_time,
        "stalled": result.stalled,
        "graph": result.graph,
        "fingerprint": result.fingerprint,
        "wall_seconds": round(wall_seconds, 6),
        "cpu_seconds": round(cpu_seconds, 6),
    }
    if result.closest_decision is not None:
        known["closest_decision"] = result.closest_decision
    known |= result.ages.means()
    warnings = list(result.warnings)
    known |= {name: _number(metric, result, warnings) for name, metric in METRICS.items()}
    merged = {**dict.fromkeys(KEYS), **result.totals, **known}
    found: Record = {key: plain(value) for key, value in merged.items()}
    if any(own_numbers(agent) for agent in result.by_agent):
        found["agents"] = [{key: plain(value) for key, value in agent.items()} for agent in result.by_agent]
    if warnings:
        found["warnings"] = warnings
    return found


def _number(metric: RunMetric, result: RunResult, warnings: list[str]) -> Value:
    """The number of another package's metric; None, and a warning, where it fails: the job that it is of is kept."""
    try:
        found = metric.of(result)
        number = plain(found)
        if isinstance(number, int | float):
            return number
        why = f"{in_words(found)} is not a number"
    except RAISED as error:  # whatever the package's function raises
        why = f"{type(error).__name__}: {error}"
    warnings.append(f"the metric {metric.name} has no value ({why})")
    return None


def own_numbers(agent: Mapping[str, Value]) -> dict[str, Value]:
    """Return an agent's numbers that not every algorithm has."""
    return {key: plain(value) for key, value in agent.items() if key not in AGENT_KEYS}


def plain(value: Any) -> Value:
    """A number as JSON can hold it: numpy scalars become Python's, what is not finite becomes null."""
    if value is None or isinstance(value, str):
        return value
    number: int | float = value.item() if hasattr(value, "item") else value
    return number if math.isfinite(number) else None


def summarise(
    label: str, algorithm: str, records: Sequence[Record], metrics: Mapping[str, Metric] | None = None
) -> Entry:
    """One entry of ``results``: the records of a label in order of replication, their means and 95 % intervals.

    Intervals are Student's, those of proportions Wilson's. A key that some replication lacks has neither mean nor
    interval.

    Args:
        label: of an entry of the scenario.
        algorithm: its name.
        records: of its replications.
        metrics: the declared ones by name; None for those of coband itself, which has no proportions.
    """
    ordered = sorted(records, key=lambda item: int(item["replication"] or 0))
    means: dict[str, float | None] = {}
    intervals: dict[str, list[float] | None] = {}
    for key in _averaged(ordered):
        values = [item.get(key) for item in ordered]
        numbers = [value for value in values if isinstance(value, (int, float))]
        complete = len(numbers) == len(values)
        means[key] = statistics.mean(numbers) if complete else None
        metric = None if metrics is None else metrics.get(key)
        bounds = interval(metric, numbers) if complete else None
        intervals[key] = None if bounds is None else list(bounds)
    return {"label": label, "algorithm": algorithm, "replications": ordered, "mean": means, "ci95": intervals}


def interval(metric: Metric | None, numbers: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean of a metric: Student's, of proportions Wilson's."""
    proportion = metric is not None and metric.proportion
    return statistics.wilson(numbers) if proportion and numbers else statistics.interval(numbers)


def _averaged(records: Iterable[Record]) -> list[str]:
    keys: dict[str, None] = {}
    for item in records:
        keys.update(dict.fromkeys(item))
    return [key for key in keys if key not in NOT_AVERAGED]


def report(scenario: str, entries: Iterable[Entry], failures: Iterable[Failure]) -> Results:
    """The object that ``coband run --json`` prints and results.json holds.

    Args:
        scenario: its name.
        entries: from :func:`summarise`, in the scenario's order.
        failures: jobs that broke off.
    """
    return {"scenario": scenario, "results": list(entries), "failures": list(map(asdict, failures))}


def dump(value: Any, *, indented: bool = True) -> str:
    """Strict JSON text, ending in a newline; on one line, which is much quicker to write, if not ``indented``.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, allow_nan=False, indent=2 if indented else None, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()  # file names need not be valid text; JSON can escape them


def numbers(key: str, records: Iterable[Record]) -> list[float]:
    """The values of a key, of those records that have one."""
    return [float(value) for item in records if isinstance(value := item.get(key), (int, float))]
