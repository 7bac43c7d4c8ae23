"""Sheets: what is said of an item, in blocks that a terminal and a page show alike; types and defaults in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coband.simulator.experiments.scenario.wording import BOUNDS, SIZES, Wording, number

Schema = Mapping[str, Any]
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "mapping",
}
_LENGTHS = (("minLength", "at least"), ("maxLength", "at most"))


def type_of(wording: Wording, schema: Schema) -> str:
    """What sort of value a key has, such as "whole number or null"."""
    words = list(dict.fromkeys(_type(wording, member) for member in wording.variants(schema)))
    if "number" in words and "whole number" in words:
        words.remove("whole number")
    words.sort(key="null".__eq__)
    return " or ".join(words)


def _type(wording: Wording, schema: Schema) -> str:
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return "word" if all(isinstance(value, str) for value in values) else "whole number"
    if schema.get("type") == "array":
        entries = schema.get("items")
        return f"list of ({type_of(wording, entries)})" if isinstance(entries, Mapping) else "list"
    return _TYPES.get(str(schema.get("type")), "any value")


def range_of(wording: Wording, schema: Schema) -> str:
    """Which values of the type are allowed; empty where all are."""
    return " or ".join(dict.fromkeys(filter(None, (_range(wording, member) for member in wording.variants(schema)))))


def _range(wording: Wording, schema: Schema) -> str:
    if "const" in schema or "enum" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        return " and ".join(_list(wording, schema))
    lengths = [f"{words} {schema[bound]} characters" for bound, words in _LENGTHS if bound in schema]
    return " and ".join([f"{sign} {number(schema[bound])}" for bound, sign in BOUNDS if bound in schema] + lengths)


def _list(wording: Wording, schema: Schema) -> Iterator[str]:
    for bound, words in SIZES:
        if schema.get(bound):
            yield f"{words} {schema[bound]} entr{'y' if schema[bound] == 1 else 'ies'}"
    each = range_of(wording, schema["items"]) if isinstance(schema.get("items"), Mapping) else ""
    if each:
        yield f"each {each.removeprefix('each ')}"


def in_yaml(value: Any) -> str:
    """A value as it is written in YAML on one line, without the keys of a mapping that are null."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key}: {in_yaml(part)}" for key, part in value.items() if part is not None)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


Item = dict[str, Any]
RATE = "Rate (T pulls of N agents, d dimensions, maximum information gain γ_T)"
PLACE = " place"
"""What the kind of an item ends with that is a mere place of a name."""


@dataclass(frozen=True)
class Text:
    """Lines as they are."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and a value."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Parameters:
    """Parameters with their types, defaults and descriptions; those inside others are below them."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Rows:
    """A table; ``linked``: cells of its first column name other sheets, by the names beside them."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    linked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Names:
    """Names of other sheets."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Text in a language, YAML for the most part."""

    text: str
    language: str = "yaml"


@dataclass(frozen=True)
class Section:
    """Blocks under a title; without one they belong to the sheet itself."""

    title: str
    blocks: tuple[Text | Facts | Parameters | Rows | Names | Code, ...]


@dataclass(frozen=True)
class Sheet:
    """What is said of one item."""

    name: str
    kind: str
    head: tuple[str, ...]
    sections: tuple[Section, ...]


def sheet(item: Item) -> Sheet:
    """The sheet of an item of the catalogue, of a key or of a kind."""
    return Sheet(item["name"], item["kind"], tuple(_head(item)), tuple(_sections(item)))


def _head(item: Item) -> Iterator[str]:
    if "variants" in item:
        only = item["variants"]
        yield from [only[0]["text"]] if len(only) == 1 else []
        return
    yield from item.get("header") or str(item.get("text", item["summary"])).splitlines()
    if item.get("reference"):
        yield item["reference"]
    if item["kind"] == "metric":
        yield direction(item)
    for key in ("url", "licence", "data", "file"):
        if item.get(key) is not None:
            yield f"{key}: {item[key]}"


def _sections(item: Item) -> Iterator[Section]:
    yield from _variants(item)
    yield from _values(item)
    if item.get("parameters"):
        yield Section("Parameters", (Parameters(tuple(item["parameters"])),))
    if item.get("sources"):
        facts = Facts(tuple((one["of"], _numbers(one)) for one in item["sources"]))
        yield Section("Sources", (Text(("Several numbers are quantiles at equal steps of probability.",)), facts))
    if item.get("messages"):
        rows = tuple((message["kind"], message["direction"], _size(message)) for message in item["messages"])
        yield Section("Messages", (Rows(("kind", "direction", "scalars"), rows),))
        yield from _fields(item["messages"])
    if item.get("privacy"):
        private = tuple((one["what"], one["from"], *_private(one)) for one in item["privacy"])
        yield Section("Privacy", (Rows(("what is sent", "seen by", "", "otherwise seen"), private),))
    if item.get("liars"):
        yield Section("Liars", (Text((item["liars"],)),))
    if item.get("counts"):
        yield Section("Communication", (Text(tuple(_count(form) for form in item["counts"])),))
    if item.get("where"):
        yield Section("where", (Text(tuple(_quantity(*pair) for pair in item["where"].items())),))
    if item.get("rate"):
        yield Section(RATE, (Text((item["rate"],)),))
    if item.get("search"):
        lines = tuple(f"{name}: {text} (what `coband frontier` tries)" for name, text in item["search"].items())
        yield Section("Search", (Text(lines),))
    if item.get("metrics"):
        rows = tuple((metric["name"], metric["summary"], direction(metric)) for metric in item["metrics"])
        yield Section("Metrics", (Rows(("name", "meaning", "unit"), rows),))
    if "needs" in item:
        told = f"is told {', '.join(item['knows']) or 'nothing'} beside arms and rewards"
        yield Section("Needs", (Text((f"{_needs(item['needs'])}; {told}",)),))
    yield from _context(item)


