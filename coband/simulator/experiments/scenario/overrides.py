"""``--set key.path=value``: values from the command line replace values of a document. Documents are written as YAML
that YAML 1.1 and YAML 1.2 parsers read back unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from coband.simulator.experiments.scenario.yaml_nodes import FLOAT, INTEGER, Mark, Node, descend, read, text_at
from coband.simulator.scenario_errors import InputProblem, KeyPath, ScenarioError, did_you_mean, quoted, shortened

if TYPE_CHECKING or not yaml.__with_libyaml__:
    from yaml import SafeDumper
else:
    from yaml import CSafeDumper as SafeDumper  # the same text in a fifth of the time


class _Dumper(SafeDumper):
    """Quotes text that either version of YAML would read as another type; writes lists of plain values in one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def list_of(self, data: list[Any]) -> yaml.SequenceNode:
        """A list, on one line if all its items are plain values."""
        flow = not any(isinstance(item, (list, dict)) for item in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


for _pattern in (FLOAT, INTEGER):
    _Dumper.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(rf"(?:{_pattern.pattern})\Z"), list("-+.0123456789")
    )
_Dumper.add_representer(list, _Dumper.list_of)


_UNREADABLE = re.compile(r"[\x7f-\x9f\ufffe\uffff]")


def in_one_line(value: Any) -> str:
    """A plain value as JSON that YAML reads back unchanged, which takes some characters for line breaks."""
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def to_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML; keys keep their order."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


Takes = Callable[[str, str], bool]


def override(root: Node, text: str, takes: Takes) -> tuple[Node, list[InputProblem]]:
    """Set one value of a document.

    The value is read as YAML. A step of the path names entries of a list by number, by label or algorithm
    (``algorithms.Bold.alpha``), or all entries (``algorithms.*.alpha``: all algorithms that have this parameter).
    Missing mappings on the path are created. In ``grid`` and ``zip`` what follows is one key: ``grid.problem.noise``.

    Args:
        text: ``key.path=value``.
        takes: whether an algorithm has a parameter.

    Returns:
        The new document, and problems with the value.

    Raises:
        ScenarioError: the text does not have this form, or there is no such place in the document.
    """
    mark = Mark(f"--set {shortened(text)}")
    path, sign, value = text.partition("=")
    steps = steps_of(path)
    if not sign or not all(steps):
        raise mark.error("must be key.path=value, such as agents.count=20")
    if steps[0] in ("grid", "zip"):
        within = 2 if steps[1:] and steps[1].isdecimal() else 1
        steps = [*steps[:within], ".".join(steps[within:])] if steps[within:] else steps
    node, problems = read(value, mark.file, origin=mark)
    return set_value(root, steps, node, mark, takes), [replace(problem, key=path) for problem in problems]


def steps_of(path: str) -> list[str]:
    """The steps of a key path: ``"agents . count"`` is ``["agents", "count"]``."""
    return [step.strip() for step in path.split(".")]


def set_value(node: Node, steps: list[str], value: Node, mark: Mark, takes: Takes, path: KeyPath = ()) -> Node:
    """Set the value at a key path; the steps of the path mean what they mean for `override`.

    Args:
        mark: the position of the request, for error messages.
        path: of the node in its document.

    Raises:
        ScenarioError: there is no such place in the document.
    """
    if not steps:
        return value
    step, *rest = steps
    if isinstance(node.value, tuple):
        items = list(node.value)
        for index in items_named(node, step, rest, mark, path, takes):
            items[index] = set_value(items[index], rest, value, mark, takes, (*path, index))
        return replace(node, value=tuple(items))
    if node.scalar is not None:
        raise mark.error(f"is {quoted(node.text)}, which has no key {quoted(step)}; set it as a whole", path)
    old = node.entries.get(step) or Node(mark, None, key=mark)
    new = set_value(old, rest, value, mark, takes, (*path, step))
    place = mark if node.value is None else node.mark
    return Node(place, {**node.entries, step: replace(new, key=old.key if rest else mark)}, key=node.key)


def places(node: Node | None, steps: list[str], takes: Takes) -> set[KeyPath]:
    """Where in a document the steps of a path lead; nowhere if they name an entry that is not there."""
    if not steps:
        return {()}
    step, *rest = steps
    if node is None or not isinstance(node.value, tuple):
        return {(step, *more) for more in places(descend(node, step), rest, takes)}
    try:
        named = items_named(node, step, rest, node.mark, (), takes)
    except ScenarioError:
        return set()
    return {(index, *more) for index in named for more in places(node.items[index], rest, takes)}


def items_named(node: Node, step: str, rest: Sequence[str], mark: Mark, path: KeyPath, takes: Takes) -> set[int]:
    """The indices of the entries that a step of a path names; with ``*``, those that take what the path goes on with.

    Raises:
        ScenarioError: there is no such entry.
    """
    count = len(node.items)
    if step == "*":
        every = range(count)
        return {i for i in every if rest and takes(text_at(node.items[i], "algorithm") or "", rest[0])} or set(every)
    if step.isdecimal():
        if int(step) < count:
            return {int(step)}
        raise mark.error(f"has no entry {step}; it has {count}, counted from 0", path)
    for key in ("label", "algorithm"):
        found = {index for index, item in enumerate(node.items) if text_at(item, key) == step}
        if len(found) == 1:
            return found
        if found:
            numbers = ", ".join(map(str, sorted(found)))
            raise mark.error(f"{quoted(step)} is the {key} of entries {numbers}; give a number or *", path)
    names = [name for item in node.items for key in ("label", "algorithm") if (name := text_at(item, key))]
    near = did_you_mean(step, names)
    raise mark.error(f"has no entry {quoted(step)}{near or ';'} give a label, a number from 0, or *", path)
