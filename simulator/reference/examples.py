"""An example of every key and kind, as a part of a scenario file.

Most are made from the models: the keys that must be there, and a value that differs from the default. The others are
below, by the name of what they are an example of. Plugins give ``Field(examples=[...])``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from coband.simulator.reference.entries import Entry, Index
from coband.simulator.reference.models import ROOT, TAGS, Path, Schema
from coband.simulator.reference.values import in_yaml

_NUMBERS = (0.5, 1.0, 2.0, 0.0, 10.0)
_SIZES = (10, 2, 1, 0)

VALUES: Mapping[str, Any] = {
    "algorithms.budget": 30000,
    "algorithms.c_mu": 0.1,
    "algorithms.horizon": 1000,
    "algorithms.kernel": {"kind": "gaussian", "length_scale": 0.5},
    "algorithms.label": "Ours",
    "algorithms.reward_range": [0, 1],
    "agents.availability.file": "availability.csv",
    "agents.population.columns": {"compute": "seconds"},
    **{
        f"agents.population.columns.{column}": "seconds"
        for column in ("compute", "speed", "uplink", "downlink", "latency", "round_trip", "weight")
    },
    "agents.population.availability_file": "timers.json",
    "agents.population.behaviour_file": "behaviour.pkl",
    "agents.population.device_file": "devices.pkl",
    "agents.population.latency_file": "steps.json",
    "agents.population.speed_file": "speeds.json",
    "FilePopulation.file": "devices.csv",
    "Packets.file": "packets.txt",
    "Preset.only": ["compute"],
    "Preset.name": "phones",
    "agents.population.windows_file": "windows.csv",
    "agents.population": {"kind": "preset", "name": "phones"},
    "agents.compute": {"kind": "shifted_exponential", "shift": 0.2, "rate": 2.0},
    "agents.speed": {"kind": "lognormal", "median": 1.0, "sigma": 0.5},
    "description": "Which one learns faster on slow links?",
    "empirical.file": "delays.txt",
    "empirical.values": [0.1, 0.12, 0.4],
    "expect.at_least": 10,
    "expect.at_most": 1000,
    "expect.count": "regret",
    "expect.label": "Async",
    "expect.less_than": "Alone",
    "grid": {"agents.count": [10, 100]},
    "matern.nu": 1.5,
    "name": "my_study",
    "network.bandwidth": 1000,
    "network.latency": {"kind": "lognormal", "median": 0.05, "sigma": 0.5},
    "matrix.file": "delay_matrix.txt",
    "matrix.values": [[0, 1, 2], [1, 0, 2], [2, 2, 0]],
    "network.links.agents": [0, 1],
    "network.links.latency": 2.0,
    "network.outages.end": 20.0,
    "network.outages.nodes": ["server", 2],
    "network.partitions.end": 20.0,
    "network.partitions.groups": [[0, 1], [2, 3]],
    "network": {"latency": 0.1, "loss": 0.05},
    "network.topology": {"kind": "erdos_renyi", "p": 0.5},
    "network.topology.edges": [[0, 1], [1, 2]],
    "network.topology.file": "graph.txt",
    "network.topology.k": 4,
    "network.topology.rows": 2,
    "network.topology.seed": 3,
    "pareto.shape": 1.5,
    "problem.agent": "site",
    "ArraysProblem.arms": [[0, 1], [1, 0], [0.6, 0.8]],
    "ArraysProblem.content": "abcd" + "0" * 60,
    "ArraysProblem.count": 2,
    "ArraysProblem.rewards": [0.1, 0.4, 0.3],
    "adversaries": [{"agents": {"fraction": 0.2}, "behaviour": {"kind": "sign_flip"}}],
    "adversaries.agents": {"fraction": 0.2},
    "adversaries.fields": ["moment"],
    "adversaries.messages": ["upload"],
    "messages": {"counting": "packed"},
    "messages.counting": "packed",
    "messages.encoding": {"default": "float32"},
    "messages.encoding.default": "float32",
    "messages.encoding.kinds": {"upload": {"gram": "float32"}},
    "problem.arms.low": -1,
    "problem.arms.points": [[0, 1], [1, 0], [0.6, 0.8]],
    "problem.data.path": "data/magic04.data",
    "problem.features.tasks": [0, 0, 1, 1],
    "problem.group": "visit",
    "problem.path": "table.csv",
    "problem.positive": "g",
    "problem.reward": {"kind": "cosine"},
    "problem.special": {"low": 0.7, "high": 0.8},
    "problem.special.high": 0.8,
    "problem.special.low": 0.2,
    "problem.reward.function": "reward.py:f",
    "sampler.function": "delay.py:draw",
    "schedule.file": "turns.csv",
    "schedule.order": "weighted",
    "schedule.weights": [3, 1, 1],
    "schedule.turns": 1000,
    "seed": 7,
    "server": {"handling": 0.01},
    "server.aggregate": {"kind": "clip", "factor": 1.5},
    "TableProblem.features": ["age"],
    "TableProblem.one_hot": ["age"],
    "TableProblem.reward": "reward",
    "tuning.on": "uplink_scalars",
    "tuning.over": ["algorithms.*.alpha"],
    "until.relative": 0.05,
    "zip": {"agents.count": [10, 20], "schedule.turns": [1000, 2000]},
}
"""Values of keys, where one that is made up would be wrong or would say little; of one model alone under its name."""

_ARMS, _REWARDS = [[0, 1], [1, 0], [0.6, 0.8]], [0.1, 0.4, 0.3]
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "agents.population.columns.weight": {"compute": "seconds"},
    "agents.population.windows_file": {"columns": {"compute": "seconds", "availability": "id"}},
    "flash": {"latency_file": "steps.json"},
    "fedscale": {"device_file": "devices.pkl"},
    "arrays": {"arms": _ARMS, "rewards": _REWARDS},
    "empirical": {"values": [0.1, 0.12, 0.4]},
    "Expectation": {"label": "Async", "count": "regret", "at_most": 1000},
    "kernel.gaussian": {"length_scale": 0.5},
    "matrix": {"values": [[0, 1, 2], [1, 0, 2], [2, 2, 0]]},
    "Rate": {"scalars": 1000},
    "pool": {"dimension": 5, "size": 100},
    "problem.agent": {"group": "visit"},
    "renewal": {"turns": 50},
    "schedule.order": {"weights": [3, 1, 1]},
    "schedule.weights": {"order": "weighted"},
    "Until": {"relative": 0.05},
}
"""Keys that stand beside a key, or in a model beside those that must be there."""

ALONE = ("bits", "content", "equals", "file", "gamma", "half_width", "less_than", "points", "values")
"""Keys that stand in the place of such keys."""

_GRID: Mapping[str, Any] = {"grid": {"algorithms.*.alpha": [0.5, 1, 2]}}
SECTIONS: dict[str, Mapping[str, Any]] = {
    "matrix": {"agents": {"count": 2}},
    "matrix.file": {"agents": {"count": 2}},
    "matrix.values": {"agents": {"count": 2}},
    "problem.features.tasks": {"agents": {"count": 4}},
    "schedule.order": {"agents": {"count": 3}},
    "schedule.weights": {"agents": {"count": 3}},
    "tuning": _GRID,
    "tuning.replications": _GRID,
    "tuning.on": _GRID,
    "tuning.best": _GRID,
    "tuning.over": _GRID,
}
"""Other sections of the file that an example needs."""

PREFERRED = "ContextualProblem"
"""The model of which a key is shown that several have."""

_SUMS: Mapping[str, Any] = {"algorithms": [{"algorithm": "dis_lin_ucb"}]}
_DEFENCES = ("clip", "coordinate_median", "geometric_median", "reject_outliers", "trimmed_mean")
SECTIONS |= dict.fromkeys((*_DEFENCES, "server.aggregate", "server.aggregate.f", "server.aggregate.factor"), _SUMS)

SNIPPETS: Mapping[str, str] = {
    "adversaries.agents.fraction": """\
