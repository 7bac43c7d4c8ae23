"""What scenario files are made of, each with a name of its own: keys (``network.topology``) and kinds (``pareto``),
read from the models of the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.explain import TAG_KEYS, tags_of

Schema = Mapping[str, Any]
Path = tuple[str, ...]
"""Keys alone, without numbers of list entries and without kinds."""
ROOT = ""
"""The name of the model of the whole file."""


@dataclass(frozen=True)
class Entry:
    """A key or a kind.

    Attributes:
        name: unique; as in ``coband describe NAME``.
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
        self.reached = cache(self._reached)
        self.at = self._walked()
        self.paths: dict[str, list[Path]] = {}
        for path, models in self.at.items():
            for model in models:
                self.paths.setdefault(model, []).append(path)
        kinds = list(self._kinds({key for model in self.paths for key in self.keys(model)}))
        keys = self._keys({kind.models[0]: kind.name for kind in kinds})
        self.entries = {entry.name: entry for entry in (*keys, *kinds)}

    def keys(self, model: str) -> Mapping[str, Schema]:
        """The keys of a model, without those that only name its kind."""
        properties = self.schemas[model].get("properties", {})
        return {key: schema for key, schema in properties.items() if key not in TAG_KEYS}

    def tags(self, model: str) -> list[str]:
        """The kinds that a model is written for, or the name of the algorithm; empty if it has none."""
        return next(filter(None, (tags_of(self.schemas[model], key) for key in TAG_KEYS)), [])

    def required(self, model: str, key: str) -> bool:
        """Whether a mapping of the model must have the key."""
        return key in self.schemas[model].get("required", ())

    def inside(self, schema: Schema) -> list[str]:
        """The models that a value can be of, or the entries of a list."""
        return list(dict.fromkeys(self._inside(schema)))

    def _inside(self, schema: Schema) -> Iterator[str]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            yield from [name] if self.schemas[name].get("properties") else self._inside(self.schemas[name])
        for member in (one for union in ("anyOf", "oneOf", "allOf") for one in schema.get(union, ())):
            yield from self._inside(member)
        if isinstance(schema.get("items"), Mapping):
            yield from self._inside(schema["items"])

    def _walked(self) -> dict[Path, list[str]]:
        found: dict[Path, list[str]] = {(): [ROOT]}
        waiting: list[Path] = [()]
        for path in waiting:
            for model in list(found[path]):
                for key, schema in self.keys(model).items():
                    below = (*path, key)
                    new = [name for name in self.inside(schema) if name not in (*found[path], *found.get(below, ()))]
                    waiting += [below] if new and below not in found else []
                    if new:
                        found.setdefault(below, []).extend(new)
        return found

    def _reached(self, model: str) -> set[str]:
        """The model and all that can stand inside it."""
        found = [model]
        for one in found:
            found += [name for schema in self.keys(one).values() for name in self.inside(schema) if name not in found]
        return {*found}

    def _kinds(self, keys: set[str]) -> Iterator[Entry]:
        """A kind is called by its word where this names nothing else, and otherwise after its first key too."""
        places = [(tag, model) for model in self.paths for tag in self.tags(model)]
        tags = [tag for tag, _ in places]
        for tag, model in places:
            paths = self.paths[model]
            if paths != [("algorithms",)]:
                name = tag if tags.count(tag) == 1 and tag not in keys else f"{paths[0][-1]}.{tag}"
                yield Entry(name, tag, tuple(paths), (model,), is_kind=True)

    def _keys(self, kinds: Mapping[str, str]) -> Iterator[Entry]:
        """Models that stand at one path share the entries of that path; others have entries of their own."""
        shared: dict[Path, list[str]] = {}
        taken: set[Path] = set()
        places = [(path, model) for path, models in self.at.items() for model in models]
        for above, model, key in ((*place, key) for place in places for key in self.keys(place[1])):
            below, paths = (*above, key), self.paths[model]
            if len(paths) == 1:
                shared.setdefault(below, []).append(model)
                continue
            taken.add(below)
            if above == paths[0]:
                name = f"{kinds[model]}.{key}" if model in kinds else ".".join(below)
                yield Entry(name, key, tuple((*place, key) for place in paths), (model,))
        for path, models in shared.items():
            by_kind = path in taken and models[0] in kinds
            name = f"{kinds[models[0]]}.{path[-1]}" if by_kind else ".".join(path)
            yield Entry(name, path[-1], (path,), tuple(models))

    def find(self, query: str) -> list[Entry]:
        """The entries that a word or dotted words name.

        The last word is the key or kind. Words before it are keys, kinds or algorithms above it; some may be left out.
        """
        *above, word = query.split(".")
        return [
            entry
            for entry in self.entries.values()
            if entry.word == word and any(self._above(entry, path).issuperset(above) for path in entry.paths)
        ]

    def exact(self, query: str) -> Entry | None:
        """The one entry whose name that is, or else whose full path; None if there are none or several."""
        if query in self.entries:
            return self.entries[query]
        words = tuple(query.split("."))
        full = [
            entry
            for entry in self.find(query)
            if words in {(*path, entry.word) if entry.is_kind else path for path in entry.paths}
        ]
        return full[0] if len(full) == 1 else None

    def _above(self, entry: Entry, path: Path) -> set[str]:
        """The words above an entry at one of its paths: keys, and the kinds that have them."""
        keys = path if entry.is_kind else path[:-1]
        having = [model for depth, key in enumerate(keys) for model in self.at[path[:depth]] if key in self.keys(model)]
        having += [] if entry.is_kind else entry.models
        return {*keys, *(tag for model in having for tag in self.tags(model))}


@lru_cache(maxsize=4)
def index(registry: Registry) -> Index:
    """The index of the scenario files that can be written with what is installed."""
    return Index(json_schema(registry))
