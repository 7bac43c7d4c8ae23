"""Functions of the user's that scenarios name: of a module, of a file, or given in a session of Python.

What a cell of a notebook defines cannot be imported by workers. It goes to them by value, pickled by cloudpickle.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
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


SESSION = "__main__"
"""The module of functions that no other process can import."""


def _checked(name: str, found: object) -> Callable[..., Any]:
    if not callable(found):
        raise PluginError(f"a function is expected, not {kind_of(found)}")
    return found


FUNCTIONS: Kinds[Callable[..., Any]] = Kinds("functions", _checked, inspect.isfunction, lambda found: _name_of(found))
"""Functions that were given in this session."""


def named(function: Callable[..., Any]) -> str:
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
        shown = name or type(function).__name__
        raise ValueError(
            f"{shown} cannot be imported by worker processes, which draw fresh arms at every turn: define it at the "
            "top of a module and import it from there, or give the arms as an array."
        )
    source = inspect.getsourcefile(function) if inspect.isfunction(function) else None
    if source is not None and "." not in module and Path(source).stem == module:
        return f"{Path(source).resolve()}:{name}"
    load(f"{module}:{name}")
    return f"{module}:{name}"


def _name_of(function: Any) -> str:
    """Its own name, or a number for one that has none; the same again for the same function."""
    given = str(getattr(function, "__name__", ""))
    if given.isidentifier():
        return given
    numbered = (name for name, found in FUNCTIONS.registered.items() if found is function)
    return next(numbered, f"function_{len(FUNCTIONS.registered) + 1}")


def load(name: str) -> Callable[..., Any]:
    """The function of that name.

    Raises:
        ValueError: there is none; the text says what to write.
    """
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute.isidentifier():
        raise ValueError(f"function(={name!r}) must be module:function or path/to/file.py:function.")
    if place == SESSION:
        if attribute not in FUNCTIONS.registered:
            raise ValueError(
                f"the function {attribute!r} was given in a session of Python that is over and is not stored; give it "
                "again, or name one as module:function or path/to/file.py:function."
            )
        return FUNCTIONS.registered[attribute]
    module = _module(place)
    function = getattr(module, attribute, None)
    if not callable(function):
        offered = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise ValueError(f"{place} has no function {attribute!r}; it has {', '.join(offered) or 'none'}.")
    found: Callable[..., Any] = function
    return found


def _module(place: str) -> Any:
    if place.endswith(".py"):
        file = Path(place).expanduser().resolve()
        if not file.is_file():
            raise ValueError(f"there is no file {place}; write module:function or path/to/file.py:function.")
        return _executed(file, file.stat().st_mtime_ns)
    _findable(Path.cwd())
    try:
        with called_without_words(place):
            return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{place}.".startswith(f"{error.name}."):
            raise ValueError(f"{place} cannot be imported: {error}.") from None
        raise ValueError(
            f"there is no module {place!r}, neither installed nor in {Path.cwd()}; write module:function or "
            "path/to/file.py:function."
        ) from None
    except RAISED as error:  # whatever the user's module raises
        raise ValueError(f"{place} cannot be imported: {exception_told(error, place=True)}.") from None


@lru_cache(maxsize=16)
def _executed(file: Path, changed: int) -> Any:
    """The module in a file, which may import its neighbours; ``changed`` tells its states apart."""
    _findable(file.parent)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        with called_without_words(str(file)):
            spec.loader.exec_module(module)
    except RAISED as error:  # whatever the user's file raises
        raise ValueError(f"{file} cannot be executed: {exception_told(error, place=True)}.") from None
    return module


def _findable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
