"""Panels of runs with adversaries or privacy: who attacked when, what was spent of epsilon, and bits by what they hold.

A lie is a message whose trace says what an adversary did to it. The lies of the first replication that has any are
drawn; means are over all replications.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import Contender
from coband.simulator.analysis.comparison.flows import ARROWS, DIRECTIONS
from coband.simulator.analysis.report import draw
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.style import Styles, rows
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.store.store import StoredJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 24
"""Lying agents in the drawing, the first ones."""
SHARES = {"epsilon_25": 25, "epsilon_50": 50, "epsilon_75": 75, "epsilon": 100}
"""Number of an agent -> percent of the time by which it was spent."""


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


def _lies(analysis: Analysis) -> pd.DataFrame:
    """The lies of the first replication of each label that has any."""
    first = {one.label: next(filter(None, map(lies, one.jobs)), []) for one in analysis.contenders}
    return pd.DataFrame(
        {"label": label, "agent": lie.agent, "time": lie.time, "behaviour": lie.behaviour.replace("_", " ")}
        for label, told in first.items()
        for lie in told
    )


def _draw_lies(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """A tick for each lie, in the row of its agent and the colour of what it does."""
    agents = list(dict.fromkeys(sorted(zip(frame["label"], frame["agent"], strict=True))))[:MOST]
    behaviours = list(dict.fromkeys(frame["behaviour"]))
    for row, (label, agent) in enumerate(agents):
        own = frame[(frame["label"] == label) & (frame["agent"] == agent)]
        for behaviour in behaviours:
            times = own["time"][own["behaviour"] == behaviour]
            colour = styles.filling(behaviour)["facecolor"]
            axis.vlines(times, row - 0.35, row + 0.35, colors=colour, linewidth=1.2, label=behaviour)
    axis.set(xlabel="simulated time", xlim=(0, None))
    rows(axis, [f"{label}, agent {agent}" for label, agent in agents])


def _dishonest(analysis: Analysis) -> pd.DataFrame:
    """A row per label and replication."""
    found = []
    for one in analysis.contenders:
        for job in one.jobs:
            record = one.records[job.replication]
            who = [str(agent["agent"]) for agent in record.get("agents", ()) if agent.get("dishonest")]
            if who:
                times = [lie.time for lie in lies(job)] or [np.nan]
                regret = record["honest_regret_per_agent"] if len(who) < len(record["agents"]) else np.nan
                row = {"label": one.label, "replication": job.replication, "dishonest": ", ".join(who)}
                row |= {"lies": int(np.isfinite(times).sum()), "first": times[0], "last": times[-1]}
                found.append(row | {"regret of an honest agent": regret})
    return pd.DataFrame(found)


def _epsilon(analysis: Analysis) -> pd.DataFrame:
    """What the agent that has spent most has spent by each quarter; no rows where nodes add the noise themselves, since
    only what they have spent in the end is known."""
    rows_ = []
    for one in analysis.contenders:
        agents = [record.get("agents", ()) for record in one.records.values()]
        private = [own for own in agents if own and all(agent.get(key) is not None for agent in own for key in SHARES)]
        for key, share in SHARES.items() if private else ():
            mean = float(np.mean([max(agent[key] for agent in own) for own in private]))
            rows_.append({"label": one.label, "percent": share, "mean": mean, "n": len(private)})
    return pd.DataFrame(rows_)


def _draw_epsilon(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    for label, own in frame.groupby("label", sort=False):
        axis.plot([0, *own["percent"]], [0.0, *own["mean"]], markersize=4, label=label, **styles[str(label)])
    axis.set(xlabel="percent of the simulated time", ylabel="ε spent", xlim=(0, None), ylim=(0, None))


def _privacy(analysis: Analysis) -> pd.DataFrame:
    """A row per label and replication of what is private, and what is sent without noise."""
    found = []
    for one in analysis.contenders:
        asked = (analysis.comparison.scenario_of(one).get("messages") or {}).get("privacy")
        for replication, record in sorted(one.records.items()):
            agents = [agent for agent in record.get("agents", ()) if agent.get("epsilon") is not None]
            if asked and agents:
                row = {"label": one.label, "replication": replication, "pulls clipped": record.get("clipped") or 0}
                bare = "; ".join(Registry.installed().unprotected(one.algorithm, asked)) or "nothing"
                found.append(row | {"sent without noise": bare})
    return pd.DataFrame(found)


def fields(contender: Contender) -> list[tuple[str, str, str, str, float, float]]:
    """Kind of message, direction, field, what it holds, and mean scalars and bits; empty for stores of before."""
    query = "SELECT kind, direction, field, meaning, scalars, bits FROM ledger_by_field WHERE job = ?"
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ledger_by_field'"
    totals: dict[tuple[str, str, str, str], tuple[float, float]] = {}
    for job in contender.jobs:
        for *key, scalars, bits in job.part.execute(query, (job.id,)) if job.part.execute(there).fetchone() else ():
            so_far = totals.get((*key,), (0.0, 0.0))
            totals[*key,] = so_far[0] + scalars / len(contender.jobs), so_far[1] + bits / len(contender.jobs)
    order = sorted(totals, key=lambda key: (DIRECTIONS.index(key[1]), key[0], key[2]))
    return [(*key, *totals[key]) for key in order if totals[key][0]]


def _bits(analysis: Analysis) -> pd.DataFrame:
    """Mean bits by kind, direction and field; nothing where messages are plain."""
    scenarios = [analysis.comparison.scenario_of(one) for one in analysis.contenders]
    if not any(one.get("messages") or one.get("adversaries") for one in scenarios):
        return pd.DataFrame()
    return pd.DataFrame(
        {"label": one.label, "kind": f"{kind}, {ARROWS[direction]}", "field": field, "part": holds, "mean": bits}
        for one in analysis.contenders
        for kind, direction, field, holds, _, bits in fields(one)
    )


LIES = Panel(
    "lies",
    "Who attacked when",
    "Each tick is a message that a dishonest agent changed, or kept back, in the first replication with any.",
    _lies,
    _draw_lies,
    rows=True,
    table=lambda frame: (
        frame.groupby([one for one in ("environment", "label", "agent", "behaviour") if one in frame])
        .size()
        .reset_index(name="lies")
    ),
    after="communication",
)
DISHONEST = Panel(
    "dishonest",
    "Dishonest agents",
    "Lies are messages that were changed or kept back, with their simulated times, where there is a trace.",
    _dishonest,
    after="lies",
)
EPSILON = Panel(
    "epsilon",
    "Privacy that was spent",
    "ε of the agent that has spent most; means over replications.",
    _epsilon,
    _draw_epsilon,
    after="communication",
)
PRIVACY = Panel(
    "privacy",
    "What is not private",
    "What the mechanism left without noise, and how many pulls it clipped.",
    _privacy,
    after="epsilon",
)
BITS = Panel(
    "bits",
    "Bits by what they hold",
    "Means of a replication, without headers.",
    _bits,
    lambda axis, frame, styles: draw.stack(axis, frame, styles, "bits"),
    rows=True,
    after="communication",
)