adversaries:
  - agents: {fraction: 0.2}
    behaviour: {kind: sign_flip}""",
    "agents.population.columns.availability": """\
agents:
  count: 10
  population:
    kind: file
    file: devices.csv
    columns: {compute: seconds, availability: id}
    windows_file: windows.csv""",
    "branin": """\
problem:
  kind: fixed_domain
  domain: {kind: box, dimension: 2}
  reward: {kind: branin}""",
    "hartmann": """\
problem:
  kind: fixed_domain
  domain: {kind: box, dimension: 4}
  reward: {kind: hartmann}""",
}
"""Whole examples."""


class Examples:
    """Makes examples.

    Args:
        index: of the keys and kinds of scenario files.
    """

    def __init__(self, index: Index) -> None:
        self._models = index.models
        self._names: dict[tuple[str, str], str] = {}
        for entry in index.entries.values():
            for model in entry.models:
                self._names[model, "" if entry.is_kind else entry.word] = entry.name

    def snippet(self, entry: Entry) -> str:
        """YAML with a key or kind, all keys above it, and those beside it that must be there."""
        if entry.name in SNIPPETS:
            return SNIPPETS[entry.name]
        path = entry.paths[0]
        model = PREFERRED if PREFERRED in entry.models else entry.models[0]
        if entry.is_kind:
            below: Any = self._mapping(model, {_tag_key(self._models.schema(model)): entry.word})
        else:
            beside = {**BESIDE.get(entry.name, {})} if model != ROOT else {}
            path, below = path[:-1], self._mapping(model, {**beside, entry.word: self._value(model, entry.word)})
        for depth in range(len(path) - 1, -1, -1):
            model, below = self._above(path[: depth + 1], model, below)
        more = SECTIONS.get(entry.name, {})
        return "\n".join([*_block(below, path), *_block(more, ())])

    def _above(self, path: Path, model: str, value: Any) -> tuple[str, Any]:
        """A model with the last key of a path, and a mapping of it in which that key has the value."""
        for parent in sorted(self._models.at[path[:-1]], key=PREFERRED.__ne__):
            schema = self._models.keys(parent).get(path[-1])
            if schema is not None and model in self._models.inside(schema):
                return parent, self._mapping(parent, {path[-1]: [value] if _is_list(schema) else value})
        raise LookupError(f"{model} cannot stand at {'.'.join(path)}")

    def _mapping(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A mapping of a model with what is given and what must be there; of the whole file, what is given alone."""
        if model == ROOT:
            return dict(given)
        schema, tags = self._models.schema(model), self._models.tags(model)
        found: dict[str, Any] = {_tag_key(schema): tags[0]} if tags else {}
        more = {} if given.keys() & {*ALONE} else BESIDE.get(self._names.get((model, ""), model), {})
        for key in self._models.keys(model):
            if key in given:
                found[key] = given[key]
            elif key in more:
                found[key] = more[key]
            elif self._models.required(model, key):
                found[key] = self._value(model, key)
        return {**found, **given}

    def _value(self, model: str, key: str) -> Any:
        """The value of a key in an example."""
        for name in (f"{model}.{key}", self._names.get((model, key), "")):
            if name in VALUES:
                return VALUES[name]
        return self._sample(self._models.keys(model)[key])

    def _sample(self, schema: Schema) -> Any:
        """Some value that a schema allows, if possible another one than the default."""
        if schema.get("examples"):
            return schema["examples"][0]
        default = schema.get("default")
        members = list(self._members(schema))
        words = [word for member in members for word in _words(member) if word != default]
        if words:
            return words[0]
        if isinstance(default, int | float | str):
            return default
        mappings = self._models.inside(schema)
        if mappings and not any(member.get("type") in ("number", "integer") for member in members):
            found = self._mapping(mappings[0], {})
            return [found] if _is_list(schema) else found
        return _plain(members, self._sample)

    def _members(self, schema: Schema) -> Iterator[Schema]:
        unions = [member for union in ("anyOf", "oneOf", "allOf") for member in schema.get(union, ())]
        for member in unions:
            yield from self._members(member)
        if not unions and "$ref" not in schema:
            yield schema


