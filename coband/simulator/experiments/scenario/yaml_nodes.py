"""Reads YAML into a tree of nodes, each with its position in the file.

Plain scalars follow the core schema of YAML 1.2 (chapter 10.3): ``1e-3`` is a number, ``010`` is ten, and ``no`` and
``off`` are text. The depth, and the number of values after expanding aliases, are limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import yaml
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner

from coband.simulator.scenario_errors import InputProblem, KeyPath, ScenarioError, key_path, quoted

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


def deepest(root: Node, path: KeyPath) -> tuple[Node, KeyPath]:
    """The deepest node on a path, and the path to it."""
    depth = next(depth for depth in range(len(path), -1, -1) if descend(root, *path[:depth]) is not None)
    return descend(root, *path[:depth]) or root, path[:depth]


def key_mark(root: Node, path: KeyPath) -> Mark:
    """The position of the key, or of the list item, at a path; that of the root where there is none."""
    above = descend(root, *path[:-1]) if path else None
    found = None if above is None else child(above, path[-1])
    return root.mark if found is None else found[0]


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


MAX_NODES = 100_000
MAX_DEPTH = 64

INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
NULLS, TRUES, FALSES = ("", "~", "null", "Null", "NULL"), ("true", "True", "TRUE"), ("false", "False", "FALSE")
SURROGATE = re.compile("[\ud800-\udfff]")
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
_AN = {"int": "a whole number", "float": "a number", "bool": "true or false", "null": "null"}
_LONGEST_INTEGER = 300
UNCLEAR = re.compile(r"[\t?]|:\S|[|>](?!-?[ \n])")
"""Where PyYAML's two parsers may differ. The one in C is four times as fast, the one in Python says what is wrong."""


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar by the core schema of YAML 1.2."""
    if text in NULLS:
        return None
    if text in TRUES or text in FALSES:
        return text in TRUES
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
    if yaml.__with_libyaml__ and not UNCLEAR.search(text):
        with suppress(yaml.YAMLError, ScenarioError, UnicodeEncodeError, _UnclearError):
            found: list[InputProblem] = []
            return _Composer(yaml.CLoader(text), file, origin, found, exact=False).document(), found
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
        where = error.problem_mark or error.context_mark
        mark = origin or (Mark(file) if where is None else Mark(file, where.line + 1, where.column + 1))
        raise ScenarioError([*problems, mark.problem((), _syntax(error))]) from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "unreadable"
    if "'\\t'" in problem:
        return "not valid YAML: a tab cannot indent; use spaces"
    if error.context is None:
        return f"not valid YAML: {problem}"
    begins = "" if error.context_mark is None else f" from line {error.context_mark.line + 1} on"
    return f"not valid YAML: {problem} ({error.context}{begins})"


class _UnclearError(Exception):
    """The other parser would place something elsewhere."""


class _Events(Reader, Scanner, Parser):
    """PyYAML's pure-Python parser, which turns text into events."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


