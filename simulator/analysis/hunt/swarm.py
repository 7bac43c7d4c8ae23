"""Random faults: which kinds occur, and with which rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator, float, int, bool], tuple[tuple[str, str], Any]]


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
        """Apply the fault to a resolved scenario."""
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
        for kind in KINDS:
            if rng.random() < 0.5:
                (section, key), value = kind(rng, horizon, agents, star)
                found.append(Fault(section, key, value))
    return tuple(found)


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between `low` and `high` whose logarithm is uniform, rounded to three digits."""
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")


def _window(rng: np.random.Generator, horizon: float) -> dict[str, float]:
    start = float(f"{rng.uniform(0.0, 0.9) * horizon:.3g}")
    return {"start": start, "end": start + _between(rng, 0.01 * horizon, 0.4 * horizon)}


def _some(rng: np.random.Generator, agents: int) -> list[int]:
    count = int(rng.integers(1, max(2, agents)))
    return sorted(rng.permutation(agents)[:count].tolist())


def _loss(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    if rng.random() < 0.5:
        return ("network", "loss"), _between(rng, 0.01, 0.5)
    bursts = {"kind": "gilbert_elliott", "p": _between(rng, 0.01, 0.3), "r": _between(rng, 0.1, 0.9), "k": 0.98}
    return ("network", "loss"), bursts


def _duplicate(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    return ("network", "duplicate"), _between(rng, 0.02, 0.8)


def _latency(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    mean = _between(rng, 1e-4, 3e-2) * horizon
    kinds = [
        {"kind": "exponential", "rate": 1.0 / mean},
        {"kind": "pareto", "minimum": mean / 6.0, "shape": 1.2},
        {"kind": "uniform", "low": 0.0, "high": 2.0 * mean},
    ]
    return ("network", "latency"), kinds[int(rng.integers(len(kinds)))]


def _partition(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    cut = {**_window(rng, horizon), "groups": [_some(rng, agents)], "one_way": bool(rng.random() < 0.5)}
    return ("network", "partitions"), cut


def _outage(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    nodes: list[int | str] = list(_some(rng, agents))
    if star and rng.random() < 0.5:
        nodes = ["server"]
    return ("network", "outages"), {**_window(rng, horizon), "nodes": nodes}


def _churn(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    mean_up, mean_down = _between(rng, 0.03, 0.5) * horizon, _between(rng, 0.005, 0.1) * horizon
    return ("agents", "availability"), {"kind": "markov_on_off", "mean_up": mean_up, "mean_down": mean_down}


def _compute(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    return ("agents", "compute"), {"kind": "exponential", "rate": 1.0 / (_between(rng, 1e-4, 1e-2) * horizon)}


def _handling(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    return ("agents", "handling"), {"kind": "exponential", "rate": 1.0 / (_between(rng, 1e-4, 1e-2) * horizon)}


def _stragglers(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    return ("agents", "stragglers"), {"fraction": 0.34, "slowdown": _between(rng, 2.0, 20.0)}


def _order(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    return ("network", "reorder"), "fifo"


def _narrow(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    """Capacity for so many scalars in the time of a run without faults."""
    width = _between(rng, 300.0, 30_000.0) / horizon
    if not star or rng.random() < 0.5:
        return ("network", "bandwidth"), width
    return ("network", "server"), {("uplink", "downlink")[int(rng.integers(2))]: width}


def _giving_up(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    return ("network", "retransmission"), {"max_attempts": int(rng.integers(1, 4))}


def _lasting(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[tuple[str, str], Any]:
    """Faults that go on long after the end of a run without them."""
    return ("network", "heals"), _between(rng, 10.0, 1000.0) * horizon


KINDS: tuple[Draw, ...] = (
    _loss,
    _duplicate,
    _latency,
    _order,
    _partition,
    _partition,
    _outage,
    _outage,
    _churn,
    _compute,
    _handling,
    _stragglers,
    _narrow,
    _giving_up,
    _lasting,
)
