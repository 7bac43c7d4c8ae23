"""Finding what a word means: what ``coband describe`` is asked for."""

from __future__ import annotations

import difflib

from coband.simulator.experiments.registry.catalogue import SOURCES, Item, UnknownNameError, catalogue, metric_item
from coband.simulator.experiments.registry.catalogue import describe as catalogued
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.input_problems import quoted
from coband.simulator.experiments.scenario.shipped import paths
from coband.simulator.reference.entries import Index, index
from coband.simulator.reference.items import Items
from coband.simulator.reference.sheets import PLACE

METRIC = "metric."
"""How metrics are asked for where something else has their name."""


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
