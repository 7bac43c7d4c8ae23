"""Faults planted all over the program: which of them ``checks: full`` sees while a run goes on.

What it cannot see is listed with the reason, and with a test near the faulty module that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.agents.dis_lin_ucb import DisLinUCB
from coband.server.async_kernel_ucb import AsyncKernelUCBServer
from coband.server.synchronisation import SynchronousServer
from coband.simulator.conformance import graphs
from coband.simulator.conformance.runs import run
from coband.simulator.core.assembly import Assembly
from coband.simulator.core.audit.age import Ages
from coband.simulator.core.audit.invariants import Audit, InvariantViolation
from coband.simulator.core.audit.ledger import DOWN, UP, Ledger
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.churn import Churn
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.hosts.speed import AgentsConfig
from coband.simulator.core.network.bandwidth import Stage
from coband.simulator.core.network.direct import Direct
from coband.simulator.core.network.links import LinkRule
from coband.simulator.core.network.network import Network
from coband.simulator.core.nodes.node import Client
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import Ended
from coband.simulator.core.router import Router
from coband.simulator.core.talks import Talks
from coband.simulator.core.talks.conversation import Conversations
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.problems.contextual import ContextualWorld
from coband.simulator.problems.world import TurnsWorld
from tests.every import every

Patch = pytest.MonkeyPatch
ROOT = Path(__file__).parents[3]
Around = Callable[..., Any]
ROUNDS = {"kind": "rounds", "turns": 12}
SLOW = {"kind": "uniform", "low": 0.1, "high": 0.4}
LOSSY = {"latency": SLOW, "loss": 0.3, "retransmission": {"timeout": 1.0}}


# --- runs in which faults are planted


def star(name: str = "dis_lin_ucb", **parts: Any) -> Any:
    """Agents and a server that synchronise, with latencies."""
    config = {"threshold": 0.3, **parts.pop("config", {})}
    return run(name, config, agents=4, **{"schedule": ROUNDS, "network": {"latency": SLOW}, **parts})


def lossy() -> Any:
    return star(network=LOSSY)


def slow() -> Any:
    return star(agent={"compute": SLOW, "stragglers": {"fraction": 0.5, "slowdown": 3.0}})


def unreliable() -> Any:
    away = {"kind": "markov_on_off", "mean_up": 4.0, "mean_down": 2.0}
    return star(agent={"availability": away})


def quorum(**network: Any) -> Any:
    links = [{"agents": [1], "latency": 5.0}, {"agents": [2], "latency": 9.0}, {"agents": [3], "latency": 15.0}]
    config = {"wait": {"quorum": 0.6, "timeout": 1.0}}
    return star(
        config=config, network={"latency": 0.1, "links": links, **network}, schedule={"kind": "rounds", "turns": 60}
    )


def quorum_after_losses() -> Any:
    apart = [{"start": 0.0, "end": 3.0, "groups": [[0]]}]
    return quorum(partitions=apart, retransmission={"timeout": 40.0, "max_attempts": 1})


def quorum_of_members() -> Any:
    """Agents join while the server asks one of the first again, for whom its question was given up."""
    agent = {"joins": {"kind": "times", "times": [[2, 2.5], [3, 2.5]]}}
    apart = {"partitions": [{"start": 0.0, "end": 60.0, "groups": [[1]]}], "retransmission": {"max_attempts": 1}}
    return star(config={"wait": {"quorum": 0.5, "timeout": 1.0}}, agent=agent, network={"latency": 0.1, **apart})


def narrow() -> Any:
    return star(network={"latency": SLOW, "bandwidth": 10.0, "header_bits": 8})


def ruled() -> Any:
    return star(network={"latency": 0.1, "links": [{"agents": [0], "direction": "up", "latency": 0.7}]})


def cut() -> Any:
    return star(network={**LOSSY, "loss": 0.0, "partitions": [{"start": 2.0, "end": 6.0, "groups": [[0]]}]})


def aged() -> Any:
    return star("async_kernel_ucb", config={"threshold": 0.5})


def busy() -> Any:
    return star(agent={"handling": 0.2})


def shared() -> Any:
    return star(network={"latency": SLOW, "server": {"uplink": 20.0}})


def alone() -> Any:
    return run("async_kernel_ucb", {"threshold": 2.0}, share=False)


def graph(**parts: Any) -> Any:
    problem = {"kind": "network", "contexts": {"kind": "ball", "dimension": 2}, "arms": graphs.POOL}
    kernel = {"kind": "gaussian", "gamma": 1.0}
    return graphs.run("coop_kernel_ucb", {"hops": 2}, {**problem, "kernel": kernel}, schedule=ROUNDS, **parts)


def hop_by_hop() -> Any:
    return graph(network={"latency": 0.25, "local": {"mode": "hop_by_hop"}})


def tied() -> Any:
    """Before the first reward all arms are alike."""
    return run("n_kernel_ucb", {"kernel": {"kind": "gaussian", "gamma": 1.0}}, agents=3, schedule=ROUNDS, problem=FIXED)


FIXED = {
    "kind": "fixed_domain",
    "domain": {"kind": "sphere", "dimension": 3, "points": 12},
    "reward": {"kind": "cosine"},
    "noise": 0.1,
}


# --- faults


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


def swapped(kind: str, way: str, *rest: Any) -> tuple[Any, ...]:
    return (kind, DOWN if way == UP else UP, *rest)


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


def early(method: Around) -> Around:
    return lambda self, delay, message, cause: method(self, 0.5 * delay, message, cause)


def last_of_the_tied(method: Around) -> Around:
    def best(self: Client, scores: Any, winner: int | None = None) -> int:
        place = method(self, scores, winner)
        return int(np.flatnonzero(scores == scores[place])[-1])

    return best


def second_best(method: Around) -> Around:
    def best(self: Client, scores: Any, winner: int | None = None) -> int:
        method(self, scores, winner)
        return int(np.argsort(scores, kind="stable")[-2])

    return best


def one_score_later(patch: Patch) -> None:
    """Agents are asked for their scalars before their messages are booked."""
    pulled = Progress.pulled

    def late(self: Progress, *given: Any, **named: Any) -> None:
        pulled(self, *given, **named)
        self.scalars[-1] = self.scalars[-2] if len(self.scalars) > 1 else 0

    patch.setattr(Progress, "pulled", late)


def regret_of_another(patch: Patch) -> None:
    pull = ContextualWorld.pull

    def other(self: ContextualWorld, agent: int, turn: int, arm: int) -> tuple[float, float]:
        reward, _ = pull(self, agent, turn, arm)
        return reward, pull(self, agent, turn, 0)[1]

    patch.setattr(ContextualWorld, "pull", other)


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


def compute_from_another_stream(patch: Patch) -> None:
    original = Assembly._draws

    def draws(self: Assembly, distribution: Any, index: int, purpose: str, *rest: Any) -> Any:
        return original(self, distribution, index, "handling", *rest)

    patch.setattr(Assembly, "_draws", draws)


def stragglers_twice(factors: list[float], config: AgentsConfig, streams: Streams) -> list[float]:
    return [factor * factor for factor in factors]


def regret_of_others(patch: Patch) -> None:
    by_agent = Ended._by_agent

    def reversed_(self: Ended) -> list[Any]:
        found = by_agent(self)
        return [{**one, "regret": other["regret"]} for one, other in zip(found, found[::-1], strict=True)]

    patch.setattr(Ended, "_by_agent", reversed_)


def without_headers(patch: Patch) -> None:
    totals = Ledger.totals

    def bits(self: Ledger) -> Any:
        return {**totals(self), "bits": self.scalars * self.scalar_bits}

    patch.setattr(Ledger, "totals", bits)


def older(patch: Patch) -> None:
    of = Ages.of
    patch.setattr(Ages, "of", lambda *given: replace(of(*given), pulls=of(*given).pulls + 1))


def since_arrival(method: Around) -> Around:
    def handle(self: AgentHost, packet: Any, seq: int) -> int:
        packet.sent = self._clock.now
        return int(method(self, packet, seq))

    return handle


def last_turn(result: Any, ended: Ended) -> Any:
    return replace(result, simulated_time=max(ended.progress.times))


def all_rounds(result: Any, ended: Ended) -> Any:
    return replace(result, rounds=sum(node.rounds for node in ended._nodes) + 1)


def rewarded_twice(patch: Patch) -> None:
    pulled = Progress.pulled

    def more(self: Progress, agent: int, now: float, regret: float, reward: float, *rest: Any, **named: Any) -> None:
        pulled(self, agent, now, regret, 2 * reward, *rest, **named)

    patch.setattr(Progress, "pulled", more)


def deliveries_are_copies(method: Around) -> Around:
    def hand_over(self: Direct, batch: Any, hop: int) -> None:
        method(self, batch, hop)
        self._run.ledger.deliveries += 1  # type: ignore[operator]

    return hand_over


def dropped_of_one_kind(patch: Patch) -> None:
    patch.setattr(Audit, "dropped_copies", property(lambda self: next(iter(self.copies.values())).dropped))


def wrong_node(method: Around) -> Around:
    def deliver(self: Router, packet: Any) -> None:
        self._hosts[(packet.destination + 1) % 4 if packet.destination >= 0 else -1].on_packet(packet)

    return deliver


def no_quorum(patch: Patch) -> None:
    wait = SynchronousServer.wait

    def floor(self: SynchronousServer) -> Any:
        asked = wait.fget(self)  # type: ignore[attr-defined]
        return {**asked, "quorum": asked["quorum"] - (self.version > 0)}

    patch.setattr(SynchronousServer, "wait", property(floor))


def either_direction(patch: Patch) -> None:
    applies = LinkRule.applies

    def both(self: LinkRule, source: int, destination: int) -> bool:
        return bool(applies(self.model_copy(update={"direction": "both"}), source, destination))

    patch.setattr(LinkRule, "applies", both)


def short_turns(patch: Patch) -> None:
    """A turn fewer than the schedule has."""
    from coband.simulator.core.clock.schedule import Rounds

    rounds = Rounds.rounds
    patch.setattr(Rounds, "rounds", lambda self, agents: [*rounds(self, agents)][:-1].__iter__())


def another_prior(patch: Patch) -> None:
    init = RidgeRegression.__init__

    def doubled(self: RidgeRegression, dimension: int, lam: float, *rest: Any, **named: Any) -> None:
        init(self, dimension, 2 * lam, *rest, **named)

    patch.setattr(RidgeRegression, "__init__", doubled)


def patient_triggers(patch: Patch) -> None:
    request = DisLinUCB.request
    patch.setattr(DisLinUCB, "request", lambda self, gain: request(self, gain) if gain > 1.0 else [])


def handling_twice(patch: Patch) -> None:
    handle = Host._start_handling

    def longer(self: Host, packet: Any, seq: int) -> None:
        draws, self._handling = self._handling, lambda about: 2 * draws(about)  # type: ignore[assignment,misc]
        try:
            handle(self, packet, seq)
        finally:
            self._handling = draws

    patch.setattr(Host, "_start_handling", longer)


def wide_uplink(patch: Patch) -> None:
    init = Network.__init__

    def wide(self: Network, config: Any, streams: Streams) -> None:
        init(self, config, streams)
        if self.ingress is not None:
            self.ingress._rate *= 2

    patch.setattr(Network, "__init__", wide)


Plant = Callable[[Patch], None]
SEEN: dict[str, tuple[Plant, Callable[[], Any], str]] = {
    # the ledger
    "uplink booked for the next agent": (before(Ledger, "first_copies", booked_elsewhere), aged, "scalars up of agent"),
    "up and down mixed up": (before(Ledger, "first_copies", swapped), star, "the ledger counts"),
    "a scalar too many": (
        before(Ledger, "_enter", lambda kind, way, copies, scalars, *rest: (kind, way, copies, scalars + 1, *rest)),
        star,
        "the ledger counts",
    ),
    "scalars of the next round": (
        before(Ledger, "first_copies", lambda *given: (*given[:-1], given[-1] + 1)),
        star,
        "scalars by round",
    ),
    "repetitions that are not booked": (nothing(Ledger, "repetition"), lossy, "repeated copies"),
    "acknowledgements booked twice": (twice(Ledger, "acknowledgement"), lossy, "acknowledgements"),
    "deliveries that nobody got": (around(Direct, "_hand_over", deliveries_are_copies), graph, "deliveries"),
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
    "regret of another arm": (regret_of_another, star, "regret"),
    "regret of other agents": (regret_of_others, star, "regret"),
    "a curve that is a pull late": (one_score_later, star, "scalars"),
    "rewards counted twice": (rewarded_twice, star, "reward"),
    "a run that ends before its last message": (after(Ended, "result", last_turn), star, "simulated_time"),
    "a round counted twice": (after(Ended, "result", all_rounds), star, "rounds"),
    "lost copies of one kind alone": (dropped_of_one_kind, lossy, "dropped"),
    "bits without headers": (without_headers, narrow, "bits"),
    "ages one pull too old": (older, aged, "age"),
    "ages since a message arrived": (around(AgentHost, "_handle", since_arrival), aged, "age"),
    # worlds and agents
    "one noise for all agents": (one_noise_for_all, star, "noise"),
    "another agent's arms": (
        before(TurnsWorld, "pull", lambda agent, turn, arm: ((agent + 1) % 4, turn, arm)),
        star,
        "regret",
    ),
    "the last of the tied arms": (around(Client, "best", last_of_the_tied), tied, "tied"),
    "the second best arm": (around(Client, "best", second_best), star, "score"),
    # time
    "stragglers slowed down twice": (after(AgentsConfig, "slowness", stragglers_twice), slow, "turn"),
    "turns that take another stream's times": (compute_from_another_stream, slow, "turn"),
    "a timer that rings early": (around(Host, "_set_timer", early), quorum, "timer"),
    "availability that nobody minds": (nothing(Churn, "start"), unreliable, "down"),
    "a turn too few": (short_turns, star, "turns"),
    # the network
    "a message to the wrong node": (around(Router, "deliver", wrong_node), aged, "was not for it"),
    "bandwidth twice as large": (
        before(Stage, "leave", lambda arrival, scalars, bits: (arrival, scalars / 2, bits)),
        narrow,
        "left",
    ),
    "rules of links for both directions": (either_direction, ruled, "link"),
    "partitions that let everything through": (
        after(Network, "cut_off", lambda found, *given: False),
        cut,
        "partition",
    ),
    # the server
    "an upload of more pulls than there are": (
        before(Conversations, "_post", one_pull_more),
        star,
        "more pulls than it",
    ),
    "an upload applied twice": (around(Talks, "receive", upload_twice), star, "counted twice"),
    "a sum taken twice": (around(AsyncKernelUCBServer, "add", sum_twice), alone, "is not the sum of"),
    "a quorum of an agent less": (no_quorum, quorum, "quorum"),
    "a quorum of an agent less, and messages that are given up": (no_quorum, quorum_after_losses, "quorum"),
}

UNSEEN: dict[str, tuple[Plant, Callable[[], Any], str, str]] = {
    "another prior": (
        another_prior,
        star,
        "a twin reckons with the same mathematics as its node",
        "tests/maths/test_linear.py::test_full_is_the_dense_inverse",
    ),
    "a trigger that waits too long": (
        patient_triggers,
        star,
        "a twin decides by the same code as its node; only the paper's pseudo-code knows when to talk",
        "tests/agents/test_federated_linear.py::test_triggers_fire_exactly_when_a_dense_determinant_says_so",
    ),
    "messages that take twice as long to handle": (
        handling_twice,
        busy,
        "when a node is free again depends on all that it did before; only turns are followed",
        "tests/core/network/test_network_runs.py::test_a_message_waits_while_its_receiver_is_busy",
    ),
    "a shared uplink twice as wide": (
        wide_uplink,
        shared,
        "which copies stand in the server's queue is known to the run alone",
        "tests/core/network/test_network_runs.py::test_the_shared_uplink_makes_agents_queue",
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_fault_is_seen(name: str, monkeypatch: Patch) -> None:
    plant, scenario, words = SEEN[name]
    plant(monkeypatch)
    with pytest.raises(InvariantViolation, match=words):
        scenario()


@every(
    "scenario",
    [*dict.fromkeys(scenario for _, scenario, _ in SEEN.values()), quorum_of_members],
    ids=lambda one: one.__name__,
)
def test_without_a_fault_nothing_is_seen(scenario: Callable[[], Any]) -> None:
    assert scenario().result.turns > 0


@pytest.mark.parametrize("name", UNSEEN)
def test_a_fault_that_no_run_can_see_has_a_test_near_it(name: str, monkeypatch: Patch) -> None:
    """It changes the run, and no check says so."""
    plant, scenario, why, test = UNSEEN[name]
    sound = scenario().result.fingerprint
    plant(monkeypatch)
    assert scenario().result.fingerprint != sound, why
    file, function = test.split("::")
    assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")
