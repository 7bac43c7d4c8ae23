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
HATCHES = ("", "////", "--", "\\\\\\\\", "xxxx", "||", "++", "//", "----", "\\\\", "||||", "xx")
"""Lines alone: dots are circles, which take hundreds of kilobytes of a page."""
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
TIME_HATCHES = {"handling": "----", "others": "////", "server": "\\\\\\\\", "retransmission": "xxxx", "stalled": "++++"}
"""State of an agent -> its hatching; the others have none, and differ in lightness."""
PARTS = {"agents": "others", "server": "server", "transfer": "transfer", "retransmission": "retransmission"}
"""Part of a critical path -> the state that means the same."""

SHADES = (("ink", 0.45), ("ink", 0.7), ("ink", 1.0), ("paper", 0.75), ("paper", 0.6))
"""What a colour of an algorithm is mixed with, and its share: from dark to pale, for the values of a parameter."""


def mixed(colour: str, other: str, share: float) -> str:
    """The colour with ``share`` of the first, as CSS mixes in sRGB."""
    parts = ((int(one[i : i + 2], 16) for one in (colour, other)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in parts)


def shade(colour: str, place: int) -> str:
    """A colour of an algorithm in one of :data:`SHADES`."""
    name, share = SHADES[place]
    return mixed(colour, {"ink": INK, "paper": PAPER}[name], share)


VARIABLES = {
    **{
        shade(colour, place): f"color-mix(in srgb, var(--series-{number}) {100 * share:g}%, var(--{name}))"
        for number, colour in enumerate(SERIES)
        for place, (name, share) in enumerate(SHADES)
    },
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES)},
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    PAPER: "var(--paper)",
    **{colour: f"var(--kind-{number})" for number, colour in enumerate(KINDS)},
    NO_PAYLOAD: "var(--no-payload)",
    **{colour: f"var(--time-{name})" for name, colour in TIMES.items()},
}
"""Colour -> colour in CSS, in variables of the page, so that figures adapt to a dark page."""


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


def variant_style(entry: int, variant: int, count: int = 1) -> LineStyle:
    """The style of a variant of an algorithm: the algorithm's colour, and marker and dashes of its own.

    Args:
        count: number of variants, whose shades go from dark to pale; with 1 all have the colour itself.
    """
    colour, marker = SERIES[entry % len(SERIES)], MARKERS[(entry + variant) % len(MARKERS)]
    if count > 1:
        last = len(SHADES) - 1
        colour = shade(colour, round(last * variant / (count - 1)) if count <= last + 1 else variant % (last + 1))
    return LineStyle(colour, marker, DASHES[(entry // len(SERIES) + variant) % len(DASHES)])


def kind_colour(kind: str, kinds: Mapping[str, bool]) -> str:
    """The colour of a kind of message; those without payload have one in common.

    Args:
        kinds: all kinds -> whether they carry scalars, in the order of their colours.
    """
    coloured = [one for one, carries in kinds.items() if carries]
    return KINDS[coloured.index(kind) % len(KINDS)] if kind in coloured else NO_PAYLOAD
