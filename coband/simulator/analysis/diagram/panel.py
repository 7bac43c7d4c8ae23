"""The panel `messages`: the diagram of the page, and a picture of the first messages for paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.diagram.packing import embedded
from coband.simulator.analysis.report import draw
from coband.simulator.analysis.report.embedding import static
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.traces.reading import address_name

PACKAGE = "coband.simulator.analysis.diagram"
SCRIPTS = ("events", "view", "drawing", "messages", "words", "controls")
"""The parts of the script, which share the names of one function."""
MOST = 60
"""Sends of the first replication in the picture."""
MOST_COPIES = 200


def _messages(analysis: Analysis) -> pd.DataFrame:
    """The copies of the first messages of the first replication of every label."""
    rows: list[dict[str, object]] = []
    for timing in analysis.timings:
        events = timing.first
        send, sends = events.code("send"), set(events.where("send")[:MOST].tolist())
        own: list[dict[str, object]] = []
        for index in events.where("deliver", "drop").tolist():
            cause = int(events["cause"][index])
            if cause not in sends or events["event"][cause] != send:
                continue
            lost = events["event"][index] == events.code("drop")
            ends = (int(events["node"][cause]), int(events["peer" if lost else "node"][index]))
            node, receiver = (address_name(one) for one in ends)
            row: dict[str, object] = {"label": timing.contender.label, "node": node, "receiver": receiver}
            times = {"time": float(events["time"][cause]), "arrived": float(events["time"][index])}
            own.append(row | times | {"kind": events.names[events["kind"][cause]], "lost": lost, "event": index})
        rows += own[:MOST_COPIES]
    return pd.DataFrame(rows)


def html(analysis: Analysis, replications: Sequence[int]) -> str:
    """The diagram, with the events of the jobs that have room in the page."""
    jobs, absent = embedded(analysis, replications)
    wanted = next((order for order, job in enumerate(jobs) if job.replication in replications), 0)
    options = [
        f'<option value="{order}"{" selected" * (order == wanted)}>{escape(job.title)}, replication {job.replication}'
        "</option>"
        for order, job in enumerate(jobs)
    ]
    options += [
        f"<option disabled>{escape(title)}, replication {number} (not in this page)</option>"
        for title, number in absent
    ]
    room = (
        f"The page holds {len(jobs)} of {len(jobs) + len(absent)} jobs; <code>coband report RUN --replication R</code> "
        "puts others into it."
    )
    data = "\n".join(
        f'<script type="application/json" class="diagram-data" data-label="{escape(job.key)}">{job.data}</script>'
        for job in jobs
    )
    parts = "\n".join(static(PACKAGE, f"{name}.js") for name in SCRIPTS)
    text = static(PACKAGE, "diagram.html").replace("OPTIONS", "".join(options)).replace("DATA", data)
    text = text.replace("ROOM", room if absent else "All jobs with a trace are in the page.")
    style = f"<style>\n{static(PACKAGE, 'diagram.css')}</style>"
    return f'{style}\n{text}\n<script>\n"use strict";\n(() => {{\n{parts}}})();\n</script>'


MESSAGES = Panel(
    "messages",
    "Messages in space and time",
    "A row per node, simulated time to the right, a line per copy of a message; where lines would cover each other, "
    "shades show how many each node sends and receives.",
    _messages,
    draw.messages,
    each="label",
    html=html,
)
