"""What a node may know when it is made: facts of the scenario, how long to wait for messages that were given up, and
work that nodes would do alike and share, which is no way for information to pass between them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import Field

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.decisions import ClosestDecision
from coband.simulator.core.nodes.outbox import Address

if TYPE_CHECKING:
    from coband.simulator.core.nodes.graphs import Graph


MOST_BACKOFFS = 6
"""Waits grow so often: without an end, a node that comes and goes would be waited for nearly forever."""


class Recovery(Config):
    """What nodes do about messages that the transport has given up."""

    timeout: float | None = Field(default=None, gt=0)
    """Wait before a message is sent again, and before its receiver notices that it is missing; null for the transport's
    first wait for an acknowledgement."""
    backoff: float = Field(default=2.0, ge=1)
    """Each further wait is longer by this factor, up to its sixth power."""
    attempts: int = Field(default=12, ge=0)
    """So often, within `patience`, a message is sent again; then its sender goes on without it."""
    patience: float | None = Field(default=None, gt=0)
    """A message on its way is given up after so long, and a node that waits goes on so long after it last noticed that
    something is missing, or after the first of those who send by themselves has sent (not with the schedule phases);
    null: the transport ends by itself, and nodes wait the longest time between two attempts."""


@dataclass(frozen=True)
class RetryPolicy:
    """The waits of one run, in simulated time.

    Attributes:
        timeout: before a message that was given up is sent again for the first time.
        backoff: each further wait is longer by this factor, up to `MOST_BACKOFFS` times.
        attempts: how often a message is sent again.
        patience: how long a node waits for what may come again before it goes on without it.
        bounded: whether it also bounds the wait for those who do not send by themselves what others have sent.
    """

    timeout: float = 1.0
    backoff: float = 2.0
    attempts: int = 12
    patience: float = 128.0
    bounded: bool = False

    def delay(self, tries: int) -> float:
        """Wait before a message is sent again that was sent again so often already."""
        return self.timeout * self.backoff ** min(tries, MOST_BACKOFFS)


T = TypeVar("T")


class UndeclaredKnowledge(Exception):
    """A node has read a fact that its algorithm does not declare."""

    @classmethod
    def of(cls, what: str, fact: str) -> UndeclaredKnowledge:
        """What a node has read, and the fact (`coband.simulator.core.nodes.context.FACTS`) that would allow it."""
        return cls(
            f"a node reads context.{what}, which its algorithm does not declare; add {fact!r} to knows=(...) of "
            "the Algorithm, so that comparisons can say what it is told"
        )


class Sharing:
    """Work that several nodes would do alike, done once.

    ``get(key, build)`` hands out one object per key. What it returns may save work, never pass information: with
    ``on=False`` every caller gets an object of its own and the run is identical.

    Args:
        on: whether nodes get the same object.
        storage: whether nodes may have storage in common.
    """

    def __init__(self, on: bool = True, storage: bool = True) -> None:
        self.on, self._storage = on, storage
        self._objects: dict[Hashable, Any] = {}
        self._common: dict[Hashable, Any] = {}

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The object under ``key``, built at the first call (at every call when sharing is off)."""
        if not self.on:
            return build()
        if key not in self._objects:
            self._objects[key] = build()
        found: T = self._objects[key]
        return found

    def common(self, key: Hashable, build: Callable[[], T]) -> T:
        """One object for all nodes whether sharing is on or off, through which they do learn from each other.

        Only for reproducing published code in which nodes have storage in common; nothing of it is counted.

        Raises:
            UndeclaredKnowledge: the algorithm does not declare ``storage``, and all checks are on.
        """
        if not self._storage:
            raise UndeclaredKnowledge.of("sharing.common", "storage")
        found: T = self._common.setdefault(key, build())
        return found

    @property
    def has_common(self) -> bool:
        """Whether nodes have anything in common, so that they must be in one process."""
        return bool(self._common)


