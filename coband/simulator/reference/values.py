"""A key's values in words: type, range and default."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
