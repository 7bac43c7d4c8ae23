"""Turns pydantic's errors into messages for users: the place in the YAML, what was given, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from coband.simulator.experiments.scenario.gone import key as key_gone
from coband.simulator.experiments.scenario.gone import kind as kind_gone
from coband.simulator.experiments.scenario.wording import TAG_KEYS, Wording, number
from coband.simulator.experiments.scenario.yaml_nodes import (
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    SequenceNode,
    child,
    descend,
    given,
    plain,
    resolve,
)
from coband.simulator.scenario_errors import InputProblem, KeyPath, did_you_mean, quoted, slips

_WRONG_SHAPE = re.compile(r".*_type|literal_error|none_required|int_from_float|is_instance_of")
_TYPE_ERROR = re.compile(_WRONG_SHAPE.pattern + r"|enum|\w+_parsing(_size)?")
_MODEL_RULES = ("value_error", "assertion_error")
_SHAPE = "wrong_shape"
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}

OF_ONE_KIND: Mapping[KeyPath, str] = {
    ("problem", "drift"): "it moves the hidden theta of problem kind contextual, "
    "and this kind has none, or data in its place"
}
"""Why other kinds of a section have no such key."""


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
    """

    def __init__(self, root: Node, wording: Wording, broken: Mapping[str, str]) -> None:
        self._root, self._wording, self._broken = root, wording, broken
        self._data = plain(root)

    def explain(self, errors: Sequence[ErrorDetails], prefix: KeyPath = ()) -> list[InputProblem]:
        """The problems that correspond to pydantic's errors about the node at ``prefix``."""
        found = [found for error in errors if not self._is_implied(found := self._locate(error, prefix))]
        return list(dict.fromkeys(self._problem(error) for error in self._without_other_members(found)))

    def missing(self, path: KeyPath, key: str) -> InputProblem:
        """The problem of a missing required key."""
        allowed = self._wording.allowed((*path, key), self._data)
        return self._mark(path).problem(path, f"{key} is missing" + (f": must be {allowed}" if allowed else ""))

    def unknown_key(self, path: KeyPath) -> InputProblem:
        """The problem of a key that its mapping does not allow."""
        if (gone := key_gone(path)) is not None:
            return self._mark(path).problem(path, gone)
        known, name = self._wording.keys(path[:-1], self._data), str(path[-1])
        here = ".".join(map(str, path))
        places = slips(name, list(known))  # before keys elsewhere
        places = places or [place for place in self._wording.places(name) if place != here]
        near = f"; did you mean {' or '.join(places)}?" if places else did_you_mean(name, known)
        if (reason := OF_ONE_KIND.get(path)) is not None:
            near = f": {reason};"
        message = f"unknown key{near or ';'} allowed: {', '.join(known) or 'none'}"
        return self._mark(path).problem(path, message)

    def unknown_name(self, path: KeyPath, key: str, known: Sequence[str]) -> InputProblem:
        """The problem of an unknown name at ``path.key``."""
        node = descend(self._root, *path, key)
        place: KeyPath = (*path, key)
        if node is None and isinstance(word := descend(self._root, *path), ScalarNode):
            node, place = word, path  # a word that stands for a kind
        if node is None:
            return self._mark(path).problem(path, f"{key} is missing; known: {', '.join(known)}")
        name = str(node.value) if isinstance(node, ScalarNode) else ""
        if name in self._broken:
            message = f"{quoted(name)} is installed but could not be loaded: {self._broken[name]}"
        elif (gone := kind_gone(place, name)) is not None:
            message = gone
        else:
            what = f"{given(node)} is not a known {key}"
            message = f"{what}{did_you_mean(name, known) or ';'} known: {', '.join(known)}"
        return node.mark.problem(place, message)

    def _locate(self, error: ErrorDetails, prefix: KeyPath) -> _LocatedError:
        """Follow an error's location through the tree; steps that are not in the tree are names of union members."""
        path, tags = prefix, dict[int, str]()
        node = descend(self._root, *prefix)
        steps = error["loc"][:-1] if error["type"] == "missing" else error["loc"]
        for step in steps:
            is_tag = len(path) not in tags and self._expects_tag(path)
            found = None if node is None or is_tag else child(node, step)
            if found is None:
                tags[len(path)] = f"{tags.get(len(path), '')}/{step}"
            else:
                path, node = (*path, step), found[1]
        if error["type"] == "missing":
            path = (*path, error["loc"][-1])
        return _LocatedError(path, tags, error["type"], error.get("ctx", {}), error["msg"])

    def _expects_tag(self, path: KeyPath) -> bool:
        """Whether the next step of a location is the tag of a union's member, even if a key has that name."""
        return any(len(self._wording.tags(path, self._data, key)) > 1 for key in TAG_KEYS)

    def _is_implied(self, error: _LocatedError) -> bool:
        """Whether an error follows from others: pydantic calls a list too short if some of its entries are invalid."""
        node = descend(self._root, *error.path)
        if error.type != "too_short" or not isinstance(node, SequenceNode):
            return False
        return len(node.items) >= int(error.context["min_length"])

    def _without_other_members(self, errors: list[_LocatedError]) -> list[_LocatedError]:
        """Where pydantic tried several members of a union, keep the errors of the member that the user meant."""
        for place in sorted({error.path[:depth] for error in errors for depth in error.tags}, key=len):
            members: dict[str, list[_LocatedError]] = {}
            for error in errors:
                if error.path[: len(place)] == place and len(place) in error.tags:
                    members.setdefault(error.tags[len(place)], []).append(error)
            if len(members) < 2:
                continue
            tried = [error for member in members.values() for error in member]
            fitting = [
                member for member in members.values() if not any(_has_wrong_shape(error, place) for error in member)
            ]
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
        if error.type in ("union_tag_invalid", "union_tag_not_found"):
            return self._unknown_tag(error)
        if error.type == "literal_error" and error.path[-1] in ("kind", "algorithm"):
            above, key = error.path[:-1], str(error.path[-1])
            return self.unknown_name(above, key, self._wording.tags(above, self._data, key))
        node = descend(self._root, *error.path) or self._root
        if isinstance(node, MappingNode) and error.type not in _RULES and self._has_unknown_kind(error.path, node):
            return self._unknown_tag(error)
        concerns_mapping = error.type in _MODEL_RULES and not isinstance(node, ScalarNode)
        mark = self._mark(error.path) if concerns_mapping else node.mark
        return mark.problem(error.path, self._message(error, node))

    def _has_unknown_kind(self, path: KeyPath, node: MappingNode) -> bool:
        kind, known = descend(node, "kind"), self._wording.tags(path, self._data, "kind")
        return isinstance(kind, ScalarNode) and bool(known) and kind.value not in known

    def _unknown_tag(self, error: _LocatedError) -> InputProblem:
        key = str(error.context.get("discriminator", "")).strip("'")
        key = key if key.isidentifier() else "kind"
        return self.unknown_name(error.path, key, self._wording.tags(error.path, self._data, key))

    def _message(self, error: _LocatedError, node: Node) -> str:
        if error.type in _MODEL_RULES:
            return str(error.context.get("error", error.message))
        if _TYPE_ERROR.fullmatch(error.type) or error.type == _SHAPE:
            return self._wrong_type(error, node)
        rule = _RULES.get(error.type)
        if rule is not None:
            return f"{given(node)} is not allowed: must {rule(error.context)}"
        if error.type == "string_pattern_mismatch":
            meaning = "; ".join(schema.get("description", "") for schema in self._wording.at(error.path, self._data))
            return f"{given(node)} is not allowed: must match {error.context['pattern']} ({meaning})"
        return f"{given(node)} is not allowed: {error.message[:1].lower()}{error.message[1:]}"

    def _wrong_type(self, error: _LocatedError, node: Node) -> str:
        allowed = self._wording.allowed(error.path, self._data)
        near = ""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            for key in TAG_KEYS:
                if node.value in self._wording.tags(error.path, self._data, key):
                    return f"{given(node)} is not allowed: must be a mapping; write {{{key}: {node.value}}}"
            choices = [str(name) for schema in self._wording.at(error.path, self._data) for name in _choices(schema)]
            near = _hint(node, allowed) or did_you_mean(node.value, choices).removesuffix("?")
        elif isinstance(node, ScalarNode) and node.value is False and "one of off, " in allowed:
            near = "; write off"  # which other programs read as false, and write so
        elif isinstance(node, ScalarNode) and node.value is not None and "text" in allowed.split(" or "):
            near = "; put it in quotes"
        return f"{given(node)} is not allowed: must be {allowed or 'of another type'}{near}{'?' * ('mean' in near)}"

    def _mark(self, path: KeyPath) -> Mark:
        """The position of the key, or of the list item, at ``path``."""
        above = descend(self._root, *path[:-1]) if path else None
        found = None if above is None else child(above, path[-1])
        return self._root.mark if found is None else found[0]


