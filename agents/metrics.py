"""Metrics that several algorithms report."""

from __future__ import annotations

from coband.simulator.metrics import Metric

SKIPPED_POINTS = Metric("skipped_points", "points", "points of dictionaries that add nothing to their span")

PURE_EXPLORATION = (
    Metric(
        "samples_per_agent",
        "pulls",
        "pulls of an average agent",
        better="lower",
        verb="needs the fewest samples",
    ),
    Metric("answer", "arm", "the arm that the agent declares the best", aggregate=None),
    Metric("samples", "pulls", "pulls of the agent", aggregate=None),
    Metric("phases", "phases", "batches that the agent has pulled", aggregate=None),
)
"""Of every algorithm that looks for the best arm."""
