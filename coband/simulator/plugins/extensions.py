"""Extensions: what a folder of coband, or another package, adds to it without anything needing it.

An extension is found by the entry-point group `GROUP` and declares what it adds by name. What it names is imported
when somebody asks for it. One that is not there, or cannot be imported, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import TypeVar

from coband.simulator.plugins.entry_points import PluginError, distribution, installed, loaded

GROUP = "coband.extensions"
T = TypeVar("T")


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
        kinds: list, such as ``kernels`` or ``metrics`` -> members by name; what a package offers by other entry points.
    """

    name: str
    commands: Mapping[str, Command] = field(default_factory=dict)
    panels: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def extensions() -> Mapping[str, Extension]:
    """Return the installed extensions by name, coband's own first."""
    return _found()[0]


def absent() -> Mapping[str, str]:
    """Return why extensions that are installed cannot be imported, by name."""
    return _found()[1]


@lru_cache(maxsize=1)
def _found() -> tuple[dict[str, Extension], dict[str, str]]:
    there, reasons = dict[str, Extension](), dict[str, str]()
    for point in installed(GROUP):
        try:
            extension = loaded(point, Extension)
            if extension.name != point.name:
                raise PluginError(f"its entry point has another name than {extension.name!r}, which it declares")
            if there.setdefault(point.name, extension) is not extension:
                reasons[f"{point.name} of {distribution(point)}"] = "another extension has this name"
        except PluginError as error:  # coband goes on without it
            reasons[point.name] = str(error)
    return there, reasons


def commands() -> dict[str, Command]:
    """Return the commands of all extensions by name; the first of a name counts."""
    offered = [item for one in extensions().values() for item in one.commands.items()]
    return dict(reversed(offered))


def kinds(group: str) -> Iterator[EntryPoint]:
    """Yield what extensions offer to a list, as entry points of its group and of the extension's package."""
    packages = {point.name: point.dist for point in reversed(installed(GROUP))}
    for name, extension in extensions().items():
        for kind, where in extension.kinds.get(group.removeprefix("coband."), {}).items():
            point = EntryPoint(kind, where, group)
            vars(point).update(dist=packages[name])  # as importlib.metadata itself does
            yield point


def named(where: str, kind: type[T]) -> T:
    """Import what an extension names as ``module:attribute``.

    Raises:
        PluginError: it cannot be imported, or is not of this kind; the text names it.
    """
    try:
        return loaded(EntryPoint("", where, GROUP), kind)
    except PluginError as error:
        raise PluginError(f"{where}: {error}") from error
