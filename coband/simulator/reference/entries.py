"""What scenario files are made of, each with a name of its own: keys (``network.topology``) and kinds (``pareto``),
read from the models of the JSON Schema.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import json_schema

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
    """All keys and kinds of scenario files, in the order of the file."""

    def __init__(self, models: Models) -> None:
        self.models = models
        words = {key for model in models.paths for key in models.keys(model)}
        kinds = list(self._kinds(words))
        keys = list(self._keys({kind.models[0]: kind.name for kind in kinds}))
        self.entries = {entry.name: entry for entry in (*keys, *kinds)}

    def _kinds(self, keys: set[str]) -> Iterator[Entry]:
        """A kind is called by its word where this names nothing else, and otherwise after its first key too."""
        places = [(tag, model) for model in self.models.paths for tag in self.models.tags(model)]
        tags = [tag for tag, _ in places]
        for tag, model in places:
            paths = self.models.paths[model]
            if paths != [("algorithms",)]:
                alone = tags.count(tag) == 1 and tag not in keys
                name = tag if alone else f"{paths[0][-1]}.{tag}"
                yield Entry(name, tag, tuple(paths), (model,), is_kind=True)

    def _keys(self, kinds: dict[str, str]) -> Iterator[Entry]:
        """Models that stand at one path share the entries of that path; others have entries of their own."""
        shared: dict[Path, list[str]] = {}
        taken: set[Path] = set()
        for path, models in self.models.at.items():
            for model in models:
                for key in self.models.keys(model):
                    below, paths = (*path, key), self.models.paths[model]
                    if len(paths) == 1:
                        shared.setdefault(below, []).append(model)
                        continue
                    taken.add(below)
                    if path == paths[0]:
                        name = f"{kinds[model]}.{key}" if model in kinds else ".".join(below)
                        yield Entry(name, key, tuple((*place, key) for place in paths), (model,))
        for path, models in shared.items():
            is_taken = path in taken and models[0] in kinds
            yield Entry(
                f"{kinds[models[0]]}.{path[-1]}" if is_taken else ".".join(path), path[-1], (path,), tuple(models)
            )

    def find(self, query: str) -> list[Entry]:
        """The entries that a word or dotted words name.

        The last word is the key or kind. Words before it are keys, kinds or algorithms above it, in this order; some
        may be left out.
        """
        *above, word = query.split(".")
        return [entry for entry in self.entries.values() if entry.word == word and self._is_below(entry, above)]

    def exact(self, query: str) -> Entry | None:
        """The one entry whose name that is, or else whose full path; None if there are none or several."""
        found, words = self.find(query), tuple(query.split("."))
        named = [entry for entry in found if entry.name == query]
        fitting = named or [entry for entry in found if words in _full(entry)]
        return fitting[0] if len(fitting) == 1 else None

    def _is_below(self, entry: Entry, above: Sequence[str]) -> bool:
        return any(_is_subsequence(above, self._chain(entry, path)) for path in entry.paths)

    def _chain(self, entry: Entry, path: Path) -> list[set[str]]:
        """The words above an entry at one of its paths: keys, and between them the kinds that have the next key."""
        keys = path if entry.is_kind else path[:-1]
        chain: list[set[str]] = []
        for depth, key in enumerate(keys):
            chain += [self._tags(path[:depth], key), {key}]
        if not entry.is_kind:
            chain.append({tag for model in entry.models for tag in self.models.tags(model)})
        return chain

    def _tags(self, path: Path, key: str) -> set[str]:
        having = (model for model in self.models.at[path] if key in self.models.keys(model))
        return {tag for model in having for tag in self.models.tags(model)}

    def words(self) -> list[str]:
        """Every name, and every word that is one of several."""
        return list(dict.fromkeys([*self.entries, *(entry.word for entry in self.entries.values())]))


def _full(entry: Entry) -> set[Path]:
    """The paths of an entry as words: of a kind, its keys and the kind."""
    return {(*path, entry.word) if entry.is_kind else path for path in entry.paths}


def _is_subsequence(words: Sequence[str], chain: Sequence[set[str]]) -> bool:
    steps = iter(chain)
    return all(any(word in step for step in steps) for word in words)


@lru_cache(maxsize=4)
def index(registry: Registry) -> Index:
    """The index of the scenario files that can be written with what is installed."""
    return Index(Models(json_schema(registry)))
