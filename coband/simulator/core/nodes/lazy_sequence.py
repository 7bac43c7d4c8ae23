"""Nodes that are made when somebody needs them: in a fleet of a million, those that never act cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence whose members are made when they are first asked for; the first one, at once, since it may build what
    others share, and complains of what none can do.

    Args:
        count: its length.
        make: makes the member at a place.

    Attributes:
        made: the members that there are, by place.
    """

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make
        self.made: dict[int, T] = {0: make(0)}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        found = self.made.get(place) if type(place) is int else None
        if found is None:
            if isinstance(place, slice):
                return [self[number] for number in range(*place.indices(self._count))]
            number = range(self._count)[place]
            found = self.made.get(number)
            if found is None:
                found = self.made[number] = self._make(number)
        return found

    def each(self) -> Iterator[T]:
        """All members, of which those that are not there yet are made for this alone, and not kept."""
        return (self.made.get(place) or self._make(place) for place in range(self._count))


def made(members: Iterable[T]) -> Iterable[T]:
    """The members that there are; of another sequence, all."""
    return members.made.values() if isinstance(members, LazySequence) else members


def each(members: Iterable[T]) -> Iterable[T]:
    """All members, without keeping those that are made for it."""
    return members.each() if isinstance(members, LazySequence) else members
