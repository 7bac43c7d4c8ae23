"""Colours that are distinguishable with colour blindness (Okabe and Ito 2008), and markers and dashes of curves."""

from __future__ import annotations

from dataclasses import dataclass

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5b5b5b")
KINDS = (*SERIES[:6], "#882255", "#999933", "#332288")
NO_PAYLOAD = "#9a9a9e"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
INK, MUTED, RULE, PAPER = "#1c1c1e", "#5f6368", "#dcdce0", "#fefefe"
TIMES = {
    "compute": "#0073b3",
    "handling": "#57b5ea",
    "others": "#d55f01",
    "server": "#cc7aa8",
    "transfer": "#e6a001",
    "retransmission": "#7a3e00",
    "stalled": "#8b1a1a",
    "down": "#3b3b3b",
    "idle": "#c9ccd1",
    "finished": "#e7e8eb",
}
PARTS = {"agents": "#d55f01", "server": "#cc7aa8", "transfer": "#e6a001", "retransmission": "#7a3e00"}

VARIABLES = {
    **{colour: f"--series-{number}" for number, colour in enumerate(SERIES)},
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    PAPER: "--paper",
    **{colour: f"--kind-{number}" for number, colour in enumerate(KINDS) if colour not in SERIES},
    NO_PAYLOAD: "--no-payload",
    **{colour: f"--time-{name}" for name, colour in TIMES.items()},
}
"""Colour -> CSS variable of the page, so that figures adapt to a dark page."""


@dataclass(frozen=True)
class LineStyle:
    """Colour, marker and dashes of one contender's curve."""

    colour: str
    marker: str
    dash: str | tuple[float, tuple[float, ...]]


def line_style(number: int) -> LineStyle:
    """The style of contender ``number``, from 0; the first 28 differ in colour or dashes."""
    colours = len(SERIES)
    return LineStyle(SERIES[number % colours], MARKERS[number % colours], DASHES[number // colours % len(DASHES)])


def variant_style(family: int, place: int) -> LineStyle:
    """The style of one of several variants of a contender: its colour and marker, and dashes of the variant's own."""
    style = line_style(family)
    dashes = DASHES[(family // len(SERIES) + place) % len(DASHES)]
    return LineStyle(style.colour, style.marker, dashes)
