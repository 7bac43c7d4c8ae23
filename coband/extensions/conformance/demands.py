"""What the kit says when an algorithm does not keep something."""

from __future__ import annotations

from unittest import SkipTest


class NonConformance(AssertionError):
    """An algorithm does not keep what every algorithm must keep; the text says what."""


class Vacuous(SkipTest):
    """A case that would say nothing about an algorithm, and why; pytest and unittest count it as skipped."""


def demand(holds: bool, sentence: str) -> None:
    """Raise NonConformance with a sentence unless something holds."""
    if not holds:
        raise NonConformance(sentence)
