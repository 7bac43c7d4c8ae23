"""The report as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.embedding import static, templates
from coband.simulator.analysis.report.sections import Sheet, sections
from coband.simulator.experiments.safe_text import visible
from coband.simulator.experiments.statistics.numerals import number

PACKAGE = "coband.simulator.analysis.report"
DIAGRAM = ("events", "view", "drawing", "messages", "words", "controls")
"""The parts of the diagram's script, which share the names of one function."""
SINGLE = (
    "There is one replication of each algorithm, so there are no intervals and no bands: differences may be chance."
)
MAX_VALUES = 4
"""Largest number of values of a fact that differs between environments."""


def page(analysis: Analysis, replications: Sequence[int] = ()) -> str:
    """The report as the text of an HTML file; the same runs give the same text.

    Args:
        replications: replications whose messages come into the page before those of others.
    """
    sheet, comparison = Sheet(analysis, templates(PACKAGE, number=number), replications), analysis.comparison
    text = sheet.templates.get_template("page.html.jinja").render(
        title=comparison.title,
        description=next((text for one in comparison.scenarios if (text := one.get("description"))), ""),
        facts=list(_facts(analysis)),
        remarks=[*comparison.remarks(), *([SINGLE] if sheet.single else [])],
        sections=list(sections(sheet)),
        css=Markup(static(PACKAGE, "report.css")),
        scripts=[Markup(static(PACKAGE, "wide.js")), Markup(_diagram())],
    )
    return visible(text) + "\n"


def _diagram() -> str:
    parts = "\n".join(static(PACKAGE, f"diagram/{name}.js") for name in DIAGRAM)
    return f'"use strict";\n(() => {{\n{parts}}})();'


def _facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Names and values of what the study is about; keys of the grid with all their values."""
    entries, counts = analysis.shared.entries, sorted(set(analysis.replications))
    yield "algorithms" if len(entries) > 1 else "algorithm", str(len(entries))
    if analysis.swept:
        yield "variants", number(len(analysis.labels))
        yield "environments", number(len(analysis.within))
    yield "replications of each", " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    scenarios = [analysis.comparison.scenario_of(one) for one in analysis.contenders]
    for key, title in (("agents", "agents"), ("schedule", "schedule"), ("problem", "problem"), ("network", "network")):
        words = list(dict.fromkeys(word for one in scenarios if (word := _fact(key, one.get(key)))))
        if len(words) == 1 or (analysis.swept and 1 < len(words) <= MAX_VALUES):
            yield title, " or ".join(words)


def _fact(key: str, section: Any) -> str:
    if not isinstance(section, dict):
        return ""
    if key == "agents":
        return number(section.get("count"))
    if key == "network":
        topology = section.get("topology")
        kind = topology.get("kind") if isinstance(topology, dict) else topology
        return str(kind).replace("_", " ") if kind else ""
    kind = str(section.get("kind", "")).replace("_", " ")
    turns = section.get("turns")
    return f"{kind}, {number(turns)} turns" if turns else kind