def _has_wrong_shape(error: _LocatedError, place: KeyPath) -> bool:
    """Whether the error says that the data at ``place`` does not have the shape of a union's member."""
    return error.path == place and _WRONG_SHAPE.fullmatch(error.type) is not None


def _hint(node: ScalarNode, allowed: str) -> str:
    """Advice for text in a place that needs another type."""
    text = str(node.value)
    if allowed.startswith("true or false"):
        return f"; write {_SWITCHES[text.lower()]}" if text.lower() in _SWITCHES else ""
    if "number" in allowed and isinstance(resolve(text), (int, float)):
        return "; remove the quotes"
    return ""


def _choices(schema: Mapping[str, Any]) -> Sequence[object]:
    return [schema["const"]] if "const" in schema else schema.get("enum", ())


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


_RULES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda context: f"be > {number(context['gt'])}",
    "greater_than_equal": lambda context: f"be >= {number(context['ge'])}",
    "less_than": lambda context: f"be < {number(context['lt'])}",
    "less_than_equal": lambda context: f"be <= {number(context['le'])}",
    "multiple_of": lambda context: f"be a multiple of {number(context['multiple_of'])}",
    "finite_number": lambda context: "be a finite number",
    "too_short": lambda context: f"have at least {_count(context['min_length'], 'entry', 'entries')}",
    "too_long": lambda context: f"have at most {_count(context['max_length'], 'entry', 'entries')}",
    "string_too_short": lambda context: f"have at least {_count(context['min_length'], 'character', 'characters')}",
    "string_too_long": lambda context: f"have at most {_count(context['max_length'], 'character', 'characters')}",
}
