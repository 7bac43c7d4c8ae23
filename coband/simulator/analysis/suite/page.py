"""The page of a suite: one HTML file that loads nothing, with a table of all scores and a section for each scenario."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from coband.simulator.analysis.report.embedding import static, templates
from coband.simulator.analysis.suite.scores import Row, present, table
from coband.simulator.analysis.suite.submission import Submission
from coband.simulator.analysis.suite.suites import CENTRAL, REFERENCES, Suite
from coband.simulator.experiments.statistics.numerals import number

LOW, HIGH = -0.5, 1.5
"""The scores that pictures show; bars draw at their edge what lies beyond."""
WIDTH, HEIGHT = 640, 320
"""The picture of scores and bits, in its own units."""
LEFT = 46
LETTER = 6.2
"""The place of the axis of scores, and the width of a letter of a name."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Section:
    """A scenario on the page."""

    name: str
    header: Markup
    metric: str
    rows: list[Row]
    picture: Markup


def page(suite: Suite, submissions: Sequence[Submission]) -> str:
    """The text of the page; the same results give the same text."""
    known = {"number": number, "bar": bar, "broken": broken}
    sections = [_section(suite, name, submissions) for name in present(suite, submissions)]
    names = [row.name for section in sections for row in section.rows if row.name not in REFERENCES]
    downloads = [
        (f"{suite.name}-{n}.json", base64.b64encode(one.model_dump_json(indent=1).encode()).decode())
        for n, one in enumerate(submissions, start=1)
    ]
    return (
        templates("coband.simulator.analysis.suite", **known)
        .get_template("suite.html.jinja")
        .render(
            suite=suite,
            submissions=submissions,
            budget=suite.definition.sizes[submissions[0].size],
            sections=sections,
            overview=list(_overview(sections, list(dict.fromkeys(names)))),
            downloads=downloads,
            css=Markup(static("coband.simulator.analysis.report", "report.css")),
            script=Markup(static("coband.simulator.analysis.report", "wide.js")),
        )
    )


def _section(suite: Suite, name: str, submissions: Sequence[Submission]) -> Section:
    rows = table(suite, name, submissions)
    header = Markup(re.sub("`(.+?)`", r"<code>\1</code>", str(Markup.escape(suite.header(name)))))
    return Section(name, header, suite.world(name).metric.replace("_", " "), rows, picture(rows))


def _overview(sections: Sequence[Section], names: Sequence[str]) -> Iterator[tuple[str, list[Row | None]]]:
    """(name, its row in each scenario where it has a score or a place), by name, of everybody with one anywhere."""
    for name in sorted(names):
        rows = [
            next((row for row in one.rows if row.name == name and (row.score is not None or row.rank)), None)
            for one in sections
        ]
        if any(rows):
            yield name, rows


def broken(name: str) -> Markup:
    """A name that a narrow screen breaks after underscores."""
    return Markup("_<wbr>").join(name.split("_"))


def bar(row: Row) -> Markup:
    """An interval between two thin lines at 0 (Alone) and 1 (Central), as a picture within a cell."""
    if row.score is None:
        return Markup("")
    low, high = row.interval or (row.score, row.score)
    x0, x1, x = (100 * (_held(at) - LOW) / (HIGH - LOW) for at in (low, high, row.score))
    marks = "".join(f'<line class="tick" x1="{at}" y1="0" x2="{at}" y2="12"/>' for at in (25, 75))
    return Markup(
        f'<svg class="bar" viewBox="0 0 100 12" role="img" aria-label="{row.score_text}">{marks}'
        f'<line class="interval" x1="{x0:.1f}" y1="6" x2="{x1:.1f}" y2="6"/><circle cx="{x:.1f}" cy="6" r="2.6"/></svg>'
    )


def _held(value: float) -> float:
    return min(max(value, LOW), HIGH)


def picture(rows: Sequence[Row]) -> Markup:
    """Scores against bits on a logarithmic scale, without those out of its range; empty where none is left."""
    shown = [
        row
        for row in rows
        if row.score is not None and _held(row.score) == row.score and row.means["bits"] > 0 and row.name != CENTRAL
    ]
    if not shown:
        return Markup("")
    logs = [math.log10(row.means["bits"]) for row in shown]
    low, high = math.floor(min(logs)), max(math.ceil(max(logs)), math.floor(min(logs)) + 1)
    points = [(_x(log, low, high), _y(row.score or 0.0)) for row, log in zip(shown, logs, strict=True)]
    parts, taken = [*_grid(low, high)], [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    for line in (_y(0), _y(1)):
        taken += [(LEFT, line - 14, LEFT + 10 * LETTER, line), (LEFT, line - 1, WIDTH, line + 1)]
    for row, (x, y) in zip(shown, points, strict=True):
        ends = [_y(_held(one)) for one in row.interval or ()]
        if ends:
            parts.append(f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>')
        parts.append(f'<circle class="{"front" if row.pareto else ""}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        at = _free(x, y, LETTER * len(row.name), taken)
        taken.append(at)
        parts.append(f'<text x="{at[0]:.1f}" y="{at[3] - 3:.1f}">{Markup.escape(row.name)}</text>')
    head = f'<svg class="scores" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="scores against bits">'
    return Markup(f"{head}{''.join(parts)}</svg>")


def _free(x: float, y: float, width: float, taken: Sequence[Box]) -> Box:
    """Where a name goes: as near to its point as there is room, to its right or left, above the axis."""
    sides = [left for left in (x + 7, x - 7 - width) if left >= LEFT and left + width <= WIDTH] or [LEFT]
    steps = sorted(range(-HEIGHT // 4, HEIGHT // 4), key=abs)
    places = [(left, y - 6 + 4 * step, left + width, y + 6 + 4 * step) for step in steps for left in sides]
    inside = [one for one in places if one[1] >= 0 and one[3] <= _y(LOW)]
    return next((one for one in inside if not any(_overlap(one, other) for other in taken)), inside[0])


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _x(log: float, low: int, high: int) -> float:
    return LEFT + (WIDTH - 20 - LEFT) * (log - low) / (high - low)


def _y(value: float) -> float:
    return 10 + (HEIGHT - 50) * (HIGH - value) / (HIGH - LOW)


def _grid(low: int, high: int) -> Iterator[str]:
    """Lines at scores 0 and 1, ticks at powers of ten, and the names of the axes."""
    for value, name in ((0, "0 Alone"), (1, "1 Central")):
        yield f'<line class="tick" x1="{LEFT}" x2="{WIDTH - 20}" y1="{_y(value):.1f}" y2="{_y(value):.1f}"/>'
        yield f'<text class="muted" x="{LEFT + 2}" y="{_y(value) - 3:.1f}">{name}</text>'
    for power in range(low, high + 1):
        x = _x(power, low, high)
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - 40}" y2="{HEIGHT - 34}"/>'
        yield f'<text class="muted" x="{x:.1f}" y="{HEIGHT - 22}" text-anchor="middle">'
        yield f'10<tspan dy="-5">{power}</tspan></text>'
    yield f'<text class="muted" x="{WIDTH / 2}" y="{HEIGHT - 5}" text-anchor="middle">bits sent (logarithmic)</text>'
    yield f'<text class="muted" transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">score</text>'
