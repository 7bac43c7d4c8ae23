"""The figure of a run with adversaries or privacy: who lied when, epsilon spent, and bits by what they hold.

A lie is a message whose trace says what an adversary did to it. The lies of the first replication that has any are
drawn; means of the others are over all replications.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.report.drawing import figure, plain
from coband.simulator.analysis.report.palette import MUTED, PAPER, SERIES
from coband.simulator.analysis.report.rows import LONG_LABEL, label_rows
from coband.simulator.analysis.report.times import fields
from coband.simulator.experiments.store.store import StoredJob


@dataclass(frozen=True)
class Lie:
    """One message that was changed."""

    time: float
    agent: int
    behaviour: str


def lies(job: StoredJob) -> list[Lie]:
    """The lies of a job, in order; none without a trace."""
    query = "SELECT time, node, detail FROM events WHERE job = ? AND detail LIKE '%\"adversary\"%' ORDER BY seq"
    found = []
    for time, node, detail in job.part.execute(query, (job.id,)) if job.trace != "off" else ():
        done = json.loads(detail).get("wire", {})
        if "adversary" in done:
            found.append(Lie(float(time), int(node), str(done["adversary"])))
    return found


def first_lies(contender: Contender) -> list[Lie]:
    """The lies of the first replication that has any."""
    return next((found for job in contender.jobs if (found := lies(job))), [])


MOST = 24
"""Rows of lying agents; the first ones are drawn."""
SHARES = {"epsilon_25": 25, "epsilon_50": 50, "epsilon_75": 75, "epsilon": 100}
"""Number of an agent -> percent of the time by which it was spent."""


def adversity_figure(analysis: Analysis) -> Figure | None:
    """The panels for which there are data; None for a run in which all are honest and nothing is private."""
    told = {one.label: found for one in analysis.contenders if (found := first_lies(one))}
    spent = {one.label: own for one in analysis.contenders if (own := _spent(one))}
    if not told and not spent:
        return None
    panels: list[Callable[[Axes], Sequence[Artist]]] = []
    rows = [(label, agent) for label, found in told.items() for agent in sorted({lie.agent for lie in found})][:MOST]
    if rows:
        panels.append(partial(_draw_lies, told=told, rows=rows))
    if spent:
        looks = dict(zip(analysis.labels, (style.colour for style in analysis.styles), strict=True))
        panels.append(partial(_draw_spent, spent=spent, colours=looks))
    panels.append(partial(_draw_bits, bits={one.label: _bits(one) for one in analysis.contenders}))
    drawn = figure(2.2 + 0.2 * max(len(rows), len(analysis.labels)))
    for place, draw in enumerate(panels):
        axis = drawn.add_subplot(1, len(panels), place + 1)
        handles = draw(axis)
        axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, -0.22), ncols=2, fontsize=8)
    return drawn


def _draw_lies(axis: Axes, told: Mapping[str, Sequence[Lie]], rows: Sequence[tuple[str, int]]) -> Sequence[Artist]:
    """A tick for each lie, in the row of its agent and the colour of what it does."""
    behaviours = list(dict.fromkeys(lie.behaviour for found in told.values() for lie in found))
    colours = dict(zip(behaviours, [*SERIES, *[MUTED] * len(behaviours)], strict=False))
    several = len(told) > 1
    label_rows(axis, [f"{label[:LONG_LABEL]}, agent {agent}" if several else f"agent {agent}" for label, agent in rows])
    for row, (label, agent) in enumerate(rows):
        for behaviour, colour in colours.items():
            times = [lie.time for lie in told[label] if lie.agent == agent and lie.behaviour == behaviour]
            axis.eventplot([times], lineoffsets=[row], linelengths=0.7, linewidths=1.2, colors=[colour])
    axis.set_title("who lied when")
    axis.set_xlabel("simulated time")
    return [Patch(label=behaviour.replace("_", " "), facecolor=colour) for behaviour, colour in colours.items()]


def _spent(contender: Contender) -> list[float]:
    """Mean over replications of what the agent has spent by each quarter that has spent most.

    Empty without privacy, and where nodes are private by themselves: of them the end alone is known.
    """
    agents = [record.get("agents", ()) for record in contender.records.values()]
    private = [own for own in agents if own and all(agent.get(key) is not None for agent in own for key in SHARES)]
    return [float(np.mean([max(agent[key] for agent in own) for own in private])) for key in SHARES] if private else []


def _draw_spent(axis: Axes, spent: Mapping[str, Sequence[float]], colours: Mapping[str, str]) -> Sequence[Artist]:
    x = np.array([0, *SHARES.values()], dtype=np.float64)
    for label, values in spent.items():
        y = np.array([0.0, *values])
        axis.plot(x, y, color=colours[label], marker="o", markersize=4)
    axis.set_ylim(bottom=0.0)
    axis.set_xlim(left=0.0)
    plain(axis, "ε spent", "percent of the simulated time")
    return [Line2D([], [], label=label, color=colours[label], marker="o", markersize=4) for label in spent]


def _bits(contender: Contender) -> dict[str, float]:
    """Mean bits by what fields hold."""
    found: dict[str, float] = defaultdict(float)
    for *_, meaning, _, bits in fields(contender):
        found[meaning] += bits
    return found


def _draw_bits(axis: Axes, bits: Mapping[str, Mapping[str, float]]) -> Sequence[Artist]:
    """Stacked bars; what is met after the colours are used up is grey."""
    meanings = sorted({meaning for found in bits.values() for meaning in found})
    colours = dict(zip(meanings, [*SERIES, *[MUTED] * len(meanings)], strict=False))
    label_rows(axis, [label[:LONG_LABEL] for label in bits])
    left = np.zeros(len(bits))
    for meaning in meanings:
        widths = np.array([found.get(meaning, 0.0) for found in bits.values()])
        axis.barh(
            range(len(bits)), widths, left=left, height=0.62, facecolor=colours[meaning], edgecolor=PAPER, linewidth=0.5
        )
        left += widths
    axis.set_title("bits by what they hold")
    axis.set_xlabel("bits")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(3))
    return [Patch(label=meaning, facecolor=colours[meaning]) for meaning in meanings]
