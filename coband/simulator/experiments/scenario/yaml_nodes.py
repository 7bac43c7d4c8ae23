"""Reads YAML into a tree of nodes, each with its position in the file.

Plain scalars follow the core schema of YAML 1.2 (chapter 10.3): ``1e-3`` is a number, ``010`` is ten, and ``no`` and
``off`` are text. The depth, and the number of values after expanding aliases, are limited.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner

from coband.simulator.scenario_errors import InputProblem, KeyPath, ScenarioError, key_path, quoted, shortened

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
class Node:
    """A value with its position.

    Attributes:
        value: a scalar; the items of a list as a tuple; the values of a mapping by key.
        text: the spelling of a scalar.
        key: the position of the key that has this value; None in a list.
    """

    mark: Mark
    value: Scalar | tuple[Node, ...] | dict[str, Node]
    text: str = ""
    key: Mark | None = None

    @property
    def scalar(self) -> Scalar:
        """The value of a scalar; None also for a list or a mapping."""
        return None if isinstance(self.value, (tuple, dict)) else self.value

    @property
    def items(self) -> tuple[Node, ...]:
        """The items of a list; nothing has none."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def entries(self) -> Mapping[str, Node]:
        """The values of a mapping by key; nothing else has any."""
        return self.value if isinstance(self.value, dict) else {}


Scalar = bool | int | float | str | None


def descend(node: Node | None, *path: str | int) -> Node | None:
    """The node at a path, or None if there is none."""
    for step in path:
        if isinstance(step, str):
            node = None if node is None else node.entries.get(step)
        else:
            node = node.items[step] if node is not None and 0 <= step < len(node.items) else None
    return node


def deepest(root: Node, path: KeyPath) -> tuple[Node, KeyPath]:
    """The deepest node on a path, and the path to it."""
    depth = next(depth for depth in range(len(path), -1, -1) if descend(root, *path[:depth]) is not None)
    return descend(root, *path[:depth]) or root, path[:depth]


def key_mark(root: Node, path: KeyPath) -> Mark:
    """The position of the key, or of the list item, at a path; that of the root where there is none."""
    node = descend(root, *path)
    return root.mark if node is None else node.key or node.mark


def text_at(node: Node, *path: str | int) -> str | None:
    """The text at a path, or None if something else is there."""
    found = descend(node, *path)
    return found.value if found is not None and isinstance(found.value, str) else None


def plain(node: Node) -> Any:
    """The tree as dicts, lists and scalars; whole floats become integers, so that ``turns: 1e4`` is allowed."""
    value = node.value
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    whole = isinstance(value, float) and abs(value) < _LARGEST_EXACT and value.is_integer()
    return int(value) if whole else value  # type: ignore[arg-type]  # it is a number


def given(node: Node) -> str:
    """A value as the user wrote it, shortened."""
    if isinstance(node.value, dict):
        return "a mapping" if node.value else "an empty mapping"
    if isinstance(node.value, tuple):
        return "a list" if node.value else "an empty list"
    return quoted(node.value) if isinstance(node.value, str) else shortened(node.text) or "an empty value"


KEYS_ARE_TEXT = "keys are text"
MAX_NODES = 100_000
MAX_DEPTH = 64

INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
WORDS = {"": None, "~": None} | {
    spelled: value
    for word, value in (("null", None), ("true", True), ("false", False))
    for spelled in (word, word.title(), word.upper())
}
SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT = ("!", "tag:yaml.org,2002:str")
_LONGEST_INTEGER = 300


def resolve(text: str) -> Scalar:
    """The value of a plain scalar by the core schema of YAML 1.2."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text) and len(text) <= _LONGEST_INTEGER:
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if FLOAT.fullmatch(text):
        return float(text.replace(".", "", 1) if text.lstrip("+-").lower() in (".inf", ".nan") else text)
    return text


def read(text: str, file: str, origin: Mark | None = None) -> tuple[Node, list[InputProblem]]:
    """Read one YAML document.

    Args:
        file: its name, for error reports.
        origin: the position of all nodes, for text that is not from a file.

    Returns:
        The tree (null for an empty document), and mistakes after which reading could continue.

    Raises:
        ScenarioError: the text is not YAML, has several documents, or exceeds a limit.
    """
    problems: list[InputProblem] = []
    try:
        return _Composer(_Events(text), file, origin, problems).document(), problems
    except ScenarioError as error:
        raise ScenarioError([*problems, *error.problems]) from None
    except ReaderError as error:
        before = text[: error.position]
        mark = origin or Mark(file, before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
        message = f"the character U+{int(error.character):04X} is not allowed in YAML"
        raise ScenarioError([*problems, mark.problem((), message)]) from None
    except yaml.MarkedYAMLError as error:
        where: Any = error.problem_mark
        mark = origin or Mark(file, where.line + 1, where.column + 1)
        raise ScenarioError([*problems, mark.problem((), _syntax(error))]) from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "unreadable"
    if "'\\t'" in problem:
        return "not valid YAML: a tab cannot indent; use spaces"
    if error.context is None:
        return f"not valid YAML: {problem}"
    begins = "" if error.context_mark is None else f" from line {error.context_mark.line + 1} on"
    return f"not valid YAML: {problem} ({error.context}{begins})"


class _Events(Reader, Scanner, Parser):
    """PyYAML's parser, which turns text into events and has better words for mistakes than the one in C."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


