"""Memory of the factors of agents on a graph: an estimate beside each run, and a refusal of what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coband.agents.cooperation import Cooperative, Exact, Nystrom, hops_of
from coband.agents.knowledge import setting, setting_of
from coband.simulator.core.memory import NUMBER, Memory, RunSize
from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.posteriors.choose_multitask import GIB, factor_memory


def factor_memory_of(run: RunSize) -> float | None:
    """Numbers that the factors of agents take that accept all they can be told; of their own pulls without a graph."""
    config: Cooperative = run.config
    if "t" not in run.quantities or run.dimension is None:
        return None
    graph, hops = run.graph, 1
    groups: list[tuple[int, ...]] = [(agent,) for agent in range(run.agents)]
    if graph is not None:
        hops = hops_of(config.hops, graph.distances)
        groups = [graph.ball(agent, hops) for agent in range(run.agents)]
    known = setting(
        config,
        np.empty(1),  # a context has one coordinate at least
        dimension=run.dimension,
        agents=run.agents,
        members=groups[0],
        own=0,
        domain=run.fixed or None,
        horizon=run.quantities["t"],
    )
    if isinstance(config.posterior, Nystrom):
        dictionaries = [one for group in groups if (one := replace(known, members=group)).form == "nystrom"]
        return sum(float(min(config.posterior.size, one.rows())) ** 2 for one in dictionaries)
    return factor_memory(known, groups, run.share and (hops == 1 or not known.estimated))[0] * GIB / NUMBER


FACTORS = Memory(
    "the posteriors of what agents are told",
    factor_memory_of,
    "posterior: {kind: nystrom, size: 512}, fewer turns (schedule.turns), or a sparser graph",
)


def check_memory(context: NodeContext, groups: Sequence[tuple[int, ...]], hops: int) -> None:
    """Refuse exact factors that do not fit.

    Agents with the same group share a factor, but not where they estimate K_z from arms that reach them at different
    trials: then their kernels differ.

    Args:
        context: of any of the agents.
        groups: whose observations each agent accepts.
        hops: how far messages go.

    Raises:
        UnsupportedScenario: with the estimate.
    """
    config: Cooperative = context.config
    if context.horizon is None or not isinstance(config.posterior, Exact):
        return
    known = setting_of(context, groups[context.index])
    needed, sizes = factor_memory(known, groups, context.sharing.on and (hops == 1 or not known.estimated))
    if needed > config.posterior.memory:
        size = f"{needed:,.0f}" if needed >= 10 else f"{needed:.2g}"
        raise UnsupportedScenario(
            f"exact posteriors of {len(sizes)} groups of agents with up to {max(sizes):,} observations need about "
            f"{size} GiB, more than posterior.memory allows ({config.posterior.memory:g}); use posterior: "
            "{kind: nystrom, size: 512}, fewer turns, or a sparser graph"
        )