class _Composer:
    """Composes events into nodes, within the limits.

    Args:
        events: a parser.
        exact: whether it is the one in Python.
    """

    def __init__(
        self, events: Any, file: str, origin: Mark | None, problems: list[InputProblem], exact: bool = True
    ) -> None:
        self.problems, self._exact = problems, exact
        self._events = events  # PyYAML has no type annotations
        self._file, self._origin = file, origin
        self._anchors: dict[object, tuple[Node, int, int] | None] = {}  # with size and height; None while it is read
        self._total = 0

    def document(self) -> Node:
        """Read the only document of the text."""
        events = self._events
        events.get_event()
        if events.check_event(yaml.StreamEndEvent):
            return ScalarNode(self._origin or Mark(self._file, 1, 1), None, "")
        events.get_event()
        root = self._node((), 1)
        events.get_event()
        if not events.check_event(yaml.StreamEndEvent):
            mark = self._mark(events.peek_event())
            raise mark.error("a second document starts here; a scenario is one document")
        return root

    def _mark(self, event: Any) -> Mark:
        return self._origin or Mark(self._file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _node(self, path: KeyPath, depth: int) -> Node:
        event = self._events.get_event()
        mark, anchor, before = self._mark(event), getattr(event, "anchor", None), self._total
        if isinstance(event, yaml.AliasEvent):
            return self._alias(anchor, mark, path, depth)
        self._check_bounds(1, depth, mark, path)
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node: Node = self._scalar(event, mark, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event.tag, "seq", mark, path)
            node = SequenceNode(mark, tuple(self._items(path, depth)))
        else:
            self._check_tag(event.tag, "map", mark, path)
            node = MappingNode(mark, self._entries(path, depth))
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
        if anchor not in self._anchors:
            raise mark.error(f"the alias *{anchor} has no anchor &{anchor} before it", path)
        if (found := self._anchors[anchor]) is None:
            raise mark.error(f"the alias *{anchor} stands inside its own anchor and would never end", path)
        node, size, height = found
        self._check_bounds(size, depth + height - 1, mark, path)
        return node

    def _scalar(self, event: Any, mark: Mark, path: KeyPath) -> ScalarNode:
        plain_implicit, quoted_implicit = event.implicit
        if not (event.value or self._exact or quoted_implicit):
            raise _UnclearError
        value = event.value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # JSON writes pairs
        text = SURROGATE.sub("\ufffd", value)
        if text != value:
            self.problems.append(mark.problem(path, "half a surrogate pair is not text"))
        if quoted_implicit or event.tag == "!":
            return ScalarNode(mark, text, text)
        if plain_implicit and event.tag is None:
            return ScalarNode(mark, resolve(text), text)
        return ScalarNode(mark, self._tagged(str(event.tag), text, mark, path), text)

    def _tagged(self, tag: str, text: str, mark: Mark, path: KeyPath) -> bool | int | float | str | None:
        """The value of a scalar with a tag, such as ``!!str 10``."""
        name = tag.removeprefix(_STANDARD)
        value = text if name == "str" else resolve(text)
        if name not in _TAGS:
            self._refuse_tag(tag, mark, path)
        elif type(value) not in _TAGS[name]:
            self.problems.append(mark.problem(path, f"{quoted(text)} has the tag !!{name} but is not {_AN[name]}"))
        return value

    def _check_tag(self, tag: str | None, name: str, mark: Mark, path: KeyPath) -> None:
        if tag not in (None, "!", _STANDARD + name):
            self._refuse_tag(str(tag), mark, path)

    def _refuse_tag(self, tag: str, mark: Mark, path: KeyPath) -> None:
        self.problems.append(mark.problem(path, f"the tag {quoted(tag)} is not supported; leave it out"))

    def _items(self, path: KeyPath, depth: int) -> Iterator[Node]:
        for index in count():
            if self._events.check_event(yaml.SequenceEndEvent):
                break
            yield self._node((*path, index), depth + 1)
        self._events.get_event()

    def _entries(self, path: KeyPath, depth: int) -> dict[str, tuple[Mark, Node]]:
        entries: dict[str, tuple[Mark, Node]] = {}
        while not self._events.check_event(yaml.MappingEndEvent):
            bare = not getattr(self._events.peek_event(), "style", None)
            name = self._node(path, depth + 1)
            key = self._key(name, entries, path, bare)
            value = self._node(path if key is None else (*path, key), depth + 1)
            if key is not None:
                entries.setdefault(key, (name.mark, value))
        self._events.get_event()
        return entries

    def _key(self, node: Node, entries: dict[str, tuple[Mark, Node]], path: KeyPath, bare: bool) -> str | None:
        """The text of a key; None, after recording a problem, if it cannot be a key."""
        key = node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else None
        message = f"{given(node)} is not allowed as a key: keys are text" if key is None else ""
        if bare and key == "<<":
            key, message = (
                None,
                "merge keys (<<) are not supported; write the keys out, or use an alias for a whole value",
            )
        elif key in entries:
            first, path = entries[key][0], (*path, key)
            where = "" if first.line is None else f"; the first is on line {first.line}, column {first.column}"
            message = f"the key is given twice{where}"
        if message:
            self.problems.append(node.mark.problem(path, message))
        return key


def _height(node: Node) -> int:
    """How deep a node is, aliases expanded."""
    inner: Iterable[Node] = node.items if isinstance(node, SequenceNode) else ()
    if isinstance(node, MappingNode):
        inner = [value for _, value in node.entries.values()]
    return 1 + max(map(_height, inner), default=0)
