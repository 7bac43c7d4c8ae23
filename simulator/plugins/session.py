"""What was registered in one session of Python, such as a notebook: how it travels to workers, and what is kept of it.

Workers cannot import what a cell of a notebook defines. It goes to them by value, pickled by cloudpickle.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

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


def code_of_session(about: object) -> str:
    """A digest of the code of a session: of the script that it executes; of a notebook, of objects by value.

    The digest of a notebook's objects holds for one session alone: in the next one everything is computed again.
    """
    script = str(getattr(sys.modules[SESSION], "__file__", ""))
    if script.endswith(".py") and Path(script).is_file():
        return hashlib.sha256(Path(script).read_bytes()).hexdigest()
    import cloudpickle

    return hashlib.sha256(cloudpickle.dumps((about, registered()))).hexdigest()


class NotInstalled(TypedDict):
    """What a manifest keeps of an object of a session."""

    installed: bool
    source: str | None


def given(documents: Iterable[Any]) -> dict[str, dict[str, NotInstalled]]:
    """For the manifest: what documents name and is not installed, with its source text where Python has it.

    Args:
        documents: sections of scenarios, in JSON types.
    """
    if not registered():
        return {}
    words = {word for document in documents for word in _words(document)}
    found: dict[str, dict[str, NotInstalled]] = {}
    for name, one in LISTS.items():
        chosen = {member: part for member, part in one.registered.items() if member in words or name == "metrics"}
        if chosen:
            found[name] = {member: {"installed": False, "source": source_of(part)} for member, part in chosen.items()}
    return found


def source_of(found: Any) -> str | None:
    """The source text of a class or function, or of the classes of an algorithm; None where Python does not have it."""
    parts = [found] if inspect.isclass(found) or inspect.isfunction(found) else _parts(found)
    texts = [text for part in parts if (text := _text(part)) is not None]
    return "\n\n".join(dict.fromkeys(texts)) or None


def _parts(found: Any) -> list[Any]:
    """The classes and functions that an algorithm, a problem or a metric is made of."""
    values = [getattr(found, name) for name in getattr(found, "__dataclass_fields__", ())]
    messages = [size.message for size in getattr(found, "messages", ())]
    parts = [*messages, *(value for value in values if inspect.isclass(value) or inspect.isfunction(value))]
    return [part for part in parts if not part.__module__.startswith("coband.")]


def _text(part: Any) -> str | None:
    try:
        return inspect.getsource(part).rstrip() + "\n"
    except (OSError, TypeError):
        return None


def _words(part: Any) -> Iterable[str]:
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
