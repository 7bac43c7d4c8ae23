"""Oracles of cooperative K-armed bandits: no features, no clock, messages that arrive after the step.

Every module has the same entry point::

    run(turns, world, config, coins, agents, adjacency, present) -> OracleRun

``turns``, ``world`` and ``coins`` are those of `tests.oracles`. An agent's arms are rows of the identity, the same ones
in every turn: the number of an arm is the place of the 1, its place is its position among the agent's rows. What is
sent within a step arrives after it, unless ``present(step, source, destination)`` is false (steps from 0): then it is
neither sent nor listed. An agent reads what has come at the beginning of its next own turn, before it chooses. In
formulas t is the number of own turns that the agent has finished. ``OracleRun.state`` is what an agent would know at
the beginning of one more turn.
"""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from tests.oracles import OracleRun, World, best
from tests.oracles.local import Adjacency
from tests.oracles.posterior import FloatArray

When = Callable[[int, int, int], bool]


def always(step: int, source: int, destination: int) -> bool:
    """Every edge is present in every step."""
    return True


class KArmed:
    """Bernoulli arms, or Gaussian ones of deviation ``sd``; one draw per agent and turn, whatever the arm."""

    def __init__(
        self, means: Sequence[float], agents: int, turns: int, seed: int, sd: float = 0.0, offered: Any = None
    ) -> None:
        rng, shape = np.random.default_rng([seed, 7]), (agents, turns)
        self.means, self.sd = list(means), sd
        self.offered = offered or [list(range(len(means)))] * agents
        self.rows: list[FloatArray] = [np.eye(len(means))[arms] for arms in self.offered]
        self.noise = (sd * rng.standard_normal(shape) if sd else rng.random(shape)).tolist()

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self.rows[agent]

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        mean, noise = self.means[self.offered[agent][arm]], self.noise[agent][turn - 1]
        regret = max(self.means[k] for k in self.offered[agent]) - mean
        return (mean + noise if self.sd else float(noise < mean)), regret


def numbers(world: World, agent: int) -> list[int]:
    """The numbers of the arms that an agent is offered, by place."""
    return [int(row.argmax()) for row in world.arms(agent, 1)]


def pull(out: OracleRun, world: World, agent: int, turn: int, place: int) -> float:
    """Pull the arm at a place in the agent's own turn (from 1), list it, return the reward."""
    reward, regret = world.pull(agent, turn, place)
    out.pulls.append((agent, turn, place, reward, regret))
    return reward


def ucb(world: World, agent: int, arms: list[int], n: list[int], s: list[float], bonus: float) -> int:
    """The place of the first arm with n = 0, else of the best s/n + sqrt(bonus / n)."""
    for place, k in enumerate(arms):
        if n[k] == 0:
            return place
    return best(world, agent, [s[k] / n[k] + sqrt(bonus / n[k]) for k in arms])


class Post:
    """What is on its way: sent within a step, there after it, read at the receiver's next own turn."""

    def __init__(self, out: OracleRun, agents: int, adjacency: Adjacency, present: When) -> None:
        self.out, self.adjacency, self.present = out, adjacency, present
        self.moving: list[tuple[int, int, Any]] = []
        self.inbox: list[list[tuple[int, Any]]] = [[] for _ in range(agents)]

    def send(self, step: int, kind: str, source: int, destination: int, scalars: int, content: Any) -> bool:
        """Send to one neighbour; whether it was there."""
        if not self.present(step, source, destination):
            return False
        self.out.send(kind, source, destination, scalars)
        self.moving.append((destination, source, content))
        return True

    def tell(self, step: int, kind: str, source: int, scalars: int, content: Any, but: int | None = None) -> None:
        """Send to all neighbours but one, ascending."""
        for u in sorted(self.adjacency[source]):
            if u != but:
                self.send(step, kind, source, u, scalars, content)

    def arrive(self) -> None:
        for destination, source, content in self.moving:
            self.inbox[destination].append((source, content))
        self.moving = []

    def read(self, agent: int) -> list[tuple[int, Any]]:
        """(sender, content) of all that has come since the last call, in the order in which it came."""
        read, self.inbox[agent] = self.inbox[agent], []
        return read


def averaging_matrix(adjacency: Adjacency, kind: str) -> list[list[float]]:
    """W: the weight that an agent (row) gives to a neighbour (column); the rest of a row is on the diagonal."""
    N, degree = len(adjacency), [len(neighbours) for neighbours in adjacency]
    W = [[0.0] * N for _ in range(N)]
    for v in range(N):
        for u in adjacency[v]:
            if kind == "metropolis":
                W[v][u] = 1 / (1 + max(degree[v], degree[u]))
            elif kind == "max_degree":
                W[v][u] = 1 / (1 + max(degree))
            elif kind == "neighbours":
                W[v][u] = 1 / (1 + degree[v])
            else:
                assert kind == "n", kind
                W[v][u] = 1 / N
        W[v][v] = 1 - sum(W[v])
    return W


def mixed(
    row: Sequence[float], v: int, own: list[float], heard: Mapping[int, Sequence[float]], missing: str = "own"
) -> list[float]:
    """sum_u w_vu x_u for each entry. In the place of a neighbour that was not heard stands the own value; with
    ``reweigh`` the weights of those that were heard, and the own one, are divided by their sum."""
    total = row[v] + sum(row[u] for u in heard) if missing == "reweigh" else 1
    return [x + sum(row[u] / total * (heard[u][k] - x) for u in heard) for k, x in enumerate(own)]
