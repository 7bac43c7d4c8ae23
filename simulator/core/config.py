"""The base of everything a scenario may say."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler


class Config(BaseModel):
    """A part of a scenario: immutable, and strict about unknown keys and numbers that are not finite.

    Its validator is built at its first use, when all plugins are loaded. The docstring below a field is the field's
    description; it is read from the source when a JSON Schema is generated, so that runs do not wait for it.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        populate_by_name=True,
        defer_build=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, field in cls.model_fields.items():
            described = properties.get(field.alias or name)
            text = _description(cls, name)
            if text and described is not None:
                described.setdefault("description", text)
        return schema


def _description(model: type[BaseModel], name: str) -> str | None:
    """The docstring below a field, in the model or in the nearest base that has one."""
    return next((docs[name] for base in model.__mro__ if name in (docs := _field_docstrings(base))), None)


@cache
def _field_docstrings(model: type) -> Mapping[str, str]:
    """The docstrings below the fields that a class itself declares."""
    body = _classes(model.__module__).get(model.__qualname__, [])
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
