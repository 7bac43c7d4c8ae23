"""The variants of a stored sweep: labels with the parameters of the grid behind them."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from coband.simulator.core.config import JsonObject
from coband.simulator.experiments.scenario.nodes import plain
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.experiments.store.store import StoredRun


@dataclass(frozen=True)
class StoredParameter:
    """A key of the grid at a variant.

    Attributes:
        text: the label of its value.
        number: the value, where it is a number.
    """

    key: str
    name: str
    text: str
    number: float | None


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
    parameters: tuple[StoredParameter, ...]

    def scenario(self) -> JsonObject:
        """Its own scenario as plain values."""
        found: JsonObject = plain(read(self.text, "run.sqlite")[0])
        return found


_KNOWN: WeakKeyDictionary[StoredRun, dict[str, StoredVariant]] = WeakKeyDictionary()


def variants(run: StoredRun) -> dict[str, StoredVariant]:
    """Label -> variant in the order of the sweep; empty for a run that is no sweep."""
    if run not in _KNOWN:
        _KNOWN[run] = _read(run)
    return _KNOWN[run]


def _read(run: StoredRun) -> dict[str, StoredVariant]:
    part = run.jobs[0].part if run.jobs else None
    if part is None or not part.execute("SELECT 1 FROM sqlite_schema WHERE name = 'variants'").fetchone():
        return {}
    parameters: dict[str, list[StoredParameter]] = {}
    for label, *rest in part.execute("SELECT label, key, name, text, number FROM parameters"):
        parameters.setdefault(label, []).append(StoredParameter(*rest))
    rows = part.execute("SELECT label, entry, phase, chosen, scenario FROM variants ORDER BY number, phase")
    return {
        label: StoredVariant(label, entry, phase, bool(chosen), text, tuple(parameters.get(label, ())))
        for label, entry, phase, chosen, text in rows
    }
