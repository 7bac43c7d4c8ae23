"""What a scenario does with its validated models without building a validator or a serialiser for each of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


class _ForeignError(Exception):
    """A value of a class that is not coband's, of which pydantic alone knows how it is written."""


def in_json_types(model: BaseModel, *, by_alias: bool = True) -> dict[str, Any]:
    """What ``model.model_dump(mode="json", by_alias=by_alias)`` returns, at once for coband's own models."""
    try:
        found: dict[str, Any] = _plain(model, by_alias)
    except _ForeignError:
        return model.model_dump(mode="json", by_alias=by_alias)
    return found


def _plain(value: Any, by_alias: bool) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, by_alias) for item in value]
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, by_alias) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if not _is_own(type(value)):
        raise _ForeignError
    if isinstance(value, BaseModel):
        named = type(value).model_fields.items()
        return {(by_alias and info.alias) or name: _plain(getattr(value, name), by_alias) for name, info in named}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name), by_alias) for field in fields(value) if field.init}
    raise _ForeignError


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _ForeignError
    return key


def _is_own(kind: type) -> bool:
    return kind.__module__.startswith("coband.")


def part_of(entry: BaseModel, model: type[Model], data: Mapping[str, Any]) -> Model:
    """The parameters in a validated entry of a scenario, as an instance of the algorithm's own model.

    Args:
        entry: an instance of a model that is derived from the algorithm's, and has more fields.
        model: the algorithm's.
        data: what the scenario says of the fields of ``model``; another package's model reads it itself.
    """
    if not _is_own(model):
        return model.model_validate_json(json.dumps(data))
    values = {name: getattr(entry, name) for name in model.model_fields}
    return model.model_construct(entry.model_fields_set & values.keys(), **values)
