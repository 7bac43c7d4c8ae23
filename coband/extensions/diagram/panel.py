"""The panel `messages`: the diagram of the page, and a picture of the first messages for paper."""

from __future__ import annotations

from html import escape

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from coband import Panel
from coband.extending import Analysis, address_name, draw, palette, static, style
from coband.extensions.diagram.packing import embedded

PACKAGE = "coband.extensions.diagram"
MOST = 60
"""Sends of the first replication in the picture."""
MOST_COPIES = 200
MAX_NAMES = 12
"""Nodes that are named in the picture."""


def _messages(analysis: Analysis) -> pd.DataFrame:
    """Return the copies of the first messages of the first replication of every label."""
    rows: list[dict[str, object]] = []
    for timing in analysis.timings:
        events = timing.first
        sends = set(events.where("send")[:MOST].tolist())
        copies = [index for index in events.where("deliver", "drop").tolist() if events["cause"][index] in sends]
        for index in copies[:MOST_COPIES]:
            cause, lost = int(events["cause"][index]), events["event"][index] == events.code("drop")
            ends = (int(events["node"][cause]), int(events["peer" if lost else "node"][index]))
            node, receiver = (address_name(one) for one in ends)
            row: dict[str, object] = {"label": timing.contender.label, "node": node, "receiver": receiver}
            times = {"time": float(events["time"][cause]), "arrived": float(events["time"][index])}
            rows.append(row | times | {"kind": events.names[events["kind"][cause]], "lost": lost, "event": index})
    return pd.DataFrame(rows)


def draw_messages(axis: Axes, frame: pd.DataFrame, styles: style.Styles) -> None:
    """Draw a line per copy of a message, from its sender to its receiver."""
    names = sorted({*frame["node"], *frame["receiver"]}, key=lambda one: (one != "server", len(one), one))
    for number, (kind, own) in enumerate(draw.groups(frame, "kind")):
        copies = draw.items(own)
        lines = [((one.time, names.index(one.node)), (one.arrived, names.index(one.receiver))) for one in copies]
        look = {"colors": styles.filling(kind)["facecolor"], "linestyles": palette.DASHES[number % len(palette.DASHES)]}
        axis.add_collection(LineCollection(lines, linewidths=0.8, label=kind, **look))
    axis.autoscale_view()
    every = -(-len(names) // MAX_NAMES)
    axis.set_yticks(range(0, len(names), every), names[::every])
    axis.invert_yaxis()
    axis.set_xlabel("simulated time")


def html(analysis: Analysis) -> str:
    """Return the diagram, with the events of the jobs that have room in the page."""
    jobs, absent = embedded(analysis)
    options = [
        f'<option value="{place}">{escape(label)}, replication {number}</option>'
        for place, (label, number) in enumerate(jobs)
    ]
    options += [f"<option disabled>{escape(key[0])}, replication {key[1]} (left out)</option>" for key in absent]
    data = "\n".join(f'<script type="application/json" class="diagram-data">{data}</script>' for data in jobs.values())
    numbers = {"held": len(jobs), "all": len(jobs) + len(absent)}
    text = static(PACKAGE, "diagram.html").format(**numbers, options="".join(options), data=data)
    style, script = static(PACKAGE, "diagram.css"), static(PACKAGE, "diagram.js")
    return f'<style>\n{style}</style>\n{text}\n<script type="module">\n{script}</script>'


MESSAGES = Panel(
    "messages",
    "Messages in space and time",
    "A lane per node, simulated time to the right, a line per copy of a message.",
    _messages,
    draw_messages,
    each="label",
    html=html,
)
