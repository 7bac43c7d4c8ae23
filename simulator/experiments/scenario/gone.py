"""What coband had once, and what serves instead: whoever still writes it is told so in one sentence.

A sentence completes "KEY: this key is gone: ..." or "`coband NAME` is gone: ...".
"""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, str] = {
    "agents.restart": "algorithms that forget serve where the world changes, such as discounted_dis_lin_ucb, "
    "discounted_lin_ucb and sw_lin_ucb",
    "algorithms.posterior.memory": "a posterior that is larger than the memory of the machine is refused",
    "tuning.halving": "all candidates run all replications; `coband frontier` searches with fewer jobs",
    "limit": "end a run with Ctrl-C, or with timeout or the queue that runs it; what has finished is kept",
}
"""Key of a scenario, without positions in lists, such as ``agents.restart`` -> what serves instead."""

COMMANDS: Mapping[str, str] = {
    "whatif": "run a stored run with one thing changed: `coband run RUN --set KEY=VALUE`",
}
"""Command, such as ``trace follow`` -> what serves instead."""


def key(path: tuple[str | int, ...]) -> str | None:
    """Why a scenario has no such key any more; None: it never had."""
    name = ".".join(step for step in path if isinstance(step, str))
    return f"this key is gone: {KEYS[name]}" if name in KEYS else None


def command(path: str) -> str | None:
    """Why there is no such command any more; None: there never was."""
    return f"`coband {path}` is gone: {COMMANDS[path]}" if path in COMMANDS else None
