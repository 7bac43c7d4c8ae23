"""Variants: what a study runs on several replications."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry

FRESH = "fresh"
"""The phase of replications that are reported."""


@dataclass(frozen=True)
class Parameter:
    """The value of one key of a grid for one variant.

    Attributes:
        key: as written, such as ``algorithms.Async.alpha``.
        name: a short form that tells it apart from the other keys.
        text: the label of the value.
        number: the value, where it is a number.
        tuned: whether tuning chooses it.
        displayed: whether results name it; keys that go in step and call their values alike need one name.
    """

    key: str
    name: str
    text: str
    number: float | None
    tuned: bool = False
    displayed: bool = True

    def __str__(self) -> str:
        return f"{self.name}={self.text}"


@dataclass(frozen=True)
class Variant:
    """One entry of ``algorithms``; in a sweep, with the parameters that matter for it.

    Attributes:
        number: its place in the study, from 0.
        scenario: what it is part of; in a sweep, the point's scenario with this entry alone.
        parameters: in the order of the axes; those that change nothing for this entry are left out.
        settings: those of the grid, for ``--set``; all keys, since the file needs them all to be one scenario.
        digest: of everything that determines results, but for the replication; empty where nobody asks for it.
    """

    number: int
    entry: str
    scenario: Scenario
    parameters: tuple[Parameter, ...] = ()
    settings: tuple[str, ...] = ()
    digest: str = ""

    @property
    def configured(self) -> ScenarioEntry:
        """Its entry of the scenario."""
        return next(entry for entry in self.scenario.algorithms if entry.label == self.entry)

    @property
    def algorithm(self) -> str:
        return self.configured.algorithm.name

    @property
    def label(self) -> str:
        """How results call it, such as ``Async [gap=0.1, alpha=4]``."""
        return f"{self.entry} [{', '.join(map(str, self.displayed))}]" if self.parameters else self.entry

    @property
    def displayed(self) -> list[Parameter]:
        """The parameters that results name."""
        return [parameter for parameter in self.parameters if parameter.displayed]

    @property
    def context(self) -> tuple[str, ...]:
        """What it shares with the candidates that tuning compares it with."""
        return (self.entry, *(str(parameter) for parameter in self.displayed if not parameter.tuned))

    def title(self, phase: str) -> str:
        """How results call it in a phase."""
        return self.label if phase == FRESH else f"{self.label} ({phase})"
