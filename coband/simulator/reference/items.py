"""Items: what there is to say of keys, kinds and all else that has a name, in JSON types, from the JSON Schema and from
what algorithms declare.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from coband.simulator.core.algorithm import COMMON_QUANTITIES, RUN_QUANTITIES, Algorithm, Needs
from coband.simulator.core.formulas import names_in
from coband.simulator.core.metrics import CORE
from coband.simulator.core.wire.rules import stand
from coband.simulator.experiments.registry.bibliography import SOURCES, bibtex
from coband.simulator.experiments.registry.registry import CLASSES, RESERVED, Registry, UnknownNameError
from coband.simulator.experiments.scenario.explain import TAG_KEYS, Wording
from coband.simulator.experiments.scenario.files import paths, shipped_scenario, shipped_scenarios
from coband.simulator.metrics import Metric
from coband.simulator.plugins.entry_points import first_paragraph, summary_of
from coband.simulator.reference.entries import Entry, Index, Schema, index, seen_in
from coband.simulator.scenario_errors import quoted

Item = dict[str, Any]
"""A mapping in JSON types with a ``kind``, a ``name`` and a ``text``; ``coband describe --json`` prints it."""
METRIC = "metric."
"""How metrics are asked for where something else has their name."""
IN_BRIEF = {"kind", "name", "summary"}
"""The keys of an item of which `look_up` says no more."""


def catalogue(registry: Registry) -> dict[str, list[Item]]:
    """Name and one-line summary of everything, by list, with its reference; for scenarios, the data that they need."""
    return {
        "algorithms": [_line(one.name, one.summary, one.reference) for one in registry.algorithms.values()],
        "problems": [_line(one.name, one.summary, one.reference) for one in registry.problems.values()],
        **{one.name: [_line(kind, summary_of(found)) for kind, found in one.items()] for one in CLASSES},
        "datasets": [_dataset(name) for name in SOURCES],
        "metrics": [_line(metric.name, metric.meaning) for metric in registry.metrics.values()],
        "scenarios": [{"name": one.name, "summary": one.summary, "data": one.data} for one in shipped_scenarios()],
    }


def _line(name: str, summary: str, reference: str = "") -> Item:
    return {"name": name, "summary": summary, "reference": reference}


def _dataset(name: str) -> Item:
    source = SOURCES[name]
    return _line(name, f"{source.title}: {source.rows:,} rows, {source.columns}", source.citation)


def parameter(wording: Wording, name: str, schema: Schema, required: bool) -> Item:
    """A key with the values that are allowed, its unit, default and meaning."""
    default = {} if required or "default" not in schema else {"default": schema["default"]}
    unit = {"unit": schema["unit"]} if "unit" in schema else {}
    said = {"name": name, "type": wording.in_words(schema), **unit, "required": required}
    return {**said, **default, "description": " ".join(str(schema.get("description", "")).split())}


def parameters(wording: Wording, schema: Schema, above: str = "") -> Iterator[Item]:
    """The keys of a mapping, and those of mappings in it that are of no kind."""
    for key, inner in schema.get("properties", {}).items():
        if key in (*TAG_KEYS, *(() if above else RESERVED)):
            continue
        yield parameter(wording, above + key, inner, key in schema.get("required", ()))
        for member in wording.variants(inner):
            if not {*TAG_KEYS} & {*member.get("properties", ())}:
                yield from parameters(wording, member, f"{above}{key}.")


def algorithm_item(algorithm: Algorithm) -> Item:
    """All that an algorithm declares."""
    schema, sizes = algorithm.config.model_json_schema(mode="validation"), algorithm.messages
    usual = {**asdict(Needs()), "topologies": None, "reliable": False}
    needs = {key: value for key, value in asdict(algorithm.needs).items() if value != usual[key]}
    return {
        "kind": "algorithm",
        "name": algorithm.name,
        "summary": algorithm.summary,
        "reference": algorithm.reference,
        "scenario": seen_in(("algorithms", "algorithm", algorithm.name)),
        "parameters": list(parameters(Wording(schema), schema)),
        "messages": [
            {"kind": one.message.kind, "direction": one.direction, "scalars": one.size, "to": one.to, "when": one.when}
            for one in sizes
        ],
        "liars": stand(algorithm),
        "counts": [asdict(form) for form in algorithm.counts],
        "where": _quantities(algorithm),
        "rate": [algorithm.rate] if algorithm.rate else [],
        "search": dict(algorithm.search),
        "metrics": [metric_item(metric) for metric in algorithm.metrics],
        "needs": {key: list(value) if isinstance(value, tuple) else value for key, value in needs.items()},
        "knows": sorted(algorithm.facts),
        "server": algorithm.server is not None,
        "paper": bibtex(algorithm.cites),
    }


def metric_item(metric: Metric) -> Item:
    """What a metric is."""
    line = {"name": metric.name, "summary": metric.meaning, "unit": metric.unit, "better": metric.better}
    return {**line, "locked": metric.locked, "of_each_agent": metric.aggregate is None}


def _quantities(algorithm: Algorithm) -> dict[str, str]:
    """What the formulas of an algorithm use, besides its parameters: its meaning by name, in alphabetical order."""
    meanings = {**COMMON_QUANTITIES, **RUN_QUANTITIES}
    meanings |= {metric.name: metric.meaning for metric in (*CORE, *algorithm.metrics)}
    meanings |= {name: f"= {formula}" for name, formula in algorithm.where.items()}
    own: dict[str, dict[str, None]] = {}
    for size in algorithm.messages:
        for name in filter(partial(hasattr, size.message), names_in(size.size)):
            meaning = summary_of(getattr(size.message, name)).rstrip(".")
            own.setdefault(name, {})[meaning[:1].lower() + meaning[1:]] = None
    meanings |= {name: "; ".join(said) for name, said in own.items()}
    formulas = [size.size for size in algorithm.messages] + [*algorithm.where.values()]
    formulas += [text for form in algorithm.counts for text in (form.formula, form.when) if text]
    used = {name for text in formulas for name in names_in(text)} & {*meanings}
    return {name: meanings[name] for name in sorted(used, key=lambda name: (name.casefold(), name))}


class Items:
    """Makes the items of keys and kinds."""

    def __init__(self, index: Index, registry: Registry) -> None:
        self._index, self._registry = index, registry

    def item(self, entry: Entry) -> Item:
        """Everything about a key or kind."""
        uses = ((*path, *(["kind", entry.word] if entry.is_kind else [])) for path in entry.paths)
        return {
            **(self._kind(entry) if entry.is_kind else self._key(entry)),
            "scenario": seen_in(*uses),
            "places": [".".join(path) for path in entry.paths if ".".join(path) != entry.name],
        }

    def line(self, entry: Entry) -> Item:
        """A key or kind in one sentence."""
        schemas = [self._index.schemas[model] for model in entry.models]
        if not entry.is_kind:
            schemas = [schema["properties"][entry.word] for schema in schemas]
        texts = {first_paragraph(str(schema.get("description", ""))) for schema in schemas}
        of = "algorithm" if entry.paths[0][0] == "algorithms" else "kind"
        depends = f"Depends on the {of}: {', '.join(self._index.tags(*entry.models))}."
        kind = "kind" if entry.is_kind else "key"
        return {"kind": kind, "name": entry.name, "summary": texts.pop() if len(texts) == 1 else depends}

    def _kind(self, entry: Entry) -> Item:
        schema, path = self._index.schemas[entry.models[0]], entry.paths[0]
        kind = path[-1] if path[-1] in ("kernel", "reward", "problem") else "kind"
        sources = [{key: one[key] for key in ("of", "numbers", "unit", "source")} for one in schema.get("sources", ())]
        item = {**self.line(entry), "kind": kind, "text": schema["description"].partition("\n\nRaises:")[0]}
        found: Item = {"parameters": list(parameters(self._index.wording, schema)), "sources": sources}
        if kind == "problem":
            problem = self._registry.problems[entry.word]
            item |= {"text": problem.summary, "reference": problem.reference}
            found |= {"metrics": [metric_item(one) for one in problem.metrics], "paper": bibtex(problem.cites)}
        return {**item, **found}

    def _key(self, entry: Entry) -> Item:
        variants: dict[str, Item] = {}
        for model in entry.models:
            schema, required = self._index.keys(model)[entry.word], self._index.schemas[model].get("required", ())
            said = parameter(self._index.wording, "", schema, entry.word in required)
            variant = variants.setdefault(str(said), said)
            variant["name"] = ", ".join(filter(None, [variant["name"], *self._index.tags(model)]))
        item, found = self.line(entry), list(variants.values())
        if len(found) == 1:
            only = found.pop()
            item |= {"text": only.pop("description"), **only, "name": entry.name}
        others = [one for one in self._index.entries.values() if one is not entry]
        kinds = [self.line(one) for one in others if one.is_kind and {*entry.paths} <= {*one.paths}]
        if entry.name == "algorithms":
            kinds = [{"name": name, "summary": one.summary} for name, one in self._registry.algorithms.items()]
        keys = [one for one in others if one.paths[0][:-1] == entry.paths[0] and not one.is_kind]
        inside = [self.line(one) for one in keys if not self._index.tags(*one.models)]
        brief = [[{"name": one["name"], "summary": one["summary"]} for one in listed] for listed in (kinds, inside)]
        return {**item, "variants": found, "kinds": brief[0], "keys": brief[1]}


def look_up(word: str, registry: Registry) -> list[Item]:
    """What a word names: an algorithm, dataset, scenario or metric, or a key or kind of scenario files.

    Returns:
        The item in full if it names one thing; a full path of keys is one thing, whatever else its last word is.
        Otherwise and after it, of all others the name by which they are asked for, and a summary (`IN_BRIEF`).

    Raises:
        UnknownNameError: it names nothing; the text suggests names.
    """
    name = word.removeprefix("algorithms.")  # the first three can be told without loading everything
    if name in registry.algorithms:
        return [algorithm_item(registry.algorithms[name])]
    if name in SOURCES:
        source = SOURCES[name]
        about = {"url": source.url, "licence": source.licence, "paper": bibtex(source.cites)}
        return [{"kind": "dataset", **_dataset(name), **about}]
    if name in paths():
        one = shipped_scenario(name)
        text = {"summary": one.summary, "text": "\n".join(one.header), "data": one.data, "file": str(one.path)}
        return [{"kind": "scenario", "name": name, **text}]
    found = index(registry)
    places, metric = found.find(word), registry.metrics.get(word.removeprefix(METRIC))
    if metric is not None and (word.startswith(METRIC) or not places):
        return [{"kind": "metric", **metric_item(metric)}]
    exact = found.entries.get(word) or (places[0] if len(places) == 1 and metric is None else None)
    items = Items(found, registry)
    lines = [items.line(entry) for entry in places if entry is not exact and (exact is None or "." not in word)]
    if metric is not None and "." not in word:
        lines.append({"kind": "metric", "name": f"{METRIC}{metric.name}", "summary": metric.meaning})
    if exact is None and not lines:
        raise _unknown(word, found, registry)
    return [*([items.item(exact)] if exact is not None else []), *lines]


def _unknown(word: str, found: Index, registry: Registry) -> UnknownNameError:
    """The error that a word means nothing, with up to three that are written alike."""
    if word in registry.broken:
        return UnknownNameError(f"{quoted(word)} is installed but could not be loaded: {registry.broken[word]}")
    listed = [item["name"] for items in catalogue(registry).values() for item in items]
    words = [*found.entries, *(entry.word for entry in found.entries.values())]
    known = {name.casefold(): name for name in (*listed, *words)}
    near = difflib.get_close_matches(word.casefold(), list(known), n=3, cutoff=0.6)
    advice = f"; did you mean {' or '.join(known[name] for name in near)}?" if near else ";"
    return UnknownNameError(
        f"nothing is called {quoted(word)}{advice} `coband list` shows algorithms, problems and more; keys of scenario "
        "files are written like network.topology"
    )
