"""What coband had once, and what serves instead: whoever still writes it is told so in one sentence.

A sentence completes "KEY: this key is gone: ...".
"""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, str] = {
    "agents.restart": "algorithms that forget serve where the world changes, such as discounted_dis_lin_ucb, "
    "discounted_lin_ucb and sw_lin_ucb",
    "algorithms.posterior.memory": "a posterior that is larger than the memory of the machine is refused",
    "tuning.halving": "all candidates run all replications; `coband frontier` searches with fewer jobs",
    "limit": "end a run with Ctrl-C, or with timeout or the queue that runs it; what has finished is kept",
    "agents.population.kind: fit": "draw devices from a table (kind: file); docs/howto/populations.md makes a long "
    "table from a short one",
}
"""Key of a scenario, without positions in lists, or such a key with one of its values -> what serves instead."""


def key(path: tuple[str | int, ...], value: str = "") -> str | None:
    """Why a scenario has no such key, or no such value of it, any more; None: it never had."""
    entry = ".".join(step for step in path if isinstance(step, str)) + f": {value}" * bool(value)
    return f"{value or 'this key'} is gone: {KEYS[entry]}" if entry in KEYS else None
