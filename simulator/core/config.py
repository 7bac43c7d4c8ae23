"""The base of everything a scenario may say."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A part of a scenario: immutable, and strict about unknown keys.

    How it is validated is settled at its first use, when all plugins are loaded.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, defer_build=True
    )
