"""Functions of the user's that scenarios name: of a module, of a file, or given in a session of Python.

What a cell of a notebook defines cannot be imported by workers. It goes to them by value, pickled by cloudpickle.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import pickle
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from coband.simulator.plugins.entry_points import PluginError, called_without_words, exception_told, kind_of
from coband.simulator.plugins.kinds import LISTS, Kinds
from coband.simulator.scenario_errors import RAISED


def pickled(content: object) -> bytes:
    """An object with all that is registered, for `unpickled` in another process."""
    found = {name: dict(one.registered) for name, one in LISTS.items() if one.registered}
    if not found:
        return pickle.dumps((content, found))
    import cloudpickle  # slow to import, and most scenarios need nothing that is not installed

    packed: bytes = cloudpickle.dumps((content, found))
    return packed


def unpickled(packed: bytes) -> Any:
    """The object again; what came with it is registered here."""
    content, found = pickle.loads(packed)
    for name, members in found.items():
        LISTS[name].adopt(members)
    return content


def not_installed(documents: Iterable[Any]) -> list[str]:
    """The names in documents of what was registered in this session, so that no other one knows it.

    Args:
        documents: sections of scenarios, in JSON types.
    """
    names = {name for one in LISTS.values() for name in one.registered}
    words = set(re.findall(r'"(?:__main__:)?([^"]*)"', json.dumps([*documents]))) if names else set[str]()
    return sorted(names & words)


SESSION = "__main__"
"""The module of functions that no other process can import."""


def _checked(name: str, found: object) -> Callable[..., Any]:
    if not callable(found):
        raise PluginError(f"a function is expected, not {kind_of(found)}")
    return found


FUNCTIONS: Kinds[Callable[..., Any]] = Kinds("functions", _checked, inspect.isfunction, lambda found: _name_of(found))
"""Functions that were given in this session."""


def name_in_scenarios(function: Callable[..., Any]) -> str:
    """How a scenario names a function; one that other processes cannot import is registered in this one."""
    try:
        return importable_name(function)
    except ValueError:
        FUNCTIONS.register(function)
        return f"{SESSION}:{_name_of(function)}"


def importable_name(function: Any) -> str:
    """By which name other processes find a function: ``module:name`` or ``file.py:name``.

    Raises:
        ValueError: they cannot find it.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, SESSION) or not name.isidentifier() or getattr(sys.modules.get(module), name, None) != function:
        raise ValueError(
            f"{name or type(function).__name__} cannot be imported by worker processes, which draw fresh arms at every "
            "turn: define it at the top of a module and import it from there, or give the arms as an array."
        )
    source = Path((inspect.isfunction(function) and inspect.getsourcefile(function)) or "")
    if "." not in module and source.stem == module:
        return f"{source.resolve()}:{name}"
    load(f"{module}:{name}")
    return f"{module}:{name}"


def _name_of(function: Any) -> str:
    """Its own name, or a number for one that has none; the same again for the same function."""
    given = str(getattr(function, "__name__", ""))
    numbered = (name for name, found in FUNCTIONS.registered.items() if found is function)
    return given if given.isidentifier() else next(numbered, f"function_{len(FUNCTIONS.registered) + 1}")


def load(name: str) -> Callable[..., Any]:
    """The function of that name.

    Raises:
        ValueError: there is none; the text says what to write.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute.isidentifier():
        raise ValueError(f"function(={name!r}) must be module:function or path/to/file.py:function.")
    members = FUNCTIONS.registered if place == SESSION else vars(_module(place))
    found: Callable[..., Any] | None = members.get(attribute)
    if callable(found):
        return found
    if place == SESSION:
        raise ValueError(
            f"the function {attribute!r} was given in a session of Python that is over and is not stored; give it "
            "again, or name one as module:function or path/to/file.py:function."
        )
    offered = sorted(key for key, value in members.items() if callable(value) and not key.startswith("_"))
    raise ValueError(f"{place} has no function {attribute!r}; it has {', '.join(offered) or 'none'}.")


def _module(place: str) -> Any:
    is_file, file = place.endswith(".py"), Path(place).expanduser().resolve()
    if is_file and not file.is_file():
        raise ValueError(f"there is no file {place}; write module:function or path/to/file.py:function.")
    folder = file.parent if is_file else Path.cwd()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        with called_without_words(place):
            return _executed(file, file.stat().st_mtime_ns) if is_file else importlib.import_module(place)
    except RAISED as error:  # whatever the user's code raises
        if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{error.name}."):
            raise ValueError(
                f"there is no module {place!r}, neither installed nor in {folder}; write module:function or "
                "path/to/file.py:function."
            ) from None
        done = f"{file} cannot be executed" if is_file else f"{place} cannot be imported"
        raise ValueError(f"{done}: {exception_told(error, place=True)}.") from None


@lru_cache(maxsize=16)
def _executed(file: Path, changed: int) -> Any:
    """The module in a file, which may import its neighbours; ``changed`` tells its states apart."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
