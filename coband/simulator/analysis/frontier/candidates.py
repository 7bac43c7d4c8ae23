"""Makes scenarios of the points of a search, each validated as the file itself is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coband.simulator.analysis.frontier.ranges import Between
from coband.simulator.analysis.frontier.space import Point, Space
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.variant import Parameter, Variant
from coband.simulator.experiments.scenario.files import with_absolute_paths
from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.scenario.nodes import Node, ScalarNode
from coband.simulator.experiments.scenario.overrides import set_value
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.validation import Validation
from coband.simulator.experiments.sweep.address import Files, configuration_digest
from coband.simulator.experiments.sweep.grid import Value


class Candidates:
    """Variants of a scenario, one for each point that is tried.

    Args:
        root: the document, with one value for each key of its grid.
        settings: for ``--set``, before those of a point: the values of the grid's keys.
        file: that the document comes from, if it is one.

    Attributes:
        made: the variants so far, in the order of their numbers.
        files: digests of the files that scenarios name.
    """

    def __init__(
        self, root: Node, base: Path, registry: Registry, settings: Sequence[str], file: Path | None = None
    ) -> None:
        self._root, self._base, self._registry, self._settings = root, base, registry, tuple(settings)
        self.made: list[Variant] = []
        self.files = Files(base, file)

    def scenario(self, space: Space, point: Point) -> Scenario:
        """The scenario at a point.

        Raises:
            ScenarioError: it is not valid.
        """
        root = self._root
        for one, value in zip(space.dimensions, point, strict=True):
            root = set_value(root, list(one.steps), value.node, one.mark, self._registry.takes)
        return Validation(with_absolute_paths(root, self._base), self._registry, []).scenario(self._base)

    def new(self, space: Space, point: Point) -> Variant | None:
        """The next variant; None where the values do not go together."""
        try:
            scenario = self.scenario(space, point)
        except ScenarioError:
            return None
        entry = scenario.algorithms[space.number]
        parameters = tuple(
            Parameter(one.path, one.name, value.label, value.number, tuned=True)
            for one, value in zip(space.dimensions, point, strict=True)
        )
        own = tuple(f"{one.path}={value.text}" for one, value in zip(space.dimensions, point, strict=True))
        alone = replace(scenario, algorithms=(entry,), expect=(), trace="off")
        digest = configuration_digest(alone, self.files)[entry.label]
        variant = Variant(len(self.made), entry.label, alone, parameters, (*self._settings, *own), digest)
        self.made.append(variant)
        return variant

    def checked(self, space: Space) -> Space:
        """The space, with fractions where a parameter takes them.

        Raises:
            ScenarioError: an end of a range, or a value of a list, is not allowed.
        """
        dimensions = []
        for one in space.dimensions:
            alone, found = replace(space, dimensions=(one,)), one.range
            for value in found.ends:
                self.scenario(alone, (value,))
            if isinstance(found, Between) and found.whole and self._takes_fractions(alone, found):
                one = replace(one, range=replace(found, whole=False))
            dimensions.append(one)
        return replace(space, dimensions=tuple(dimensions))

    def _takes_fractions(self, alone: Space, found: Between) -> bool:
        half = found.low + 0.5
        try:
            self.scenario(alone, (Value(str(half), ScalarNode(found.mark, half, str(half))),))
        except ScenarioError:
            return False
        return True
