"""Turns taken and prepared together, against one by one: the same runs, event by event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.bandits import PROBLEM
from benchmarks.measuring import Cases, Measured, plan, seconds, simulated
from benchmarks.scale import BARE, TwoArms
from coband.simulator.core.algorithm import Algorithm


def compared(
    algorithm: Algorithm | str, config: Mapping[str, Any], agents: int, turns: int, schedule: str, **parts: Any
) -> Measured:
    """Turns taken together against the same one by one; ``turns``: in rounds those of each agent."""
    bare = isinstance(algorithm, Algorithm)

    def run(cohorts: bool) -> Any:
        asked = plan(agents, {"kind": schedule, "turns": turns}, cohorts=cohorts, **parts)
        return simulated(
            algorithm, config, lambda streams: TwoArms() if bare else PROBLEM.build(streams, agents), asked
        )

    fast, together = seconds(lambda: run(True))
    slow, apart = seconds(lambda: run(False))
    note = f"{1e6 * fast / together.turns:.1f} us a turn; textbook column: one by one"
    return Measured(slow, fast, together.fingerprint == apart.fingerprint, note)


def turns(agents: int, rounds: int) -> Measured:
    """Turns in which nothing is sent, an event for each round against an event for each turn."""
    return compared(BARE, {"every": 2 * rounds}, agents, rounds, "rounds")


def coop(agents: int, trials: int) -> Measured:
    """Coop's turns of a trial together, those of a clique with one solve, against one after the other."""
    config = {"kernel": {"kind": "gaussian", "gamma": 0.5}, "eta": 0.1}
    network = {"topology": {"kind": "erdos_renyi", "p": 0.7}}
    return compared("coop_kernel_ucb", config, agents, trials, "rounds", network=network)


def ahead(agents: int, turns: int) -> Measured:
    """Async agents that evaluate the turns up to the next exchange at once against turn by turn."""
    config = {"kernel": {"kind": "gaussian", "gamma": 0.1}, "alpha": 0.1}
    return compared("async_kernel_ucb", config, agents, turns, "one_at_a_time")


CASES: Cases = {
    "turns": (lambda: turns(1000, 50), "turns in which nothing happens; target 3 us"),
    "cohorts": (lambda: coop(200, 20), "Coop, V=200, p=0.7, T=20, all turns of a trial together"),
    "ahead": (lambda: ahead(100, 5000), "Async, N=100, T=5000, gamma=0.1, several turns at once"),
}
