"""What there is, for ``coband list`` and ``coband describe``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coband.simulator.core.wire.privacy import Privacy
from coband.simulator.experiments.registry.registry import CLASSES, Registry
from coband.simulator.experiments.scenario.files import shipped_scenarios
from coband.simulator.plugins.entry_points import summary_of
from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS, DataError, PublicDataset
from coband.simulator.problems.ratings import RATINGS

SOURCES: Mapping[str, PublicDataset] = {**DATASETS, **RATINGS, **GRAPH_DATASETS}
Item = dict[str, Any]


class UnknownNameError(DataError):
    """Nothing has that name; the text lists the nearest names."""


def catalogue(registry: Registry) -> dict[str, list[Item]]:
    """Name and one-line summary of everything, by kind, with its reference; for scenarios, the data that they need."""
    return {
        **_installed(registry),
        "scenarios": [
            {"name": scenario.name, "summary": scenario.summary, "data": scenario.data}
            for scenario in shipped_scenarios()
        ],
    }


def _installed(registry: Registry) -> dict[str, list[Item]]:
    return {
        "algorithms": [_line(entry.name, entry.summary, entry.reference) for entry in registry.algorithms.values()],
        "problems": [_line(entry.name, entry.summary, entry.reference) for entry in registry.problems.values()],
        **{one.name: [_line(kind, summary_of(found), "") for kind, found in one.items()] for one in CLASSES},
        "datasets": [_line(data.name, content(data), data.citation) for data in SOURCES.values()],
        "metrics": [_line(metric.name, metric.meaning, "") for metric in registry.metrics.values()],
    }


def _line(name: str, summary: str, reference: str) -> Item:
    return {"name": name, "summary": summary, "reference": reference}


def content(source: PublicDataset) -> str:
    """A data set in one sentence."""
    return f"{source.title}: {source.rows:,} rows, {source.columns}"


def unprotected(algorithm: str, privacy: Mapping[str, Any]) -> list[str]:
    """What a section ``messages.privacy`` leaves unprotected of an algorithm; nothing of one that is not installed."""
    known = Registry.installed().algorithms.get(algorithm)
    return [] if known is None else Privacy.model_validate(privacy).unprotected(known)
