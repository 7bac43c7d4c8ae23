"""The common style of all figures: fonts, sizes, legends, numbers at axes, and inline SVG."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from coband.simulator.analysis.report.embedding import static
from coband.simulator.analysis.report.palette import INK, MUTED, RULE, VARIABLES

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
