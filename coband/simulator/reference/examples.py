"""An example of every key and kind, as a part of a scenario file.

Most are made from the models: the keys that must be there, and a value that differs from the default. The others are
in ``examples.yaml``, by the name of what they are an example of. Plugins give ``Field(examples=[...])``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from coband.simulator.reference.entries import ROOT, TAGS, Entry, Index, Path, Schema
from coband.simulator.reference.sheets import in_yaml

_NUMBERS = (0.5, 1.0, 2.0, 0.0, 10.0)
_SIZES = (10, 2, 1, 0)

ALONE = ("sigma", "bits", "content", "equals", "file", "gamma", "half_width", "less_than", "points", "values")
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
        self._models, self._written = index.models, written()
        self._names: dict[tuple[str, str], str] = {}
        for entry in index.entries.values():
            for model in entry.models:
                self._names[model, "" if entry.is_kind else entry.word] = entry.name

    def snippet(self, entry: Entry) -> str:
        """YAML with a key or kind, all keys above it, and those beside it that must be there."""
        if entry.name in self._written["snippets"]:
            return str(self._written["snippets"][entry.name])
        path = entry.paths[0]
        model = PREFERRED if PREFERRED in entry.models else entry.models[0]
        if entry.is_kind:
            below: Any = self._mapping(model, {_tag_key(self._models.schema(model)): entry.word})
        else:
            beside = {**self._written["beside"].get(entry.name, {})} if model != ROOT else {}
            path, below = path[:-1], self._mapping(model, {**beside, entry.word: self._value(model, entry.word)})
        for depth in range(len(path) - 1, -1, -1):
            model, below = self._above(path[: depth + 1], model, below)
        more = self._written["sections"].get(entry.name, {})
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
        more = {} if given.keys() & {*ALONE} else self._written["beside"].get(self._names.get((model, ""), model), {})
        for key in self._models.keys(model):
            if key in given:
                found[key] = given[key]
            elif key in more:
                found[key] = more[key]
            elif self._models.required(model, key):
                found[key] = self._value(model, key)
        return {**found, **given}

    def _value(self, model: str, key: str) -> Any:
        for name in (f"{model}.{key}", self._names.get((model, key), "")):
            if name in self._written["values"]:
                return self._written["values"][name]
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
