"""What a node may know when it is made."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.decisions import ClosestDecision
from coband.simulator.core.nodes.outbox import Address
from coband.simulator.core.nodes.recovery import RetryPolicy
from coband.simulator.core.nodes.sharing import Sharing, UndeclaredKnowledge

if TYPE_CHECKING:
    from coband.simulator.core.nodes.graphs import Graph

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
        delays: whether anything between two nodes takes time: links, turns, handling, or nodes that are down.
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
