"""What scenario files are made of, each with a name of its own: keys (``network.topology``) and kinds (``pareto``),
read from the models of the JSON Schema, and an example of each, as a part of a file.

Most examples are made from the models: the keys that must be there, and a value that differs from the default. The
others are in ``examples.yaml``, by the name of what they are an example of. Plugins give ``Field(examples=[...])``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import yaml

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.explain import TAG_KEYS, Wording, tags_of

Schema = Mapping[str, Any]
Path = tuple[str, ...]
"""Keys without numbers of list entries and without kinds."""
ROOT = ""
"""The name of the model of the whole file."""
ALONE = {
    *("bits", "content", "equals", "file", "gamma", "half_width", "less_than", "more_than", "points", "sigma", "time"),
    "values",
}
"""Keys that stand in the place of those that ``beside`` has."""
PREFERRED = "ContextualProblem"
"""The model of which a key is shown that several have."""
NUMBERS: Mapping[str, tuple[float, ...]] = {"integer": (10, 2, 1, 0), "number": (0.5, 1.0, 2.0, 0.0, 10.0)}


@dataclass(frozen=True)
class Entry:
    """A key or a kind.

    Attributes:
        name: unique; as in ``coband describe NAME``: the first path of a key, and the word of a kind.
        word: the last key of its paths, or the kind.
        paths: where it can stand; a kind is a value of the keys at its paths.
        models: those that have the key, or the one of the kind.
    """

    name: str
    word: str
    paths: tuple[Path, ...]
    models: tuple[str, ...] = field(compare=False)
    is_kind: bool = False


class Index:
    """All keys and kinds of scenario files, in the order of the file.

    Attributes:
        schemas: the models of the JSON Schema by name.
        at: path -> the models that can stand there. Models that hold others of their own union, such as a product of
            kernels, are not entered.
        paths: model -> the paths at which it can stand.
        entries: by name.
    """

    def __init__(self, schema: Schema) -> None:
        self.schemas: dict[str, Schema] = {ROOT: schema, **schema.get("$defs", {})}
        self.wording = Wording(schema)
        self.at = self._walked()
        self.paths: dict[str, list[Path]] = {}
        for path, models in self.at.items():
            for model in models:
                self.paths.setdefault(model, []).append(path)
        self.entries: dict[str, Entry] = {}
        for entry in self._keys():
            first = self.entries.setdefault(entry.name, entry)
            if first is not entry:  # several kinds have the key
                paths = tuple(dict.fromkeys((*first.paths, *entry.paths)))
                self.entries[entry.name] = replace(first, paths=paths, models=(*first.models, *entry.models))
        self.entries |= {kind.name: kind for kind in self._kinds()}
        entries = [(model, entry) for entry in self.entries.values() for model in entry.models]
        self._names = {(model, "" if entry.is_kind else entry.word): entry.name for model, entry in entries}

    def keys(self, model: str) -> Mapping[str, Schema]:
        """The keys of a model, without those that only name its kind."""
        properties = self.schemas[model].get("properties", {})
        return {key: schema for key, schema in properties.items() if key not in TAG_KEYS}

    def tags(self, *models: str) -> list[str]:
        """The kinds that models are written for, or the names of algorithms; empty if they have none."""
        return list(dict.fromkeys(tag for one in models for key in TAG_KEYS for tag in tags_of(self.schemas[one], key)))

    def inside(self, schema: Schema) -> list[str]:
        """The models that a value can be of, or the entries of a list."""
        return list(dict.fromkeys(self._inside(schema)))

    def _inside(self, schema: Schema) -> Iterator[str]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            yield from [name] if self.schemas[name].get("properties") else self._inside(self.schemas[name])
        members = [one for union in ("anyOf", "oneOf", "allOf") for one in schema.get(union, ())]
        for member in (*members, schema.get("items")):
            yield from self._inside(member) if isinstance(member, Mapping) else ()

    def _walked(self) -> dict[Path, list[str]]:
        found: dict[Path, list[str]] = {(): [ROOT]}
        waiting: list[Path] = [()]
        for path in waiting:
            for key, schema in [item for model in found[path] for item in self.keys(model).items()]:
                below = (*path, key)
                new = [name for name in self.inside(schema) if name not in (*found[path], *found.get(below, ()))]
                if new:
                    waiting += [below] if below not in found else []
                    found.setdefault(below, []).extend(new)
        return found

    def _keys(self) -> Iterator[Entry]:
        for model, paths in self.paths.items():
            for key in self.keys(model):
                yield Entry(".".join((*paths[0], key)), key, tuple((*path, key) for path in paths), (model,))

    def _kinds(self) -> Iterator[Entry]:
        """A kind is called by its word where this names nothing else, and otherwise after its first key too."""
        words = [key for model in self.paths for key in self.keys(model)]
        words += [tag for model in self.paths for tag in self.tags(model)]
        for model, paths in self.paths.items():
            for tag in self.tags(model) if paths != [("algorithms",)] else ():
                name = tag if words.count(tag) == 1 else f"{paths[0][-1]}.{tag}"
                yield Entry(name, tag, tuple(paths), (model,), is_kind=True)

    def find(self, query: str) -> list[Entry]:
        """The entries that a word or dotted words name.

        The last word is the key or kind. Words before it are keys, kinds or algorithms above it; some may be left out.
        """
        *above, word = query.split(".")
        entries = [entry for entry in self.entries.values() if entry.word == word]
        return [entry for entry in entries if any(self._above(entry, path).issuperset(above) for path in entry.paths)]

    def _above(self, entry: Entry, path: Path) -> set[str]:
        """The words above an entry at one of its paths: keys, and the kinds that have them."""
        keys = path if entry.is_kind else path[:-1]
        having = [model for depth, key in enumerate(keys) for model in self.at[path[:depth]] if key in self.keys(model)]
        return {*keys, *self.tags(*having, *entry.models)}

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
            key, above = path[depth], sorted(self.at[path[:depth]], key=PREFERRED.__ne__)
            schemas = {one: self.keys(one).get(key, {}) for one in above}
            model = next(one for one in above if model in self.inside(schemas[one]))
            below = self._mapping(model, {key: [below] if self._is_list(schemas[model]) else below})
        for place, sections in written()["sections"].items():
            below |= sections if f"{entry.name}.".startswith(f"{place}.") else {}
        nested = any(isinstance(value, dict | list) for value in below.values())
        style = None if nested else False  # mappings without others inside on one line, but the sections
        return yaml.safe_dump(below, sort_keys=False, default_flow_style=style, width=1000).rstrip()

    def _tag(self, model: str) -> str:
        return next(key for key in TAG_KEYS if key in self.schemas[model]["properties"])

    def _mapping(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A mapping of a model with what is given and what must be there; of the whole file, only what is given."""
        if model == ROOT:
            return dict(given)
        tags, must = self.tags(model), self.schemas[model].get("required", ())
        more = {} if given.keys() & ALONE else written()["beside"].get(self._names.get((model, ""), model), {})
        found: dict[str, Any] = {self._tag(model): tags[0]} if tags else {}
        for key in self.keys(model):
            if key in given or key in more:
                found[key] = given.get(key, more.get(key))
            elif key in must:
                found[key] = self._value(model, key)
        return {**found, **given}

    def _value(self, model: str, key: str) -> Any:
        values = written()["values"]
        name = next((one for one in (f"{model}.{key}", self._names.get((model, key), "")) if one in values), None)
        return self._sample(self.keys(model)[key]) if name is None else values[name]

    def _sample(self, schema: Schema) -> Any:
        """Some value that a schema allows, if possible another one than the default."""
        if schema.get("examples"):
            return schema["examples"][0]
        members, default = (
            [one for one in self.wording.variants(schema) if one.get("type") != "object"],
            schema.get("default"),
        )
        words = [word for member in members for word in _words(member) if word != default]
        if words or isinstance(default, int | float | str):
            return words[0] if words else default
        if not any(member.get("type") in NUMBERS for member in members):
            for model in self.inside(schema):
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
        return any(member.get("type") == "array" for member in self.wording.variants(schema))


@lru_cache(maxsize=4)
def index(registry: Registry) -> Index:
    """The index of the scenario files that can be written with what is installed."""
    return Index(json_schema(registry))


@cache
def written() -> Mapping[str, Mapping[str, Any]]:
    """The tables of ``examples.yaml``."""
    tables: Mapping[str, Mapping[str, Any]] = yaml.safe_load(files(__package__).joinpath("examples.yaml").read_text())
    return tables


def _words(schema: Schema) -> list[Any]:
    if schema.get("type") == "boolean":
        return [True, False]
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _is_within(value: float, schema: Schema) -> bool:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum", value - 1), schema.get("exclusiveMaximum", value + 1)
    return bool(least <= value <= most and above < value < below)
