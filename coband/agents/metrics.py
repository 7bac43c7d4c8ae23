"""Metrics that several algorithms report."""

from __future__ import annotations

from coband.simulator.metrics import Metric

SKIPPED_POINTS = Metric("skipped_points", "points", "points of dictionaries that add nothing to their span")

PURE_EXPLORATION = (
    Metric("samples_per_agent", "pulls", "pulls of an average agent", better="lower", verb="needs the fewest samples"),
    Metric("answer", "arm", "the arm that the agent declares the best", aggregate=None),
    Metric("samples", "pulls", "pulls of the agent", aggregate=None),
    Metric("phases", "phases", "batches that the agent has pulled", aggregate=None),
)

DIFFICULTY = (
    Metric(
        "hardness", "samples", "rho*(xi) of Du et al. 2023: the smallest largest variance of a difference over its gap"
    ),
    Metric("effective_dimension", "dimensions", "effective dimension d_eff of the task-arm pairs (Du et al. 2023)"),
    Metric("task_rank", "tasks", "rank of K_Z, the kernel matrix of tasks"),
)
"""Of CoKernelFC and CoKernelFB: how hard the instance is; known after a run only, from the hidden means."""
