"""Items: what there is to say of keys, kinds and all else that has a name, in JSON types, from the JSON Schema and from
what algorithms declare.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict

from coband.simulator.core.algorithm import COMMON_QUANTITIES, RUN_QUANTITIES, Algorithm, Needs
from coband.simulator.core.formulas import names_in
from coband.simulator.core.metrics import CORE
from coband.simulator.core.nodes.message import EXACT, Message
from coband.simulator.core.nodes.node import Agent
from coband.simulator.core.wire.privacy import Privacy
from coband.simulator.core.wire.rules import defences, stand
from coband.simulator.experiments.registry.bibliography import SOURCES, library
from coband.simulator.experiments.registry.registry import CLASSES, RESERVED, Registry, UnknownNameError
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.explain import TAG_KEYS, Wording
from coband.simulator.experiments.scenario.files import paths, shipped_scenario, shipped_scenarios
from coband.simulator.metrics import Metric
from coband.simulator.plugins.entry_points import first_paragraph, summary_of
from coband.simulator.reference.entries import Entry, Index, Schema, index
from coband.simulator.reference.examples import Examples
from coband.simulator.reference.text import PLACE, Item
from coband.simulator.scenario_errors import quoted

METRIC = "metric."
"""How metrics are asked for where something else has their name."""


def _takes_topology(one: Algorithm, kinds: set[str]) -> bool:
    taken = one.needs.topologies
    return "graph" in taken or any(f"{{kind: {kind}}}" in taken for kind in kinds)


def _takes_problem(one: Algorithm, kinds: set[str]) -> bool:
    """An algorithm without a list of problems runs on those that offer arms turn by turn."""
    batches = one.needs.schedules == ("phases",) or kinds == {"pure_exploration"}
    return bool(kinds & {*one.needs.problems}) or not (one.needs.problems or batches)


RUNS_ON: Mapping[tuple[str, ...], Callable[[Algorithm, set[str]], object]] = {
    ("network", "topology"): _takes_topology,
    ("schedule",): lambda one, kinds: kinds & {*one.needs.schedules},
    ("problem",): _takes_problem,
}
"""Where kinds stand that algorithms run on or not; whether one runs on one of them."""
TOGETHER = "refused, since they plan for the same agents from the start to the end"
SAID: Mapping[tuple[str, ...], tuple[str, Callable[[Algorithm], object]]] = {
    ("agents", "reward_delay"): ("refused, for want of rewards before the next turn", lambda one: one.needs_rewards),
    ("agents", "joins"): (TOGETHER, lambda one: one.needs.ends_together),
    ("agents", "leaves"): (TOGETHER, lambda one: one.needs.ends_together),
    ("server", "aggregate"): ("run with a defence", defences),
}
"""What is said of algorithms about other keys and what is in them, and of which."""
MECHANISMS_SHOWN, SEEN_BY = ("gaussian", "tree", "laplace_local"), ("server", "others")


def catalogue(registry: Registry) -> dict[str, list[Item]]:
    """Name and one-line summary of everything, by list, with its reference; for scenarios, the data that they need."""
    described = (("algorithms", registry.algorithms), ("problems", registry.problems))
    return {
        **{key: [_line(one.name, one.summary, one.reference) for one in all_.values()] for key, all_ in described},
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
    schema = algorithm.config.model_json_schema(mode="validation")
    sizes = [(one, one.message) for one in algorithm.messages]
    fields = [(kind, name) for kind in dict.fromkeys(kind for _, kind in sizes) for name in kind.payload_fields()]
    usual = {**asdict(Needs()), "topologies": None, "reliable": False}
    cites = [one if one.lstrip().startswith("@") else library().get(one, "") for one in algorithm.cites]
    return {
        "kind": "algorithm",
        "name": algorithm.name,
        "summary": algorithm.summary,
        "reference": algorithm.reference,
        "parameters": list(parameters(Wording(schema), schema)),
        "messages": [
            {"kind": kind.kind, "direction": one.direction, "scalars": one.size, "to": one.to, "when": one.when}
            for one, kind in sizes
        ],
        "fields": [_field(kind, name) for kind, name in fields],
        "privacy": list(_privacy(algorithm)),
        "liars": stand(algorithm),
        "counts": [asdict(form) for form in algorithm.counts],
        "where": dict(_quantities(algorithm)),
        "rate": algorithm.rate,
        "search": dict(algorithm.search),
        "metrics": [metric_item(metric) for metric in algorithm.metrics],
        "needs": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(algorithm.needs).items()
            if value != usual.get(key)
        },
        "knows": sorted(algorithm.facts),
        "server": algorithm.server is not None,
        "paper": "\n\n".join(filter(None, map(str.strip, cites))),
    }


def metric_item(metric: Metric) -> Item:
    """What a metric is."""
    line = {"name": metric.name, "summary": metric.meaning, "unit": metric.unit, "better": metric.better}
    return {**line, "locked": metric.locked, "of_each_agent": metric.aggregate is None}


def _privacy(algorithm: Algorithm) -> Iterator[Item]:
    """What is private of an algorithm's messages, under each of coband's mechanisms, from each adversary."""
    known = MECHANISMS_SHOWN if issubclass(algorithm.agent, Agent) else ()
    kinds = {size.message for size in algorithm.messages}
    own = {f"{one.kind}.{name}" for one in kinds for name in one.payload_fields() if one.declared(name)["noised"]}
    for adversary in SEEN_BY:
        whys: dict[str, dict[str, str]] = {}
        for kind in MECHANISMS_SHOWN:
            clip = {"points": None} if algorithm.needs.fixed_arms and kind == "laplace_local" else {}
            given = {"mechanism": kind, "sigma": 1.0, "adversary": adversary, "clip": clip}
            for what, why in Privacy.model_validate(given).leaks(algorithm):
                whys.setdefault(what, {})[kind] = why
        for what, reasons in whys.items():
            under = ["noise of its own"] if what in own else [kind for kind in known if not reasons[kind]]
            hidden = what in own or "gaussian" in under
            otherwise = "" if hidden else reasons["gaussian"] if known else "pulls come in batches"
            yield {"what": what, "from": adversary, "private_under": under, "otherwise": otherwise}


def _field(message: type[Message], name: str) -> Item:
    """A payload field: what it holds, and how many of its entries are sent with ``counting: packed``."""
    declared = message.declared(name)
    shape, packed = declared["shape"], "*".join(declared["shape"]) or "its size"
    if declared["symmetric"]:
        packed = f"{shape[0]}*({shape[0]} + 1)/2" if shape else "p*(p + 1)/2 of a p x p matrix"
    if declared["code"]:
        packed += f", in a {declared['code']} code"
    elif declared["kind"] in EXACT:
        packed += f", of ceil(log2 {declared['of']}) bits" if declared["of"] else ", of 1 bit"
    return {"field": f"{message.kind}.{name}", "holds": declared["kind"], "packed": packed}


def _quantities(algorithm: Algorithm) -> Iterator[tuple[str, str]]:
    """What the formulas of an algorithm use, besides its parameters: (name, meaning), in alphabetical order."""
    meanings = {**COMMON_QUANTITIES, **RUN_QUANTITIES}
    meanings |= {metric.name: metric.meaning for metric in (*CORE, *algorithm.metrics)}
    meanings |= {name: f"= {formula}" for name, formula in algorithm.where.items()}
    own: dict[str, dict[str, None]] = {}
    for size in algorithm.messages:
        for name in names_in(size.size):
            if hasattr(size.message, name):
                meaning = summary_of(getattr(size.message, name)).rstrip(".")
                own.setdefault(name, {})[meaning[:1].lower() + meaning[1:]] = None
    meanings |= {name: "; ".join(said) for name, said in own.items()}
    formulas = [size.size for size in algorithm.messages] + [*algorithm.where.values()]
    formulas += [text for form in algorithm.counts for text in (form.formula, form.when) if text]
    used = {name for text in formulas for name in names_in(text)} & {*meanings}
    yield from ((name, meanings[name]) for name in sorted(used, key=lambda name: (name.casefold(), name)))


def _named(name: str, registry: Registry) -> Item | None:
    """What can be said without loading everything: of an algorithm, a data set or a shipped scenario."""
    if name in registry.algorithms:
        return algorithm_item(registry.algorithms[name])
    if name in SOURCES:
        return {"kind": "dataset", **_dataset(name), "url": SOURCES[name].url, "licence": SOURCES[name].licence}
    if name in paths():
        scenario = shipped_scenario(name)
        text = {"summary": scenario.summary, "text": "\n".join(scenario.header)}
        return {"kind": "scenario", "name": name, **text, "data": scenario.data, "file": str(scenario.path)}
    return None


class Items:
    """Makes the items of keys and kinds."""

    def __init__(self, index: Index, registry: Registry) -> None:
        self._index, self._registry = index, registry
        self._wording, self._examples = Wording(json_schema(registry)), Examples(index)

    def item(self, entry: Entry) -> Item:
        """Everything about a key or kind."""
        return {
            **(self._kind(entry) if entry.is_kind else self._key(entry)),
            "places": [".".join(path) for path in entry.paths if ".".join(path) != entry.name],
            "example": self._examples.snippet(entry),
            "algorithms": self._concerned(entry),
        }

    def line(self, entry: Entry) -> Item:
        """A key or kind in one sentence."""
        if entry.is_kind:
            return {"kind": "kind", "name": entry.name, "summary": first_paragraph(self._schema(entry)["description"])}
        texts = {str(self._index.keys(model)[entry.word].get("description", "")) for model in entry.models}
        of = "algorithm" if entry.paths[0][0] == "algorithms" else "kind"
        depends = f"Depends on the {of}: {', '.join(self._tags(entry))}."
        text = first_paragraph(texts.pop()) if len(texts) == 1 else depends
        return {"kind": "key", "name": entry.name, "summary": text}

    def _schema(self, entry: Entry) -> Schema:
        return self._index.schemas[entry.models[0]]

    def _tags(self, entry: Entry) -> list[str]:
        return list(dict.fromkeys(tag for model in entry.models for tag in self._index.tags(model)))

    def _kind(self, entry: Entry) -> Item:
        schema = self._schema(entry)
        above = "kernel" if any(path[-1] == "kernel" for path in entry.paths) else ".".join(entry.paths[0])
        kind = {"kernel": "kernel", "problem.reward": "reward", "problem": "problem"}.get(above, "kind")
        item = {**self.line(entry), "kind": kind, "text": re.split(r"\n\n(?=Raises:)", schema["description"])[0]}
        sources = [{key: one[key] for key in ("of", "numbers", "unit", "source")} for one in schema.get("sources", ())]
        found = {"parameters": list(parameters(self._wording, schema)), "sources": sources}
        if kind == "problem":
            problem = self._registry.problems[entry.word]
            item |= {"text": problem.summary, "reference": problem.reference}
            found["metrics"] = [metric_item(metric) for metric in problem.metrics]
        return {**item, **found}

    def _key(self, entry: Entry) -> Item:
        variants: dict[str, Item] = {}
        for model in entry.models:
            schema, required = self._index.keys(model)[entry.word], self._index.required(model, entry.word)
            variant = variants.setdefault(str(said := parameter(self._wording, "", schema, required)), said)
            variant["name"] = ", ".join(filter(None, [variant["name"], *self._index.tags(model)]))
        item, found = self.line(entry), list(variants.values())
        if len(found) == 1:
            only = found.pop()
            item |= {"text": only.pop("description"), **only, "name": entry.name}
        return {**item, "variants": found, "kinds": self._inside(entry, True), "keys": self._inside(entry, False)}

    def _concerned(self, entry: Entry) -> dict[str, list[str]]:
        """Which algorithms have a parameter, run on a topology, schedule or problem, or are refused with a key."""
        path, algorithms = entry.paths[0], self._registry.algorithms
        if path != ("algorithms",) and any(one[0] == "algorithms" for one in entry.paths):
            roots = {tag: root for root in self._index.at["algorithms",] for tag in self._index.tags(root)}
            reached = {name: self._index.reached(roots[name]) for name in algorithms if name in roots}
            names = [name for name, models in reached.items() if models & {*entry.models}]
            return {"a parameter of": names} if len(names) < len(algorithms) else {}
        place = next((one for one in (*RUNS_ON, *SAID) if path[: len(one)] == one), ())
        if place in SAID:
            words, concerns = SAID[place]
            said = {words: [name for name, one in algorithms.items() if concerns(one)]}
        elif place in RUNS_ON and (kinds := self._kinds_at(entry, len(place))):
            runs = RUNS_ON[place]
            said = {f"run on {' or '.join(kinds)}": [name for name, one in algorithms.items() if runs(one, {*kinds})]}
        elif place == ("network", "topology"):
            taken = {name: {*one.needs.topologies} for name, one in algorithms.items()}
            said = {
                "need the star": [name for name, kinds in taken.items() if kinds == {"star"}],
                "need a graph": [name for name, kinds in taken.items() if "star" not in kinds],
                "run on both": [name for name, kinds in taken.items() if kinds >= {"star", "graph"}],
            }
        else:
            return {}
        return {words: names for words, names in said.items() if names}

    def _kinds_at(self, entry: Entry, depth: int) -> list[str]:
        """The kinds at a path of ``depth`` keys that an entry is one of, or belongs to; of the path itself, none."""
        path = entry.paths[0]
        if entry.is_kind and len(path) == depth:
            return [entry.word]
        if len(path) <= depth:
            return []
        having: Iterable[str] = entry.models
        if len(path) > depth + 1 or entry.is_kind:
            having = (one for one in self._index.at[path[:depth]] if self._index.reached(one) & {*entry.models})
        return [tag for model in having for tag in self._index.tags(model)]

    def _inside(self, entry: Entry, kinds: bool) -> list[Item]:
        """Name and summary of the kinds that a key can have, or of the keys inside it."""
        if entry.paths[0] == ("algorithms",) and kinds:
            return [{"name": name, "summary": found.summary} for name, found in self._registry.algorithms.items()]
        schemas = [self._index.keys(model)[entry.word] for model in entry.models]
        inside = {name for schema in schemas for name in self._index.inside(schema)}
        found = []
        for other in self._index.entries.values():
            places = other.paths if kinds else [path[:-1] for path in other.paths]
            own = kinds or len(places) == 1 or not self._tags(other)
            if kinds == other.is_kind and inside & {*other.models} and entry.paths[0] in places and own:
                found.append({key: value for key, value in self.line(other).items() if key != "kind"})
        return found


def look_up(word: str, registry: Registry) -> list[Item]:
    """What a word names: an algorithm, dataset, scenario or metric, or a key or kind of scenario files.

    Returns:
        The item in full if it names one thing; a full path of keys is one thing, whatever else its last word is.
        Otherwise and after it, of all others the name by which they are asked for, and a summary; their ``kind`` ends
        with "place".

    Raises:
        UnknownNameError: it names nothing; the text suggests names.
    """
    if (known := _named(word.removeprefix("algorithms."), registry)) is not None:
        return [known]
    found = index(registry)
    places, metric = found.find(word), registry.metrics.get(word.removeprefix(METRIC))
    if metric is not None and (word.startswith(METRIC) or not places):
        return [{"kind": "metric", **metric_item(metric)}]
    exact = found.exact(word) or (places[0] if len(places) == 1 and metric is None else None)
    items = Items(found, registry)
    if exact is not None and "." in word:
        return [items.item(exact)]
    lines = [items.line(entry) for entry in places if entry is not exact]
    if metric is not None:
        lines.append({"kind": "metric", "name": f"{METRIC}{metric.name}", "summary": metric.meaning})
    if exact is None and not lines:
        raise _unknown(word, found, registry)
    others = [{**line, "kind": f"{line['kind']}{PLACE}"} for line in lines]
    return [*([items.item(exact)] if exact is not None else []), *others]


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
