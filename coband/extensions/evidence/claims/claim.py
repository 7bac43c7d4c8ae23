"""A claim of a paper: where it stands, what it says, the studies it needs, and the conditions under which it holds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from coband.extensions.evidence.claims.comparisons import (
    Below,
    Difference,
    Equal,
    Gaps,
    Growth,
    Order,
    Ratio,
    Share,
    Slope,
    Value,
)
from coband.extensions.evidence.claims.condition import AnyTerm, Strict, Term
from coband.extensions.evidence.claims.samples import AXES, HEIGHTS

Size = Literal["full", "quick", "toy"]
Setting = str | int | float | bool | None | list[Any] | dict[str, Any]
Condition = Annotated[
    Difference | Ratio | Equal | Order | Gaps | Value | Slope | Growth | Share | Below, Field(discriminator="kind")
]
"""Each becomes inequalities on means or shares over replications, which tests decide."""
ONLY = "main"
"""The name of a study that is the only one."""


class ClaimedStudy(Strict):
    """A scenario or sweep that a claim is about, at three sizes."""

    scenario: str = Field(description="name of a shipped scenario, such as duets/h1")
    set: dict[str, Setting] = Field(default={}, description="changes to it, key path to value, as printed in the paper")
    quick: dict[str, Setting] = Field(default={}, description="further changes for --quick; sizes only")
    toy: dict[str, Setting] = Field(default={}, description="further changes for a test of the mechanics; sizes only")

    def settings(self, size: Size) -> tuple[str, ...]:
        """The changes at a size, as ``--set`` takes them."""
        from coband.extending import dump

        more = {"full": {}, "quick": self.quick, "toy": {**self.quick, **self.toy}}[size]
        return tuple(f"{key}={dump(value, indented=False).strip()}" for key, value in {**self.set, **more}.items())

    def changed(self, changes: Mapping[str, Setting]) -> ClaimedStudy:
        return self.model_copy(update={"set": {**self.set, **changes}})


class Replications(Strict):
    """How often the studies of a claim run: until it is decided, or dearer than it is worth."""

    first: int = Field(default=5, ge=2, description="replications before the first verdict")
    hours: float = Field(
        default=8.0, gt=0, description="CPU hours; a claim that needs more stays open, with a forecast"
    )
    most: int | None = Field(default=None, ge=2, description="replications after which an open verdict stays open")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.most is not None and self.first > self.most:
            raise ValueError(f"first(={self.first}) must be at most most(={self.most})")
        return self


class OpenSpace(Strict):
    """Values that the paper leaves open, each of which is tried."""

    set: list[str] = Field(min_length=1, description="key paths of the studies that take the value together")
    values: list[Setting] = Field(min_length=2, description="the values")
    why: str = Field(description="what the paper says of it")


class Tuning(Strict):
    """How ``quantifier: tuned`` chooses: each label alone, all with the same trials, on seeds that test nothing."""

    by: str = Field(default="regret", description="the metric whose mean decides")
    best: Literal["lowest", "highest"] = "lowest"
    replications: int = Field(default=3, ge=1, description="of each label at each setting")
    seed: int = Field(default=777_001, ge=0, description="of the studies")


class AtEqual(Strict):
    """How ``quantifier: at_equal`` compares: where the mean of a metric is the same for all labels."""

    metric: str = Field(default="regret", description="what is equal")
    tolerance: float = Field(default=0.05, gt=0, lt=1, description="share of it by which labels may differ")
    levels: int = Field(default=3, ge=1, description="values of it, at equal steps over those that all labels reach")


Quantifier = Literal["any", "all", "tuned", "at_equal"]
LEVELLED = frozenset({"difference", "ratio", "equal", "order"})
"""Kinds of conditions that compare labels at equal values of another metric."""


def _named(given: Any) -> Any:
    return {ONLY: given} if isinstance(given, Mapping) and "scenario" in given else given


class Claim(Strict):
    """One claim; a file ``papers/<paper>/<claim>.yaml``."""

    title: str = Field(description="the claim in a few words")
    where: str = Field(description="figure, table or section of the paper")
    statement: str = Field(description="what is claimed, in our own words")
    source: Literal["paper", "public code", "coband"] = Field(default="paper", description="who claims it")
    open: dict[str, str | OpenSpace] = Field(
        default={}, description="what the paper leaves open, and what is used here, or the values that are tried"
    )
    quantifier: Quantifier | None = Field(
        default=None,
        description="of the open values: any, all, the best of each label (tuned), or those that give at_equal",
    )
    tuning: Tuning = Tuning()
    at_equal: AtEqual | None = Field(default=None, description="what is equal, with quantifier at_equal")
    ours: dict[str, str] = Field(default={}, description="what differs here from what is printed, and why")
    studies: Annotated[dict[str, ClaimedStudy], BeforeValidator(_named)] = Field(
        default={}, description="the studies by name, or one study"
    )
    replications: Replications = Replications()
    conditions: list[Condition] = Field(default=[], description="all of them hold if the claim holds")
    not_run: str | None = Field(default=None, description="why it cannot be run here; then no studies are needed")
    analysis: str | None = Field(default=None, description="where it does not hold: why, from runs")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.not_run is None and not (self.studies and self.conditions):
            raise ValueError("a claim needs studies and conditions, or not_run: with the reason")
        for term in self.terms():
            if (term.study or ONLY) not in self.studies and not (term.study is None and len(self.studies) == 1):
                known = ", ".join(self.studies)
                raise ValueError(f"{term} names study {term.study or ONLY}, but there are {known}")
        if bool(self.spaces()) != (self.quantifier is not None):
            known = ", ".join(get_args(Quantifier))
            raise ValueError(f"open values need quantifier: one of {known}; and a quantifier needs open values")
        if (self.at_equal is not None) != (self.quantifier == "at_equal"):
            raise ValueError("quantifier: at_equal needs at_equal: {metric: regret}, which no other one has")
        about = {(one.kind, getattr(one, "of", "")) for one in self.conditions}
        if self.at_equal is not None and not (
            {kind for kind, _ in about} <= LEVELLED and len({of for _, of in about}) == 1
        ):
            raise ValueError(f"at_equal needs conditions about one metric, of kinds {', '.join(sorted(LEVELLED))}")
        if self.quantifier in ("tuned", "at_equal"):
            own = tuple(f"algorithms.{term.label}." for term in self.terms())
            for key in (key for one in self.spaces().values() for key in one.set if not key.startswith(own)):
                raise ValueError(
                    f"quantifier: {self.quantifier} chooses for each label by itself, and {key} is not a key of a "
                    "label of the conditions (algorithms.LABEL.key); with quantifier: any or all, its values are for "
                    "all"
                )
        return self

    def spaces(self) -> dict[str, OpenSpace]:
        """What is open and tried, by name."""
        return {name: one for name, one in self.open.items() if isinstance(one, OpenSpace)}

    def settings(self) -> list[dict[str, Setting]]:
        """All combinations of the open values; one that is empty where nothing is tried."""
        spaces = self.spaces()
        return [dict(zip(spaces, values, strict=True)) for values in product(*(one.values for one in spaces.values()))]

    def at(self, setting: Mapping[str, Setting], label: str | None = None) -> Claim:
        """The claim with its studies at a setting.

        Args:
            setting: name of what is open -> value.
            label: the one whose keys (``algorithms.LABEL.``) take the values; None for all.
        """
        keys = {
            key: setting[name]
            for name, one in self.spaces().items()
            for key in one.set
            if label is None or key.startswith(f"algorithms.{label}.")
        }
        return self._changed(keys)

    def seeded(self, seed: int | None) -> Claim:
        """The claim about studies with another seed; with their own if there is none."""
        return self if seed is None else self._changed({"seed": seed})

    def _changed(self, changes: Mapping[str, Setting]) -> Claim:
        return self.model_copy(update={"studies": {name: one.changed(changes) for name, one in self.studies.items()}})

    def terms(self) -> list[Term]:
        return [term for condition in self.conditions for term in condition.terms()]

    def study_of(self, term: Term) -> ClaimedStudy:
        """The study that a term is about."""
        return self.studies[term.study] if term.study is not None else next(iter(self.studies.values()))

    def studies_of(self, term: Term) -> list[tuple[float, ClaimedStudy]]:
        """The study that a term is about, with weight 1."""
        return [(1.0, self.study_of(term))]


class BlendedClaim(Claim):
    """A claim whose labels are weighted means of some of their settings."""

    blends: dict[str, list[tuple[float, dict[str, Setting]]]]

    def studies_of(self, term: Term) -> list[tuple[float, ClaimedStudy]]:
        """The studies of which a term is the weighted mean."""
        blend = self.blends[term.label]
        return [(weight, self.at(setting, term.label).study_of(term)) for weight, setting in blend]


class Panel(Strict):
    """One panel of a figure: curves of several labels, or a metric against a parameter."""

    title: str
    study: ClaimedStudy
    labels: list[AnyTerm] = Field(
        min_length=1, description="its lines: labels, or labels with values of the grid's keys"
    )
    of: str = Field(
        default="regret", description="the vertical axis: regret, regret_per_agent, scalars for curves, else a metric"
    )
    against: str = Field(
        default="turns", description="turns, turns_per_agent, scalars, times, or a key of the sweep's grid"
    )
    at: dict[str, str | int | float] = Field(default={}, description="values of the other keys of the grid, for all")
    published: dict[str, float] = Field(default={}, description="line -> its end as the authors publish it in numbers")
    published_in: str = Field(default="", description="where they publish these numbers")

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.against in AXES and self.of not in HEIGHTS:
            raise ValueError(f"of(={self.of}) must be one of {', '.join(HEIGHTS)} against {self.against}")
        if unknown := self.published.keys() - set(map(str, self.labels)):
            raise ValueError(f"published names {', '.join(sorted(unknown))}, which are not lines of the panel")
        return self


class Figure(Strict):
    """A figure of a paper, drawn with its axes from our runs."""

    title: str
    where: str
    panels: list[Panel] = Field(min_length=1)


class Paper(Strict):
    """A paper: ``paper.yaml`` beside its claims."""

    title: str
    cites: str = Field(default="", description="its key in the bibliography; empty for studies of coband itself")
    figures: list[Figure] = Field(default=[])


class PlacedClaim(BaseModel):
    """A claim with its paper and its file."""

    model_config = ConfigDict(frozen=True)

    paper: str
    name: str
    path: Path
    claim: Claim

    @property
    def key(self) -> str:
        """How commands call it, such as ``duets/figure_1a_regret``."""
        return f"{self.paper}/{self.name}"

    def seeded(self, seed: int | None) -> PlacedClaim:
        """The claim about studies with another seed; with their own if there is none."""
        return self.model_copy(update={"claim": self.claim.seeded(seed)})