def _tag_key(schema: Schema) -> str:
    return next(key for key in TAGS if key in schema["properties"])


def _is_list(schema: Schema) -> bool:
    members = (schema, *schema.get("anyOf", ()))
    return any(member.get("type") == "array" for member in members)


def _words(schema: Schema) -> list[Any]:
    if schema.get("type") == "boolean":
        return [True, False]
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _plain(members: list[Schema], sample: Callable[[Schema], Any]) -> Any:
    """A number, a text or a list that one of the schemas allows."""
    for schema in members:
        kind = schema.get("type")
        if kind in ("number", "integer"):
            numbers = _SIZES if kind == "integer" else _NUMBERS
            return next(value for value in numbers if _is_within(value, schema))
        if kind == "array":
            return [sample(schema["items"])] if "items" in schema else []
        if kind == "string":
            return "text"
    return None


def _is_within(value: float, schema: Schema) -> bool:
    return bool(
        value >= schema.get("minimum", value)
        and value > schema.get("exclusiveMinimum", value - 1)
        and value <= schema.get("maximum", value)
        and value < schema.get("exclusiveMaximum", value + 1)
    )


def _block(value: Any, path: Path) -> Iterator[str]:
    """The lines of a mapping; the keys of the path have lines of their own, and all else stands on one line."""
    for key, inner in value.items():
        if not path or key != path[0]:
            yield f"{key}: {in_yaml(inner)}"
        elif isinstance(inner, list):
            yield f"{key}:"
            for number, line in enumerate(_block(inner[0], path[1:])):
                yield f"  {'  ' if number else '- '}{line}"
        else:
            yield f"{key}:"
            yield from (f"  {line}" for line in _block(inner, path[1:]))
