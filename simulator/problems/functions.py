"""A Python function as the mean reward of one's own arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.plugins.functions import importable_name
from coband.simulator.problems.array_files import Arrays, arms_of
from coband.simulator.problems.contextual import ContextualProblem


def rewards_of(function: Callable[..., Any], arms: Any, agents: int | None) -> Arrays:
    """Arms with the values of a function, which is called here and now and never again.

    Args:
        function: of the arms of a turn (n, d), and of the agent's number where there are tasks; gives (n,).
        arms: (M, d), or (T, K, d) for logged turns.
        agents: how many tasks there are; None for one.

    Raises:
        ValueError: the arms or the values cannot be used; the text says what is wrong.
    """
    if not callable(function):
        raise ValueError(f"f must be a function of an array of arms, not this {type(function).__name__}.")
    features = arms_of(arms)
    if agents is not None and (agents < 1 or features.ndim != 2):
        raise ValueError(f"agents(={agents}) must be at least 1, and goes with arms of shape (M, d).")
    if features.ndim == 4:
        raise ValueError("arms must be (M, d) or (T, K, d); from_arrays takes turns of each agent, with their rewards.")
    if agents is not None:
        return Arrays.of(features, [_values(function, features, agent) for agent in range(agents)])
    if features.ndim == 2:
        return Arrays.of(features, _values(function, features))
    return Arrays.of(features, [_values(function, turn) for turn in features])


def _values(function: Callable[..., Any], arms: FloatArray, *agent: int) -> FloatArray:
    """f of the arms of a turn, (n,).

    Raises:
        ValueError: it fails, gives another shape, or other values at a second call.
    """
    values = _called(function, arms, *agent)
    by_row = values.shape == (len(arms),)
    if by_row and arms.shape[0] == arms.shape[1]:  # it may be that each column has a value
        by_row = _called(function, arms[:1], *agent).shape == (1,)
    if not by_row:
        raise ValueError(
            f"f gave shape {values.shape} for arms of shape {arms.shape}, but must give {(len(arms),)}, a mean reward "
            "for each row; of a function g of a single arm make lambda arms: [g(arm) for arm in arms]."
        )
    if not np.array_equal(values, _called(function, arms, *agent), equal_nan=True):
        raise ValueError("f gave other values when it was called again: it must give mean rewards; noise= adds noise.")
    return values


def _called(function: Callable[..., Any], arms: FloatArray, *agent: int) -> FloatArray:
    try:
        return np.asarray(function(arms.copy(), *agent), dtype=np.float64)
    except Exception as error:  # whatever the user's function raises
        given = f"an array of shape {arms.shape}, an arm per row{f', and agent {agent[0]}' if agent else ''}"
        raise ValueError(f"f raised {type(error).__name__} for {given}: {error}") from error


def contextual_of(
    function: Callable[..., Any],
    arms: Mapping[str, Any],
    *,
    agents: int | None,
    count: int | None,
    scale: str | None,
    **options: Any,
) -> ContextualProblem:
    """Fresh arms at every turn, with a function that worker processes import.

    Raises:
        ValueError: they cannot.
    """
    if any(one is not None for one in (agents, count, scale)):
        raise ValueError("agents, count and scale go with an array of arms; a section of arms says its own.")
    reward = {"kind": "python", "function": importable_name(function)}
    return ContextualProblem.model_validate({"kind": "contextual", "arms": dict(arms), "reward": reward, **options})
