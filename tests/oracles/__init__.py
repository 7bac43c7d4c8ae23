"""Oracles: the algorithms written out as plain loops, to compare the simulated runs with.

Each oracle is a transcription of a paper's pseudo-code with dense linear algebra. It knows no messages in flight, no
factors kept up to date and no clock, and it shares nothing with the packages it checks, neither code nor types.

Every module has the same entry point::

    run(turns, world, kernel, config, coins, agents) -> OracleRun

* ``turns``: one list of acting agents per step. ``[[3], [0], [3]]`` is a one-at-a-time schedule, ``[[0, 1], [0, 1]]``
  two rounds of two agents. Within a step the agents act in index order, each at most once, and only then does the
  step's communication happen, once and to its end.
* ``world``: ``arms(agent, turn)`` gives the arm set (n, d), ``pull(agent, turn, arm)`` the reward and the
  pseudo-regret; ``turn`` is the agent's own turn number, from 1.
* ``kernel``: a function of X (n, d) and Y (m, d) to the kernel matrix (n, m).
* ``config``: anything with ``alpha`` and ``lam``; ``threshold`` (the papers' D) where messages have a trigger, ``q``
  where points are sampled.
* ``coins(agent)``: the agent's private ``Generator``, asked for once per agent at the start of a run. Asynchronous:
  one call ``random(n)`` per exchange, n the points of the buffer in the order of their pulls. Synchronous: one call
  ``random(n)`` per synchronisation and agent, n all the agent's points so far. A point is taken iff its coin is
  below ``min(1, q * sigma2)``.

Scalars of a message are counted per receiver. Messages that carry nothing (signals, empty lists of points) are listed
with size 0. Messages stand in the order of the sequential pseudo-code: when several agents exchange after one step, a
simulator may interleave their messages, so there the comparison is per step, or by kind and node. Where several
arms have exactly the highest score, a world `with_ties` draws one of them from the agent's own stream, one call
``integers(number of them)`` per tie; in a plain world it is the first. A ``sigma`` is a deviation and includes
1/sqrt(lam).

Sizes of statistics follow the number of points in the dictionary, repeated and dependent points included.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tests.oracles.posterior import FloatArray, Kernel, Statistics

SERVER = "server"

Model = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Turns = Sequence[Sequence[int]]
Coins = Callable[[int], np.random.Generator]
Config = Any
Message = tuple[str, int | str, int | str, int]

__all__ = [
    "SERVER",
    "Coins",
    "Config",
    "Kernel",
    "Message",
    "Model",
    "OracleRun",
    "Turns",
    "World",
    "best",
    "with_ties",
]


class World(Protocol):
    """What the agents can see of the bandit problem."""

    def arms(self, agent: int, turn: int) -> FloatArray: ...

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]: ...


class WithTies:
    """A world in which equally good arms are drawn."""

    def __init__(self, world: World, ties: Coins) -> None:
        self._world, self._ties, self._streams = world, ties, dict[int, np.random.Generator]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def one_of(self, agent: int, arms: list[int]) -> int:
        if agent not in self._streams:
            self._streams[agent] = self._ties(agent)
        return arms[int(self._streams[agent].integers(len(arms)))]


def with_ties(world: Any, ties: Coins) -> Any:
    """The world; ``ties(agent)`` is the stream that decides which of equally good arms the agent pulls."""
    return WithTies(world, ties)


def best(world: World, agent: int, scores: Sequence[float] | FloatArray) -> int:
    """The arm with the highest score."""
    highest = max(scores)
    arms = [arm for arm, score in enumerate(scores) if score == highest]
    return world.one_of(agent, arms) if isinstance(world, WithTies) and len(arms) > 1 else arms[0]


@dataclass
class OracleRun:
    """Everything an oracle run did, in order of time.

    ``rounds`` counts exchanges (asynchronous), synchronisations, or shared points (OneKernelUCB). ``server`` holds the
    embedded statistics at the server, None for the exact algorithms. ``models`` are the agents' models at the end,
    ``state`` what K-armed agents know then, by name.
    """

    pulls: list[tuple[int, int, int, float, float]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    uplink: int = 0
    downlink: int = 0
    rounds: int = 0
    dictionary_size: int = 0
    server: Statistics | None = None
    server_model: Model | None = None
    models: list[Model] = field(default_factory=list)
    state: list[dict[str, Any]] = field(default_factory=list)

    def act(self, world: World, agent: int, model: Model, alpha: float) -> tuple[FloatArray, float, float]:
        """Play the agent's next turn by ``argmax mu + alpha sigma``; the point, its reward, its sigma^2 then."""
        turn = 1 + sum(1 for pull in self.pulls if pull[0] == agent)
        arms = world.arms(agent, turn)
        mu, sigma = model(arms)
        arm = best(world, agent, mu + alpha * sigma)
        reward, regret = world.pull(agent, turn, arm)
        self.pulls.append((agent, turn, arm, reward, regret))
        return arms[arm], reward, float(sigma[arm] ** 2)

    def send(self, kind: str, source: int | str, destination: int | str, scalars: int) -> None:
        """List one message to one receiver and count its scalars."""
        self.messages.append((kind, source, destination, scalars))
        if destination == SERVER:
            self.uplink += scalars
        else:
            self.downlink += scalars

    def posterior_of(self, agent: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation (n,), (n,) at the rows of X under the agent's model at the end of the run."""
        return self.models[agent](X)

    def posterior_of_server(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same under the server's final statistics; these do not depend on the root of K_SS that was used."""
        assert self.server_model is not None, "this algorithm keeps no statistics at the server"
        return self.server_model(X)
