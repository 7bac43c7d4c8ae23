"""What is changed: operators of Cosmic Ray, and two that it lacks.

A mutant whose program is the same as before (a type that nobody evaluates, a docstring) is no mutant.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import itertools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

COMPARISONS = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_Gt", "LtE_Lt", "LtE_GtE", "Gt_GtE", "Gt_Lt", "GtE_Gt", "GtE_LtE")
ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Mul_Add", "Pow_Mul")
NAMES = (
    *(f"ReplaceComparisonOperator_{pair}" for pair in (*COMPARISONS, "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ARITHMETIC),
    "AddNot",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "ZeroIterationForLoop",
)


class RemoveStatement(Operator):
    """Replaces an assignment or a call that stands by itself by ``pass``."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        """Simple statements that do something; docstrings, imports and jumps stay."""
        if node.type == "simple_stmt" and node.children[0].type in ("expr_stmt", "atom_expr", "power"):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """``pass`` instead."""
        statement = node.children[0]
        node.children[0] = parso.python.tree.Keyword("pass", statement.start_pos, prefix=_prefix(statement))
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """None."""
        return ()


class SwapArguments(Operator):
    """Exchanges the first two positional arguments of a call."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        """Calls with at least two arguments that have no name and no star."""
        if node.type == "arglist" and getattr(node.parent, "type", "") == "trailer" and len(_places(node)) > 1:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The first two exchanged."""
        first, second = _places(node)[:2]
        one, other = node.children[first], node.children[second]
        prefixes = _prefix(one), _prefix(other)
        one.get_first_leaf().prefix, other.get_first_leaf().prefix = prefixes[1], prefixes[0]
        node.children[first], node.children[second] = other, one
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """None."""
        return ()


def _prefix(node: Any) -> str:
    return str(node.get_first_leaf().prefix)


def _places(arguments: Any) -> list[int]:
    return [place for place, child in enumerate(arguments.children) if child.type not in ("operator", "argument")]


@dataclass(frozen=True)
class Mutant:
    """One changed program.

    Attributes:
        module: its path in the repository.
        operator: what was changed.
        line: where, from 1.
        before, after: the changed lines.
        start, end: the characters of the module that are replaced.
        text: by what.
        key: the same for the same change of the same module.
    """

    module: str
    operator: str
    line: int
    before: str
    after: str
    start: int
    end: int
    text: str
    key: str

    @property
    def change(self) -> str:
        """What was changed, by which a judgement finds it whatever else is in the module."""
        return f"{self.before} -> {self.after}"

    def applied(self, source: str) -> str:
        """The whole changed module."""
        return source[: self.start] + self.text + source[self.end :]


def operators() -> Iterator[tuple[str, Operator]]:
    """All operators with their names."""
    for name in NAMES:
        yield name, get_operator(f"core/{name}")()
    yield from (("RemoveStatement", RemoveStatement()), ("SwapArguments", SwapArguments()))


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a module that is another program, each once."""
    tree = get_ast(source)
    nodes = list(ast_nodes(tree))
    begins = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]
    originals: dict[tuple[int, int], str | None] = {}
    seen: set[tuple[int, str]] = set()
    for name, operator in operators():
        for node in nodes:
            for index, _ in enumerate(operator.mutation_positions(node)):
                start, end = _span(node, begins)
                text = _mutated(operator, node, index)
                if text is None:
                    continue
                first, last = scope = _span(_scope(node), begins)
                if scope not in originals:
                    originals[scope] = _program(source[first:last])
                changed = source[:start] + text + source[end:]
                rest = len(source) - last
                if originals[scope] is None:
                    first, rest = 0, 0
                original = _program(source) if originals[scope] is None else originals[scope]
                program = _program(changed[first : len(changed) - rest])
                if program is None or program == original or (first, program) in seen:
                    continue
                seen.add((first, program))
                key = hashlib.sha256(f"{module}\n{changed}".encode()).hexdigest()[:16]
                yield Mutant(module, name, *_difference(source, changed), start, end, text, key)


def _span(node: Any, begins: list[int]) -> tuple[int, int]:
    """Where a node stands in the text, with what is before it up to the node before."""
    (line, column), (last_line, last_column) = node.get_start_pos_of_prefix(), node.end_pos
    return begins[line - 1] + column, begins[last_line - 1] + last_column


def _mutated(operator: Operator, node: Any, index: int) -> str | None:
    """The text of a node after an operator has changed it; the tree stays as it is.

    None where the operator cannot: Cosmic Ray expects names of exceptions without a dot.
    """
    parent, node.parent = node.parent, None
    try:
        changed = copy.deepcopy(node)
    finally:
        node.parent = parent
    changed.parent = parent
    try:
        result = operator.mutate(changed, index)
    except AttributeError:
        return None
    return "" if result is None else str(result.get_code())


def _scope(node: Any) -> Any:
    """The function or statement, in a module or class, that holds a node: no more need be compared."""
    chain = [node]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    inner = iter(reversed(chain[:-1]))
    found = next(inner, node)
    while found.type in ("classdef", "suite", "decorated", "async_stmt"):
        found = next(inner, found)
        if found is node:
            break
    return found


def _difference(source: str, changed: str) -> tuple[int, str, str]:
    """The first line that differs, from 1, before and after."""
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    number, (before, after) = next((n, pair) for n, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    return number, before.strip(), after.strip()


def _program(source: str) -> str | None:
    """What runs: the syntax tree without types of functions, types of local names, and docstrings; None: no program."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
            for argument in (node.args.vararg, node.args.kwarg):
                if argument is not None:
                    argument.annotation = None
            for inner in ast.walk(node):
                if isinstance(inner, ast.AnnAssign):
                    inner.annotation = ast.Constant(None)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            node.body = [
                one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ] or [ast.Pass()]
    return ast.dump(tree)
