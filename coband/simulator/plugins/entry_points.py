"""What installed packages offer by entry points, whose code something is, and how messages name it.

An extension, a folder of coband or another package, is found by the entry-point group `GROUP`. It declares what it adds
by name, which is imported when somebody asks for it. One that is not there, or cannot be imported, is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points, packages_distributions
from types import TracebackType
from typing import Any, TypeVar

from coband.simulator.scenario_errors import RAISED

OWN_DISTRIBUTION = "coband"
GROUP = "coband.extensions"
T = TypeVar("T")


class PluginError(Exception):
    """What a plugin offers cannot be imported, or is not what is asked for."""


@dataclass(frozen=True)
class Command:
    """A command of an extension.

    Attributes:
        where: ``module:attribute`` of the click command or group.
        help: what ``coband --help`` says of it, in one line.
        group: the title of the list in which it stands there.
    """

    where: str
    help: str
    group: str = "More"


@dataclass(frozen=True)
class Extension:
    """What an extension adds; it names it as ``module:attribute``, so that declaring it imports nothing.

    Attributes:
        name: that of its entry point.
        commands: by name.
        panels: of the report, by name.
        kinds: list, such as ``kernels`` -> name -> ``module:attribute``, as entry points ``coband.<list>`` have it.
    """

    name: str
    commands: Mapping[str, Command] = field(default_factory=dict)
    panels: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def installed(group: str) -> list[EntryPoint]:
    """The entry points of a group in this Python environment, with what extensions offer to it, coband's own first."""
    points = [point for point in offered() if point.group == group]
    packages = {point.name: point.dist for point in reversed(offered()) if point.group == GROUP}
    for name, extension in extensions().items():
        for kind, where in extension.kinds.get(group.removeprefix("coband."), {}).items():
            points.append(EntryPoint(kind, where, group))
            vars(points[-1]).update(dist=packages[name])  # as importlib.metadata itself does
    return sorted(points, key=lambda one: (distribution(one) != OWN_DISTRIBUTION, one.name))


@lru_cache(maxsize=1)
def offered() -> list[EntryPoint]:
    """All that packages offer to coband; the environment is searched once per process."""
    found: Any = entry_points()  # of a type of its own in Python 3.11, with the same members
    points = [point for group in found.groups if group.startswith("coband.") for point in found.select(group=group)]
    return sorted(points, key=lambda one: (distribution(one) != OWN_DISTRIBUTION, one.name))


def extensions() -> Mapping[str, Extension]:
    """Return the installed extensions by name, coband's own first."""
    return _extensions()[0]


def absent() -> Mapping[str, str]:
    """Return why extensions that are installed cannot be imported, by name."""
    return _extensions()[1]


@lru_cache(maxsize=1)
def _extensions() -> tuple[dict[str, Extension], dict[str, str]]:
    there, reasons = dict[str, Extension](), dict[str, str]()
    for point in [one for one in offered() if one.group == GROUP]:
        try:
            extension = loaded(point, Extension)
            if extension.name != point.name:
                raise PluginError(f"its entry point has another name than {extension.name!r}, which it declares")
            if wrong := _misdeclared(extension):
                raise PluginError(wrong)
            if there.setdefault(point.name, extension) is not extension:
                reasons[f"{point.name} of {distribution(point)}"] = "another extension has this name"
        except PluginError as error:  # coband goes on without it
            reasons[point.name] = str(error)
    return there, reasons


def _misdeclared(extension: Extension) -> str:
    """What is wrong with the fields of a declaration; empty if nothing."""
    given = extension.commands
    if not isinstance(given, Mapping) or not all(isinstance(one, Command) for one in given.values()):
        return "commands must be name -> Command('module:attribute', 'its help')"
    if not all(map(_of_texts, [dict.fromkeys(given, ""), *map(vars, given.values())])):
        return "the name of a command, and all that is said of it, must be texts"
    if not _of_texts(extension.panels):
        return "panels must be name -> 'module:attribute'"
    if not isinstance(extension.kinds, Mapping) or not all(map(_of_texts, extension.kinds.values())):
        return "kinds must be list -> name -> 'module:attribute'"
    return ""


def _of_texts(found: object) -> bool:
    return isinstance(found, Mapping) and all(isinstance(one, str) for item in found.items() for one in item)


def commands() -> dict[str, Command]:
    """Return the commands of all extensions by name; the first of a name counts."""
    return dict(reversed([item for one in extensions().values() for item in one.commands.items()]))


def imported(where: str, kind: type[T]) -> T:
    """Import what an extension names as ``module:attribute``.

    Raises:
        PluginError: it cannot be imported, or is not of this kind; the text names it.
    """
    try:
        return loaded(EntryPoint("", where, GROUP), kind)
    except PluginError as error:
        raise PluginError(f"{where}: {error}") from error


def loaded(point: EntryPoint, kind: type[T]) -> T:
    """Import what an entry point names.

    Raises:
        PluginError: whatever that raises, or it is not of this kind.
    """
    try:
        with called_without_words(point.module):
            found = point.load()
    except RAISED as error:
        absent = isinstance(error, ModuleNotFoundError)
        raise PluginError(str(error) if absent else exception_told(error, place=True)) from error
    if not isinstance(found, kind):
        raise PluginError(f"an object of type {kind.__name__} is expected, not {kind_of(found)}")
    return found


def foreign(module: str) -> bool:
    """Whether a module belongs neither to coband nor to Python."""
    top = module.partition(".")[0]
    return top != OWN_DISTRIBUTION and top not in sys.stdlib_module_names


def frames_of_plugins(error: BaseException) -> list[TracebackType]:
    """What of a traceback is in the code of plugins, or of the user, and not of a library that is installed."""
    offering = {point.module.partition(".")[0] for point in offered()}
    frames, frame = list[TracebackType](), error.__traceback__
    while frame is not None:
        module = str(frame.tb_frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if foreign(module) and (top in offering or top not in distributions()):
            frames.append(frame)
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


def distribution(point: EntryPoint) -> str:
    """The name of the package that an entry point is of."""
    return "an unknown package" if point.dist is None else _name_of(point.dist)


@cache
def _name_of(package: Distribution) -> str:
    return str(package.name)  # which parses the package's metadata


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
    """The first paragraph of a text, on one line."""
    return " ".join(text.strip().split("\n\n")[0].split()).replace("``", "")
