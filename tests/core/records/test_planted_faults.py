"""What the stored events give once more is what the run says; faults that are planted are seen so, or by invariants.

Of faults that ``recomputed`` sees a few are planted, so that it cannot fall silent.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import graphs
from coband.extensions.conformance.runs import PROBLEM, run, world
from coband.server.common.synchronisation import SynchronousServer
from coband.server.kernel.async_kernel_ucb import AsyncKernelUCBServer
from coband.simulator.core.conversations import Talks
from coband.simulator.core.conversations.conversation import Conversations
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.node import Client
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.ledger import UP, Ledger
from coband.simulator.core.records.progress import Progress
from coband.simulator.core.result import Ended
from coband.simulator.core.router import Router
from coband.simulator.problems.contextual import ContextualWorld
from tests.core.records.recomputed import mismatches
from tests.every import every

Patch = pytest.MonkeyPatch
Around = Callable[..., Any]
Sentences = Iterator[str]
"""What is wrong with a run."""
TURNS = 12
ROUNDS = {"kind": "rounds", "turns": TURNS}
KERNEL = {"kind": "gaussian", "gamma": 1.0}
SLOW = {"kind": "uniform", "low": 0.1, "high": 0.4}


def star(**parts: Any) -> Sentences:
    """Agents and a server that synchronise, with latencies."""
    given = {"schedule": ROUNDS, "network": {"latency": SLOW}, **parts}
    return mismatches(run("dis_lin_ucb", {"threshold": 0.3}, agents=4, **given), world(PROBLEM, 0, 4), TURNS)


def lossy() -> Sentences:
    return star(network={"latency": SLOW, "loss": 0.3, "retransmission": {"timeout": 1.0}})


def narrow() -> Sentences:
    return star(network={"latency": SLOW, "bandwidth": 10.0, "header_bits": 8})


def asynchronous() -> Sentences:
    made = run("async_kernel_ucb", {"threshold": 0.5}, agents=4, share=False, schedule=ROUNDS)
    return mismatches(made, world(PROBLEM, 0, 4), TURNS)


def graph() -> Sentences:
    problem = {"kind": "network", "contexts": {"kind": "ball", "dimension": 2}, "arms": graphs.POOL, "kernel": KERNEL}
    made = graphs.run("coop_kernel_ucb", {"hops": 2}, problem, schedule=ROUNDS)
    return mismatches(made, graphs.world(problem, 0, made.engine.graph), TURNS)


def tied() -> Sentences:
    """Before the first reward all arms are alike."""
    made = run("n_kernel_ucb", {"kernel": KERNEL}, agents=3, schedule=ROUNDS, problem=FIXED)
    return mismatches(made, world(FIXED, 0, 3), TURNS)


FIXED = {
    "kind": "fixed_domain",
    "domain": {"kind": "sphere", "dimension": 3, "points": 12},
    "reward": {"kind": "cosine"},
    "noise": 0.1,
}


def around(owner: Any, name: str, made: Callable[[Around], Around]) -> Callable[[Patch], None]:
    """Plant something around a method: ``made`` is given the method and returns what stands in its place."""
    return lambda patch: patch.setattr(owner, name, made(owner.__dict__[name]))


def before(owner: Any, name: str, change: Callable[..., tuple[Any, ...]]) -> Callable[[Patch], None]:
    """Plant a change of a method's arguments."""
    return around(owner, name, lambda method: lambda self, *given: method(self, *change(*given)))


def after(owner: Any, name: str, change: Callable[..., Any]) -> Callable[[Patch], None]:
    """Plant a change of a method's result; it is given the result, self and the arguments."""
    return around(owner, name, lambda method: lambda self, *given: change(method(self, *given), self, *given))


def twice(owner: Any, name: str) -> Callable[[Patch], None]:
    """Plant a method that does all of it twice."""
    return around(owner, name, lambda method: lambda self, *given: (method(self, *given), method(self, *given))[1])


def nothing(owner: Any, name: str) -> Callable[[Patch], None]:
    """Plant a method that does nothing."""
    return lambda patch: patch.setattr(owner, name, lambda *given, **named: None)


def booked_elsewhere(kind: str, way: str, agents: list[int], *rest: Any) -> tuple[Any, ...]:
    return (kind, way, [(agent + 1) % 4 for agent in agents] if way == UP else agents, *rest)


def one_pull_more(message: Any, *rest: Any) -> tuple[Any, ...]:
    """An upload says that it has a pull more than it has, and its agent and the server believe it."""
    message.__dict__["pulls"] += message.pulls > 0
    return (message, *rest)


def upload_twice(method: Around) -> Around:
    def receive(self: SynchronousServer, message: Any, source: int) -> Any:
        if message.pulls:
            self.applied += message.pulls
        return method(self, message, source)

    return receive


def sum_twice(method: Around) -> Around:
    def add(self: AsyncKernelUCBServer, upload: Any, agent: int) -> Any:
        answer = method(self, upload, agent)
        self.statistics = self.statistics + self.statistics
        return answer

    return add


