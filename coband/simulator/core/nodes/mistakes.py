"""Mistakes of those who write algorithms: where the code is that is wrong, and what to write in its place."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from coband.simulator.plugins.promises import in_words as in_words
from coband.simulator.plugins.promises import written as written


class NodeMistake(TypeError):
    """A node or a message is not what its interface asks for; the text says what it is, and what to write.

    Attributes:
        placed: whether the text begins with the place in the code.
    """

    placed = False


def mistake(code: Any, text: str) -> NodeMistake:
    """A mistake in a class or function, whose place is said first."""
    found = NodeMistake((place := written(code)) + text)
    found.placed = bool(place)
    return found


def returned(node: object, method: str, value: object, wanted: str) -> NodeMistake:
    """The mistake of a node whose method has returned something else than what is wanted."""
    kind = type(node)
    return mistake(getattr(kind, method, kind), f"{kind.__name__}.{method} returned {in_words(value)}; {wanted}")


def refuse_choice(node: object, arm: object, count: int) -> None:
    """Say what ``choose`` is to return, where it has not.

    Raises:
        NodeMistake: the arm is not one of 0 .. count - 1.
    """
    if not (isinstance(arm, (int, np.integer)) and 0 <= arm < count):
        raise returned(node, "choose", arm, f"return the number of an arm, 0 .. {count - 1}") from None


LABELS = (int, str, np.integer, np.bool_, type(None))
"""What a header field may hold several of; real numbers may only stand alone."""


def refuse_uncounted(message: Any) -> None:
    """Say so where a field that is no payload holds more than one value, which nobody would count.

    Raises:
        NodeMistake: one does.
    """
    kind = type(message)
    for item in fields(kind):
        value = getattr(message, item.name)
        labels = value if isinstance(value, tuple) else (value,)
        header = isinstance(value, (float, np.floating)) or all(isinstance(label, LABELS) for label in labels)
        if header or item.metadata.get("payload"):
            continue
        what = "an array" if isinstance(value, np.ndarray) else in_words(value)
        declared = item.type if isinstance(item.type, str) else getattr(item.type, "__name__", str(item.type))
        raise mistake(
            kind,
            f"{kind.__name__}.{item.name} is {what} and no payload, so that nobody would count it; write "
            f"`{item.name}: {declared} = payload()`",
        )
