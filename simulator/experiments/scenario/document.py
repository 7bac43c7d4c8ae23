"""The models of a scenario file, made from the registry, so that validation and JSON Schema have one source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import GenericAlias
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, create_model, model_validator
from pydantic.json_schema import GenerateJsonSchema

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import Schedule
from coband.simulator.core.config import Config
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.experiments.registry.registry import Registry

CountKey = Literal[
    "turns",
    "regret",
    "reward",
    "messages",
    "uplink_scalars",
    "downlink_scalars",
    "peer_scalars",
    "scalars",
    "scalars_broadcast_once",
    "rounds",
    "simulated_time",
    "dictionary_size",
    "wire_scalars",
    "bits",
    "uplink_scalars_per_agent",
    "wire_messages",
    "wire_bits",
    "deliveries",
    "transmissions",
    "correct",
    "error",
    "correct_agents",
    "samples_per_agent",
    "dropped",
    "expired",
    "stalled",
]
COUNT_KEYS: tuple[str, ...] = CountKey.__args__  # type: ignore[attr-defined]
"""The numbers of a result that ``expect`` can speak about."""


class Expectation(Config):
    """What ``coband check`` compares with the results: ``equals``, or ``at_least``, ``at_most`` or both; or
    ``less_than``."""

    label: Annotated[str, Field(min_length=1)]
    """The entry of ``algorithms`` that it speaks about."""
    count: CountKey
    """The number that it speaks about."""
    equals: int | float | tuple[int | float, ...] | None = None
    """The exact value, or a list with the value of each replication."""
    at_most: int | float | None = None
    """Upper bound for every replication."""
    at_least: int | float | None = None
    """Lower bound for every replication."""
    less_than: Annotated[str, Field(min_length=1)] | None = None
    """Another entry of ``algorithms`` whose number is larger on average, by more than chance explains
    (95 % interval of the paired difference)."""
    of: Literal["each", "mean"] = "each"
    """each: bounds hold for every replication; mean: all of the mean's 95 % confidence interval is within them."""

    @model_validator(mode="after")
    def _says_something(self) -> Expectation:
        bounded = self.at_most is not None or self.at_least is not None
        if [self.equals is not None, bounded, self.less_than is not None].count(True) != 1:
            raise ValueError("give either equals, or at_least, at_most or both, or less_than")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least(={self.at_least}) must be <= at_most(={self.at_most})")
        if self.of == "mean" and not bounded:
            raise ValueError("of: mean goes with at_least, at_most or both")
        return self


class Tuning(Config):
    """Best parameters for each algorithm: chosen on replications of their own, reported on fresh ones."""

    replications: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """Replications on which candidates are compared; their seeds are not those of the reported ones."""
    on: CountKey = "regret"
    """The number whose mean decides."""
    best: Literal["lowest", "highest"] = "lowest"
    """Which mean wins."""
    over: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Keys of the grid that are chosen among; null for those that begin with ``algorithms.``."""


class Until(Config):
    """Replications go on until the interval of a mean is narrow; give half_width or relative."""

    half_width: Annotated[float, Field(gt=0)] | None = None
    """Half the width of the 95 % confidence interval of the mean that is narrow enough."""
    relative: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The same as a share of the mean."""
    on: CountKey = "regret"
    """The number whose mean is wanted."""
    max_replications: Annotated[int, Field(ge=2, le=1_000_000)] = 100
    """Where it ends in any case; ``replications`` is where it begins."""

    @model_validator(mode="after")
    def _has_one_target(self) -> Until:
        if (self.half_width is None) == (self.relative is None):
            raise ValueError("give either half_width or relative")
        return self


class AlgorithmEntry(Config):
    """What every entry of ``algorithms`` has beside the algorithm's own parameters."""

    algorithm: str
    """The algorithm's name; ``coband list algorithms`` prints them all."""
    label: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    """How results call this entry; null for the algorithm's name."""


