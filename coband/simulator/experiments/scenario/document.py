"""The pydantic models of a scenario file, built from the registry; validation and the JSON Schema both use them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import GenericAlias
from typing import Annotated, Any, Literal, Union

from pydantic import AfterValidator, BaseModel, Field, create_model, model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import Schedule
from coband.simulator.core.config import OF_THE_COUNT, TIME, Config
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.plan import Ties
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.footing import CURVES
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import quoted


class Place(Config):
    """A moment of a run: a simulated time, or a number of pulls of all agents."""

    time: Annotated[float | None, Field(ge=0), TIME] = None
    """The simulated time."""
    pulls: Annotated[int | None, Field(ge=1)] = None
    """The number of pulls."""

    @model_validator(mode="after")
    def _is_one(self) -> Place:
        if (self.time is None) == (self.pulls is None):
            raise ValueError("give either time or pulls")
        return self


class Expectation(Config):
    """What ``coband check`` compares with the results: ``equals``; or ``at_least``, ``at_most`` or both; or
    ``less_than`` or ``more_than``."""

    label: Annotated[str, Field(min_length=1)]
    """Label of the entry of ``algorithms`` whose results are compared."""
    count: str
    """The number that is compared."""
    equals: Annotated[int | float | tuple[int | float, ...] | None, OF_THE_COUNT] = None
    """The exact value, or a list with the value of each replication."""
    at_most: Annotated[int | float | None, OF_THE_COUNT] = None
    """Upper bound for every replication."""
    at_least: Annotated[int | float | None, OF_THE_COUNT] = None
    """Lower bound for every replication."""
    less_than: Annotated[str, Field(min_length=1)] | None = None
    """Another entry of ``algorithms`` whose number is larger on average, by more than chance explains
    (95 % interval of the paired difference). Where the two make different numbers of pulls, regret, scalars, energy and
    time are compared at equal pulls, and an entry that makes fewer is not better."""
    more_than: Annotated[str, Field(min_length=1)] | None = None
    """Another entry whose number is smaller, likewise."""
    at: Place | None = None
    """Count at this moment of the run: turns, regret, reward, scalars, energy; at a number of pulls also
    simulated_time, which is when the last of them was made. Null: at its end."""
    of: Literal["each", "mean"] = "each"
    """each: bounds hold for every replication; mean: the mean's whole 95 % confidence interval is within them."""

    @property
    def other(self) -> str | None:
        """The entry that it is compared with."""
        return self.less_than or self.more_than

    @model_validator(mode="after")
    def _has_one_kind_of_bound(self) -> Expectation:
        bounded = self.at_most is not None or self.at_least is not None
        compared = self.less_than is not None, self.more_than is not None
        if [self.equals is not None, bounded, *compared].count(True) != 1:
            raise ValueError("give either equals, or at_least, at_most or both, or less_than, or more_than")
        if self.at is not None and self.count not in CURVES:
            raise ValueError(f"at goes with numbers that are known during a run: {', '.join(CURVES)}")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least(={self.at_least}) must be <= at_most(={self.at_most})")
        if self.of == "mean" and not bounded:
            raise ValueError("of: mean goes with at_least, at_most or both")
        return self


class Tuning(Config):
    """Best parameters for each algorithm: chosen on separate replications, reported on fresh ones."""

    replications: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """Replications on which candidates are compared; their seeds differ from those of the reported replications."""
    on: str = "regret"
    """The number whose mean is compared."""
    best: Literal["lowest", "highest"] = "lowest"
    """Whether the lowest or the highest mean is best."""
    over: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Keys of the grid whose values are tuned; null: all keys that begin with ``algorithms.``."""


class Until(Config):
    """Sequential stopping: add replications until the confidence interval of a mean is narrow enough; give half_width
    or relative."""

    half_width: Annotated[Annotated[float, Field(gt=0)] | None, OF_THE_COUNT] = None
    """Stop when half the width of the mean's 95 % confidence interval is at most this number."""
    relative: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Stop when half the width is at most this share of the mean."""
    on: str = "regret"
    """The number whose mean is estimated."""
    max_replications: Annotated[int, Field(ge=2, le=1_000_000)] = 100
    """Largest number of replications; ``replications`` is the smallest."""

    @model_validator(mode="after")
    def _has_one_target(self) -> Until:
        if (self.half_width is None) == (self.relative is None):
            raise ValueError("give either half_width or relative")
        return self


def one_line(label: str) -> str:
    """The label itself, which tables, figures and files have.

    Raises:
        ValueError: it is more than one line, has a tab, or is blank.
    """
    if "\t" in label or label.splitlines() != [label] or not label.strip():
        raise ValueError(f"{quoted(label)} is not allowed: a label is text on one line, without tabs")
    return label


def counted(metrics: Mapping[str, Metric]) -> list[str]:
    """The names of metrics that a result has as one number."""
    return [name for name, metric in metrics.items() if metric.aggregate is not None]


class AlgorithmEntry(Config):
    """The keys that every entry of ``algorithms`` has in addition to the algorithm's own parameters."""

    algorithm: str
    """The algorithm's name; ``coband list algorithms`` prints them all."""
    label: Annotated[str, Field(min_length=1, max_length=60), AfterValidator(one_line)] | None = None
    """Name of this entry in results; null: the algorithm's name."""
    ties: Ties = "random"
    """Which of several arms with exactly the same score an agent pulls: random: one of them, drawn uniformly from a
    stream of the agent's own; first: the one with the lowest index."""


