"""What installed packages offer under an entry-point group: ours and others' come through the same door.

What does not load, is not what its group asks for, or has a name that is taken is left out with a warning; coband goes
on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Generic, TypeVar

OWN_DISTRIBUTION = "coband"
T = TypeVar("T")


class PluginError(Exception):
    """An entry point whose object is not what its group asks for."""


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """What a group holds.

    Attributes:
        found: by name, in alphabetical order.
        broken: entry points that could not be loaded, with the reason.
        warnings: one sentence for each that was left out.
    """

    found: Mapping[str, T]
    broken: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def load(points: Iterable[EntryPoint], check: Callable[[str, object], T]) -> Loaded[T]:
    """Load entry points, ours first.

    Args:
        points: of one group.
        check: returns the object of an entry point, or raises `PluginError` when it is not what the group asks for.
    """
    found: dict[str, T] = {}
    broken: dict[str, str] = {}
    warnings: list[str] = []
    taken: dict[str, EntryPoint] = {}
    for point in sorted(points, key=lambda point: (distribution(point) != OWN_DISTRIBUTION, point.name)):
        first = taken.setdefault(point.name, point)
        if first is not point:
            if first.value != point.value:
                warnings.append(
                    f"{point.group}: {point.name!r} of {distribution(point)} ({point.value}) is ignored: "
                    f"{distribution(first)} ({first.value}) has that name"
                )
            continue
        try:
            found[point.name] = check(point.name, point.load())
        except (Exception, SystemExit) as error:  # whatever a plugin raises, coband goes on without it
            broken[point.name] = f"{type(error).__name__}: {error}"
            warnings.append(
                f"{point.group}: {point.name!r} of {distribution(point)} ({point.value}) is left out: "
                f"{broken[point.name]}"
            )
    return Loaded(dict(sorted(found.items())), broken, tuple(warnings))


def distribution(point: EntryPoint) -> str:
    """The name of the package that an entry point is of."""
    return "an unknown package" if point.dist is None else str(point.dist.name)


def is_subclass(found: Any, base: type) -> bool:
    """Whether an object is a class derived from ``base``."""
    return isinstance(found, type) and issubclass(found, base)


def kind_of(found: object) -> str:
    """What an object is, in words."""
    return f"the class {found.__name__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"


class ByKind:
    """Tells pydantic to read a mapping with the class that its ``kind`` names, so that errors name one class only.

    Pydantic asks annotations for a schema by this method's name; nothing of it is imported here. It does so when a
    model is used for the first time, so that plugins may import coband while they are being loaded themselves.

    Args:
        classes: gives the classes by kind; called when a schema is wanted.
        further: more classes, each with the one value of its field ``kind``.
    """

    def __init__(self, classes: Callable[[], Mapping[str, type]], **further: type) -> None:
        self._classes, self._further = classes, further

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        members = {**self._classes(), **self._further}
        if not members:
            raise PluginError(
                "coband's own entry points are missing; install it anew: pip install -e . or pip install coband"
            )
        choices = {kind: handler.generate_schema(member) for kind, member in members.items()}
        return {"type": "tagged-union", "discriminator": "kind", "choices": choices}


def summary_of(found: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((found.__doc__ or "").strip().split("\n\n")[0].split()).replace("``", "")
