"""The variants of a stored sweep, labels with the parameters of the grid behind them, and what it has found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from coband.simulator.core.config import JsonObject
from coband.simulator.experiments.runs.planner import Parameter
from coband.simulator.experiments.runs.results import Results
from coband.simulator.experiments.scenario.yaml_nodes import plain, read
from coband.simulator.experiments.store.files import RESULTS, RUN, StoreError, again, content_of
from coband.simulator.experiments.store.store import StoredRun

CHOICES = "algorithms."
"""Keys of a grid that begin so are parameters of algorithms; all others are the environment."""


@dataclass(frozen=True)
class StoredVariant:
    """A label of a sweep.

    Attributes:
        entry: label of the algorithm in the scenario file.
        phase: ``tuning`` or ``fresh``.
        chosen: whether tuning chose it.
        text: its own scenario, as YAML.
    """

    label: str
    entry: str
    phase: str
    chosen: bool
    text: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def choices(self) -> dict[str, str]:
        """Name -> value of the parameters of the algorithm, which one chooses."""
        return {one.name: one.text for one in self.parameters if one.key.startswith(CHOICES)}

    @cached_property
    def faced(self) -> dict[str, str]:
        """Name -> value of all other keys of the grid: world, network, schedule, agents, which one faces."""
        return {one.name: one.text for one in self.parameters if not one.key.startswith(CHOICES)}

    def scenario(self) -> JsonObject:
        """Its own scenario as plain values."""
        found: JsonObject = plain(read(self.text, "run.sqlite")[0])
        return found


_KNOWN: WeakKeyDictionary[StoredRun, dict[str, StoredVariant]] = WeakKeyDictionary()


def variants(run: StoredRun) -> dict[str, StoredVariant]:
    """Label -> variant in the order of the sweep; empty for a run that is not a sweep."""
    if run in _KNOWN:
        return _KNOWN[run]
    parameters: dict[str, list[Parameter]] = {}
    for label, *rest in run.connection.execute("SELECT label, key, name, text, number FROM parameters"):
        parameters.setdefault(label, []).append(Parameter(*rest))
    rows = run.connection.execute("SELECT label, entry, phase, chosen, scenario FROM variants ORDER BY number, phase")
    _KNOWN[run] = {
        label: StoredVariant(label, entry, phase, bool(chosen), text, tuple(parameters.get(label, ())))
        for label, entry, phase, chosen, text in rows
    }
    return _KNOWN[run]


def summary(run: StoredRun) -> Results:
    """The results of a run from its store; those of a sweep that has ended, and chosen the best, from its results.json.

    Raises:
        StoreError: that file cannot be read, or a search, which recommends something at its end, has none.
    """
    if run.kind == RUN:
        return run.results()
    file = run.file.parent / RESULTS
    try:
        found: Results = json.loads(content_of(file))
        _ = found["results"]
    except FileNotFoundError:
        if run.kind == "a sweep":
            return _so_far(run)
        raise StoreError(
            f"{file.parent} has not ended, so that nothing is recommended: `coband sweep --status {file.parent}` says "
            "how far it is, and how to go on."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} cannot be read ({error}); {again(file.parent)}.") from error
    return found


def _so_far(run: StoredRun) -> Results:
    """What has finished of a sweep that goes on, or that was killed."""
    found, known = run.results(), variants(run)
    found["results"] = [entry for entry in found["results"] if entry["replications"]]
    for entry in found["results"]:
        one = known[entry["label"]]
        entry |= {"entry": one.entry, "phase": one.phase, "parameters": {p.name: p.text for p in one.parameters}}
    return found
