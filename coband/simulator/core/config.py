"""The base of everything a scenario may say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from coband.simulator.plugins.kinds import describe_properties

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What JSON can hold."""
JsonObject: TypeAlias = Mapping[str, Json]
"""An object in JSON types, such as a section of a scenario."""


def word_is_kind(value: object) -> object:
    """A word such as ``float32`` stands for ``{kind: float32}``."""
    return {"kind": value} if isinstance(value, str) else value


class Config(BaseModel):
    """A part of a scenario: immutable, and strict about unknown keys and numbers that are not finite.

    Its validator is built at its first use, when all plugins are loaded. The docstring below a field is the field's
    description; it is read from the source when a JSON Schema is generated, so that runs do not wait for it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        names = {name: field.alias or name for name, field in cls.model_fields.items()}
        describe_properties(cls, handler.resolve_ref_schema(schema).get("properties", {}), names)
        return schema


@dataclass(frozen=True)
class Unit:
    """The unit of a key, for its annotation: ``Annotated[float, Unit("simulated time")]``.

    Attributes:
        name: as the JSON Schema (keyword ``unit``) and ``coband describe`` say it.
    """

    name: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core_schema), "unit": self.name}


TIME = Unit("simulated time")
BITS = Unit("bits")
RATE = Unit("scalars per unit of simulated time")
REWARD = Unit("units of the reward")
OF_THE_KEY = Unit("that of the key whose value it is")
OF_THE_COUNT = Unit("that of the number")

TimeUnit = Literal["milliseconds", "seconds", "minutes", "hours", "days"]
SECONDS: Mapping[TimeUnit, float] = {
    "milliseconds": 1e-3,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
}
"""Seconds in a unit of time."""


def existing(file: str, what: str, key: str = "file: ") -> Path:
    """The path of a file that a scenario names under ``key``; ``what``: what it must be.

    Raises:
        ValueError: there is no such file.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{key}{file!r} does not exist; give {what}")
    return path


_STATES = dict[tuple[Any, str], tuple[int, int]]()


def read_anew(read: Any, file: str) -> None:
    """Have a reader with an ``lru_cache`` forget a file that has changed since; for validators, as a run keeps to what
    it began with."""
    path = Path(file)
    state = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)
    if _STATES.setdefault((read, file), state) != state:
        read.cache_clear()
        _STATES[read, file] = state
