"""What was registered in a session of Python, such as a notebook: how it travels to workers, what a run names of it.

Workers cannot import what a cell of a notebook defines. It goes to them by value, pickled by cloudpickle.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coband.simulator.plugins.functions import SESSION
from coband.simulator.plugins.kinds import LISTS, adopt, registered


def pickled(content: object) -> bytes:
    """An object with all that is registered, for `unpickled` in another process."""
    found = registered()
    if not found:
        return pickle.dumps((content, found))
    import cloudpickle  # slow to import, and most scenarios need nothing that is not installed

    packed: bytes = cloudpickle.dumps((content, found))
    return packed


def unpickled(packed: bytes) -> Any:
    """The object again; what came with it is registered here."""
    content, found = pickle.loads(packed)
    adopt(found)
    return content


def not_installed(documents: Iterable[Any]) -> list[str]:
    """The names in documents of what was registered in this session, so that no other one knows it.

    Args:
        documents: sections of scenarios, in JSON types.
    """
    names = {name for one in LISTS.values() for name in one.registered}
    return sorted(names.intersection(_words(list(documents)))) if names else []


def _words(part: Any) -> Iterator[str]:
    """The names of kinds, algorithms and functions in a document."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key in ("kind", "algorithm", "function") and isinstance(value, str):
                yield value.removeprefix(f"{SESSION}:")
            else:
                yield from _words(value)
    elif isinstance(part, (list, tuple)):
        for item in part:
            yield from _words(item)
