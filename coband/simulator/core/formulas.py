"""Formulas in a small arithmetic language: what is printed is what is evaluated.

A formula is one line, such as ``m*(d + 1) + m^2 + m``: numbers, names, ``+ - * / // % ^`` (power), comparisons,
``and``, ``or``, ``not``, ``a if condition else b``, texts in quotes, ``floor``, ``ceil``, ``min``, ``max``, ``sqrt``
and ``log`` (natural). A dot reads a field of a configuration: ``server.exchanges``. Nothing else is allowed, so that a
formula has no effects.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}
_PARTS: tuple[type[ast.AST], ...] = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Name,
    ast.expr_context,
    ast.And,
    ast.Or,
)
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "log": math.log,
}
_LARGEST_POWER = 64
Values = Mapping[str, Any]


class FormulaError(ValueError):
    """A formula that cannot be read or evaluated; the text says why."""


@lru_cache(maxsize=512)
def names_in(formula: str) -> tuple[str, ...]:
    """The quantities that a formula uses, in the order of their first use.

    Raises:
        FormulaError: it cannot be read.
    """
    nodes = (node for node in ast.walk(_parsed(formula)) if isinstance(node, ast.Name))
    found = sorted(nodes, key=lambda node: node.col_offset)
    return tuple(dict.fromkeys(node.id for node in found if node.id not in _FUNCTIONS))


def evaluate(formula: str, values: Values) -> Any:
    """What a formula gives.

    Args:
        formula: text.
        values: its quantities by name; more than it needs may be given.

    Raises:
        FormulaError: it cannot be read, names a quantity that there is not, or has no value (a division by zero).
    """
    tree = _parsed(formula)
    missing = [name for name in names_in(formula) if name not in values]
    if missing:
        raise FormulaError(f"{formula!r} uses {missing[0]!r}; there is {', '.join(sorted(values))}")
    try:
        return _value(tree.body, values)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise FormulaError(f"{formula!r} has no value: {error}") from None


@lru_cache(maxsize=512)
def _parsed(formula: str) -> ast.Expression:
    try:
        tree = ast.parse(formula.replace("^", "**"), mode="eval")
    except SyntaxError as error:
        raise FormulaError(f"{formula!r} is not a formula: {error.msg}") from None
    for node in ast.walk(tree):
        if not _allowed(node):
            part = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise FormulaError(f"{formula!r} is not a formula: {part!r} is not allowed in one")
    return tree


def _allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
    if isinstance(node, ast.Attribute):
        return not node.attr.startswith("_")
    if isinstance(node, ast.Constant):
        return node.value is None or isinstance(node.value, (int, float, str))
    return isinstance(node, (*_PARTS, *_BINARY, *_COMPARISONS, *_UNARY))


def _value(node: ast.expr, values: Values) -> Any:
    """The value of a part; what is not arithmetic was refused when the formula was read."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return values[node.id]
        case ast.Attribute():
            return getattr(_value(node.value, values), node.attr)
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_value(node.operand, values))
        case ast.BinOp():
            return _binary(type(node.op), _value(node.left, values), _value(node.right, values))
        case ast.BoolOp():
            found = (_value(part, values) for part in node.values)
            return all(found) if isinstance(node.op, ast.And) else any(found)
        case ast.IfExp():
            return _value(node.body if _value(node.test, values) else node.orelse, values)
        case ast.Compare():
            sides = [_value(part, values) for part in (node.left, *node.comparators)]
            pairs = zip(node.ops, sides, sides[1:], strict=False)
            return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)
        case ast.Call(func=ast.Name(id=function)):
            return _FUNCTIONS[function](*(_value(part, values) for part in node.args))
    raise AssertionError(f"{type(node).__name__} was allowed but has no meaning")


def _binary(operation: type[ast.operator], left: Any, right: Any) -> Any:
    if operation is ast.Pow and not abs(right) <= _LARGEST_POWER:
        raise OverflowError(f"the power {right} is too large")
    return _BINARY[operation](left, right)
