"""The base of everything a scenario may say."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A part of a scenario: immutable, and strict about unknown keys and numbers that are not finite.

    Its validator is built at its first use, when all plugins are loaded.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        populate_by_name=True,
        defer_build=True,
    )
