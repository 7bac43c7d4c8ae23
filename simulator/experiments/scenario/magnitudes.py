"""Numbers that no scenario means: their squares and reciprocals are infinite, or no array has so many entries."""

from __future__ import annotations

import math
from collections.abc import Iterator

from coband.simulator.experiments.scenario.input_problems import InputProblem, KeyPath
from coband.simulator.experiments.scenario.nodes import MappingNode, Node, ScalarNode, SequenceNode

LARGEST, SMALLEST = 1e100, 1e-100
"""Of absolute values: products of three, and one divided by such a product, are still numbers of 64 bits."""
MOST = 2**63 - 1
"""The largest whole number of 64 bits."""
ANY = ("seed",)
"""Keys of numbers that nothing is computed with."""


def magnitudes(node: Node, path: KeyPath = ()) -> Iterator[InputProblem]:
    """A problem for each number in a document that is too large or too small to compute with."""
    if isinstance(node, MappingNode):
        for key, (_, value) in node.entries.items():
            if key not in ANY:
                yield from magnitudes(value, (*path, key))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from magnitudes(item, (*path, index))
    elif isinstance(node, ScalarNode) and (wrong := _wrong(node.value)) is not None:
        yield node.mark.problem(path, f"{node.text} is not allowed: {wrong}")


def _wrong(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return None if abs(value) <= MOST else f"whole numbers must be between -{MOST} and {MOST}"
    if not math.isfinite(value):
        return None  # models refuse it
    if value == 0 or SMALLEST <= abs(value) <= LARGEST:
        return None
    return f"numbers must be 0, or between {SMALLEST:.0e} and {LARGEST:.0e} in absolute value, to be computed with"
