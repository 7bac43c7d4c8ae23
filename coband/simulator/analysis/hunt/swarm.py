"""Random faults: which kinds occur, and with which rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fault:
    """One fault as a change of a scenario.

    Attributes:
        section, key: the setting that it changes, such as network, loss.
        value: the new value; a list is extended by it, and a mapping without a kind merged with it.
    """

    section: str
    key: str
    value: Any

    def apply(self, document: dict[str, Any]) -> None:
        section = document[self.section]
        if isinstance(section[self.key], list):
            section[self.key] = [*section[self.key], self.value]
        elif isinstance(self.value, dict) and isinstance(section[self.key], dict) and "kind" not in self.value:
            section[self.key] = {**section[self.key], **self.value}
        else:
            section[self.key] = self.value

    def __str__(self) -> str:
        return f"{self.section}.{self.key}: {self.value}"


def draw(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[Fault, ...]:
    """Draw faults: each kind occurs with probability 1/2, with random rates; at least one kind occurs.

    Args:
        horizon: simulated time in which the faults take place.
        star: whether there is a server.
    """
    found: list[Fault] = []
    while not found:
        found = [kind(_Draws(rng, horizon, agents, star)) for kind in KINDS if rng.random() < 0.5]
    return tuple(found)


@dataclass(frozen=True)
class _Draws:
    """The faults of each kind, drawn."""

    rng: np.random.Generator
    horizon: float
    agents: int
    star: bool

    def between(self, low: float, high: float) -> float:
        """A number between `low` and `high` whose logarithm is uniform, rounded to three digits."""
        return float(f"{np.exp(self.rng.uniform(np.log(low), np.log(high))):.3g}")

    def _window(self) -> dict[str, float]:
        start = float(f"{self.rng.uniform(0.0, 0.9) * self.horizon:.3g}")
        return {"start": start, "end": start + self.between(0.01 * self.horizon, 0.4 * self.horizon)}

    def _some(self) -> list[int]:
        count = int(self.rng.integers(1, max(2, self.agents)))
        return sorted(self.rng.permutation(self.agents)[:count].tolist())

    def loss(self) -> Fault:
        if self.rng.random() < 0.5:
            return Fault("network", "loss", self.between(0.01, 0.5))
        bursts = {"kind": "gilbert_elliott", "p": self.between(0.01, 0.3), "r": self.between(0.1, 0.9), "k": 0.98}
        return Fault("network", "loss", bursts)

    def duplicate(self) -> Fault:
        return Fault("network", "duplicate", self.between(0.02, 0.8))

    def latency(self) -> Fault:
        mean = self.between(1e-4, 3e-2) * self.horizon
        kinds = [
            {"kind": "exponential", "rate": 1.0 / mean},
            {"kind": "pareto", "minimum": mean / 6.0, "shape": 1.2},
            {"kind": "uniform", "low": 0.0, "high": 2.0 * mean},
        ]
        return Fault("network", "latency", kinds[int(self.rng.integers(len(kinds)))])

    def partition(self) -> Fault:
        cut = {**self._window(), "groups": [self._some()], "one_way": bool(self.rng.random() < 0.5)}
        return Fault("network", "partitions", cut)

    def outage(self) -> Fault:
        nodes: list[int | str] = list(self._some())
        if self.star and self.rng.random() < 0.5:
            nodes = ["server"]
        return Fault("network", "outages", {**self._window(), "nodes": nodes})

    def churn(self) -> Fault:
        mean_up, mean_down = self.between(0.03, 0.5) * self.horizon, self.between(0.005, 0.1) * self.horizon
        return Fault("agents", "availability", {"kind": "markov_on_off", "mean_up": mean_up, "mean_down": mean_down})

    def _short_time(self) -> dict[str, Any]:
        return {"kind": "exponential", "rate": 1.0 / (self.between(1e-4, 1e-2) * self.horizon)}

    def compute(self) -> Fault:
        return Fault("agents", "compute", self._short_time())

    def handling(self) -> Fault:
        return Fault("agents", "handling", self._short_time())

    def stragglers(self) -> Fault:
        return Fault("agents", "stragglers", {"fraction": 0.34, "slowdown": self.between(2.0, 20.0)})

    def order(self) -> Fault:
        return Fault("network", "reorder", "fifo")

    def narrow(self) -> Fault:
        """Capacity for so many scalars in the time of a run without faults."""
        width = self.between(300.0, 30_000.0) / self.horizon
        if not self.star or self.rng.random() < 0.5:
            return Fault("network", "bandwidth", width)
        return Fault("network", "server", {("uplink", "downlink")[int(self.rng.integers(2))]: width})

    def giving_up(self) -> Fault:
        return Fault("network", "retransmission", {"max_attempts": int(self.rng.integers(1, 4))})

    def lasting(self) -> Fault:
        """Faults that go on long after the end of a run without them."""
        return Fault("network", "heals", self.between(10.0, 1000.0) * self.horizon)


KINDS: tuple[Callable[[_Draws], Fault], ...] = (
    _Draws.loss,
    _Draws.duplicate,
    _Draws.latency,
    _Draws.order,
    _Draws.partition,
    _Draws.partition,
    _Draws.outage,
    _Draws.outage,
    _Draws.churn,
    _Draws.compute,
    _Draws.handling,
    _Draws.stragglers,
    _Draws.narrow,
    _Draws.giving_up,
    _Draws.lasting,
)