class _Composer:
    """Composes events into nodes, within the limits."""

    def __init__(self, events: Any, file: str, origin: Mark | None, problems: list[InputProblem]) -> None:
        self._events, self._file, self._origin, self._problems = events, file, origin, problems
        self._anchors: dict[object, tuple[Node, int, int] | None] = {}  # with size and height; None while it is read
        self._total = 0

    def document(self) -> Node:
        """Read the only document of the text."""
        self._events.get_event()
        if self._events.check_event(yaml.StreamEndEvent):
            return Node(self._origin or Mark(self._file, 1, 1), None)
        self._events.get_event()
        root = self._node((), 1)
        self._events.get_event()
        if not self._events.check_event(yaml.StreamEndEvent):
            raise self._mark(self._events.peek_event()).error(
                "a second document starts here; a scenario is one document"
            )
        return root

    def _mark(self, event: Any) -> Mark:
        return self._origin or Mark(self._file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _node(self, path: KeyPath, depth: int) -> Node:
        event: Any = self._events.get_event()
        mark, anchor, before = self._mark(event), event.anchor, self._total
        if isinstance(event, yaml.AliasEvent):
            return self._alias(anchor, mark, path, depth)
        self._check_bounds(1, depth, mark, path)
        if anchor is not None:
            self._anchors[anchor] = None
        of_text = isinstance(event, yaml.ScalarEvent) and (event.implicit[1] or event.tag in _TEXT)
        if not of_text and event.tag not in (None, "!"):
            self._problems.append(mark.problem(path, f"the tag {quoted(event.tag)} is not supported; leave it out"))
        if isinstance(event, yaml.ScalarEvent):
            text = self._text(event.value, mark, path)
            node = Node(mark, text if of_text else resolve(text), text)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Node(mark, self._items(path, depth))
        else:
            node = Node(mark, self._entries(path, depth))
        if anchor is not None:
            self._anchors[anchor] = node, self._total - before, _height(node)
        return node

    def _check_bounds(self, size: int, depth: int, mark: Mark, path: KeyPath) -> None:
        self._total += size
        if self._total > MAX_NODES:
            raise mark.error(f"more than {MAX_NODES} values, aliases expanded; no scenario needs that many")
        if depth > MAX_DEPTH:
            raise mark.error(f"nested deeper than {MAX_DEPTH} levels; no scenario needs that", path[:3])

    def _alias(self, anchor: object, mark: Mark, path: KeyPath, depth: int) -> Node:
        if (found := self._anchors.get(anchor)) is None:
            raise mark.error(f"the alias *{anchor} needs an anchor &{anchor} whose value ends before it", path)
        node, size, height = found
        self._check_bounds(size, depth + height - 1, mark, path)
        return node

    def _text(self, value: str, mark: Mark, path: KeyPath) -> str:
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # JSON writes pairs
        text = SURROGATE.sub("\ufffd", value)
        if text != value:
            self._problems.append(mark.problem(path, "half a surrogate pair is not text"))
        return text

    def _items(self, path: KeyPath, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._events.check_event(yaml.SequenceEndEvent):
            items.append(self._node((*path, len(items)), depth + 1))
        self._events.get_event()
        return tuple(items)

    def _entries(self, path: KeyPath, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not self._events.check_event(yaml.MappingEndEvent):
            merges = getattr(self._events.peek_event(), "style", "") is None
            name = self._node(path, depth + 1)
            key, message = name.value, ""
            if not isinstance(key, str):
                key, message = None, f"{given(name)} is not allowed as a key: {KEYS_ARE_TEXT}"
            elif merges and key == "<<":
                key, message = None, "merge keys (<<) are not supported; write the keys out, or use an alias"
            elif key in entries:
                first = entries[key].key
                where = f"; the first is on line {first.line}, column {first.column}" if first and first.line else ""
                message = f"the key is given twice{where}"
            inner = path if key is None else (*path, key)
            if message:
                self._problems.append(name.mark.problem(inner, message))
            value = self._node(inner, depth + 1)
            if key is not None:
                entries.setdefault(key, replace(value, key=name.mark))
        self._events.get_event()
        return entries


def _height(node: Node) -> int:
    """How deep a node is, aliases expanded."""
    return 1 + max(map(_height, (*node.items, *node.entries.values())), default=0)
