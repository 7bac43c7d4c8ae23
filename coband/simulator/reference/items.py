"""Keys and kinds as items: what there is to say of them, in JSON types, and which algorithms they matter to."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping

from coband.simulator.core.algorithm import Algorithm
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
from coband.simulator.experiments.scenario.files import paths
from coband.simulator.experiments.scenario.input_problems import quoted
from coband.simulator.experiments.scenario.wire_rules import changed_by, defences, hidden_by
from coband.simulator.experiments.scenario.wording import Wording
from coband.simulator.plugins.entry_points import first_paragraph
from coband.simulator.reference.entries import ROOT, Entry, Index, Path, Schema, index
from coband.simulator.reference.examples import Examples
from coband.simulator.reference.sheets import PLACE, in_yaml, range_of, type_of

Statement = tuple[str, list[str]]
"""What is said, and of which algorithms."""
ALL = "every algorithm"
_LOSES = (("network", "loss"), ("network", "links", "loss"), ("agents", "availability"))
_DOUBLES = (("network", "duplicate"), ("network", "links", "duplicate"))
_REORDERS = (("network", "latency"), ("network", "links", "latency"), ("network", "reorder"))
_REFUSED = f"{ALL}; but refused with transport: datagram, for want of "


def readers(entry: Entry, index: Index, registry: Registry) -> list[Statement]:
    """What is to be said of algorithms about a key or kind; nothing is said where it is the same for all."""
    algorithms = registry.algorithms
    own = [path for path in entry.paths if path[0] == "algorithms"]
    if own and entry.paths[0] != ("algorithms",):
        names = [name for name in algorithms if _has(index, name, entry)]
        return [("a parameter of", names)] if len(names) < len(algorithms) else [(ALL, [])]
    found = [statement for statement in _needs(entry, index, algorithms) if statement[1]]
    return found or [(ALL, [])]


def _has(index: Index, algorithm: str, entry: Entry) -> bool:
    models = index.models
    root = next((name for name in models.at[("algorithms",)] if models.tags(name) == (algorithm,)), ROOT)
    return bool(root != ROOT and models.reached(root) & set(entry.models))


_BUT: tuple[tuple[list[Path], str, Callable[[Algorithm], bool]], ...] = (
    (
        [("messages", "encoding")],
        "some of what is sent must be float64, as arms are looked up by it",
        lambda one: bool(one.needs.exact) and one.needs.exact_if == "1",
    ),
    (
        [("messages", "encoding")],
        "the same, where arms are fixed or `repeats: drop` is asked for",
        lambda one: bool(one.needs.exact) and one.needs.exact_if != "1",
    ),
    (
        [("agents", "reward_delay")],
        "refused, for want of rewards before the next turn",
        lambda one: bool(one.needs_rewards),
    ),
    (
        [("agents", "joins"), ("agents", "leaves")],
        "refused, since they plan for the same agents from the start to the end",
        lambda one: one.needs.ends_together,
    ),
)
"""Parts of the simulator for every algorithm but some: where, what holds for those, and which they are."""


def _needs(entry: Entry, index: Index, algorithms: Mapping[str, Algorithm]) -> Iterator[Statement]:
    """What the needs of algorithms say about a part of the simulator."""
    kinds = _kinds(entry, index)
    for path in entry.paths:
        for parts, but, concerns in _BUT if entry.word != "float64" else ():
            if _under(path, parts):
                yield f"{ALL}; but {but}", _those(algorithms, concerns)
                return
        if _under(path, [("network", "topology")]) and kinds:
            yield f"run on {' or '.join(kinds)}", _those(algorithms, lambda found: _runs_on(found, kinds))
        elif path == ("network", "topology"):
            yield "need the star", _those(algorithms, lambda found: found.needs.topologies == ("star",))
            yield "need a graph", _those(algorithms, lambda found: "star" not in found.needs.topologies)
            yield "run on both", _those(algorithms, lambda found: {"star", "graph"} <= {*found.needs.topologies})
        elif _under(path, [("network", "local")]):
            yield "run on graphs", _those(algorithms, lambda found: found.needs.topologies != ("star",))
        elif path == ("server", "aggregate"):
            taken = _those(algorithms, lambda one: entry.word in defences(one) if entry.is_kind else defences(one))
            yield f"run with {'it' if entry.is_kind else 'a defence'}", taken
        elif _under(path, [("messages", "privacy")]):
            taken = _those(algorithms, lambda one: entry.word in hidden_by(one) if entry.is_kind else hidden_by(one))
            yield f"send something that {'it' if entry.is_kind else 'a mechanism'} can hide", taken
        elif _under(path, [("adversaries",)]):
            taken = _those(algorithms, lambda one: entry.word in changed_by(one) if entry.is_kind else changed_by(one))
            yield f"have something that {'it changes' if entry.is_kind else 'lies change'}", taken
        elif _under(path, [("server",), ("network", "server")]):
            yield "have a server", _those(algorithms, lambda found: found.server is not None)
        elif path == ("schedule", "duration"):
            yield "need the parameter horizon with it", _those(algorithms, lambda found: found.needs.horizon)
        elif path[0] == "schedule" and kinds:
            yield f"run on {' or '.join(kinds)}", _those(algorithms, lambda found: {*kinds} & {*found.needs.schedules})
        elif path[0] == "problem" and kinds:
            yield f"run on {' or '.join(kinds)}", _those(algorithms, lambda found: _solves(found, kinds))
        for places, need, word in (
            (_LOSES, "reliable", "every message"),
            (_DOUBLES, "reliable", "every message once"),
            (_REORDERS, "ordered", "messages in order"),
        ):
            if _under(path, places):
                yield _REFUSED + word, _those(algorithms, lambda found, need=need: getattr(found.needs, need))  # type: ignore[misc]
                return
        if len(entry.paths) > 1:
            return


def _kinds(entry: Entry, index: Index) -> list[str]:
    """The kinds of topology, schedule or problem that an entry is or belongs to."""
    path = entry.paths[0]
    depth = 2 if path[:2] == ("network", "topology") else 1
    if entry.is_kind and len(path) == depth:
        return [entry.word]
    if len(path) <= depth:
        return []
    models = index.models
    if len(path) == depth + 1 and not entry.is_kind:
        return [tag for model in entry.models for tag in models.tags(model)]
    having = [model for model in models.at[path[:depth]] if models.reached(model) & set(entry.models)]
    return [tag for model in having for tag in models.tags(model)]


def _runs_on(algorithm: Algorithm, kinds: Iterable[str]) -> bool:
    topologies = algorithm.needs.topologies
    return "graph" in topologies or any(f"{{kind: {kind}}}" in topologies for kind in kinds)


def _solves(algorithm: Algorithm, kinds: list[str]) -> bool:
    """An algorithm without a list of problems runs on those that offer arms turn by turn."""
    batches = algorithm.needs.schedules == ("phases",) or kinds == ["pure_exploration"]
    return bool({*kinds} & {*algorithm.needs.problems}) or not (algorithm.needs.problems or batches)


def _under(path: Path, places: Iterable[Path]) -> bool:
    return any(path[: len(place)] == place for place in places)


def _those(algorithms: Mapping[str, Algorithm], matters: Callable[[Algorithm], object]) -> list[str]:
    return [name for name, algorithm in algorithms.items() if matters(algorithm)]


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
