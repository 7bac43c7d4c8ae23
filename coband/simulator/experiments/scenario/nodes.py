"""A YAML document as a tree of nodes, each with its position in the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from coband.simulator.experiments.scenario.input_problems import InputProblem, KeyPath, ScenarioError, key_path, quoted

_LARGEST_EXACT = 2.0**53


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a file, counted from 1; line and column are None for a value from the command line."""

    file: str
    line: int | None = None
    column: int | None = None

    def problem(self, path: KeyPath, message: str) -> InputProblem:
        return InputProblem(self.file, self.line, self.column, key_path(path), message)

    def error(self, message: str, path: KeyPath = ()) -> ScenarioError:
        """The error for this one problem."""
        return ScenarioError([self.problem(path, message)])


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value; ``text`` is its spelling in the file."""

    mark: Mark
    value: bool | int | float | str | None
    text: str


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list."""

    mark: Mark
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A mapping: keys with their positions and values."""

    mark: Mark
    entries: dict[str, tuple[Mark, Node]]


Node = ScalarNode | SequenceNode | MappingNode


def child(node: Node, step: str | int) -> tuple[Mark, Node] | None:
    """The value of a key with the key's position, or an item of a list with its own; None if there is none."""
    if isinstance(node, MappingNode) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.items):
        item = node.items[step]
        return item.mark, item
    return None


def descend(node: Node, *path: str | int) -> Node | None:
    """The node at a path, or None if there is none."""
    for step in path:
        found = child(node, step)
        if found is None:
            return None
        node = found[1]
    return node


def place_of(node: Node, key: str) -> Mark:
    """The position of a key of a mapping; where it has none, that of the mapping."""
    found = child(node, key)
    return node.mark if found is None else found[0]


def text_at(node: Node, *path: str | int) -> str | None:
    """The text at a path, or None if something else is there."""
    found = descend(node, *path)
    return found.value if isinstance(found, ScalarNode) and isinstance(found.value, str) else None


def plain(node: Node) -> Any:
    """The tree as dicts, lists and scalars; whole floats become integers, so that ``turns: 1e4`` is allowed."""
    if isinstance(node, MappingNode):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    value = node.value
    if isinstance(value, float) and abs(value) < _LARGEST_EXACT and value.is_integer():
        return int(value)
    return value


def tree(value: Any, mark: Mark) -> Node:
    """Dicts, lists and scalars as a tree whose nodes all have one position; the inverse of `plain`."""
    if isinstance(value, dict):
        return MappingNode(mark, {key: (mark, tree(entry, mark)) for key, entry in value.items()})
    if isinstance(value, (list, tuple)):
        return SequenceNode(mark, tuple(tree(item, mark) for item in value))
    return ScalarNode(mark, value, value if isinstance(value, str) else json.dumps(value))


def given(node: Node) -> str:
    """A value as the user wrote it, shortened."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list" if node.items else "an empty list"
    if isinstance(node.value, str):
        return quoted(node.value)
    return node.text if 0 < len(node.text) <= 60 else f"{node.text[:57]}..." if node.text else "an empty value"
