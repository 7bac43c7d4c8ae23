"""The common style of all figures: fonts, sizes, legends, numbers at axes, colours, markers, and inline SVG.

Colours are distinguishable with colour blindness, and markers, dashes and hatches without colour. A colour means one
thing in all figures of a page: an algorithm (Okabe and Ito 2008), a kind of message, or a state of an agent.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from coband.simulator.analysis.report.embedding import static

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

FADED = 0.25
"""Share of the colour, in paper, of points about which the replications show neither."""
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
    **{
        mixed(colour, PAPER, FADED): f"color-mix(in srgb, var(--series-{number}) {100 * FADED:g}%, var(--paper))"
        for number, colour in enumerate(SERIES)
    },
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


SIZE = 9.0
"""Of the font, in points."""
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": SIZE,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "coband",
    "pdf.fonttype": 42,
    "lines.linewidth": 1.6,
}
WIDTH = 10.2
"""Width of a figure of the page, in inches."""
CHARACTER = 0.6
"""Width of an average character of the font, as a share of its size."""
HANDLE = 4.8
"""Width of the line or patch beside an entry of a legend and of the space between entries, in font sizes."""
LEGEND_LINE = 1.9
"""Height of a line of a legend, in font sizes."""
POINTS = 72
NARROW = 4
"""With more panels side by side there is room for few numbers at an axis."""
TITLES = 104
"""Number of characters of the titles side by side."""


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style of all figures within a ``with`` block."""
    with mpl.rc_context(STYLE):
        yield


def legend_columns(labels: Sequence[str], width: float = WIDTH, size: float = SIZE) -> int:
    """Number of columns of a legend that fit side by side.

    Args:
        width: width of the figure, in inches.
        size: size of the font, in points.
    """
    longest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    entry = size * (CHARACTER * longest + HANDLE) / POINTS
    return max(1, min(len(labels), int(width / entry)))


def legend_height(labels: Sequence[str]) -> float:
    """Height of a legend above the panels, in inches."""
    lines = -(-len(labels) // legend_columns(labels))
    return LEGEND_LINE * SIZE / POINTS * lines + 0.1


def add_legend(drawn: Figure, handles: Sequence[Artist]) -> None:
    """Draw a legend above the panels, with as many columns as fit."""
    if handles:
        labels = [str(one.get_label()) for one in handles]
        drawn.legend(handles=list(handles), loc="outside upper left", ncols=legend_columns(labels), handlelength=2.6)


def balanced(count: int, most: int) -> int:
    """Number of columns, at most ``most``, with which the lines of ``count`` panels are about equally full."""
    lines = -(-count // most)
    return -(-count // max(1, lines))


def columns_for(titles: Sequence[str], most: int) -> int:
    """Number of columns, at most ``most``, of panels that have room for the longest word of their titles."""
    longest = max((len(word) for title in titles for word in title.split()), default=0)
    return balanced(len(titles), max(1, min(most, TITLES // (longest + 1))))


def few_ticks(axis: Axes) -> None:
    """At most four numbers at the horizontal axis of a narrow panel."""
    log = axis.get_xscale() == "log"
    axis.xaxis.set_major_locator(LogLocator(numticks=4) if log else MaxNLocator(3))


def wrapped(label: str, width: int) -> str:
    """A label in lines of at most ``width`` characters, cut nowhere."""
    return "\n".join(textwrap.wrap(label, width, break_long_words=False, break_on_hyphens=False)) or label


def tick(value: float, position: int | None = None) -> str:
    """A number at an axis: 0.25, 40, 1.5k, 2M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{suffix}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def plain(axis: Axes, title: str = "", across: str = "", up: str = "") -> None:
    """Name a pair of axes; they get a grid, and numbers as :func:`tick` writes them."""
    axis.set(title=title, xlabel=across, ylabel=up)
    axis.grid(visible=True)
    axis.xaxis.set_major_formatter(FuncFormatter(tick))
    axis.yaxis.set_major_formatter(FuncFormatter(tick))


def figure(height: float) -> Figure:
    """An empty figure of the common width; ``height`` in inches."""
    return Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06, hspace=0.05))


_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r' (?:width|height)="[\d.]+pt"')
_NAMES = re.compile(r'(\bid="|url\(#|xlink:href="#)')
_NAMESPACES = re.compile(r' xmlns(?::\w+)?="[^"]*"| version="[^"]*"')
_FONT = re.compile(r"font: ((?:\w+ )?)([\d.]+)px 'DejaVu Sans'[^;\"]*")
_FAMILY = re.compile(r"font-family: 'DejaVu Sans'[^;\"]*")
_LINE_ENDS = re.compile(r"\s*\n\s*")
_PATHS = re.compile(r' d="([^"]*)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_LINES = re.compile(r"(?<=\d) L ")
_OTHERS = re.compile(r"\s*--(?!paper|ink|muted|rule|series|sans)[\w-]+: [^;]*;")


def inline(figure: Figure, name: str, title: str) -> str:
    """A figure as an ``svg`` element.

    Args:
        name: prefix of all ids, unique in the page.
        title: description for readers who cannot see it.
    """
    text = _METADATA.sub("", _PROLOGUE.sub("", svg(figure)))
    head, _, body = text.partition(">")
    head = _SIZE.sub("", _NAMESPACES.sub("", head))
    body = _NAMES.sub(rf"\g<1>{name}-", body).replace("xlink:href", "href")
    body = _FAMILY.sub("font-family: var(--sans)", _FONT.sub(r"font: \1\2px var(--sans)", body))
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, variable)
    body = _PATHS.sub(_short, _LINE_ENDS.sub("\n", body))
    return f'{head} role="img" aria-label="{escape(title)}">{body}'


def colours() -> str:
    """What a figure in a file of its own needs of the style sheet: colours, light and dark, and a font."""
    sheet = static("coband.simulator.analysis.report", "report.css")
    return _OTHERS.sub("", sheet[: sheet.index("* {")]) + "svg { background: var(--paper); }"


def _short(path: re.Match[str]) -> str:
    """A path with places to a tenth of a point, which no screen shows, and without what SVG lets one leave out."""
    places = _NUMBER.sub(lambda one: f"{float(one[0]):.1f}".removesuffix(".0"), path[1].strip().replace("\n", " "))
    return f' d="{_LINES.sub(" ", places).replace(" -", "-")}"'


def svg(figure: Figure) -> str:
    """A figure as an SVG document without a date; equal figures give equal text.

    Its panels are placed here, once and for all: to place them, savefig would draw everything twice.
    """
    buffer, canvas, layout = io.StringIO(), figure.canvas, figure.get_layout_engine()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # readers' own fonts draw the text
        if layout is not None:
            FigureCanvasSVG(figure)  # what measures its texts
            layout.execute(figure)
            with mpl.rc_context({"figure.constrained_layout.use": False}):
                figure.set_layout_engine(None)
            figure.set_canvas(canvas)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