class _Document(Config):
    """A comparison of algorithms on one world: the same arms and noise, whatever each of them sends."""

    name: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
    """letters, digits, _, - and . alone: run directories and reports are named after it"""
    description: str | None = None
    """What the scenario shows."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Replication r uses streams derived from (seed, r)."""
    replications: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Independent repetitions."""
    agents: AgentsConfig
    """How many agents there are, and how fast."""
    server: ServerConfig = ServerConfig()
    """How fast the server is."""
    schedule: Schedule
    """Who acts when."""
    network: NetworkConfig = NetworkConfig()
    """The network between agents and server."""


_COMPARED = "What is compared; all entries share world and seeds."
_LEVELS: Mapping[str, Any] = {
    "expect": (tuple[Expectation, ...], Field(default=(), description="Counts that ``coband check`` verifies.")),
    "trace": (
        Literal["off", "protocol", "full"],
        Field(default="protocol", description="protocol: every event; full: and what messages hold; off: none."),
    ),
    "checks": (
        Literal["cheap", "full"],
        Field(default="cheap", description="cheap: the invariants that cost next to nothing; full: all of them."),
    ),
    "share": (
        bool,
        Field(default=True, description="Compute once what several nodes would compute alike; results are the same."),
    ),
}


_Values = Annotated[list[Any], Field(min_length=1)] | Annotated[dict[str, Any], Field(min_length=1)]
_Axes = Annotated[dict[str, _Values], Field(min_length=1)]
_OF_SWEEPS: Mapping[str, Any] = {
    "grid": (
        _Axes | None,
        Field(default=None, description="For coband sweep: key path -> values, a list or {label: value}; all pairs."),
    ),
    "zip": (
        _Axes | Annotated[list[_Axes], Field(min_length=1)] | None,
        Field(default=None, description="For coband sweep: key path -> values that go in step; a list for several."),
    ),
    "tuning": (Tuning | None, Field(default=None, description="For coband sweep: choose the best parameters.")),
    "until": (Until | None, Field(default=None, description="Replications go on until a mean is known.")),
}
OF_SWEEPS: tuple[str, ...] = tuple(_OF_SWEEPS)
"""The sections of a scenario file that a single run does not use."""


def _entry_model(algorithm: Algorithm) -> type[BaseModel]:
    fields: Any = {"algorithm": (Literal[algorithm.name], Field(description=algorithm.summary))}
    return create_model(
        algorithm.name,
        __base__=(algorithm.config, AlgorithmEntry),
        __doc__=f"{algorithm.summary}\n\n{algorithm.reference}",
        **fields,
    )


def _one_of(models: list[Any], tag: str) -> Any:
    """A union told apart by ``tag``; a single model needs none."""
    return models[0] if len(models) == 1 else Annotated[Union[tuple(models)], Field(discriminator=tag)]  # noqa: UP007


@lru_cache(maxsize=8)
def document_model(registry: Registry) -> type[BaseModel]:
    """The model of a scenario file with the registered problems and algorithms."""
    problem = _one_of([entry.config for entry in registry.problems.values()], "kind")
    entry = _one_of([_entry_model(algorithm) for algorithm in registry.algorithms.values()], "algorithm")
    fields: Any = {
        "problem": (problem, Field(description="What the agents face.")),
        "algorithms": (GenericAlias(tuple, (entry, ...)), Field(min_length=1, description=_COMPARED)),
        **_LEVELS,
        **_OF_SWEEPS,
    }
    return create_model("Scenario", __base__=_Document, __doc__=_Document.__doc__, **fields)


class _Generator(GenerateJsonSchema):
    """JSON Schema in which the tag of a union's members is required, as validation requires it."""

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        generated = super().tagged_union_schema(schema)
        discriminator = schema["discriminator"]
        for member in generated.get("oneOf", ()) if isinstance(discriminator, str) else ():
            definition = self.get_schema_from_definitions(member["$ref"]) if "$ref" in member else member
            if definition is not None and discriminator not in definition.setdefault("required", []):
                definition["required"].append(discriminator)
        return generated


@lru_cache(maxsize=8)
def json_schema(registry: Registry) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of scenario files."""
    schema = document_model(registry).model_json_schema(mode="validation", schema_generator=_Generator)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "coband scenario",
        **{key: value for key, value in schema.items() if key != "title"},
    }
