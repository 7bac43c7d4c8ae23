"""The statements of a module: which one a line belongs to, and a program that notes which of them ran."""

from __future__ import annotations

import ast


def numbered(source: str) -> tuple[ast.Module, list[ast.stmt]]:
    """A module and the statements in its functions, in a fixed order."""
    tree = ast.parse(source)
    found: dict[ast.stmt, None] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            found.update((node, None) for one in function.body for node in ast.walk(one) if isinstance(node, ast.stmt))
    return tree, sorted(found, key=lambda node: (node.lineno, node.col_offset))


def marked(source: str, name: str) -> tuple[ast.Module, int]:
    """The module with a mark before each statement in its functions: ``sys.coband_marks[name][number] = 1``."""
    tree, statements = numbered(source)
    numbers = {statement: number for number, statement in enumerate(statements)}
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [one for inner in body for one in _with_mark(inner, numbers)])
    lines = f"from sys import coband_marks as __marks__\n__marks__ = __marks__[{name!r}]\n"
    at = 0
    while at < len(tree.body) and _first(tree.body[at]):
        at += 1
    tree.body[at:at] = ast.parse(lines).body
    return ast.fix_missing_locations(tree), len(statements)


def _with_mark(node: ast.AST, numbers: dict[ast.stmt, int]) -> list[ast.AST]:
    """A statement after its mark; a docstring stays where it is."""
    number = numbers.get(node) if isinstance(node, ast.stmt) else None
    if number is None or _docstring(node):
        return [node]
    mark = ast.parse(f"__marks__[{number}] = 1").body[0]
    for inner in ast.walk(mark):
        ast.copy_location(inner, node)
    return [mark, node]


def _docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _first(node: ast.AST) -> bool:
    """What has to stand first in a module."""
    return _docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def around(source: str, line: int) -> set[int]:
    """The numbers of the statements of which one runs whenever something in a line does; none: it runs at import."""
    _, statements = numbered(source)
    headers = [(number, node, _header_end(node)) for number, node in enumerate(statements)]
    inside = [(number, node) for number, node, end in headers if _first_line(node) <= line <= end]
    if inside:
        return {inside[-1][0]}
    within = [  # defaults and decorators, or the header of an except or case: whatever runs in there
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Try | ast.Match)
        and _first_line(node) <= line <= (node.end_lineno or node.lineno)
    ]
    if not within or isinstance(node := max(within, key=_first_line), ast.ClassDef):
        return set()
    last = node.end_lineno or node.lineno
    return {number for number, one in enumerate(statements) if node.lineno <= one.lineno <= last}


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _header_end(node: ast.stmt) -> int:
    """The last line of a statement that is no statement in it."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return node.end_lineno or node.lineno
    first: int = getattr(body[0], "lineno", None) or body[0].pattern.lineno
    return max(node.lineno, first - 1)
