"""Planted leaks of knowledge between nodes, each found by a node's twin, and what twins must let pass."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coband.agents.exploration.co_kernel_fc import CoKernelFC
from coband.agents.graph.coop_kernel_ucb import CoopKernelUCB
from coband.agents.kernel.async_kernel_ucb import AsyncKernelUCB
from coband.extensions.conformance import graphs
from coband.extensions.conformance.runs import run as run_algorithm
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Later, Node, Outbox
from coband.simulator.core.nodes.outbox import Resend
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.maths.linalg.caches import VersionCache
from tests.core import toys
from tests.core.network.test_network_runs import plan

LEAK = "knows what was not delivered to it, missed what was, or draws from other streams than its own: its twin"
KERNEL = {"kind": "gaussian", "gamma": 0.8}
SMALL: dict[str, Any] = {"kernel": KERNEL, "threshold": 0.5}
DELAYED: dict[str, Any] = {
    "network": {"latency": {"kind": "uniform", "low": 1.0, "high": 12.0}},
    "schedule": {"kind": "rounds", "turns": 25},
}


def violation(agent: type[toys.ToyAgent], made: dict[str, Any] | None = None, **config: Any) -> str:
    algorithm = replace(toys.TOY, agent=agent)
    with pytest.raises(InvariantViolation) as caught:
        toys.run_on_toys(algorithm, toys.ToyConfig(**config), made or plan(agents=3, turns=6, checks="full"), 0)
    return str(caught.value)


def test_a_cache_that_hands_out_the_newest_model(monkeypatch: pytest.MonkeyPatch) -> None:
    get = VersionCache.get

    def newest(self: VersionCache[Any], version: int, build: Any) -> Any:
        return get(self, max([version, *self._held]), build)

    monkeypatch.setattr(VersionCache, "get", newest)
    with pytest.raises(InvariantViolation, match=LEAK):
        run_algorithm("async_kernel_ucb", SMALL, agents=4, **DELAYED)


def test_a_cache_that_keeps_a_model_under_its_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    get = VersionCache.get

    def stale(self: VersionCache[Any], version: int, build: Any) -> Any:
        return get(self, version, lambda: self._held.get(version - 1) or build())

    monkeypatch.setattr(VersionCache, "get", stale)
    with pytest.raises(InvariantViolation, match=LEAK):
        run_algorithm("async_kernel_ucb", SMALL, agents=4, schedule={"kind": "rounds", "turns": 25})


class Common(toys.ToyAgent):
    """Agents that count the news of all of them in one place, and choose by it."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.log: list[float] = context.sharing.get("log", list)

    def choose(self, arms: Any) -> int:
        return int(len(self.log) < 4)

    def receive(self, message: Message, source: Address) -> Outbox:
        self.log.append(1.0)
        return super().receive(message, source)


class Skipping(Common):
    """Agents that leave out an update which another one has made in the common place."""

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, toys.News)
        return [] if message.total in self.log else (self.log.append(message.total), self.heard.append(0.0), [])[-1]  # type: ignore[return-value,func-returns-value]

    def choose(self, arms: Any) -> int:
        return int(len(self.heard) < 2)


class ByClass(toys.ToyAgent):
    """Agents that leave what they heard last where all agents of the class see it."""

    newest = 0.0

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, toys.News)
        type(self).newest = message.total
        return super().receive(message, source)

    def choose(self, arms: Any) -> int:
        return int(self.newest < 5.0)


@pytest.mark.parametrize("agent", [Common, Skipping, ByClass])
def test_agents_that_have_something_in_common(agent: type[toys.ToyAgent]) -> None:
    agent.newest = 0.0  # type: ignore[attr-defined]
    network = {"links": [{"agents": [0], "latency": 4.0}]}
    text = violation(agent, plan(agents=3, turns=8, network=network, checks="full"))
    assert LEAK in text
    assert "chooses arm" in text
    assert "<- event" in text


def test_agents_that_choose_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    together = CoopKernelUCB.choose_together.__func__  # type: ignore[attr-defined]

    def alike(cls: type[CoopKernelUCB], agents: Sequence[CoopKernelUCB], arm_sets: Sequence[Any]) -> list[int]:
        chosen: list[int] = together(cls, agents, arm_sets)
        return [chosen[0], *chosen[:-1]]

    monkeypatch.setattr(CoopKernelUCB, "choose_together", classmethod(alike))
    problem = {"kind": "network", "contexts": {"kind": "ball", "dimension": 2}, "arms": graphs.POOL}
    with pytest.raises(InvariantViolation, match=f"{LEAK} chooses arm"):
        graphs.run("coop_kernel_ucb", {"hops": 2}, {**problem, "kernel": KERNEL})


