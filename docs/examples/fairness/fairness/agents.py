"""The regret of each agent, drawn and printed."""

from __future__ import annotations

from typing import Any

import click
import pandas as pd

import coband
from coband.extending import Analysis


def frame(analysis: Analysis) -> pd.DataFrame:
    """Return the mean regret of each agent over replications."""
    return analysis.table("agents").groupby(["label", "agent"], as_index=False, sort=False)["regret"].mean()


def draw(axes: Any, frame: pd.DataFrame, styles: Any) -> None:
    """Draw a curve over the agents of each label."""
    for label, own in frame.groupby("label", sort=False):
        axes.plot(own["agent"], own["regret"], label=label, **styles[label])


PANEL = coband.Panel("fairness", "Regret of each agent", "Means over replications.", frame, draw)


@click.command()
@click.argument("run", metavar="RUN")
def fairness(run: str) -> None:
    """Print the regret of the best and the worst agent of RUN."""
    regret = coband.load(run).plot.frame("fairness").groupby("label")["regret"]
    click.echo(regret.agg(["min", "max"]).round(1).to_string())
