"""Turns pydantic's errors into messages for users: the place in the YAML, what was given, and what is allowed by the
JSON Schema, in the words of ``coband describe``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from coband.simulator.experiments.scenario.gone import key as key_gone
from coband.simulator.experiments.scenario.gone import kind as kind_gone
from coband.simulator.experiments.scenario.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    child,
    descend,
    given,
    key_mark,
    plain,
    resolve,
)
from coband.simulator.plugins.kinds import is_false_alarm
from coband.simulator.scenario_errors import InputProblem, KeyPath, did_you_mean, key_path, quoted, slips

Schema = Mapping[str, Any]
TAG_KEYS = ("kind", "algorithm")
_UNIONS = ("anyOf", "oneOf", "allOf")
_BOUNDS = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
_SIZES = (("minItems", "at least"), ("maxItems", "at most"))
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

    def at(self, path: KeyPath, data: Any) -> list[Schema]:
        """The schemas that apply at ``path``; of a union, the members that fit ``data``."""
        return _fitting(*self._reach(path, data))

    def keys(self, path: KeyPath, data: Any) -> list[str]:
        """The keys that the mapping at ``path`` may have."""
        return list(dict.fromkeys(key for schema in self.at(path, data) for key in schema.get("properties", ())))

    def tags(self, path: KeyPath, data: Any, key: str) -> list[str]:
        """The values of the discriminator ``key`` of the union at ``path``."""
        return list(dict.fromkeys(tag for schema in self._reach(path, data)[0] for tag in tags_of(schema, key)))

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

    def allowed(self, path: KeyPath, data: Any) -> str:
        """What is allowed at ``path``, in words; empty if the schema allows anything."""
        return self._join(self._reach(path, data)[0])

    def in_words(self, schema: Schema) -> str:
        """What a schema allows, in words."""
        return self._join(list(self.variants(schema)))

    def variants(self, schema: Schema) -> Iterator[Schema]:
        """The members of a union, references and nested unions resolved."""
        if "$ref" in schema:
            yield from self.variants(self._root["$defs"][schema["$ref"].rpartition("/")[2]])
        elif members := [member for union in _UNIONS for member in schema.get(union, ())]:
            for member in members:
                yield from self.variants(member)
        else:
            yield schema

    def _reach(self, path: KeyPath, data: Any) -> tuple[list[Schema], Any]:
        """All members of the union at ``path``, and the data there."""
        found = list(self.variants(self._root))
        for step in path:
            inner = [part for schema in _fitting(found, data) if (part := _inside(schema, step)) is not None]
            found = [variant for part in inner for variant in self.variants(part)]
            fits = step in data if isinstance(data, dict) else isinstance(data, list) and int(step) < len(data)
            data = data[step] if fits else None
        return found, data

    def _join(self, variants: list[Schema]) -> str:
        objects = [schema for schema in variants if schema.get("type") == "object"]
        words = [self._word(schema) for schema in variants if schema.get("type") != "object"]
        words += [_mapping(objects)] if objects else []
        words = [word for word in words if word != _PLAIN["integer"] or _PLAIN["number"] not in words]
        words.sort(key=lambda word: word == "null")
        return " or ".join(dict.fromkeys(word for word in words if word))

    def _word(self, schema: Schema) -> str:
        if "const" in schema:
            return str(schema["const"])
        if "enum" in schema:
            return "one of " + ", ".join(map(str, schema["enum"]))
        if schema.get("type") == "array":
            sizes = [f"{word} {schema[bound]}" for bound, word in _SIZES if schema.get(bound)]
            each = self.in_words(schema["items"]) if isinstance(schema.get("items"), Mapping) else ""
            return f"a list{' of ' * bool(sizes)}{' and '.join(sizes)}" + (f" (each {each})" if each else "")
        bounds = [f"{sign} {number(schema[bound])}" for bound, sign in _BOUNDS if bound in schema]
        return " ".join(filter(None, [_PLAIN.get(str(schema.get("type")), ""), " and ".join(bounds)]))


def number(value: float) -> str:
    """A bound as text; whole numbers in full."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def tags_of(schema: Schema, key: str) -> list[str]:
    """The values of the discriminator ``key`` that select a schema; empty if it has none."""
    return list(map(str, _choices(schema.get("properties", {}).get(key, {}))))


