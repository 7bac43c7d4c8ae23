"""What scenario files are made of, each with a name of its own: keys (``network.topology``) and kinds (``pareto``),
read from the models of the JSON Schema, and the scenarios that have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import yaml

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario import files
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.explain import TAG_KEYS, Wording, tags_of

Schema = Mapping[str, Any]
Path = tuple[str, ...]
"""Keys without numbers of list entries and without kinds."""
ROOT = ""
"""The name of the model of the whole file."""


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

    def keys(self, model: str) -> Mapping[str, Schema]:
        """The keys of a model, without those that only name its kind."""
        properties = self.schemas[model].get("properties", {})
        return {key: schema for key, schema in properties.items() if key not in TAG_KEYS}

    def tags(self, *models: str) -> list[str]:
        """The kinds that models are written for, or the names of algorithms; empty if they have none."""
        return list(dict.fromkeys(tag for one in models for key in TAG_KEYS for tag in tags_of(self.schemas[one], key)))

    def inside(self, schema: Schema) -> list[str]:
        """The models that a value can be of, or the entries of a list."""
        return list(dict.fromkeys(self._models(schema)))

    def _models(self, schema: Schema) -> Iterator[str]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            yield from [name] if self.schemas[name].get("properties") else self._models(self.schemas[name])
        members = [one for union in ("anyOf", "oneOf", "allOf") for one in schema.get(union, ())]
        for member in (*members, schema.get("items")):
            yield from self._models(member) if isinstance(member, Mapping) else ()

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


@lru_cache(maxsize=4)
def index(registry: Registry) -> Index:
    """The index of the scenario files that can be written with what is installed."""
    return Index(json_schema(registry))


def seen_in(*uses: Path) -> str | None:
    """The first scenario that comes with coband and has one of these keys, or of these values of a key."""
    return next((name for name, found in _uses().items() if not found.isdisjoint(uses)), None)


@cache
def _uses() -> Mapping[str, set[Path]]:
    """What each scenario that comes with coband has, the quickstart and the quick ones first."""
    found = sorted(files.paths().items(), key=lambda item: ("/" in item[0], "quick" not in item[0]))
    return {name: set(_inside(yaml.load(file.read_text(encoding="utf-8"), files.LOADER), ())) for name, file in found}


def _inside(part: Any, path: Path) -> Iterator[Path]:
    """The keys of a document and, with their keys, the texts in it; a word that stands for a kind is that kind."""
    if isinstance(part, str):
        yield from ((*path, part), (*path, "kind", part))
    for key, inner in part.items() if isinstance(part, dict) else ():
        yield (*path, str(key))
        yield from _inside(inner, (*path, str(key)))
    for item in part if isinstance(part, list) else ():
        yield from _inside(item, path)