def test_predictions_of_turns_ahead_that_outlive_their_model(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = AsyncKernelUCB._keep

    def kept(self: AsyncKernelUCB, model: Any, version: int) -> None:
        of = self._evaluations._of
        keep(self, model, version)
        self._evaluations._of = of

    monkeypatch.setattr(AsyncKernelUCB, "_keep", kept)
    with pytest.raises(InvariantViolation, match=LEAK):
        run_algorithm("async_kernel_ucb", {**SMALL, "threshold": 2.0}, schedule={"kind": "rounds", "turns": 40})


def test_a_batch_agent_that_knows_what_others_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    request, asked = CoKernelFC.request, []  # type: ignore[var-annotated]

    def more(self: CoKernelFC) -> Any:
        asked.append(1)
        return request(self) + len(asked) % 2

    monkeypatch.setattr(CoKernelFC, "request", more)
    with pytest.raises(InvariantViolation, match=f"{LEAK} asks for"):
        run_algorithm("co_kernel_fc", {})


class Chatty(toys.ToyAgent):
    """Reports at every third report of all agents alone."""

    def observe(self, arms: Any, arm: int, reward: float) -> Outbox:
        log: list[int] = self.context.sharing.get("log", list)
        log.append(1)
        if len(log) % 3 == 0:
            return super().observe(arms, arm, reward)
        self.unshared += 1
        return []


class Counting(toys.ToyAgent):
    """Reports how often all agents have pulled."""

    def observe(self, arms: Any, arm: int, reward: float) -> Outbox:
        log: list[int] = self.context.sharing.get("log", list)
        log.append(1)
        return [(SERVER, toys.Report(values=np.full(2, float(len(log))), pulls=1))]


class Turning(toys.ToyAgent):
    """Tells one of two agents, in turn with all others."""

    def observe(self, arms: Any, arm: int, reward: float) -> Outbox:
        log: list[int] = self.context.sharing.get("log", list)
        log.append(1)
        self.unshared += 1
        return [(len(log) % 2, toys.News(total=1.0))]


def test_messages_that_depend_on_what_others_did() -> None:
    assert f"{LEAK} sends 'news' to 1, not to 0" in violation(Turning)
    assert f"{LEAK} sends nothing, not 'report'" in violation(Chatty, plan(agents=2, turns=3, checks="full"))
    assert f"{LEAK} sends 'report' with another 'values'" in violation(Counting)


class Idle(toys.ToyAgent):
    """Waits once any agent has had news."""

    def receive(self, message: Message, source: Address) -> Outbox:
        log: list[int] = self.context.sharing.get("log", list)
        log.append(1)
        self.waiting = len(log) == 2
        return []


def test_agents_that_wait_for_what_they_cannot_know() -> None:
    assert f"{LEAK} has (waiting, done, pulls held or applied, rounds)" in violation(Idle)


class Alarmed(toys.ToyAgent):
    """Has no use for its timer, or a use alone, once the timer of another agent has rung."""

    first: Outbox | None
    later: Outbox | None

    def observe(self, arms: Any, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return [(Later(0.5), toys.News(total=reward))]

    def on_timer(self, timer: Message) -> Outbox | None:
        log: list[int] = self.context.sharing.get("log", list)
        log.append(1)
        return self.first if len(log) == 1 else self.later


@pytest.mark.parametrize(("first", "later", "text"), [([], None, "a use"), (None, [], "no use")])
def test_agents_whose_timers_matter_to_each_other(first: Any, later: Any, text: str) -> None:
    agent = type("Agent", (Alarmed,), {"first": first, "later": later})
    found = violation(agent, plan(agents=2, checks="full"))
    assert found.startswith(f"agent 1 {LEAK} has {text} for the timer 'news'")
    assert "at agent 1" in found


def test_a_server_that_looks_into_its_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    receive, seen = toys.ToyServer.receive, [0.0]

    def choose(self: toys.ToyAgent, arms: Any) -> int:
        seen[0] += 1.0
        return 1

    def peeking(self: toys.ToyServer, message: Message, source: Address) -> Outbox:
        return [(to, toys.News(total=seen[0], round=sent.round)) for to, sent in receive(self, message, source)]

    monkeypatch.setattr(toys.ToyAgent, "choose", choose)
    monkeypatch.setattr(toys.ToyServer, "receive", peeking)
    text = violation(toys.ToyAgent)
    assert text.startswith(f"the server {LEAK} sends 'news' with another 'total'")


def test_a_server_that_counts_what_it_was_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    receive, seen = toys.ToyServer.receive, [0]

    def counting(self: toys.ToyServer, message: Message, source: Address) -> Outbox:
        seen[0] += 1
        outbox = receive(self, message, source)
        self.rounds = seen[0]
        return outbox

    monkeypatch.setattr(toys.ToyServer, "receive", counting)
    monkeypatch.setattr(toys.ToyServer, "broken_invariants", lambda self: iter(()))
    text = violation(toys.ToyAgent, plan(turns=3, checks="full"))
    state = r"\(False, False, 1, \d+\), not \(False, False, 1, 1\)"
    assert re.search(rf"the server {LEAK} has \(waiting, done, pulls held or applied, rounds\) = {state}", text)


class Reusing(toys.ToyAgent):
    """Sends the array that it goes on writing to."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.buffer = np.zeros(3)

    def observe(self, arms: Any, arm: int, reward: float) -> Outbox:
        self.buffer += 1.0
        return [(SERVER, toys.Report(values=self.buffer, pulls=1))]


def test_a_message_that_changes_on_its_way() -> None:
    text = violation(Reusing, plan(turns=3, network={"latency": 1.5}, checks="full"))
    assert text.startswith("'values' of a 'report' to node -1 was changed after it was sent")


def test_a_receiver_that_writes_to_what_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = toys.ToyServer.receive

    def writing(self: toys.ToyServer, message: Any, source: Address) -> Outbox:
        message.values.sort()
        return receive(self, message, source)

    monkeypatch.setattr(toys.ToyServer, "receive", writing)
    text = violation(toys.ToyAgent)
    assert text.startswith("the twin of the server, which has only what was delivered, cannot go on: ValueError(")


def test_a_message_that_nobody_has_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = toys.ToyAgent.receive
    monkeypatch.setattr(toys.ToyAgent, "receive", lambda self, message, source: receive(self, message, source))
    from coband.simulator.core.network.transport import Transport

    arrive = Transport._arrive

    def forged(self: Transport, packet: Any) -> None:
        if packet.destination >= 0:
            packet.message = replace(packet.message, total=99.0)
        arrive(self, packet)

    monkeypatch.setattr(Transport, "_arrive", forged)
    assert "was handed a 'news' that nobody has sent" in violation(toys.ToyAgent)


class Timed(toys.ToyAgent):
    """Reports some time after its pull, by a timer of its own, and knows its own messages again."""

    later: Message | None = None

    def observe(self, arms: Any, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        self.timer = toys.News(total=reward)
        return [(Later(0.25), self.timer)]

    def on_timer(self, timer: Message) -> Outbox | None:
        if not isinstance(timer, toys.News):
            if timer is not self.later:
                return None
            self.unshared -= 1
            return [(SERVER, self.own)]
        assert timer is self.timer
        self.unshared -= 1
        self.own = toys.Report(values=np.ones(2), pulls=1)
        return [(SERVER, self.own)]

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        assert message is self.own
        self.unshared += 1
        self.later = Resend(copy=message)
        return [(Later(0.01), self.later)]


def test_timers_and_messages_given_up_are_the_nodes_own() -> None:
    network = {"loss": 0.6, "retransmission": {"timeout": 0.01, "max_attempts": 1}}
    made = plan(agents=2, turns=10, network=network, checks="full")
    result, _, engine = toys.run_on_toys(replace(toys.TOY, agent=Timed), toys.ToyConfig(), made, 0)
    assert result.totals["expired"] > 0
    assert engine.server is not None
    assert engine.server.applied == 20


class Tied(toys.ToyAgent):
    """Prefers by scores that a last bit of work in common makes unequal."""

    score, bit = 1.0, 1e-13

    def choose(self, arms: Any) -> int:
        shared = self.bit * (len(self.context.sharing.get("log", list)) - 2.5)
        self.context.sharing.get("log", list).append(1)
        return self.best(np.array([self.score, self.score + shared]))


@pytest.mark.parametrize(("score", "bit"), [(1.0, 1e-13), (0.0, 1e-9), (1e3, 1e-5)])
def test_scores_that_differ_by_rounding_alone_are_alike(
    score: float, bit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to large scores, absolute among small ones."""
    monkeypatch.setattr(Tied, "score", score)
    monkeypatch.setattr(Tied, "bit", bit)
    made = plan(agents=3, turns=6, checks="full", ties="first")
    result, _, _ = toys.run_on_toys(replace(toys.TOY, agent=Tied), toys.ToyConfig(), made, 0)
    assert result.turns == 18


@pytest.mark.parametrize("networks", ["separate", "shared_storage"])
def test_twins_have_storage_in_common_where_nodes_have_it_on_purpose(networks: str) -> None:
    config = {"width": 4, "steps": 2, "threshold": 0.5, "networks": networks}
    result = run_algorithm("fn_ucb", config, schedule={"kind": "rounds", "turns": 10})
    assert result.result.turns == 30


def test_everyday_checks_make_no_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Node] = []
    init = Node.__init__
    monkeypatch.setattr(Node, "__init__", lambda self, context: (made.append(self), init(self, context))[1])
    toys.run(plan(agents=3, turns=2))
    assert len(made) == 4
    toys.run(plan(agents=3, turns=2, checks="full"))
    assert len(made) == 12


@pytest.mark.parametrize("threshold", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", ["async_kernel_ucb", "approx_dis_kernel_ucb", "dis_kernel_ucb"])
def test_a_trigger_that_ties_is_decided_alike_alone_and_together(name: str, threshold: float) -> None:
    """The variances of a table of independent arms are short fractions, whose sums meet thresholds exactly."""
    arms: dict[str, Any] = {"kind": "arrays", "arms": np.eye(3).tolist(), "rewards": [0.1, 0.5, 0.9], "noise": 0.1}
    more: dict[str, Any] = {"problem": arms, "agents": 4, "schedule": {"kind": "rounds", "turns": 40}}
    config = {"threshold": threshold, "kernel": {"kind": "linear"}}
    fingerprints = {run_algorithm(name, config, share=share, **more).result.fingerprint for share in (True, False)}
    assert len(fingerprints) == 1
