"""What installed packages offer under an entry-point group: ours and others' come through the same door.

What does not load, is not what its group asks for, or has a name that is taken is left out; coband goes on without it.
Entry points of other packages are loaded at once, so that warnings about them come first; ours when they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import (
    Distribution,
    EntryPoint,
    EntryPoints,
    PathDistribution,
    entry_points,
    packages_distributions,
)
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from coband.simulator.plugins.offers import offers
from coband.simulator.scenario_errors import RAISED

OWN_DISTRIBUTION = "coband"
T = TypeVar("T")


class PluginError(Exception):
    """An entry point whose object is not what its group asks for."""


class OnDemand(Mapping[str, T]):
    """Objects by the names of their entry points, in alphabetical order; each is loaded when it is first asked for.

    One that does not load disappears from the mapping.

    Args:
        points: the entry points by name.
        check: returns the object of an entry point, or raises `PluginError` when it is not what the group asks for.
        broken: receives the reason for each one that does not load.
    """

    def __init__(
        self, points: Mapping[str, EntryPoint], check: Callable[[str, object], T], broken: dict[str, str]
    ) -> None:
        self._points, self._check, self._broken = dict(sorted(points.items())), check, broken
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            point = self._points[name]
            try:
                with called_without_words(point.module):
                    self._loaded[name] = self._check(name, point.load())
            except RAISED as error:  # whatever a plugin raises, coband goes on without it
                self._broken[name] = exception_told(error, place=True)
                del self._points[name]
                raise KeyError(name) from error
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in list(self._points) if name in self])

    def __len__(self) -> int:
        return len(list(iter(self)))


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """What a group holds.

    Attributes:
        found: by name, in alphabetical order.
        broken: entry points that could not be loaded, with the reason; ours are added when they are asked for.
        warnings: one sentence for each that was left out.
    """

    found: Mapping[str, T]
    broken: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def installed(group: str) -> EntryPoints:
    """The entry points of a group in this Python environment, which is searched once per process."""
    return _all_installed().select(group=group)


def offering() -> set[str]:
    """The top-level modules of what packages offer to coband."""
    return {point.module.partition(".")[0] for point in _all_installed() if point.group.startswith("coband.")}


def foreign(module: str) -> bool:
    """Whether a module belongs neither to coband nor to Python."""
    top = module.partition(".")[0]
    return top != OWN_DISTRIBUTION and top not in sys.stdlib_module_names


def of_a_plugin(module: str) -> bool:
    """Whether a module is of a plugin, or of the user's, and not of a library that is installed."""
    top = module.partition(".")[0]
    return foreign(module) and (top not in distributions() or top in offering())


def frames_of_plugins(error: BaseException) -> list[TracebackType]:
    """What of a traceback is in the code of plugins, or of the user."""
    frames, frame = list[TracebackType](), error.__traceback__
    while frame is not None:
        frames += [frame] if of_a_plugin(str(frame.tb_frame.f_globals.get("__name__", ""))) else []
        frame = frame.tb_next
    return frames


def exception_told(error: BaseException, place: bool = False) -> str:
    """An exception in words; with its last ``place`` in the code of plugins, if that is asked for."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, SystemExit):
        text = f"sys.exit({error.code!r}) was called; return, or raise an exception that says what is wrong"
    frames = frames_of_plugins(error) if place else []
    return f"{text} ({frames[-1].tb_frame.f_code.co_filename}:{frames[-1].tb_lineno})" if frames else text


@contextmanager
def called_without_words(place: str) -> Iterator[None]:
    """Import code of users as a program without arguments: those that coband was called with are not meant for it."""
    before, sys.argv = sys.argv, [place]
    try:
        yield
    finally:
        sys.argv = before


@lru_cache(maxsize=1)
def distributions() -> Mapping[str, list[str]]:
    """Top-level module -> names of the distributions that have it."""
    return packages_distributions()


@lru_cache(maxsize=1)
def _all_installed() -> EntryPoints:
    found = offers()
    if found is None:
        everything: Any = entry_points()  # of a type of its own in Python 3.11, with the same method
        return cast(EntryPoints, everything)
    return EntryPoints(point for offer in found for point in PathDistribution(Path(offer.folder)).entry_points)


def load(points: Iterable[EntryPoint], check: Callable[[str, object], T]) -> Loaded[T]:
    """Load entry points, ours first; ours are only loaded when they are asked for.

    Args:
        points: of one group.
        check: returns the object of an entry point, or raises `PluginError` when it is not what the group asks for.
    """
    broken: dict[str, str] = {}
    warnings: list[str] = []
    taken: dict[str, EntryPoint] = {}
    for point in sorted(points, key=lambda point: (distribution(point) != OWN_DISTRIBUTION, point.name)):
        first = taken.setdefault(point.name, point)
        if first is not point and first.value != point.value:
            warnings.append(
                f"{point.group}: {point.name!r} of {distribution(point)} ({point.value}) is ignored: "
                f"{distribution(first)} ({first.value}) has that name"
            )
    found = OnDemand(taken, check, broken)
    for name, point in taken.items():
        if distribution(point) != OWN_DISTRIBUTION and name not in found:
            warnings.append(
                f"{point.group}: {name!r} of {distribution(point)} ({point.value}) is left out: {broken[name]}"
            )
    return Loaded(found, broken, tuple(warnings))


def distribution(point: EntryPoint) -> str:
    """The name of the package that an entry point is of."""
    return "an unknown package" if point.dist is None else _name_of(point.dist)


@cache
def _name_of(package: Distribution) -> str:
    return str(package.name)


def is_subclass(found: Any, base: type) -> bool:
    """Whether an object is a class derived from ``base``."""
    return isinstance(found, type) and issubclass(found, base)


def kind_of(found: object) -> str:
    """What an object is, in words."""
    return f"the class {found.__name__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"


def summary_of(found: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return first_paragraph(found.__doc__ or "")


def first_paragraph(text: str) -> str:
    """It, on one line."""
    return " ".join(text.strip().split("\n\n")[0].split()).replace("``", "")