def _numbers(source: Item) -> str:
    """Numbers that have a source, with their unit."""
    return f"{', '.join(f'{value:.6g}' for value in source['numbers'])} {source['unit']}: {source['source']}"


def _fields(messages: list[Item]) -> Iterator[Section]:
    """What payloads hold, once for each kind of message."""
    found = {(one["kind"], field["name"]): field for one in messages for field in one["fields"]}
    rows = tuple((f"{kind}.{name}", field["holds"], field["packed"]) for (kind, name), field in found.items())
    if rows:
        yield Section("Fields", (Rows(("field", "holds", "scalars with messages.counting: packed"), rows),))


def _private(item: Item) -> tuple[str, str]:
    """Whether something that is sent is private, and if not, what it tells."""
    under = item["under"]
    if not under:
        return "not private", item["otherwise"]
    return f"private under {', '.join(under)}", item["otherwise"]


def _variants(item: Item) -> Iterator[Section]:
    """What a key is; for each kind or algorithm by itself where they differ."""
    variants = item.get("variants", [])
    for variant in variants:
        facts = Facts(tuple(_facts(variant)))
        if len(variants) == 1:
            yield Section("", (facts,))
        else:
            yield Section(", ".join(variant["of"]), (Text((variant["text"],)), facts))


def _facts(variant: Item) -> Iterator[tuple[str, str]]:
    yield "type", variant["type"]
    if variant["unit"]:
        yield "unit", variant["unit"]
    yield "default", "none: the key must be given" if variant["default"] is None else variant["default"]
    if variant["range"]:
        yield "range", variant["range"]


def _values(item: Item) -> Iterator[Section]:
    for title, key in (("Kinds", "kinds"), ("Keys", "keys")):
        found = item.get(key)
        if found:
            rows = tuple((inner.get("word", inner["name"]), inner["summary"]) for inner in found)
            yield Section(title, (Rows(("name", "meaning"), rows, tuple(inner["name"] for inner in found)),))


def _context(item: Item) -> Iterator[Section]:
    """Where a key or kind can stand, an example, and which algorithms it matters to."""
    places = [place for place in item.get("places", ()) if place != item["name"]]
    if places:
        yield Section("Where it can stand", (Text((", ".join(places),)),))
    if "example" in item:
        yield Section("Example", (Code(item["example"]),))
    for place, said in enumerate(item.get("algorithms", ())):
        blocks = (Text((said["words"],)), *((Names(tuple(said["names"])),) if said["names"] else ()))
        yield Section("" if place else "Algorithms", blocks)


def _size(message: Item) -> str:
    """A formula, who gets it, and when the size is that."""
    words = " ".join(filter(None, (message["scalars"], message["to"])))
    return f"{words}, if {message['when']}" if message["when"] else words


def _count(form: Item) -> str:
    words = f"{'each round: ' if form['each'] == 'round' else ''}{form['count']} = {form['formula']}"
    return f"{words}, if {form['when']}" if form["when"] else words


def _quantity(name: str, meaning: str) -> str:
    return f"{name} {meaning}" if meaning.startswith("= ") else f"{name}: {meaning}"


def direction(metric: Item) -> str:
    """Unit of a metric, which end wins, and whose it is."""
    words = [metric["unit"]]
    if metric["better"]:
        words.append(f"{metric['better']} is better")
    if metric["of_each_agent"]:
        words.append("of each agent")
    return ", ".join(words)


def _needs(needs: Item) -> str:
    words = [f"topology {' or '.join(needs['topologies'])}"]
    if needs["reliable"]:
        words.append("every message delivered (transport: reliable, or no loss)")
    if needs["ordered"]:
        words.append("messages in order (transport: reliable, or constant latencies)")
    if needs["horizon"]:
        words.append("a known number of turns (horizon, or a schedule without duration)")
    problems = f"problems {', '.join(needs['problems'])}" if needs["problems"] else "any problem"
    words.append(f"{problems} with one arm set for all turns of all agents" if needs["fixed_arms"] else problems)
    return "; ".join(words)


def parameter_lines(parameters: tuple[Item, ...] | list[Item], indent: str = "") -> Iterator[str]:
    """Parameters as indented lines; those of the kinds of a parameter are below it."""
    for parameter in parameters:
        default = f" (default: {in_yaml(parameter['default'])})" if "default" in parameter else ""
        required = " (required)" if parameter["required"] else ""
        yield f"{indent}{parameter['name']}: {parameter['type']}{required or default}"
        if parameter["description"]:
            yield f"{indent}    {one_line(parameter['description'])}"
        for choice in parameter.get("choices", ()):
            if not choice["parameters"] and "kind" not in choice:
                continue
            yield f"{indent}  - {choice_title(choice)}"
            yield from parameter_lines(choice["parameters"], f"{indent}      ")


def choice_title(choice: Item) -> str:
    """What a member of a union of mappings is called."""
    return f"kind: {choice['kind']}" if "kind" in choice else "mapping with"


def one_line(text: Any) -> str:
    """A text without line breaks."""
    return " ".join(str(text).split())
