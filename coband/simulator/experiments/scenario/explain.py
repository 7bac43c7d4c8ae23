"""Turns pydantic's errors into messages for users: the place in the YAML, what was given, and what is allowed by the
JSON Schema, in the words of ``coband describe``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario import gone
from coband.simulator.experiments.scenario.document import Document, json_schema
from coband.simulator.experiments.scenario.yaml_nodes import Node, descend, given, key_mark, plain, resolve
from coband.simulator.plugins.kinds import is_false_alarm
from coband.simulator.scenario_errors import InputProblem, KeyPath, alike, did_you_mean, key_path, quoted, slips

Schema = Mapping[str, Any]
TAG_KEYS = ("kind", "algorithm")
_BOUNDS = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
_SIZES = {"array": ("Items", ""), "string": ("Length", " characters")}
_PLAIN = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class Wording:
    """Describes in words what a JSON Schema allows, whose ``$ref`` refer to its own ``$defs``."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema

    def at(self, path: KeyPath) -> Wording:
        """The wording of the part of the schema that has the place at ``path``."""
        return self

    def keys(self, path: KeyPath, data: Any) -> list[str]:
        """The keys that the mapping at ``path`` of ``data`` may have."""
        schemas = _fitting(*self._reach(path, data))
        return list(dict.fromkeys(key for schema in schemas for key in schema.get("properties", ())))

    def tags(self, path: KeyPath, data: Any, key: str) -> list[str]:
        """The values of the discriminator ``key`` of the union at ``path``."""
        return list(dict.fromkeys(tag for schema in self._reach(path, data)[0] for tag in tags_of(schema, key)))

    def choices(self, path: KeyPath, data: Any) -> list[str]:
        """The words that are allowed at ``path``."""
        return [str(name) for schema in self._reach(path, data)[0] for name in _choices(schema)]

    def allowed(self, path: KeyPath, data: Any) -> str:
        """What is allowed at ``path``, in words; empty if the schema allows anything."""
        return self._join(self._reach(path, data)[0])

    def required(self, path: KeyPath, data: Any, key: str, tag: str) -> list[str] | None:
        """The other keys that the mapping with this tag at ``path`` requires; None if there is no such tag."""
        fitting = (one for one in self._reach(path, data)[0] if tag in tags_of(one, key))
        return next(([name for name in one.get("required", ()) if name != key] for one in fitting), None)

    def places(self, key: str, most: int = 2) -> list[str]:
        """The shortest paths at which a key of this name can stand, without those of algorithms; none if many can."""
        found: dict[str, None] = {}
        waiting, seen = deque[tuple[KeyPath, Schema]]([((), self._root)]), set[int]()
        while waiting:
            path, schema = waiting.popleft()
            for variant in self.variants(schema):
                properties = {} if id(variant) in seen else variant.get("properties", {})
                seen.add(id(variant))
                found |= {key_path((*path, key)): None} if key in properties else {}
                waiting += [((*path, name), inner) for name, inner in properties.items() if name != "algorithms"]
        return list(found) if len(found) <= most else []

    def in_words(self, schema: Schema) -> str:
        """What a schema allows, in words."""
        return self._join(list(self.variants(schema)))

    def variants(self, schema: Schema) -> Iterator[Schema]:
        """The members of a union, references and nested unions resolved."""
        if "$ref" in schema:
            yield from self.variants(self._root["$defs"][schema["$ref"].rpartition("/")[2]])
        elif members := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
            for member in members:
                yield from self.variants(member)
        else:
            yield schema

    def _reach(self, path: KeyPath, data: Any) -> tuple[list[Schema], Any]:
        """All members of the union at ``path``, and the data there."""
        found = list(self.variants(self._root))
        for step in path:
            inner = [_inside(schema, step) for schema in _fitting(found, data)]
            found = [variant for part in inner if isinstance(part, Mapping) for variant in self.variants(part)]
            fits = step in data if isinstance(data, dict) else isinstance(data, list) and int(step) < len(data)
            data = data[step] if fits else None
        return found, data

    def _join(self, variants: list[Schema]) -> str:
        objects = [schema for schema in variants if schema.get("type") == "object"]
        words = [self._word(schema) for schema in variants if schema.get("type") != "object"]
        words += _mappings(objects)
        words = [word for word in words if word != _PLAIN["integer"] or _PLAIN["number"] not in words]
        words.sort(key=lambda word: word == "null")
        return " or ".join(dict.fromkeys(word for word in words if word))

    def _word(self, schema: Schema) -> str:
        if choices := _choices(schema):
            return f"{'one of ' * ('enum' in schema)}{', '.join(map(str, choices))}"
        kind = str(schema.get("type"))
        suffix, unit = _SIZES.get(kind, ("", ""))
        bounds = (("min", "at least"), ("max", "at most"))
        sizes = [f"{word} {schema[bound + suffix]}" for bound, word in bounds if schema.get(bound + suffix)]
        if suffix and schema.get("min" + suffix) == schema.get("max" + suffix, 0):
            sizes = [str(schema["min" + suffix])]
        size = f" of {' and '.join(sizes)}{unit}" if sizes else ""
        if kind == "array":
            each = f"each {self.in_words(items)}" if isinstance(items := schema.get("items"), Mapping) else ""
            each = each or ", ".join(map(self.in_words, schema.get("prefixItems", ())))
            return f"a list{size}" + (f" ({each})" if each.removeprefix("each ") else "")
        if "pattern" in schema:
            return schema.get("words") or f"text that matches {schema['pattern']}"
        limits = " and ".join(f"{sign} {_number(schema[bound])}" for bound, sign in _BOUNDS if bound in schema)
        return f"{_PLAIN.get(kind, '')}{size} {limits}".strip()