def _choices(schema: Schema) -> Sequence[object]:
    return [schema["const"]] if "const" in schema else schema.get("enum", ())


def _mapping(objects: list[Schema]) -> str:
    """One mapping in words, or a union of mappings with a discriminator."""
    for key in TAG_KEYS:
        if all(tags := [tags_of(schema, key) for schema in objects]):
            return f"{{{key}: {' | '.join(dict.fromkeys(tag for of_one in tags for tag in of_one))}, ...}}"
    keys = dict.fromkeys(key for schema in objects for key in schema.get("properties", ()))
    return f"a mapping ({', '.join(keys)})" if keys else "a mapping"


def _inside(schema: Schema, step: str | int) -> Schema | None:
    if isinstance(step, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return inner if isinstance(inner, Mapping) else None


def _fitting(variants: list[Schema], data: Any) -> list[Schema]:
    """The members of a union that fit the discriminator of the data; all members if it has no known one."""
    if not isinstance(data, dict):
        return variants
    tags = [[(key, tags_of(schema, key)) for key in TAG_KEYS] for schema in variants]
    fitting = [one for one, own in zip(variants, tags, strict=True) if all(not t or data.get(k) in t for k, t in own)]
    return fitting or variants


_WRONG_SHAPE = re.compile(r".*_type|literal_error|none_required|int_from_float|is_instance_of")
_TYPE_ERROR = re.compile(_WRONG_SHAPE.pattern + r"|enum|\w+_parsing(_size)?")
_MODEL_RULES = ("value_error", "assertion_error")
_SHAPE = "wrong_shape"
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_OF_ONE_KIND: Mapping[KeyPath, str] = {
    ("problem", "drift"): "it moves the hidden theta of problem kind contextual, "
    "and this kind has none, or data in its place"
}
"""Why other kinds of a section have no such key."""


def unknown_name(root: Node, path: KeyPath, key: str, known: Sequence[str], broken: Mapping[str, str]) -> InputProblem:
    """The problem of an unknown name at ``path.key``.

    Args:
        broken: registered names that could not be loaded, with the reason.
    """
    node, place = descend(root, *path, key), (*path, key)
    if node is None and isinstance(word := descend(root, *path), ScalarNode):
        node, place = word, path  # a word that stands for a kind
    if node is None:
        return key_mark(root, path).problem(path, f"{key} is missing; known: {', '.join(known)}")
    name = str(node.value) if isinstance(node, ScalarNode) else ""
    if name in broken:
        message = f"{quoted(name)} is installed but could not be loaded: {broken[name]}"
    else:
        what = f"{given(node)} is not a known {key}"
        message = kind_gone(place, name) or f"{what}{did_you_mean(name, known) or ';'} known: {', '.join(known)}"
    return node.mark.problem(place, message)


@dataclass(frozen=True)
class _LocatedError:
    """An error of pydantic with its place in the tree; ``tags``: depth -> names of the union members at that depth."""

    path: KeyPath
    tags: Mapping[int, str]
    type: str
    context: Mapping[str, Any]
    message: str


class Explainer:
    """Explains the errors of one document.

    Args:
        wording: of the document's JSON Schema.
        broken: registered names that could not be loaded, with the reason.
        whole: of documents whatever they name, which are searched for the place of a key; None: the same.
    """

    def __init__(
        self, root: Node, wording: Wording, broken: Mapping[str, str], whole: Callable[[], Wording] | None = None
    ) -> None:
        self._root, self._wording, self._broken, self._whole = root, wording, broken, whole or (lambda: wording)
        self._data = plain(root)

    def explain(
        self, errors: Sequence[ErrorDetails], prefix: KeyPath = (), *, tagged: bool = False
    ) -> list[InputProblem]:
        """The problems that correspond to pydantic's errors about the node at ``prefix``.

        Args:
            tagged: whether only the member of a union was tried there that its tag names.
        """
        real = [error for error in errors if not is_false_alarm(error)] or errors
        found = self._without_other_members([self._locate(error, prefix, tagged) for error in real])
        return list(dict.fromkeys(map(self._problem, found)))

    def missing(self, path: KeyPath, key: str) -> InputProblem:
        """The problem of a missing required key."""
        allowed = self._wording.allowed((*path, key), self._data)
        return key_mark(self._root, path).problem(
            path, f"{key} is missing" + (f": must be {allowed}" if allowed else "")
        )

    def unknown_key(self, path: KeyPath) -> InputProblem:
        """The problem of a key that its mapping does not allow."""
        message = key_gone(path)
        if message is None:
            known, name = self._wording.keys(path[:-1], self._data), str(path[-1])
            here = ".".join(map(str, path))
            places = slips(name, known) or [place for place in self._whole().places(name) if place != here]
            near = f"; did you mean {' or '.join(places)}?" if places else did_you_mean(name, known)
            near = f": {_OF_ONE_KIND[path]};" if path in _OF_ONE_KIND else near
            message = f"unknown key{near or ';'} allowed: {', '.join(known) or 'none'}"
        return key_mark(self._root, path).problem(path, message)

    def _locate(self, error: ErrorDetails, prefix: KeyPath, tagged: bool) -> _LocatedError:
        """Follow an error's location through the tree; steps that are not in the tree are names of union members."""
        path, tags = prefix, dict[int, str]({len(prefix): ""} if tagged else {})
        node = descend(self._root, *prefix)
        missing = error["loc"][-1:] if error["type"] == "missing" else ()
        for step in error["loc"][:-1] if missing else error["loc"]:
            is_tag = len(path) not in tags and self._expects_tag(path)
            found = None if node is None or is_tag else child(node, step)
            if found is None:
                tags[len(path)] = f"{tags.get(len(path), '')}/{step}"
            else:
                path, node = (*path, step), found[1]
        return _LocatedError((*path, *missing), tags, error["type"], error.get("ctx", {}), error["msg"])

    def _expects_tag(self, path: KeyPath) -> bool:
        """Whether the next step of a location is the tag of a union's member, even if a key has that name."""
        return any(len(self._wording.tags(path, self._data, key)) > 1 for key in TAG_KEYS)

    def _without_other_members(self, errors: list[_LocatedError]) -> list[_LocatedError]:
        """Where pydantic tried several members of a union, keep the errors of the member that the user meant."""
        for place in sorted({error.path[:depth] for error in errors for depth in error.tags}, key=len):
            members: dict[str, list[_LocatedError]] = {}
            for error in errors:
                if error.path[: len(place)] == place and len(place) in error.tags:
                    members.setdefault(error.tags[len(place)], []).append(error)
            if len(members) > 1:
                tried = [error for member in members.values() for error in member]
                fitting = [member for member in members.values() if not any(_misshapen(one, place) for one in member)]
                kept = min(fitting, key=len) if fitting else [_LocatedError(place, {}, _SHAPE, {}, "")]
                position = errors.index(tried[0])
                rest = [error for error in errors if error not in tried]
                errors = rest[:position] + kept + rest[position:]
        return errors

    def _problem(self, error: _LocatedError) -> InputProblem:
        if error.type == "missing":
            return self.missing(error.path[:-1], str(error.path[-1]))
        if error.type in ("extra_forbidden", "unexpected_keyword_argument"):
            return self.unknown_key(error.path)
        node = descend(self._root, *error.path) or self._root
        if error.type in ("union_tag_invalid", "union_tag_not_found") or self._has_unknown_kind(error, node):
            return self._unknown(error.path, str(error.context.get("discriminator", "")).strip("'"))
        if error.type == "literal_error" and error.path[-1] in TAG_KEYS:
            return self._unknown(error.path[:-1], str(error.path[-1]))
        concerns_mapping = error.type in _MODEL_RULES and not isinstance(node, ScalarNode)
        mark = key_mark(self._root, error.path) if concerns_mapping else node.mark
        return mark.problem(error.path, self._message(error, node))

    def _has_unknown_kind(self, error: _LocatedError, node: Node) -> bool:
        kind, known = descend(node, "kind"), self._wording.tags(error.path, self._data, "kind")
        unknown = isinstance(kind, ScalarNode) and bool(known) and kind.value not in known
        return unknown and isinstance(node, MappingNode) and error.type not in _RULES

    def _unknown(self, path: KeyPath, key: str) -> InputProblem:
        key = key if key.isidentifier() else "kind"
        return unknown_name(self._root, path, key, self._wording.tags(path, self._data, key), self._broken)

    def _message(self, error: _LocatedError, node: Node) -> str:
        if error.type in _MODEL_RULES:
            return str(error.context.get("error", error.message))
        if _TYPE_ERROR.fullmatch(error.type) or error.type == _SHAPE:
            return self._wrong_type(error, node)
        said = f"{error.message[:1].lower()}{error.message[1:]}"
        if (rule := _RULES.get(error.type)) is not None:
            said = f"must {rule(error.context)}"
        elif error.type == "string_pattern_mismatch":
            meaning = "; ".join(schema.get("description", "") for schema in self._wording.at(error.path, self._data))
            said = f"must match {error.context['pattern']} ({meaning})"
        return f"{given(node)} is not allowed: {said}"

    def _wrong_type(self, error: _LocatedError, node: Node) -> str:
        allowed, near = self._wording.allowed(error.path, self._data), ""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            for key in TAG_KEYS:
                if node.value in self._wording.tags(error.path, self._data, key):
                    return f"{given(node)} is not allowed: must be a mapping; write {{{key}: {node.value}}}"
            choices = [str(name) for schema in self._wording.at(error.path, self._data) for name in _choices(schema)]
            near = _hint(node.value, allowed) or did_you_mean(node.value, choices)
        elif isinstance(node, ScalarNode) and node.value is False and "one of off, " in allowed:
            near = "; write off"  # which other programs read as false, and write so
        elif isinstance(node, ScalarNode) and node.value is not None and "text" in allowed.split(" or "):
            near = "; put it in quotes"
        return f"{given(node)} is not allowed: must be {allowed or 'of another type'}{near}"


def _misshapen(error: _LocatedError, place: KeyPath) -> bool:
    """Whether the error says that the data at ``place`` does not have the shape of a union's member."""
    return error.path == place and _WRONG_SHAPE.fullmatch(error.type) is not None


def _hint(text: str, allowed: str) -> str:
    """Advice for text in a place that needs another type."""
    if allowed.startswith("true or false"):
        return f"; write {_SWITCHES[text.lower()]}" if text.lower() in _SWITCHES else ""
    return "; remove the quotes" if "number" in allowed and isinstance(resolve(text), (int, float)) else ""


def _of_length(bound: str, one: str, many: str) -> Callable[[Mapping[str, Any]], str]:
    words = "least" if bound == "min_length" else "most"
    return lambda context: f"have at {words} {context[bound]} {one if context[bound] == 1 else many}"


_RULES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda context: f"be > {number(context['gt'])}",
    "greater_than_equal": lambda context: f"be >= {number(context['ge'])}",
    "less_than": lambda context: f"be < {number(context['lt'])}",
    "less_than_equal": lambda context: f"be <= {number(context['le'])}",
    "multiple_of": lambda context: f"be a multiple of {number(context['multiple_of'])}",
    "finite_number": lambda context: "be a finite number",
    "too_short": _of_length("min_length", "entry", "entries"),
    "too_long": _of_length("max_length", "entry", "entries"),
    "string_too_short": _of_length("min_length", "character", "characters"),
    "string_too_long": _of_length("max_length", "character", "characters"),
}
