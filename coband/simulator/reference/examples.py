"""An example of every key and kind, as a part of a scenario file.

Most are made from the models: the keys that must be there, and a value that differs from the default. The others are
in ``examples.yaml``, by the name of what they are an example of. Plugins give ``Field(examples=[...])``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from coband.simulator.experiments.scenario.explain import TAG_KEYS
from coband.simulator.reference.entries import ROOT, Entry, Index, Schema

ALONE = {
    *("sigma", "bits", "content", "equals", "file", "gamma", "half_width", "less_than", "more_than", "points", "time"),
    "values",
}
"""Keys that stand in the place of such keys."""
PREFERRED = "ContextualProblem"
"""The model of which a key is shown that several have."""


@cache
def written() -> Mapping[str, Mapping[str, Any]]:
    """The tables of ``examples.yaml``."""
    tables: Mapping[str, Mapping[str, Any]] = yaml.safe_load(files(__package__).joinpath("examples.yaml").read_text())
    return tables


class Examples:
    """Makes examples."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._names = {
            (model, "" if entry.is_kind else entry.word): entry.name
            for entry in index.entries.values()
            for model in entry.models
        }

    def snippet(self, entry: Entry) -> str:
        """YAML with a key or kind, all keys above it, and those beside it that must be there."""
        if entry.name in written()["snippets"]:
            return str(written()["snippets"][entry.name])
        path, model = entry.paths[0], PREFERRED if PREFERRED in entry.models else entry.models[0]
        if entry.is_kind:
            below: Any = self._mapping(model, {self._tag(model): entry.word})
        else:
            beside = written()["beside"].get(entry.name, {}) if model != ROOT else {}
            path, below = path[:-1], self._mapping(model, {**beside, entry.word: self._value(model, entry.word)})
        for depth in reversed(range(len(path))):
            key, above = path[depth], sorted(self._index.at[path[:depth]], key=PREFERRED.__ne__)
            schemas = {one: self._index.keys(one).get(key, {}) for one in above}
            model = next(one for one in above if model in self._index.inside(schemas[one]))
            below = self._mapping(model, {key: [below] if _is_list(schemas[model]) else below})
        found = {**below, **written()["sections"].get(entry.name, {})}
        nested = any(isinstance(value, dict | list) for value in found.values())
        style = None if nested else False  # mappings without others inside on one line, but the sections
        return yaml.safe_dump(found, sort_keys=False, default_flow_style=style, width=1000).rstrip()

    def _tag(self, model: str) -> str:
        return next(key for key in TAG_KEYS if key in self._index.schemas[model]["properties"])

    def _mapping(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A mapping of a model with what is given and what must be there; of the whole file, only what is given."""
        if model == ROOT:
            return dict(given)
        tags = self._index.tags(model)
        found: dict[str, Any] = {self._tag(model): tags[0]} if tags else {}
        more = {} if given.keys() & ALONE else written()["beside"].get(self._names.get((model, ""), model), {})
        for key in self._index.keys(model):
            if key in given or key in more:
                found[key] = given.get(key, more.get(key))
            elif self._index.required(model, key):
                found[key] = self._value(model, key)
        return {**found, **given}

    def _value(self, model: str, key: str) -> Any:
        values = written()["values"]
        name = next((one for one in (f"{model}.{key}", self._names.get((model, key), "")) if one in values), None)
        return self._sample(self._index.keys(model)[key]) if name is None else values[name]

    def _sample(self, schema: Schema) -> Any:
        """Some value that a schema allows, if possible another one than the default."""
        if schema.get("examples"):
            return schema["examples"][0]
        members, default = list(self._plain(schema)), schema.get("default")
        words = [word for member in members for word in _words(member) if word != default]
        if words or isinstance(default, int | float | str):
            return words[0] if words else default
        numeric = any(member.get("type") in ("number", "integer") for member in members)
        for mapping in self._index.inside(schema) if not numeric else ():
            return [self._mapping(mapping, {})] if _is_list(schema) else self._mapping(mapping, {})
        return next((value for member in members for value in self._values(member)), None)

    def _plain(self, schema: Schema) -> Iterator[Schema]:
        unions = [member for union in ("anyOf", "oneOf", "allOf") for member in schema.get(union, ())]
        for member in unions:
            yield from self._plain(member)
        if not unions and "$ref" not in schema:
            yield schema

    def _values(self, schema: Schema) -> Iterator[Any]:
        """Numbers, a text or a list that a schema allows."""
        match schema.get("type"):
            case "integer":
                yield from (value for value in (10, 2, 1, 0) if _is_within(value, schema))
            case "number":
                yield from (value for value in (0.5, 1.0, 2.0, 0.0, 10.0) if _is_within(value, schema))
            case "array":
                yield [self._sample(schema["items"])] if "items" in schema else []
            case "string":
                yield "text"


def _is_list(schema: Schema) -> bool:
    return any(member.get("type") == "array" for member in (schema, *schema.get("anyOf", ())))


def _words(schema: Schema) -> list[Any]:
    if schema.get("type") == "boolean":
        return [True, False]
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _is_within(value: float, schema: Schema) -> bool:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum", value - 1), schema.get("exclusiveMaximum", value + 1)
    return bool(least <= value <= most and above < value < below)
