"""What the replications of a study gave: metrics and curves of its variants, replication by replication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coband import FloatArray
from coband.extending import Record, RequestError, Series, Variant

AXES = {"turns": 0, "turns_per_agent": 0, "times": 1, "scalars": 3}
"""Horizontal axes of curves: their column in the rows of a series."""
HEIGHTS = {"regret": 2, "regret_per_agent": 2, "scalars": 3}
"""Vertical axes of curves, likewise."""
PER_AGENT = "_per_agent"


class SampleError(RequestError):
    """A condition asks for something that its study does not have; the text says what there is."""


@dataclass(frozen=True)
class Sample:
    """What one replication of a variant gave.

    Attributes:
        record: its metrics.
        series: rows (turn, time, regret, scalars).
        agents: how many there are.
        stops: whether its algorithm decides itself when to stop.
    """

    record: Record
    series: Sequence[Sequence[float]]
    agents: int = 1
    stops: bool = False

    def metric(self, name: str) -> float:
        """One number.

        Raises:
            SampleError: there is no such number.
        """
        value = self.record.get(name)
        if not isinstance(value, (int, float)):
            known = ", ".join(key for key, value in self.record.items() if isinstance(value, (int, float)))
            raise SampleError(f"there is no metric {name}; there are {known}.")
        return float(value)

    def curve(self, against: str, places: FloatArray, of: str = "regret") -> FloatArray:
        """A vertical axis at places of a horizontal axis, as a step function that is 0 before the first turn."""
        rows = np.asarray(self.series, dtype=np.float64)
        across, heights = rows[:, AXES[against]] / self._unit(against), rows[:, HEIGHTS[of]] / self._unit(of)
        index = np.searchsorted(across, places, side="right") - 1
        return np.where(index >= 0, heights[np.maximum(index, 0)], 0.0)

    def curves(self, replication: int) -> Series:
        """Its curves, as a store has them."""
        return Series(replication, *np.asarray(self.series, dtype=np.float64).reshape(-1, 4).T)

    def end(self, against: str) -> float:
        return float(self.series[-1][AXES[against]]) / self._unit(against) if len(self.series) else 0.0

    def _unit(self, axis: str) -> int:
        return self.agents if axis.endswith(PER_AGENT) else 1


def blended(parts: Sequence[tuple[float, Sample]]) -> Sample:
    """The weighted mean of the metrics of several samples; it has no curves."""
    if len(parts) == 1:
        return parts[0][1]
    weights, records = [weight for weight, _ in parts], [dict(one.record) for _, one in parts]
    common = [key for key in records[0] if all(isinstance(one.get(key), (int, float)) for one in records)]
    means = {key: float(np.dot(weights, [float(one[key]) for one in records])) for key in common}
    return replace(parts[0][1], record=means, series=[])


@dataclass(frozen=True)
class StudySamples:
    """All that is known of a study.

    Attributes:
        variants: what ran.
        found: for each of them, by number, its samples by replication.
    """

    variants: Sequence[Variant]
    found: Mapping[int, Mapping[int, Sample]]

    def of(self, label: str, at: Mapping[str, Any]) -> Mapping[int, Sample]:
        """The samples of the one variant with this label and these values of the grid's keys, by replication.

        Raises:
            SampleError: none, or several variants are meant.
        """
        matching = self.matching(label, at)
        if len(matching) != 1:
            known = "; ".join(variant.label for variant in matching or self.variants)
            wanted = f"{label} at {dict(at)}" if at else label
            raise SampleError(f"{wanted} means {len(matching)} variants of the study, not one: {known}.")
        return self.found.get(matching[0].number, {})

    def matching(self, label: str, at: Mapping[str, Any]) -> list[Variant]:
        return [variant for variant in self.variants if variant.entry == label and _fits(variant, at)]


def _fits(variant: Variant, at: Mapping[str, Any]) -> bool:
    own = {parameter.key: parameter for parameter in variant.parameters}
    return all(key not in own or _same(own[key].text, own[key].number, value) for key, value in at.items())


def _same(text: str, number: float | None, value: Any) -> bool:
    return text == str(value) or (number is not None and isinstance(value, (int, float)) and number == float(value))