def _number(value: float) -> str:
    """A bound as text; whole numbers in full."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def tags_of(schema: Schema, key: str) -> list[str]:
    """The values of the discriminator ``key`` that select a schema; empty if it has none."""
    return list(map(str, _choices(schema.get("properties", {}).get(key, {}))))


def _choices(schema: Schema) -> Sequence[object]:
    return [schema["const"]] if "const" in schema else schema.get("enum", ())


def _mappings(objects: list[Schema]) -> Iterator[str]:
    """Mappings in words: each that has no discriminator with its keys, and those that have one together."""
    tagged = {key: [tag for schema in objects for tag in tags_of(schema, key)] for key in TAG_KEYS}
    plain = [schema for schema in objects if not any(tags_of(schema, key) for key in TAG_KEYS)]
    if plain:
        keys = [f" ({', '.join(schema['properties'])})" for schema in plain if schema.get("properties")]
        yield "a mapping" + " or".join(dict.fromkeys(keys))
    for key, tags in tagged.items():
        if tags:
            yield f"{{{key}: {' | '.join(dict.fromkeys(tags))}, ...}}"


def _inside(schema: Schema, step: str | int) -> Any:
    if isinstance(step, int):
        first = schema.get("prefixItems", ())
        return first[step] if step < len(first) else schema.get("items")
    return schema.get("properties", {}).get(step, schema.get("additionalProperties"))


def _fitting(variants: list[Schema], data: Any) -> list[Schema]:
    """The members of a union that fit the discriminator of the data, of these those that have most of its keys; all
    members if it has no known discriminator."""
    if not isinstance(data, dict):
        return variants
    tags = [[(key, tags_of(schema, key)) for key in TAG_KEYS] for schema in variants]
    fitting = [one for one, own in zip(variants, tags, strict=True) if all(not t or data.get(k) in t for k, t in own)]
    fitting = fitting or variants
    shared = [len(data.keys() & schema.get("properties", {}).keys()) for schema in fitting]
    return [schema for schema, count in zip(fitting, shared, strict=True) if count == max(shared)]


_KEY_FIRST = re.compile(r"([\w.]+)(: )|(\w+)(?=\()|(\w+\.[\w.]+)")
_WRONG_SHAPE = re.compile(r".*_type|literal_error|none_required|int_from_float|is_instance_of")
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}


class DocumentWording(Wording):
    """A scenario's; as its whole schema takes long to make, that of a section is made for a mistake in it."""

    def __init__(self, registry: Registry) -> None:
        super().__init__({"type": "object", "properties": {key: {} for key in Document.model_fields}})
        self._registry = registry

    def at(self, path: KeyPath) -> Wording:
        section = next(map(str, path), "")
        return Wording(json_schema(self._registry, section)) if section in Document.model_fields else self

    def places(self, key: str, most: int = 2) -> list[str]:
        return Wording(json_schema(self._registry)).places(key, most)