_Values = Annotated[list[Any], Field(min_length=1)] | Annotated[dict[str, Any], Field(min_length=1)]
_Axes = Annotated[dict[str, _Values], Field(min_length=1)]


_NAME: dict[str, Any] = {"words": "text of at most 100 letters, digits, _, - and ., the first neither - nor ."}


class Document(Config):
    """A comparison of algorithms on the same arms and the same noise."""

    schema_version: Literal[1] = 1
    """The form of scenario files that the file is written in; a larger number asks for a newer coband."""
    name: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", json_schema_extra=_NAME)]
    """What run directories and reports are named after."""
    description: str | None = None
    """What the scenario shows."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Replication r uses streams derived from (seed, r)."""
    replications: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Independent repetitions."""
    agents: AgentsConfig
    """Number, speed and availability of the agents."""
    server: ServerConfig = ServerConfig()
    """Speed of the server."""
    schedule: Schedule
    """When each agent takes its turns."""
    network: NetworkConfig = NetworkConfig()
    """The network between agents and server."""
    messages: MessagesConfig = MessagesConfig()
    """What is done to messages on their way, and how their bits are counted."""
    adversaries: tuple[Adversary, ...] = ()
    """Agents that do not send what their protocol says."""
    problem: dict[str, Any]
    """The bandit problem: arms, rewards and noise."""
    algorithms: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    """The algorithms to compare; all entries have the same arms, noise and seeds."""
    expect: tuple[Expectation, ...] = ()
    """Counts that ``coband check`` verifies."""
    trace: Literal["off", "protocol", "full"] = "protocol"
    """protocol: every event; full: also the contents of messages; off: none."""
    checks: Literal["cheap", "full"] = "cheap"
    """cheap: invariants; full: also a twin of every node that must do the same."""
    share: bool = True
    """Cache computations that several nodes repeat; it never changes results."""
    grid: _Axes | None = None
    """For coband sweep: key path -> values, a list or {label: value}; all pairs."""
    zip: _Axes | Annotated[list[_Axes], Field(min_length=1)] | None = None
    """For coband sweep: key path -> values that change together; a list for several."""
    tuning: Tuning | None = None
    """For coband sweep: choose the best parameters."""
    until: Until | None = None
    """Replications go on until a mean is known."""


def _entry_model(algorithm: Algorithm) -> type[BaseModel]:
    fields: Any = {"algorithm": (Literal[algorithm.name], Field(description=algorithm.summary))}
    text = f"{algorithm.summary}\n\n{algorithm.reference}"
    return create_model(algorithm.name, __base__=(algorithm.config, AlgorithmEntry), __doc__=text, **fields)


def _one_of(models: list[Any], tag: str) -> Any:
    """A union of models, discriminated by ``tag``; a single model as it is."""
    return models[0] if len(models) == 1 else Annotated[Union[tuple(models)], Field(discriminator=tag)]  # noqa: UP007


@lru_cache(maxsize=32)
def json_schema(registry: Registry, section: str | None = None) -> JsonSchemaValue:
    """JSON Schema (draft 2020-12) of the scenario files that can name what is registered.

    Args:
        section: a key of the document, for the schema of a mapping with this key alone: that of the whole takes long.
    """
    base: type[Config] = Document
    fields: dict[str, Any] = {}
    if section is not None:
        base, info = Config, Document.model_fields[section]
        fields[section] = (info.annotation, info)
    if section in (None, "problem"):
        fields["problem"] = (_one_of([entry.config for entry in registry.problems.values()], "kind"), ...)
    if section in (None, "algorithms"):
        entry = _one_of([_entry_model(algorithm) for algorithm in registry.algorithms.values()], "algorithm")
        fields["algorithms"] = (GenericAlias(tuple, (entry, ...)), Field(min_length=1))
    model = create_model("Scenario", __base__=base, __doc__=Document.__doc__, **fields)
    schema = model.model_json_schema()
    defs = schema.get("$defs", {})
    for part in defs.values():  # what names a kind must be there, as validation asks for it
        tags = [key for key in ("kind", "algorithm") if "const" in part.get("properties", {}).get(key, ())]
        if further := [key for key in tags if key not in part.get("required", ())]:
            part["required"] = [*part.get("required", ()), *further]
    for name, key in (("Expectation", "count"), ("Tuning", "on"), ("Until", "on")):
        if name in defs:
            defs[name]["properties"][key]["enum"] = counted(registry.metrics)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "coband scenario",
        **{key: value for key, value in schema.items() if key != "title"},
    }
