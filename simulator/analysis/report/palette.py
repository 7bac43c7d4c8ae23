"""Colours that are distinguishable with colour blindness, and markers, dashes and hatches for print without colour.

A colour means one thing in all figures of a page: an algorithm (Okabe and Ito 2008), a kind of message, or a state of
an agent. The three sets have no colour in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5b5b5b")
KINDS = ("#332288", "#999933", "#882255", "#b79fe0", "#d8c27a", "#125a56", "#7b4b2a", "#b5cf6b")
NO_PAYLOAD = "#9a9a9e"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
Dash = Literal["-"] | tuple[float, tuple[float, ...]]
DASHES: tuple[Dash, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++", "oooo", "//..", "\\\\--", "||..")
INK, MUTED, RULE, PAPER = "#1c1c1e", "#5f6368", "#dcdce0", "#fefefe"
TIMES = {
    "compute": "#4a5d73",
    "handling": "#93a5b8",
    "others": "#a8322d",
    "server": "#d98c86",
    "transfer": "#f2cfc4",
    "retransmission": "#5e0b0b",
    "stalled": "#b56576",
    "down": "#2a2a2c",
    "idle": "#d5d7da",
    "finished": "#ebecee",
}
"""State of an agent -> its colour."""
TIME_HATCHES = {"handling": "....", "others": "////", "server": "\\\\\\\\", "retransmission": "xxxx", "stalled": "++++"}
"""State of an agent -> its hatching; the others have none, and differ in lightness."""
PARTS = {"agents": "others", "server": "server", "transfer": "transfer", "retransmission": "retransmission"}
"""Part of a critical path -> the state that means the same."""

VARIABLES = {
    **{colour: f"--series-{number}" for number, colour in enumerate(SERIES)},
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    PAPER: "--paper",
    **{colour: f"--kind-{number}" for number, colour in enumerate(KINDS)},
    NO_PAYLOAD: "--no-payload",
    **{colour: f"--time-{name}" for name, colour in TIMES.items()},
}
"""Colour -> CSS variable of the page, so that figures adapt to a dark page."""


@dataclass(frozen=True)
class LineStyle:
    """Colour, marker and dashes of one contender's curve."""

    colour: str
    marker: str
    dash: Dash

    @property
    def look(self) -> dict[str, Any]:
        """The same as matplotlib's keywords."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


def line_style(number: int) -> LineStyle:
    """The style of contender ``number``, from 0; the first 28 differ in colour or dashes."""
    colours = len(SERIES)
    return LineStyle(SERIES[number % colours], MARKERS[number % colours], DASHES[number // colours % len(DASHES)])


def variant_style(entry: int, variant: int) -> LineStyle:
    """The style of a variant of an algorithm: the algorithm's colour, and marker and dashes of its own."""
    colour, marker = SERIES[entry % len(SERIES)], MARKERS[(entry + variant) % len(MARKERS)]
    return LineStyle(colour, marker, DASHES[(entry // len(SERIES) + variant) % len(DASHES)])


def kind_colour(kind: str, kinds: Mapping[str, bool]) -> str:
    """The colour of a kind of message; those without payload have one in common.

    Args:
        kinds: all kinds -> whether they carry scalars, in the order of their colours.
    """
    coloured = [one for one, carries in kinds.items() if carries]
    return KINDS[coloured.index(kind) % len(KINDS)] if kind in coloured else NO_PAYLOAD
