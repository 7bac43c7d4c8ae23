"""The docstrings below the fields of a class: what each field is, read from the source when somebody asks."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from itertools import pairwise
from typing import Any


def describe_properties(cls: type, properties: MutableMapping[str, Any], names: Mapping[str, str]) -> None:
    """Give the properties of a JSON Schema that have no description the docstrings below the class's fields,
    its own or those of the nearest base.

    Args:
        cls: the class that the schema is of.
        properties: by the names that scenarios use; changed in place.
        names: field -> that name.
    """
    for field, name in names.items():
        nearest = (docs[field] for base in cls.__mro__ if field in (docs := _field_docstrings(base)))
        text, described = next(nearest, None), properties.get(name)
        if text and described is not None:
            described.setdefault("description", text)


@cache
def _field_docstrings(cls: type) -> Mapping[str, str]:
    """The docstrings below the fields that a class itself declares."""
    body = _classes(cls.__module__).get(cls.__qualname__, [])
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


@cache
def _classes(module: str) -> Mapping[str, list[ast.stmt]]:
    """The bodies of the classes of a module by qualified name; empty if there is no source."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        return {}
    return dict(_bodies(ast.parse(source), ""))


def _bodies(node: ast.AST, prefix: str) -> Iterator[tuple[str, list[ast.stmt]]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield f"{prefix}{inner.name}", inner.body
            yield from _bodies(inner, f"{prefix}{inner.name}.")
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _bodies(inner, f"{prefix}{inner.name}.<locals>.")
        else:
            yield from _bodies(inner, prefix)