NO_POLICY = RetryPolicy()
FACTS = ("horizon", "total_turns", "delays", "graph", "network_context", "knowledge", "parameter_norm", "storage")
"""What a node may know of the world only where its algorithm declares it (`Algorithm.knows`)."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """All that a node may know when it is made.

    Attributes:
        index: its address; ``SERVER`` for the server.
        agents: number of agents.
        dimension: arm dimension d.
        config: the algorithm's parameters.
        sharing: see :class:`Sharing`.
        open_coin: opens the private stream of an agent or the server; a node asks for its own (``rng``).
        open_ties: opens the stream that decides an agent's ties between arms; None: the first of them is taken.
        delays: whether anything between two nodes takes time: links, the server's capacity,
            turns, handling, or agents that come and go.
        domain: the arm set when every agent is offered the same one, this very object, at every turn; else None.
        count_turns: finds ``horizon``.
        graph: the graph of the agents, an input of the algorithms that run on one; None in a star.
        network_context: the agent's own network context z_v (Dubey and Pentland 2020, section 3), where the problem has
            them.
        knowledge: what the problem tells everybody beforehand; None where agents see arms turn by turn.
        parameter_norm: norm of the parameter of the agent's own rewards, where the problem tells it.
        total_turns: turns of all agents together, as the schedule allows them; None when only a duration limits them.
        closest: takes note of how close decisions are; None: nobody does.
        recovery: waits and attempts after messages that were given up.
        gives_up: whether the transport can give a message up.
        gone: the nodes that take no part now, as everybody knows: they have not joined yet, or are down for good; empty
            where agents end together (`Needs.ends_together`), and miss one that is gone as one that is silent.
    """

    index: Address
    agents: int
    dimension: int
    config: Any
    sharing: Sharing
    open_coin: Callable[[int], np.random.Generator]
    open_ties: Callable[[int], np.random.Generator] | None = None
    delays: bool = False
    domain: ArmSet | None = None
    count_turns: Callable[[], int | None] = lambda: None
    graph: Graph | None = None
    network_context: FloatArray | None = None
    knowledge: Any = None
    parameter_norm: float | None = None
    total_turns: int | None = None
    closest: ClosestDecision | None = None
    recovery: RetryPolicy = NO_POLICY
    gives_up: bool = True
    gone: Set[Address] = frozenset()
    _opened: dict[str, np.random.Generator] | None = field(default=None, init=False, repr=False)

    def is_there(self, node: Address) -> bool:
        """Whether a node takes part now: it has joined, and is not down for good."""
        return node not in self.gone

    @property
    def rng(self) -> np.random.Generator:
        """This node's private stream."""
        return self._stream("coin", self.open_coin)

    @property
    def ties(self) -> np.random.Generator | None:
        """The stream that decides this agent's ties; None: the first of the best arms is taken."""
        return None if self.open_ties is None else self._stream("ties", self.open_ties)

    def _stream(self, name: str, opens: Callable[[int], np.random.Generator]) -> np.random.Generator:
        """A stream of this node, opened when it is first drawn from."""
        opened = self._opened
        if opened is None:
            opened = {}
            object.__setattr__(self, "_opened", opened)
        if name not in opened:
            opened[name] = opens(self.index)
        return opened[name]

    @property
    def horizon(self) -> int | None:
        """Turns that the schedule gives every agent at least; None when only a duration limits them."""
        return self.count_turns()


@dataclass(frozen=True, slots=True)
class DeclaredContext(NodeContext):
    """A context that gives out no facts but those that an algorithm declares.

    Attributes:
        declared: some of `FACTS`.
    """

    declared: frozenset[str] = frozenset()

    def __getattribute__(self, name: str) -> Any:
        fact = "horizon" if name == "count_turns" else name
        if fact in FACTS and fact not in object.__getattribute__(self, "declared"):
            raise UndeclaredKnowledge.of(name, fact)
        return object.__getattribute__(self, name)
