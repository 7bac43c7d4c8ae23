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

from coband.simulator.experiments.scenario.explain import TAG_KEYS, Wording
from coband.simulator.reference.entries import ROOT, Entry, Index, Schema

ALONE = {
    *("bits", "content", "equals", "file", "gamma", "half_width", "less_than", "more_than", "points", "sigma", "time"),
    "values",
}
"""Keys that stand in the place of those that ``beside`` has."""
PREFERRED = "ContextualProblem"
"""The model of which a key is shown that several have."""
NUMBERS: Mapping[str, tuple[float, ...]] = {"integer": (10, 2, 1, 0), "number": (0.5, 1.0, 2.0, 0.0, 10.0)}


@cache
def written() -> Mapping[str, Mapping[str, Any]]:
    """The tables of ``examples.yaml``."""
    tables: Mapping[str, Mapping[str, Any]] = yaml.safe_load(files(__package__).joinpath("examples.yaml").read_text())
    return tables


class Examples:
    """Makes examples."""

    def __init__(self, index: Index, wording: Wording) -> None:
        self._index, self._wording = index, wording
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
            path, below = path[:-1], self._mapping(model, {entry.word: self._value(model, entry.word)})
        for depth in reversed(range(len(path))):
            key, above = path[depth], sorted(self._index.at[path[:depth]], key=PREFERRED.__ne__)
            schemas = {one: self._index.keys(one).get(key, {}) for one in above}
            model = next(one for one in above if model in self._index.inside(schemas[one]))
            below = self._mapping(model, {key: [below] if self._is_list(schemas[model]) else below})
        for place, sections in written()["sections"].items():
            below |= sections if f"{entry.name}.".startswith(f"{place}.") else {}
        nested = any(isinstance(value, dict | list) for value in below.values())
        style = None if nested else False  # mappings without others inside on one line, but the sections
        return yaml.safe_dump(below, sort_keys=False, default_flow_style=style, width=1000).rstrip()

    def _tag(self, model: str) -> str:
        return next(key for key in TAG_KEYS if key in self._index.schemas[model]["properties"])

    def _mapping(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A mapping of a model with what is given and what must be there; of the whole file, only what is given."""
        if model == ROOT:
            return dict(given)
        tags, must = self._index.tags(model), self._index.schemas[model].get("required", ())
        more = {} if given.keys() & ALONE else written()["beside"].get(self._names.get((model, ""), model), {})
        found: dict[str, Any] = {self._tag(model): tags[0]} if tags else {}
        for key in self._index.keys(model):
            if key in given or key in more:
                found[key] = given.get(key, more.get(key))
            elif key in must:
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
        members, default = (
            [one for one in self._wording.variants(schema) if one.get("type") != "object"],
            schema.get("default"),
        )
        words = [word for member in members for word in _words(member) if word != default]
        if words or isinstance(default, int | float | str):
            return words[0] if words else default
        if not any(member.get("type") in NUMBERS for member in members):
            for model in self._index.inside(schema):
                return [self._mapping(model, {})] if self._is_list(schema) else self._mapping(model, {})
        return next((value for member in members for value in self._values(member)), None)

    def _values(self, schema: Schema) -> Iterator[Any]:
        """Numbers, a text or a list that a schema allows."""
        kind = str(schema.get("type"))
        yield from (value for value in NUMBERS.get(kind, ()) if _is_within(value, schema))
        if kind == "array":
            yield [self._sample(schema["items"])] if "items" in schema else []
        elif kind == "string":
            yield "text"

    def _is_list(self, schema: Schema) -> bool:
        return any(member.get("type") == "array" for member in self._wording.variants(schema))


def _words(schema: Schema) -> list[Any]:
    if schema.get("type") == "boolean":
        return [True, False]
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _is_within(value: float, schema: Schema) -> bool:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum", value - 1), schema.get("exclusiveMaximum", value + 1)
    return bool(least <= value <= most and above < value < below)
