"""A pytest plugin, and a helper of tests: coband as it is when folders of `coband.extensions` have been deleted."""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec

NAMES = "COBAND_HIDDEN_EXTENSIONS"
"""The environment variable with the names of the folders, separated by blanks."""


class Hidden:
    """Finds no module of some extensions, before others look for them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._folders = tuple(f"coband.extensions.{name}" for name in names)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name in self._folders or name.startswith(tuple(f"{folder}." for folder in self._folders)):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if names := os.environ.get(NAMES, "").split():
    sys.meta_path.insert(0, Hidden(names))  # type: ignore[arg-type]
