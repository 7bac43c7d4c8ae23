"""A figure as inline SVG, with colours that are variables of the page and the reader's font; files of a package."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from importlib import resources

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from coband.simulator.analysis.report.palette import VARIABLES

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


def static(package: str, name: str) -> str:
    """Return a file of a package's folder ``static``, such as a style sheet."""
    return resources.files(package).joinpath("static", *name.split("/")).read_text(encoding="utf-8")
