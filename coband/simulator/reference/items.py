"""Keys and kinds as items: what there is to say of them, in JSON types."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from coband.simulator.experiments.registry.catalogue import (
    SOURCES,
    Item,
    UnknownNameError,
    catalogue,
    metric_item,
    properties,
)
from coband.simulator.experiments.registry.catalogue import describe as catalogued
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.input_problems import quoted
from coband.simulator.experiments.scenario.shipped import paths
from coband.simulator.experiments.scenario.wording import Wording
from coband.simulator.plugins.entry_points import first_paragraph
from coband.simulator.reference.entries import Entry, Index, index
from coband.simulator.reference.examples import Examples
from coband.simulator.reference.models import Path, Schema
from coband.simulator.reference.readers import readers
from coband.simulator.reference.sheets import PLACE
from coband.simulator.reference.values import in_yaml, range_of, type_of

_CATALOGUED = {("problem",): "problem", ("problem", "reward"): "reward"}
"""Kinds at these paths are in the catalogue, with what their registries say of them; so are kernels."""

METRIC = "metric."
"""How metrics are asked for where something else has their name."""


class Items:
    """Makes the items of keys and kinds."""

    def __init__(self, index: Index, registry: Registry) -> None:
        self._index, self._registry, self._models = index, registry, index.models
        self._wording, self._examples = Wording(json_schema(registry)), Examples(index)
        self._names = {(path, entry.is_kind): entry for entry in index.entries.values() for path in entry.paths}

    def item(self, entry: Entry) -> Item:
        """Everything about a key or kind."""
        own = self._kind(entry) if entry.is_kind else self._key(entry)
        said = [{"words": words, "names": names} for words, names in readers(entry, self._index, self._registry)]
        return {**own, "example": self._examples.snippet(entry), "algorithms": said}

    def line(self, entry: Entry) -> Item:
        model = entry.models[0]
        schema = self._models.schema(model) if entry.is_kind else self._models.keys(model)[entry.word]
        text = first_paragraph(str(schema.get("description", "")))
        if not entry.is_kind and len({*self._texts(entry)}) > 1:
            tags = dict.fromkeys(tag for each in entry.models for tag in self._models.tags(each))
            of_algorithms = entry.paths[0][0] == "algorithms"
            text = "Depends on the algorithm." if of_algorithms else f"Depends on the kind: {', '.join(tags)}."
        return {"kind": "kind" if entry.is_kind else "key", "name": entry.name, "summary": text}

    def _texts(self, entry: Entry) -> Iterator[str]:
        for model in entry.models:
            yield str(self._models.keys(model)[entry.word].get("description", ""))

    def _kind(self, entry: Entry) -> Item:
        (model,), places = entry.models, [".".join(path) for path in entry.paths]
        schema = self._models.schema(model)
        told = {"places": places, "name": entry.name, "word": entry.word}
        is_kernel = any(path[-1] == "kernel" for path in entry.paths)
        kind = "kernel" if is_kernel else _CATALOGUED.get(entry.paths[0])
        if kind is not None:
            found = next(item for item in catalogued(entry.word, self._registry) if item["kind"] == kind)
            return {**found, **told}
        parameters = [item for item in properties(self._wording, schema) if item["name"] != "kind"]
        text = str(schema.get("description", ""))
        said = {"sources": schema["sources"]} if "sources" in schema else {}
        return {
            "kind": "kind",
            "summary": first_paragraph(text),
            **told,
            "text": text,
            "parameters": parameters,
            **said,
        }

    def _key(self, entry: Entry) -> Item:
        groups: dict[str, Item] = {}
        for model in entry.models:
            said = self._variant(self._models.keys(model)[entry.word], self._models.required(model, entry.word))
            group = groups.setdefault(str(said), {"of": [], **said})
            group["of"] += self._models.tags(model)
        return {
            **self.line(entry),
            "places": [".".join(path) for path in entry.paths],
            "variants": list(groups.values()),
            "kinds": list(self._inside(entry, kinds=True)),
            "keys": list(self._inside(entry, kinds=False)),
        }

    def _variant(self, schema: Schema, required: bool) -> Item:
        """What one or several models say of a key."""
        default = in_yaml(schema["default"]) if "default" in schema and not required else None
        return {
            "text": " ".join(str(schema.get("description", "")).split()),
            "type": type_of(self._wording, schema),
            "unit": schema.get("unit"),
            "default": default,
            "range": range_of(self._wording, schema),
        }

    def _inside(self, entry: Entry, kinds: bool) -> Iterator[Item]:
        """Name and summary of the kinds that a key can have, or of the keys inside it."""
        inside = {name for model in entry.models for name in self._models.inside(self._models.keys(model)[entry.word])}
        if entry.paths[0] == ("algorithms",) and kinds:
            yield from ({"name": name, "summary": found.summary} for name, found in self._registry.algorithms.items())
            return
        for other in self._index.entries.values():
            fits = other.is_kind == kinds and inside & {*other.models} and self._stands_in(other, entry.paths[0])
            if (fits and (kinds or not any(self._models.tags(model) for model in other.models))) or (
                fits and not kinds and other.paths[0][: len(entry.paths[0])] == entry.paths[0] and len(other.paths) == 1
            ):
                yield {**self.line(other), "word": other.word}

    def _stands_in(self, other: Entry, path: Path) -> bool:
        return any((place if other.is_kind else place[:-1]) == path for place in other.paths)


def look_up(word: str, registry: Registry) -> list[Item]:
    """What a word names: an algorithm, dataset, scenario or metric, or a key or kind of scenario files.

    Returns:
        The items in full if it names one thing; a full path of keys is one thing, whatever else its last word is.
        Otherwise and after it, of all others the name by which they are asked for, and a summary; their ``kind`` ends
        with "place".

    Raises:
        UnknownNameError: it names nothing; the text suggests names.
    """
    name = word.removeprefix("algorithms.")
    if name in registry.algorithms or name in SOURCES or name in paths():  # which loads nothing else
        return catalogued(name, registry)
    found = index(registry)
    places, metric = found.find(word), word.removeprefix(METRIC)
    is_metric = metric in registry.metrics
    if is_metric and (word != metric or not places):
        return [{"kind": "metric", **metric_item(registry.metrics[metric])}]
    exact = found.exact(word) or (places[0] if len(places) == 1 and not is_metric else None)
    items = Items(found, registry)
    if exact is not None and "." in word:
        return [items.item(exact)]
    others = [_place(items.line(entry)) for entry in places if entry is not exact]
    if is_metric:
        line = registry.metrics[metric]
        others.append(_place({"kind": "metric", "name": f"{METRIC}{metric}", "summary": line.meaning}))
    if exact is None and not others:
        raise _unknown(word, found, registry)
    return [*([items.item(exact)] if exact is not None else []), *others]


def _place(line: Item) -> Item:
    return {**line, "kind": f"{line['kind']}{PLACE}"}


def _unknown(word: str, found: Index, registry: Registry) -> UnknownNameError:
    """The error that a word means nothing, with up to three that are written alike."""
    if word in registry.broken:
        return UnknownNameError(f"{quoted(word)} is installed but could not be loaded: {registry.broken[word]}")
    listed = [item["name"] for items in catalogue(registry).values() for item in items]
    known = {name.casefold(): name for name in (*listed, *found.words())}
    near = difflib.get_close_matches(word.casefold(), list(known), n=3, cutoff=0.6)
    advice = f"; did you mean {' or '.join(known[name] for name in near)}?" if near else ";"
    return UnknownNameError(
        f"nothing is called {quoted(word)}{advice} `coband list` shows algorithms, problems and more; keys of scenario "
        "files are written like network.topology"
    )
