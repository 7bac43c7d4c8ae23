"""Describes in words what a JSON Schema allows at a place of a document, for messages and ``coband describe``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coband.simulator.scenario_errors import KeyPath

Schema = Mapping[str, Any]
TAG_KEYS = ("kind", "algorithm")
BOUNDS = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
SIZES = (("minItems", "at least"), ("maxItems", "at most"))
_PLAIN = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class Wording:
    """Answers questions about a JSON Schema whose ``$ref`` refer to its own ``$defs``."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema

    def at(self, path: KeyPath, data: Any) -> list[Schema]:
        """The schemas that apply at ``path``; of a union, the members that fit ``data``."""
        return _fitting(*self._reach(path, data))

    def keys(self, path: KeyPath, data: Any) -> list[str]:
        """The keys that the mapping at ``path`` may have."""
        return _unique(key for schema in self.at(path, data) for key in schema.get("properties", ()))

    def tags(self, path: KeyPath, data: Any, key: str) -> list[str]:
        """The values of the discriminator ``key`` of the union at ``path``."""
        variants, _ = self._reach(path, data)
        return _unique(tag for schema in variants for tag in tags_of(schema, key))

    def places(self, key: str, most: int = 2) -> list[str]:
        """The shortest paths at which a key of this name can stand, without those of algorithms; none if many can."""
        found: list[str] = []
        waiting, seen = deque[tuple[tuple[str, ...], Schema]]([((), self._root)]), set[int]()
        while waiting:
            path, schema = waiting.popleft()
            for variant in self.variants(schema):
                if id(variant) in seen:
                    continue
                seen.add(id(variant))
                for name, inner in variant.get("properties", {}).items():
                    if name == key:
                        found.append(".".join((*path, key)))
                    if name != "algorithms":
                        waiting.append(((*path, name), inner))
        found = list(dict.fromkeys(found))
        return found if len(found) <= most else []

    def allowed(self, path: KeyPath, data: Any) -> str:
        """What is allowed at ``path``, in words; empty if the schema allows anything."""
        return self._join(self._reach(path, data)[0])

    def _reach(self, path: KeyPath, data: Any) -> tuple[list[Schema], Any]:
        """All members of the union at ``path``, and the data there."""
        found = list(self.variants(self._root))
        for step in path:
            inner = (part for schema in _fitting(found, data) for part in _inside(schema, step))
            found = [variant for part in inner for variant in self.variants(part)]
            data = _step(data, step)
        return found, data

    def in_words(self, schema: Schema) -> str:
        """What a schema allows, in words."""
        return self._join(list(self.variants(schema)))

    def variants(self, schema: Schema) -> Iterator[Schema]:
        """The members of a union, references and nested unions resolved."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            yield from self.variants(self._root["$defs"][name])
        elif any(union in schema for union in ("anyOf", "oneOf", "allOf")):
            for union in ("anyOf", "oneOf", "allOf"):
                for member in schema.get(union, ()):
                    yield from self.variants(member)
        else:
            yield schema

    def _join(self, variants: list[Schema]) -> str:
        objects = [schema for schema in variants if schema.get("type") == "object"]
        words = [self._word(schema) for schema in variants if schema.get("type") != "object"]
        if objects:
            words.append(_mapping(objects))
        if _PLAIN["number"] in words:
            words = [word for word in words if word != _PLAIN["integer"]]
        words.sort(key=lambda word: word == "null")
        return " or ".join(_unique(word for word in words if word))

    def _word(self, schema: Schema) -> str:
        if "const" in schema:
            return str(schema["const"])
        if "enum" in schema:
            return "one of " + ", ".join(map(str, schema["enum"]))
        if schema.get("type") == "array":
            return self._list(schema)
        word = _PLAIN.get(str(schema.get("type")), "")
        bounds = [f"{sign} {number(schema[bound])}" for bound, sign in BOUNDS if bound in schema]
        return f"{word} {' and '.join(bounds)}" if bounds else word

    def _list(self, schema: Schema) -> str:
        bounds = [f"{word} {schema[bound]}" for bound, word in SIZES if schema.get(bound)]
        size = f" of {' and '.join(bounds)}" if bounds else ""
        each = self.in_words(schema["items"]) if isinstance(schema.get("items"), Mapping) else ""
        return f"a list{size} (each {each})" if each else f"a list{size}"


def number(value: float) -> str:
    """A bound as text; whole numbers in full."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _mapping(objects: list[Schema]) -> str:
    """One mapping in words, or a union of mappings with a discriminator."""
    for key in TAG_KEYS:
        tags = [tags_of(schema, key) for schema in objects]
        if all(tags):
            return f"{{{key}: {' | '.join(_unique(tag for of_one in tags for tag in of_one))}, ...}}"
    keys = _unique(key for schema in objects for key in schema.get("properties", ()))
    return f"a mapping ({', '.join(keys)})" if keys else "a mapping"


def _inside(schema: Schema, step: str | int) -> Iterator[Schema]:
    if isinstance(step, str):
        inner = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    else:
        inner = schema.get("items")
    if isinstance(inner, Mapping):
        yield inner


def _fitting(variants: list[Schema], data: Any) -> list[Schema]:
    """The members of a union that fit the discriminator of the data; all members if it has no known one."""
    if not isinstance(data, dict):
        return variants
    fitting = [schema for schema in variants if all(_agrees(schema, key, data) for key in TAG_KEYS)]
    return fitting or variants


def _agrees(schema: Schema, key: str, data: Mapping[str, object]) -> bool:
    tags = tags_of(schema, key)
    return not tags or data.get(key) in tags


def tags_of(schema: Schema, key: str) -> list[str]:
    """The values of the discriminator ``key`` that select a schema; empty if it has none."""
    tag = schema.get("properties", {}).get(key, {})
    return [str(tag["const"])] if "const" in tag else list(map(str, tag.get("enum", ())))


def _step(data: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return data.get(step) if isinstance(data, dict) else None
    return data[step] if isinstance(data, list) and step < len(data) else None


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
