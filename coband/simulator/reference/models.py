"""The models of a scenario file, as its JSON Schema has them: their keys, and where in a file each can stand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

Schema = Mapping[str, Any]
Path = tuple[str, ...]
TAGS = ("kind", "algorithm")
ROOT = ""
"""The name of the model of the whole file."""


class Models:
    """The models of one JSON Schema.

    A path names keys alone, without numbers of list entries and without kinds: ``("schedule", "turns")`` is a key of
    several models.
    """

    def __init__(self, schema: Schema) -> None:
        self._schemas: dict[str, Schema] = {ROOT: schema, **schema.get("$defs", {})}
        self._reached: dict[str, set[str]] = {}

    def schema(self, model: str) -> Schema:
        return self._schemas[model]

    def keys(self, model: str) -> Mapping[str, Schema]:
        """The keys of a model, without those that only name its kind."""
        found = self._schemas[model].get("properties", {})
        return {key: schema for key, schema in found.items() if key not in TAGS}

    def tags(self, model: str) -> tuple[str, ...]:
        """The kinds that a model is written for, or the name of the algorithm; empty if it has none."""
        properties = self._schemas[model].get("properties", {})
        found = [properties[key] for key in TAGS if key in properties]
        return (
            tuple(map(str, (found[0]["const"],) if "const" in found[0] else found[0].get("enum", ()))) if found else ()
        )

    def required(self, model: str, key: str) -> bool:
        """Whether a mapping of the model must have the key."""
        return key in self._schemas[model].get("required", ())

    def inside(self, schema: Schema) -> list[str]:
        """The models that a value can be of, or the entries of a list."""
        return list(dict.fromkeys(self._inside(schema)))

    def _inside(self, schema: Schema) -> Iterator[str]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if self._schemas[name].get("properties"):
                yield name
            else:
                yield from self._inside(self._schemas[name])
        for union in ("anyOf", "oneOf", "allOf"):
            for member in schema.get(union, ()):
                yield from self._inside(member)
        if isinstance(schema.get("items"), Mapping):
            yield from self._inside(schema["items"])

    @cached_property
    def at(self) -> Mapping[Path, list[str]]:
        """Path -> the models that can stand there, in the order of the file.

        Models that hold others of their own union, such as a product of kernels, are not entered.
        """
        found: dict[Path, list[str]] = {(): [ROOT]}
        waiting = deque[Path]([()])
        while waiting:
            path = waiting.popleft()
            for model in list(found[path]):
                for key, schema in self.keys(model).items():
                    below = (*path, key)
                    new = [name for name in self.inside(schema) if name not in (*found[path], *found.get(below, ()))]
                    if new and below not in found:
                        waiting.append(below)
                    if new:
                        found.setdefault(below, []).extend(new)
        return found

    @cached_property
    def paths(self) -> Mapping[str, list[Path]]:
        """Model -> the paths at which it can stand."""
        found: dict[str, list[Path]] = {}
        for path, models in self.at.items():
            for model in models:
                found.setdefault(model, []).append(path)
        return found

    def reached(self, model: str) -> set[str]:
        """The model and all that can stand inside it."""
        if model not in self._reached:
            found, waiting = {model}, [model]
            while waiting:
                for schema in self.keys(waiting.pop()).values():
                    new = set(self.inside(schema)) - found
                    found |= new
                    waiting += new
            self._reached[model] = found
        return self._reached[model]