def last_of_the_tied(method: Around) -> Around:
    def best(self: Client, scores: Any, *known: Any) -> int:
        place = method(self, scores, *known)
        return int(np.flatnonzero(scores == scores[place])[-1])

    return best


def second_best(method: Around) -> Around:
    def best(self: Client, scores: Any, *known: Any) -> int:
        method(self, scores, *known)
        return int(np.argsort(scores, kind="stable")[-2])

    return best


def one_noise_for_all(patch: Patch) -> None:
    of = ContextualWorld._open

    def opened(self: ContextualWorld, agent: int) -> Any:
        streams = self._streams
        self._streams = lambda role, entity, purpose: streams(role, 0 if purpose == "noise" else entity, purpose)  # type: ignore[assignment]
        try:
            return of(self, agent)
        finally:
            self._streams = streams

    patch.setattr(ContextualWorld, "_open", opened)


def regret_of_others(patch: Patch) -> None:
    by_agent = Ended._by_agent

    def reversed_(self: Ended) -> list[Any]:
        found = by_agent(self)
        return [{**one, "regret": other["regret"]} for one, other in zip(found, found[::-1], strict=True)]

    patch.setattr(Ended, "_by_agent", reversed_)


def rewarded_twice(patch: Patch) -> None:
    pulled = Progress.pulled

    def more(self: Progress, agent: int, now: float, regret: float, reward: float, *rest: Any, **named: Any) -> None:
        pulled(self, agent, now, regret, 2 * reward, *rest, **named)

    patch.setattr(Progress, "pulled", more)


def wrong_node(method: Around) -> Around:
    def deliver(self: Router, packet: Any) -> None:
        self._hosts[(packet.destination + 1) % 4 if packet.destination >= 0 else -1].on_packet(packet)

    return deliver


def handed_twice(method: Around) -> Around:
    def deliver(self: Router, packet: Any) -> None:
        method(self, packet)
        if packet.destination == 2:
            method(self, packet)

    return deliver


def short_turns(patch: Patch) -> None:
    """A turn fewer than the schedule has."""
    from coband.simulator.core.clock.schedule import Rounds

    rounds = Rounds.rounds
    patch.setattr(Rounds, "rounds", lambda self, agents: [*rounds(self, agents)][:-1].__iter__())


Plant = Callable[[Patch], None]
SEEN: dict[str, tuple[Plant, Callable[[], Sentences], str]] = {
    # the ledger
    "uplink booked for the next agent": (
        before(Ledger, "first_copies", booked_elsewhere),
        asynchronous,
        "scalars up of agent",
    ),
    "a broadcast that costs once per receiver": (
        before(
            Ledger,
            "_enter",
            lambda kind, way, copies, scalars, round, senders=1: (kind, way, copies, scalars, round, copies),
        ),
        star,
        "scalars_broadcast_once",
    ),
    # the result
    "regret of other agents": (regret_of_others, star, "regret"),
    "rewards counted twice": (rewarded_twice, star, "reward"),
    # worlds and agents
    "one noise for all agents": (one_noise_for_all, star, "noise"),
    "the last of the tied arms": (around(Client, "best", last_of_the_tied), tied, "tied"),
    "the second best arm": (around(Client, "best", second_best), star, "score"),
    # time
    "a turn too few": (short_turns, star, "turns"),
    # the network
    "a message to the wrong node": (
        around(Router, "deliver", wrong_node),
        asynchronous,
        "more often than it was sent to it",
    ),
    "a message handed over twice": (around(Router, "deliver", handed_twice), asynchronous, "1 times more often than"),
    "a multicast that leaves one out": (
        after(Transport, "_receivers", lambda found, self, to: found if len(found) == 1 else found[1:]),
        star,
        "of 12 that their schedule has",
    ),
    # the server
    "an upload of more pulls than there are": (
        before(Conversations, "_post", one_pull_more),
        star,
        "more pulls than it",
    ),
    "an upload applied twice": (around(Talks, "receive", upload_twice), star, "which must make 48 in all"),
    "a sum taken twice": (around(AsyncKernelUCBServer, "add", sum_twice), asynchronous, "is not the sum of"),
}


def judge(scenario: Callable[[], Sentences]) -> str:
    """Run, and say what is wrong; empty: nothing."""
    try:
        return "; ".join(scenario())
    except InvariantViolation as violation:
        return str(violation)


@pytest.mark.parametrize("name", SEEN)
def test_a_fault_is_seen(name: str, monkeypatch: Patch) -> None:
    plant, scenario, words = SEEN[name]
    plant(monkeypatch)
    assert words in judge(scenario)


@every("scenario", [star, lossy, narrow, asynchronous, graph, tied], ids=lambda one: one.__name__)
def test_without_a_fault_nothing_is_seen(scenario: Callable[[], Sentences]) -> None:
    assert not judge(scenario)
