"""The panel `messages`: the diagram of the page, and a picture of the first messages for paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from coband import Panel
from coband.extending import Analysis, address_name, draw, static, style
from coband.extensions.diagram.packing import embedded

PACKAGE = "coband.extensions.diagram"
SCRIPTS = ("events", "view", "drawing", "messages", "words", "controls")
"""The parts of the script, which share the names of one function."""
MOST = 60
"""Sends of the first replication in the picture."""
MOST_COPIES = 200
MAX_NAMES = 12
"""Nodes that are named in the picture."""


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


def draw_messages(axis: Axes, frame: pd.DataFrame, styles: style.Styles) -> None:
    """A line per copy of a message, from its sender to its receiver; copies that are lost end half-way."""
    names = sorted({*frame["node"], *frame["receiver"]}, key=lambda one: (one != "server", len(one), one))
    for kind, own in draw.groups(frame, "kind"):
        rows = draw.items(own)
        lines = [((one.time, names.index(one.node)), (one.arrived, names.index(one.receiver))) for one in rows]
        axis.add_collection(LineCollection(lines, colors=styles.filling(kind)["facecolor"], linewidths=0.8, label=kind))
    axis.autoscale_view()
    every = -(-len(names) // MAX_NAMES)
    axis.set_yticks(range(0, len(names), every), names[::every])
    axis.invert_yaxis()
    axis.set_xlabel("simulated time")


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
    draw_messages,
    each="label",
    html=html,
)
