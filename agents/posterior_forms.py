"""The form that an agent's posterior on several agents' tasks takes (paper 004, "Kernel Methods for Cooperative
Multi-Agent Contextual Bandits", equation 9), and whether the exact ones fit into memory."""

from __future__ import annotations

from collections.abc import Sequence

from coband.agents.cooperation import Cooperative, Exact, Mmd, WithTasks, network_kernel
from coband.simulator.core.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.kernels.library import Linear

PRIMAL_FEATURES = 256
"""Largest number of features of all tasks together; with more of them a linear kernel is computed task by task."""
GIB = 2.0**30


def is_primal(context: NodeContext, members: tuple[int, ...]) -> bool:
    """Whether a linear K_x with so many tasks has few enough features."""
    config: Cooperative = context.config
    return _is_linear(config) and _features(context, members) <= PRIMAL_FEATURES


def is_taskwise(context: NodeContext, members: tuple[int, ...]) -> bool:
    """Whether a linear K_x has too many tasks for that, in a product with K_z."""
    config: Cooperative = context.config
    if not _is_linear(config) or network_kernel(config) is None or _adds_up(config):
        return False
    if not isinstance(config.posterior, Exact):
        return False
    return _features(context, members) > PRIMAL_FEATURES


def _is_linear(config: Cooperative) -> bool:
    """Whether K is linear in the arm, whatever its place."""
    return isinstance(config.kernel, Linear) and config.arm_similarity == 1.0


def _adds_up(config: Cooperative) -> bool:
    return isinstance(config, WithTasks) and config.composition == "sum"


def _features(context: NodeContext, members: tuple[int, ...]) -> int:
    """An upper bound on the rank of a K that is linear in the arm."""
    config: Cooperative = context.config
    network, tasks = network_kernel(config), len(members)
    if network is None:
        tasks = 1
    elif isinstance(network, Linear) and context.network_context is not None:
        tasks = min(tasks, len(context.network_context) + 1)
    per_task = 1 if _adds_up(config) else context.dimension + 1
    return tasks * per_task + context.dimension


def repeats(context: NodeContext) -> bool:
    """Whether arms are so few and turns so many that counts of points do better than observations one by one.

    A new factor of M points per task at each of T turns costs T M^3, and one that grows with all T turns costs T^3.
    """
    if context.domain is None:
        return False
    return context.horizon is None or len(context.domain) ** 3 <= context.horizon**2


def check_memory(context: NodeContext, groups: Sequence[tuple[int, ...]], hops: int) -> None:
    """Refuse exact factors that do not fit.

    Agents with the same group share a factor, but not where they estimate K_z from arms that reach them at different
    trials: then their kernels differ.

    Args:
        setting: of any of the agents.
        groups: whose observations each agent accepts.
        hops: how far messages go.

    Raises:
        UnsupportedScenario: with the estimate.
    """
    config: Cooperative = context.config
    if context.horizon is None or not isinstance(config.posterior, Exact):
        return
    counted = repeats(context)
    estimates = isinstance(network_kernel(config), Mmd)
    alike = hops == 1 or not estimates
    factors = list(dict.fromkeys(groups)) if context.sharing.on and alike and not counted else list(groups)
    linear = {group for group in factors if is_primal(context, group) or is_taskwise(context, group)}
    sizes = [_size(context, group) for group in factors if group not in linear]
    # A growing factor is a triangle in a square, one begun anew fills it, and counts need the kernel matrix too.
    entry = 16.0 if counted else 8.0 if estimates else 4.0
    needed = sum(entry * size**2 for size in sizes) / GIB
    if needed > config.posterior.memory:
        size = f"{needed:,.0f}" if needed >= 10 else f"{needed:.2g}"
        raise UnsupportedScenario(
            f"exact posteriors of {len(sizes)} groups of agents with up to {max(sizes):,} observations need about "
            f"{size} GiB, more than posterior.memory allows ({config.posterior.memory:g}); use posterior: "
            "{kind: nystrom, size: 256}, fewer turns, or a sparser graph"
        )


def _size(context: NodeContext, group: tuple[int, ...]) -> int:
    """Rows of the factor of a group: its observations, or the different points among them where those are counted."""
    assert context.horizon is not None
    observations = len(group) * context.horizon
    if context.domain is None or not repeats(context):
        return observations
    tasks = 1 if network_kernel(context.config) is None else len(group)
    return min(observations, tasks * len(context.domain))