class Explainer:
    """Explains the errors of one document.

    Args:
        wording: of the document's JSON Schema.
        broken: registered names that could not be loaded, with the reason.
    """

    def __init__(self, root: Node, wording: Wording, broken: Mapping[str, str]) -> None:
        self._root, self._wording, self._broken, self._data = root, wording, broken, plain(root)

    def explain(self, errors: Sequence[ErrorDetails], prefix: KeyPath = ()) -> list[InputProblem]:
        """The problems that correspond to pydantic's errors about the node at ``prefix``.

        Where pydantic tried several members of a union, errors of members of another shape are left out.
        """
        real = [error for error in errors if not is_false_alarm(error)] or errors
        located = [(self._path(prefix, error["loc"]), error) for error in real]
        entered = {path[:depth] for path, _ in located for depth in range(len(path))}
        entered |= {path for path, error in located if not _WRONG_SHAPE.fullmatch(error["type"])}
        found = [one for one in located if one[0] not in entered or not _WRONG_SHAPE.fullmatch(one[1]["type"])]
        meant = {key for path, error in found if error["type"] in _UNKNOWN for key in self.meant(path)}
        found = [one for one in found if one[1]["type"] != "missing" or (*one[0], one[1]["loc"][-1]) not in meant]
        return list(dict.fromkeys(self._problem(path, error) for path, error in found))

    def missing(self, path: KeyPath, key: str) -> InputProblem:
        """The problem of a missing required key."""
        allowed = self._wording.at((*path, key)).allowed((*path, key), self._data)
        text = f"{key} is missing" + (f": must be {allowed}" if allowed else "")
        return key_mark(self._root, path).problem(path, text)

    def meant(self, path: KeyPath) -> list[KeyPath]:
        """The keys of its mapping that an unknown one may stand for, so that they are not missing."""
        return [(*path[:-1], one) for one in self._suggested(path)[0]]

    def _suggested(self, path: KeyPath) -> tuple[list[str], list[str]]:
        """The keys of its mapping that an unknown one may stand for, or else the places where it could stand."""
        known, name = self._wording.at(path[:-1]).keys(path[:-1], self._data), str(path[-1])
        if near := slips(name, known):
            return near, []
        here = ".".join(map(str, path))
        places = [one if "." in one else f"{one} at the top level" for one in self._wording.places(name) if one != here]
        return ([], places) if places else (alike(name, known), [])

    def unknown_key(self, path: KeyPath) -> InputProblem:
        """The problem of a key that its mapping does not allow."""
        message = gone.key(path)
        if message is None:
            known, name = self._wording.at(path[:-1]).keys(path[:-1], self._data), str(path[-1])
            near, places = self._suggested(path)
            hint = f" did you mean {' or '.join(near or places)}?" if near or places else ""
            what = "unknown key" if name.strip() else f"the key {name!r} has no name"
            message = f"{what};{hint} allowed: {', '.join(known) or 'none'}"
        return key_mark(self._root, path).problem(path, message)

    def unknown_name(self, path: KeyPath, key: str, known: Sequence[str]) -> InputProblem:
        """The problem of an unknown name at ``path.key``, or of a word at ``path`` that stands for a kind."""
        node, place = descend(self._root, *path, key), (*path, key)
        if node is None and (word := descend(self._root, *path)) is not None and not isinstance(word.value, dict):
            node, place = word, path
        if node is None:
            return key_mark(self._root, path).problem(path, f"{key} is missing; known: {', '.join(known)}")
        name = str(node.scalar)
        message = gone.key(place, name)
        if name in self._broken:
            message = f"{quoted(name)} is installed but could not be loaded: {self._broken[name]}"
        near = f"{did_you_mean(name, known) or ';'} known: {', '.join(known)}"
        return node.mark.problem(place, message or f"{given(node)} is not a known {key}{near}")

    def _path(self, path: KeyPath, location: Sequence[str | int]) -> KeyPath:
        """Follow a location from ``path`` on; steps that are not in the tree name members of unions."""
        node, tagged = descend(self._root, *path), False
        for step in location:  # a tag may have the name of a key
            tag = not tagged and len(self._wording.at(path).tags(path, self._data, "kind")) > 1
            inner = None if node is None or tag else descend(node, step)
            path, node, tagged = (path, node, True) if inner is None else ((*path, step), inner, False)
        return path

    def _problem(self, path: KeyPath, error: ErrorDetails) -> InputProblem:
        kind = error["type"]
        if kind == "missing" and isinstance(error["loc"][-1], str):
            return self.missing(path, error["loc"][-1])
        if kind in _UNKNOWN:
            return self.unknown_key(path)
        if kind.startswith("union_tag") or _names_kind(path, error):
            path = path[:-1] if kind == "literal_error" else path
            return self.unknown_name(path, "kind", self._wording.at(path).tags(path, self._data, "kind"))
        node = descend(self._root, *path) or self._root
        if kind in ("value_error", "assertion_error"):
            text = str(error.get("ctx", {}).get("error", error["msg"]))
            if named := _KEY_FIRST.match(text):  # the check may say which key is wrong
                key = named[1] or named[3] or named[4]
                steps = [int(step) if step.isdecimal() else step for step in key.split(".")]
                if (inner := descend(node, *steps)) is not None:
                    path, node, text = (*path, *steps), inner, text[named.end() :] if named[2] else text
            mark = key_mark(self._root, path) if isinstance(node.value, (tuple, dict)) else node.mark
            return mark.problem(path, text)
        allowed = self._wording.at(path).allowed(path, self._data) or "of another type"
        if kind == "finite_number":
            allowed = allowed.replace(_PLAIN["number"], "a finite number")
        hint = self._hint(path, node.scalar, allowed)
        return node.mark.problem(path, f"{given(node)} is not allowed: must be {allowed}{hint}")

    def _hint(self, path: KeyPath, value: object, allowed: str) -> str:
        """Advice for a value that is written in another way."""
        if isinstance(value, str):
            for key in TAG_KEYS:
                if (needed := self._wording.at(path).required(path, self._data, key, value)) is not None:
                    return f"; write {{{', '.join((f'{key}: {value}', *(f'{one}: ...' for one in needed)))}}}"
            if allowed.startswith(_PLAIN["boolean"]) and value.lower() in _SWITCHES:
                return f"; write {_SWITCHES[value.lower()]}"
            if "number" in allowed and isinstance(resolve(value), (int, float)):
                return "; remove the quotes"
            wording = self._wording.at(path)
            return did_you_mean(value, [*wording.choices(path, self._data), *wording.tags(path, self._data, "kind")])
        if value is False and "off" in self._wording.at(path).choices(path, self._data):
            return "; write off"  # which other programs read as false, and write so
        return "; put it in quotes" if value is not None and _PLAIN["string"] in allowed else ""


def _names_kind(path: KeyPath, error: ErrorDetails) -> bool:
    return error["type"] == "literal_error" and path[-1:] == ("kind",)
