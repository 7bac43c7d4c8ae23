"""Figures on narrow screens: their panels below each other, as a second picture that refers to parts of the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from coband.simulator.analysis.report.drawing import POINTS

WIDTH = 330.0
"""Width of the picture in points, unless a panel is wider."""
GAP = 8.0
Move = tuple[float, float]


@dataclass(frozen=True)
class Part:
    """What moves as one: names of groups of the first picture, and its box there: left, top, right, bottom."""

    names: tuple[str, ...]
    box: tuple[float, float, float, float]
    borrowed: tuple[str, Move] | None = None


def mark(figure: Figure) -> None:
    """Give names to what moves by itself, before the figure is drawn, and let what is measured be in points."""
    figure.set_dpi(POINTS)
    for number, axis in enumerate(figure.axes):
        axis.set_gid(f"panel{number}")
        axis.yaxis.set_gid(f"rows{number}")
    for number, (handle, text) in enumerate(_entries(figure)):
        handle.set_gid(f"sign{number}")
        text.set_gid(f"word{number}")


def narrow(figure: Figure, name: str, title: str) -> tuple[str, list[Move]]:
    """The second picture of a figure that was marked and drawn, and by how much each panel has moved.

    Panels without names of rows get those of the first of their line. It is empty where all panels stand below each
    other already, or some have colour bars.

    Args:
        name: prefix of all ids of the first picture.
        title: description for readers who cannot see it.
    """
    if any(axis.get_label() == "<colorbar>" for axis in figure.axes):
        return "", []
    panels = list(_panels(figure))
    entries = [Part((f"sign{i}", f"word{i}"), _box(figure, pair)) for i, pair in enumerate(_entries(figure))]
    width = max([WIDTH, *(one.box[2] - one.box[0] for one in panels)])
    if max(one.box[2] for one in panels) - min(one.box[0] for one in panels) <= width + GAP:
        return "", []
    words, top = _flow(entries, width, 0.0)
    moves, height = _flow(panels, width, top)
    uses = []
    for part, move in zip([*entries, *panels], [*words, *moves], strict=True):
        uses += [_use(name, one, move) for one in part.names]
        if part.borrowed is not None:
            rows, (right, down) = part.borrowed
            uses.append(_use(name, rows, (move[0] + right, move[1] + down)))
    head = f'<svg class="narrow" viewBox="0 0 {width:.1f} {height:.1f}" role="img" aria-label="{escape(title)}">'
    return f"{head}{''.join(uses)}</svg>", moves


def _use(name: str, part: str, move: Move) -> str:
    return f'<use href="#{name}-{part}" x="{move[0]:.1f}" y="{move[1]:.1f}"/>'


def _flow(parts: Sequence[Part], width: float, top: float) -> tuple[list[Move], float]:
    """By how much parts move that are set in lines of a width, as words are; and where they end."""
    moves, left, bottom = list[Move](), 0.0, top
    for part in parts:
        across, down = part.box[2] - part.box[0], part.box[3] - part.box[1]
        if left and left + across > width:
            left, top = 0.0, bottom
        moves.append((left - part.box[0], top - part.box[1]))
        left, bottom = left + across + GAP, max(bottom, top + down + GAP)
    return moves, bottom


def _panels(figure: Figure) -> Iterator[Part]:
    """The panels; one without names of rows takes those of the first of its line."""
    named: tuple[int, Axes] | None = None
    for number, axis in enumerate(figure.axes):
        if not axis.axison:
            yield Part((), (0.0, 0.0, 0.0, 0.0))
            continue
        left, top, right, bottom = _box(figure, [axis])
        names = [text.get_text() for text in axis.get_yticklabels()]
        borrowed = None
        if any(names):
            named = number, axis
        elif names and named is not None and len(named[1].get_yticks()) == len(names):
            first = named[1].get_window_extent(), axis.get_window_extent()
            move = first[1].x0 - first[0].x0, first[0].y0 - first[1].y0
            borrowed = f"rows{named[0]}", move
            left = min(left, _box(figure, [named[1].yaxis])[0] + move[0])
        yield Part((f"panel{number}",), (left, top, right, bottom), borrowed)


def _entries(figure: Figure) -> Iterator[tuple[Artist, Artist]]:
    for legend in figure.legends:
        yield from zip((one for one in legend.legend_handles if one is not None), legend.get_texts(), strict=True)


def _box(figure: Figure, artists: Sequence[Artist]) -> tuple[float, float, float, float]:
    """The box around some artists in units of the picture, whose y grows downwards."""
    boxes = [found for one in artists if (found := one.get_tightbbox()) is not None]
    box, height = Bbox.union(boxes), float(figure.get_size_inches()[1]) * POINTS
    return box.x0, height - box.y1, box.x1, height - box.y0
