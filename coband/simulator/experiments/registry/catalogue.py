"""What there is, for ``coband list`` and ``coband describe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, TypeAdapter

from coband.simulator.core.algorithm import (
    COMMON_QUANTITIES,
    RUN_QUANTITIES,
    Algorithm,
    MessageSize,
)
from coband.simulator.core.formulas import names_in
from coband.simulator.core.metrics import CORE
from coband.simulator.core.nodes.message import EXACT, Message
from coband.simulator.core.nodes.node import Agent
from coband.simulator.core.wire.privacy import Privacy
from coband.simulator.experiments.registry.registry import CLASSES, RESERVED, Registry
from coband.simulator.experiments.scenario.files import ShippedScenario, paths, shipped_scenario, shipped_scenarios
from coband.simulator.experiments.scenario.wire_rules import stand
from coband.simulator.experiments.scenario.wording import TAG_KEYS, Wording
from coband.simulator.maths.kernels.registry import KERNELS
from coband.simulator.metrics import Metric
from coband.simulator.plugins.entry_points import summary_of
from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS, DataError, PublicDataset
from coband.simulator.problems.ratings import RATINGS
from coband.simulator.problems.rewards import REWARDS
from coband.simulator.problems.world import ProblemEntry

SOURCES: Mapping[str, PublicDataset] = {**DATASETS, **RATINGS, **GRAPH_DATASETS}
Item = dict[str, Any]
MECHANISMS_SHOWN, SEEN_BY = ("gaussian", "tree", "laplace_local"), ("server", "others")


class UnknownNameError(DataError):
    """Nothing has that name; the text lists the nearest names."""


def catalogue(registry: Registry) -> dict[str, list[Item]]:
    """Name and one-line summary of everything, by kind, with its reference; for scenarios, the data that they need."""
    return {
        **_installed(registry),
        "scenarios": [
            {"name": scenario.name, "summary": scenario.summary, "data": scenario.data}
            for scenario in shipped_scenarios()
        ],
    }


def _installed(registry: Registry) -> dict[str, list[Item]]:
    return {
        "algorithms": [_line(entry.name, entry.summary, entry.reference) for entry in registry.algorithms.values()],
        "problems": [_line(entry.name, entry.summary, entry.reference) for entry in registry.problems.values()],
        **{one.name: [_line(kind, summary_of(found), "") for kind, found in one.known().items()] for one in CLASSES},
        "datasets": [_line(data.name, _content(data), data.citation) for data in SOURCES.values()],
        "metrics": [_line(metric.name, metric.meaning, "") for metric in registry.metrics.values()],
    }


def _line(name: str, summary: str, reference: str) -> Item:
    return {"name": name, "summary": summary, "reference": reference}


def _content(source: PublicDataset) -> str:
    return f"{source.title}: {source.rows:,} rows, {source.columns}"


def describe(name: str, registry: Registry) -> list[Item]:
    """Everything about whatever has that name, in JSON types; about a metric only where nothing else has its name."""
    found: list[Item] = []
    if name in registry.algorithms:
        found.append(_algorithm(registry.algorithms[name]))
    if name in registry.problems:
        found.append(_problem(registry.problems[name]))
    if name in SOURCES:
        source = SOURCES[name]
        found.append(
            {
                "kind": "dataset",
                **_line(name, _content(source), source.citation),
                "url": source.url,
                "licence": source.licence,
            }
        )
    for kind, classes in (("kernel", KERNELS.known()), ("reward", REWARDS.known())):
        if name in classes:
            found.append(_class(kind, name, classes[name]))
    if name in paths():
        found.append(_scenario(shipped_scenario(name)))
    if not found and name in registry.metrics:  # which loads every algorithm
        found.append({"kind": "metric", **metric_item(registry.metrics[name])})
    return found


def _algorithm(algorithm: Algorithm) -> Item:
    return {
        "kind": "algorithm",
        **_line(algorithm.name, algorithm.summary, algorithm.reference),
        "server": algorithm.server is not None,
        "needs": asdict(algorithm.needs),
        "knows": sorted(algorithm.facts),
        "messages": [_message(message) for message in algorithm.messages],
        "privacy": list(_privacy(algorithm)),
        "liars": stand(algorithm),
        "counts": [asdict(form) for form in algorithm.counts],
        "rate": algorithm.rate,
        "search": dict(algorithm.search),
        "where": dict(_quantities(algorithm)),
        "metrics": [metric_item(metric) for metric in algorithm.metrics],
        "parameters": list(_parameters(algorithm.config)),
    }


def _scenario(scenario: ShippedScenario) -> Item:
    return {
        "kind": "scenario",
        "name": scenario.name,
        "summary": scenario.summary,
        "header": list(scenario.header),
        "data": scenario.data,
        "file": str(scenario.path),
    }


def _problem(problem: ProblemEntry) -> Item:
    parameters = list(_parameters(problem.config))
    metrics = [metric_item(metric) for metric in problem.metrics]
    line = _line(problem.name, problem.summary, problem.reference)
    return {"kind": "problem", **line, "metrics": metrics, "parameters": parameters}


def _class(kind: str, name: str, found: type) -> Item:
    """A kernel or a reward, described by its class."""
    schema = TypeAdapter(found).json_schema(mode="validation")
    parameters = [item for item in properties(Wording(schema), schema, ()) if item["name"] not in TAG_KEYS]
    return {"kind": kind, **_line(name, summary_of(found), ""), "parameters": parameters}


def metric_item(metric: Metric) -> Item:
    """What a metric is."""
    return {
        **_line(metric.name, metric.meaning, ""),
        "unit": metric.unit,
        "better": metric.better,
        "locked": metric.locked,
        "of_each_agent": metric.aggregate is None,
    }


def _message(message: MessageSize) -> Item:
    return {
        "kind": message.message.kind,
        "direction": message.direction,
        "scalars": message.size,
        "to": message.to,
        "when": message.when,
        "fields": [_field(message.message, name) for name in message.message.payload_fields()],
    }


def _privacy(algorithm: Algorithm) -> Iterator[Item]:
    """What is private of an algorithm's messages, under each of coband's mechanisms, from each adversary."""
    known = MECHANISMS_SHOWN if issubclass(algorithm.agent, Agent) else ()
    sent = {size.message for size in algorithm.messages}
    own = {f"{one.kind}.{name}" for one in sent for name in one.payload_fields() if one.declared(name)["noised"]}
    for adversary in SEEN_BY:
        asked = {}
        for kind in MECHANISMS_SHOWN:
            clip = {"points": None} if algorithm.needs.fixed_arms and kind == "laplace_local" else {}
            given = {"mechanism": kind, "sigma": 1.0, "adversary": adversary, "clip": clip}
            asked[kind] = Privacy.model_validate(given)
        found: dict[str, dict[str, str]] = {}
        for kind, privacy in asked.items():
            for what, why in privacy.leaks(algorithm):
                found.setdefault(what, {})[kind] = why
        for what, why_not in found.items():
            under = ["noise of its own"] if what in own else [kind for kind in known if not why_not[kind]]
            reason = (
                "" if what in own or "gaussian" in under else why_not["gaussian"] if known else "pulls come in batches"
            )
            yield {"what": what, "from": adversary, "under": under, "otherwise": reason}


def unprotected(algorithm: str, privacy: Mapping[str, Any]) -> list[str]:
    """What a section ``messages.privacy`` leaves unprotected of an algorithm; nothing of one that is not installed."""
    known = Registry.installed().algorithms.get(algorithm)
    return [] if known is None else Privacy.model_validate(privacy).unprotected(known)


def _field(message: type[Message], name: str) -> Item:
    """A payload field: what it holds, its shape, and how many of its entries are sent with ``counting: packed``."""
    declared = message.declared(name)
    shape, packed = declared["shape"], "*".join(declared["shape"]) or "its size"
    if declared["symmetric"]:
        packed = f"{shape[0]}*({shape[0]} + 1)/2" if shape else "p*(p + 1)/2 of a p x p matrix"
    if declared["code"]:
        packed += f", in a {declared['code']} code"
    elif declared["kind"] in EXACT:
        packed += f", of ceil(log2 {declared['of']}) bits" if declared["of"] else ", of 1 bit"
    return {"name": name, "holds": declared["kind"], "shape": list(shape), "packed": packed}


def _quantities(algorithm: Algorithm) -> Iterator[tuple[str, str]]:
    """What the formulas of an algorithm use, beside its parameters: (name, meaning), in alphabetical order."""
    meanings = {**COMMON_QUANTITIES, **RUN_QUANTITIES}
    meanings |= {metric.name: metric.meaning for metric in (*CORE, *algorithm.metrics)}
    meanings |= {name: f"= {formula}" for name, formula in algorithm.where.items()}
    own: dict[str, list[str]] = {}
    for message in algorithm.messages:
        for name in names_in(message.size):
            documented = summary_of(getattr(message.message, name, None)).rstrip(".")
            documented = documented[:1].lower() + documented[1:]
            if hasattr(message.message, name) and documented not in own.setdefault(name, []):
                own[name].append(documented)
    formulas = [message.size for message in algorithm.messages] + [
        text for form in algorithm.counts for text in (form.formula, form.when) if text
    ]
    used = dict.fromkeys(name for text in (*formulas, *algorithm.where.values()) for name in names_in(text))
    for name in sorted(used, key=str.casefold):
        if name in own:
            yield name, "; ".join(own[name])
        elif name in meanings:
            yield name, meanings[name]


def _parameters(config: type[BaseModel]) -> Iterator[Item]:
    schema = config.model_json_schema(mode="validation")
    for item in properties(Wording(schema), schema, ()):
        if item["name"] not in (*RESERVED, *TAG_KEYS):
            yield item


def properties(wording: Wording, schema: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[Item]:
    """The keys of a mapping, each with the members of a union of mappings under ``choices``."""
    for key, inner in schema.get("properties", {}).items():
        item: Item = {"name": key, "type": wording.in_words(inner), "required": key in schema.get("required", ())}
        if "default" in inner:
            item["default"] = inner["default"]
        item["description"] = inner.get("description", "")
        mappings = [variant for variant in wording.variants(inner) if variant.get("properties")]
        if mappings and key not in above:
            item["choices"] = [_choice(wording, mapping, (*above, key)) for mapping in mappings]
        yield item


def _choice(wording: Wording, mapping: Mapping[str, Any], above: tuple[str, ...]) -> Item:
    tags = {key: inner["const"] for key, inner in mapping["properties"].items() if key in TAG_KEYS and "const" in inner}
    parameters = [item for item in properties(wording, mapping, above) if item["name"] not in tags]
    return {**tags, "description": mapping.get("description", ""), "parameters": parameters}
