"""Messages that the transport gives up: no statistics are lost or counted twice, and the trace says what happened."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.linear import LinearUpload, PointsUpload
from coband.agents.messages.neural import NeuralUpload
from coband.extensions.conformance import kit
from coband.extensions.conformance.runs import PROBLEM, Run, batches, registry, run
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.records import trace as tr
from coband.simulator.maths.linalg.gram import Gram
from tests.agents.test_quorum import GIVING_UP
from tests.every import every

QUORUM = {"quorum": 0.5, "timeout": 1.5}
NEURAL = {"width": 4, "steps": 2, "threshold": 0.3}
SUMMED: dict[str, tuple[str, dict[str, Any]]] = {
    "dis_lin": ("dis_lin_ucb", {"threshold": 0.5}),
    "dis_lin quorum": ("dis_lin_ucb", {"threshold": 0.5, "wait": QUORUM}),
    "fed_lin": ("fed_lin_ucb", {"threshold": 0.2}),
    "async_lin": ("async_lin_ucb", {"gamma_u": 1.2, "gamma_d": 1.2}),
    "fed_glb": ("fed_glb_ucb", {"threshold": 0.5, "max_rounds": 3}),
    "fn": ("fn_ucb", NEURAL),
    "fn quorum": ("fn_ucb", {**NEURAL, "wait": QUORUM}),
    "fn diagonal": ("fn_ucb", {**NEURAL, "diagonal": True}),
    "fn diagonal quorum": ("fn_ucb", {**NEURAL, "diagonal": True, "wait": QUORUM, "less_comm": False}),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "lossy": GIVING_UP,
    "no copy twice": {**GIVING_UP, "retransmission": {"timeout": 0.5, "max_attempts": 1}},
    "narrow": {
        "latency": 0.05,
        "loss": 0.05,
        "server": {"uplink": 400.0, "downlink": 400.0},
        "retransmission": {"timeout": 0.4, "max_attempts": 1},
        "recovery": {"attempts": 4},
    },
}
OVERTAKING = {"latency": {"kind": "pareto", "minimum": 0.3, "shape": 1.3}, "transport": "datagram"}
Pulls = list[tuple[FloatArray, float]]


def given_up(name: str, config: dict[str, Any], network: str) -> tuple[Run, Pulls]:
    """A run in which messages are given up, and (x, y) of every pull, x being features where the model is on them."""
    pulls: Pulls = []
    kind = kit.algorithm(name).agent
    observe: Callable[..., Any] = kind.observe  # type: ignore[attr-defined]

    def noted(agent: Any, arms: Any, arm: int, reward: float) -> Any:
        pulls.append((agent._g.copy() if name == "fn_ucb" else arms.features[arm].copy(), reward))
        return observe(agent, arms, arm, reward)

    schedule = {"kind": "rounds", "turns": 25}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "observe", noted)
        result = run(name, config, agents=4, schedule=schedule, network=NETWORKS[network], checks="cheap")
    kit.check_complete(result, 100)
    assert result.result.audit.given_up > 0
    assert len(pulls) == 100
    return result, pulls


def dense(W: Gram | FloatArray) -> FloatArray:
    return W.dense() if isinstance(W, Gram) else W


@every("network", NETWORKS)
@every("case", SUMMED)
def test_sums_at_the_server_and_unsent_news_are_all_pulls_once(case: str, network: str) -> None:
    name, config = SUMMED[case]
    result, pulls = given_up(name, config, network)
    server: Any = result.engine.server
    kept = server.statistics if name == "fn_ucb" else server.sums.gram
    W, b = dense(kept).copy(), (server.B if name == "fn_ucb" else server.sums.b).copy()
    waiting = [*server._late, *server.collected] if hasattr(server, "_late") else ()
    for upload in waiting:
        assert isinstance(upload, NeuralUpload | LinearUpload | PointsUpload)
        W += dense(upload.W)
        b += 0.0 if isinstance(upload, PointsUpload) else upload.B if isinstance(upload, NeuralUpload) else upload.b
    for agent in result.engine.agents:
        part: Any = agent
        unsent = part._episode.news if name == "fed_lin_ucb" else part._ridge if name == "fn_ucb" else part.ridge
        W_unsent, b_unsent = unsent.news(10**6)
        W, b = W + dense(W_unsent), b + b_unsent
    W_all, b_all = np.zeros_like(W), np.zeros_like(b)
    for x, y in pulls:
        W_all += x * x if W.ndim == 1 else np.outer(x, x)
        b_all += y * x
    assert pytest.approx(W_all, abs=1e-8) == W
    if name != "fed_glb_ucb":  # its b is made of predictions
        assert pytest.approx(b_all, abs=1e-8) == b


def in_order(points: list[FloatArray]) -> list[list[float]]:
    return sorted(point.tolist() for point in points)


@every("network", NETWORKS)
@every("wait", ["all", QUORUM])
def test_raw_points_are_distributed_or_unsent_once(wait: Any, network: str) -> None:
    result, pulls = given_up("dis_kernel_ucb", {"threshold": 0.5, "wait": wait}, network)
    server: Any = result.engine.server
    agents: list[Any] = list(result.engine.agents)
    log = max((agent._log for agent in agents), key=lambda log: log.size)
    points = list(log.points[: server.distributed])
    points += [x for items in server._late for item in items for x in item.points]
    points += [x for item in server.collected for x in item.points]
    points += [x for agent in agents for x in agent._new.since(agent._uploaded).features]
    assert in_order(points) == in_order([x for x, _ in pulls])


@every("network", NETWORKS)
def test_points_that_are_shared_at_once_are_asked_for_when_they_are_missed(network: str) -> None:
    result, pulls = given_up("one_kernel_ucb", {}, network)
    server: Any = result.engine.server
    log = server._log.since(0)
    points = [*log.features, *(point.point for early in server._early for point in early.values())]
    points += [point.point for agent in result.engine.agents for point in agent._unsent]  # type: ignore[attr-defined]
    assert in_order(points) == in_order([x for x, _ in pulls])
    asked = 0
    for agent in result.engine.agents:
        known = agent._known  # type: ignore[attr-defined]
        own = [place for place, owner in enumerate(server._owners[:known]) if owner == agent.context.index]
        assert agent._settled == len(own)  # type: ignore[attr-defined]
        assert agent._log.points[:known].tolist() == log.features[:known].tolist()  # type: ignore[attr-defined]
        asked += agent._known > 0  # type: ignore[attr-defined]
    assert asked == 4
    kinds = [message.kind for message in result.sent]
    assert kinds.count("lost_points_request") > 0
    assert kinds.count("lost_points") > 0
    kit.check_messages("one_kernel_ucb", result)


def test_everybody_knows_everything_once_the_network_has_healed() -> None:
    network = {**NETWORKS["no copy twice"], "heals": 12.0}
    schedule = {"kind": "rounds", "turns": 40}
    result = run("one_kernel_ucb", {}, agents=4, schedule=schedule, network=network, checks="cheap")
    assert result.result.audit.given_up > 0
    server: Any = result.engine.server
    assert server.rounds == 160
    for agent in result.engine.agents:
        unknown = server._owners[agent._known :]  # type: ignore[attr-defined]
        assert set(unknown) <= {agent.context.index}


@every("case", ["dis_lin", "fn quorum", "fed_glb"])
def test_a_timer_rings_because_of_what_was_given_up(case: str) -> None:
    name, config = SUMMED[case]
    network = NETWORKS["no copy twice"]
    schedule = {"kind": "rounds", "turns": 25}
    result = run(name, config, agents=4, seed=1, schedule=schedule, network=network, checks="cheap")
    timers = result.events(tr.TIMER)
    kinds = {result.names[row.kind] for row in timers}
    assert {"silence", "resend"} <= kinds <= {"silence", "resend", "patience", "overdue"}
    for row in timers:
        kind, cause = result.names[row.kind], result.rows[row.cause]
        if kind in ("silence", "resend"):
            assert cause.event == tr.EXPIRE
            assert (cause.node, cause.peer) == ((row.peer, row.node) if kind == "silence" else (row.node, row.peer))
        elif kind == "patience":
            assert cause.node == row.node  # the silence, or what began a wait after it
        assert row.time > cause.time
    resent = {row.seq for row in timers if result.names[row.kind] == "resend"}
    assert {row.cause for row in result.events(tr.SEND)} & resent


@every("name", ["dis_lin_ucb", "fn_ucb", "one_kernel_ucb", "async_kernel_ucb", "duets"])
def test_where_nothing_is_given_up_the_options_of_recovery_change_nothing(name: str) -> None:
    config = NEURAL if name == "fn_ucb" else {}
    network = {"latency": {"kind": "exponential", "rate": 2.0}, "loss": 0.3}
    schedule = {"kind": "rounds", "turns": 15}
    prints = set()
    for recovery in ({}, {"timeout": 0.01, "backoff": 1.0, "attempts": 0, "patience": 1e3}):
        parts: dict[str, Any] = {"network": {**network, "recovery": recovery}, "checks": "cheap"}
        result = run(name, config, schedule=schedule, **parts)
        assert result.result.audit.given_up == 0
        assert not result.events(tr.TIMER)
        prints.add(result.result.fingerprint)
    assert len(prints) == 1


def test_a_server_that_reaches_nobody_abandons_the_synchronisation_and_everybody_goes_on() -> None:
    network = {
        "latency": 0.05,
        "retransmission": {"timeout": 0.2, "max_attempts": 1},
        "recovery": {"attempts": 2},
        "links": [{"direction": "down", "loss": 0.9999}],
    }
    for name in ("dis_lin_ucb", "discounted_dis_lin_ucb", "approx_dis_kernel_ucb", "fn_ucb"):
        config = NEURAL if name == "fn_ucb" else {"threshold": 0.3}
        result = run(name, config, agents=3, schedule={"kind": "rounds", "turns": 20}, network=network)
        kit.check_complete(result, 60)
        kit.check_messages(name, result)
        assert result.result.rounds == 0
        assert [message.kind for message in result.sent].count("sync_abandoned") > 0


ROUNDS = {"kind": "rounds", "turns": 20}
DEAD = 0.9999
UNTIL_MENDED: dict[str, tuple[int, dict[str, Any]]] = {  # number of agents, and what is cut off up to time 10.5
    "requests": (1, {"links": [{"direction": "up", "loss": DEAD}], "heals": 10.5}),
    "answers": (2, {"links": [{"direction": "down", "loss": DEAD}], "heals": 10.5}),
    "uploads": (2, {"partitions": [{"start": 2.5, "end": 10.5, "groups": [[0]], "one_way": True}]}),
}
HASTY: dict[str, Any] = {
    "latency": 0.1,
    "retransmission": {"timeout": 0.5, "max_attempts": 1},
    "recovery": {"timeout": 1.0, "attempts": 2, "patience": 4.0},
}


@every("cut_off", UNTIL_MENDED)
@every("name", sorted(name for name, entry in registry().algorithms.items() if entry.always))
def test_once_a_link_is_mended_the_server_gets_all_pulls_of_the_time_before(name: str, cut_off: str) -> None:
    """Every pull asks for an exchange; arms have length 1, so that pulls are the trace of the sum of x x^T."""
    agents, broken = UNTIL_MENDED[cut_off]
    config = {**({"width": 4, "steps": 2} if name == "fn_ucb" else {}), **registry().algorithms[name].always}
    if name == "fed_glb_ucb":
        config["max_rounds"] = 3
    problem = {**PROBLEM, "arms": {"kind": "sphere", "dimension": 3, "count": 5}}
    schedule, network = {"kind": "rounds", "turns": 20}, {**HASTY, **broken}
    plan: dict[str, Any] = {"problem": problem, "schedule": schedule, "network": network, "checks": "cheap"}
    result = run(name, config, agents=agents, **plan)
    assert result.result.audit.given_up > 0
    server: Any = result.engine.server
    assert server.applied == 20 * agents
    assert [agent.unshared for agent in result.engine.agents] == [0] * agents
    if name in ("dis_lin_ucb", "fed_glb_ucb", "fed_lin_ucb"):
        assert np.trace(server.sums.gram.dense()) == pytest.approx(20 * agents)


@pytest.mark.parametrize("lost", ["outages", "partitions"])
@every(
    "name", ["dis_lin_ucb", "approx_dis_kernel_ucb", "duets", "fed_glb_ucb", "fn_ucb", "async_kernel_ucb", "fed_ucb"]
)
def test_nobody_waits_much_longer_than_patience_for_an_agent_that_does_not_answer(name: str, lost: str) -> None:
    """A question takes its patience, its answer that of who was asked; more may follow one after the other."""
    whom: dict[str, Any] = {"nodes": [0]} if lost == "outages" else {"groups": [[0]]}
    network = {"latency": 0.1, lost: [{"start": 3.0, "end": 1e6, **whom}]}
    config = {**registry().algorithms[name].always, **({"max_rounds": 3} if name == "fed_glb_ucb" else {})}
    for patience in (1.0, 20.0):
        parts: dict[str, Any] = {"network": {**network, "recovery": {"patience": patience}}, "checks": "cheap"}
        result = run(name, {**config, **(NEURAL if name == "fn_ucb" else {})}, schedule=ROUNDS, agents=3, **parts)
        others = [row.time for row in result.events(tr.TURN) if row.node != 0]
        assert len(others) == 40
        assert max(others) <= 20.0 + 3.0 * patience


TOGETHER: dict[str, tuple[str, dict[str, Any]]] = {
    "duets": ("duets", {}),
    "bpe": ("bpe", {}),
    "fed_pe": ("fed_pe", {}),
    "delb": ("delb", {"C": 0.002}),
    "rclb": ("rclb", {"C": 0.02}),
    "pls": ("pls", {"C": 0.002}),
    "co_kernel_fc": ("co_kernel_fc", {}),
    "co_kernel_fc by server": ("co_kernel_fc", {"via": "server"}),
}


def together(case: str, **network: Any) -> Run:
    name, config = TOGETHER[case]
    schedule = None if batches(name) else {"kind": "rounds", "turns": 30}
    return run(name, config, agents=3, schedule=schedule, network={**HASTY, **network})


@every("case", [case for case in TOGETHER if not case.startswith("co_kernel")])
def test_an_agent_that_is_down_for_good_is_not_waited_for_as_one_that_may_come_back(case: str) -> None:
    name, config = TOGETHER[case]
    network = {"latency": 0.1, "outages": [{"start": 3.0, "end": math.inf, "nodes": [0]}]}
    result = run(name, config, agents=3, schedule={"kind": "rounds", "turns": 30}, network=network)
    others = [row.time for row in result.events(tr.TURN) if row.node != 0]
    assert (len(others), max(others)) == (60, 30.0)


def parting(result: Run) -> list[tr.Row]:
    return [row for row in result.events(tr.SEND) if result.names[row.kind] == "sync_abandoned"]


@every("case", TOGETHER)
def test_nobody_goes_on_alone_when_what_was_given_up_comes_at_the_second_attempt(case: str) -> None:
    prompt = together(case)
    first = prompt.events(tr.SEND)[0]
    cut_off = {"start": first.time - 0.5, "end": first.time + 1.0, "groups": [[first.node]]}
    late = together(case, partitions=[cut_off])
    assert late.result.audit.given_up > 0
    assert parting(late) == []
    assert (late.result.turns, late.result.rounds) == (prompt.result.turns, prompt.result.rounds)
    assert late.result.simulated_time > first.time + 10.0  # longer than anybody's patience


@every("case", TOGETHER)
def test_an_agent_that_goes_on_alone_tells_those_with_whom_it_exchanges(case: str) -> None:
    result = together(case, partitions=[{"start": 0.0, "end": 1e9, "groups": [[0]]}])
    told = {row.peer for row in parting(result) if row.node != SERVER}
    if case == "co_kernel_fc":  # all at once, and then one by one, as nobody is reached
        assert tr.EVERYONE in told
        assert told <= {tr.EVERYONE, 0, 1, 2}
    else:
        assert told == {SERVER}
    assert {row.round for row in parting(result)} == {1}


@every("name", [name for name, one in registry().algorithms.items() if not batches(name) and one.server is not None])
def test_nobody_goes_back_to_a_model_that_was_overtaken(name: str) -> None:
    """Datagrams of which none is lost; all checks, among them that versions of models grow."""
    entry = registry().algorithms[name]
    known = entry.config.model_fields
    config = {key: value for key, value in {**NEURAL, "max_rounds": 3}.items() if key in known and name != "duets"}
    assert run(name, config, agents=3, network=OVERTAKING, schedule={"kind": "rounds", "turns": 12}).result.turns == 36


def test_an_answer_that_comes_after_a_newer_model_changes_nothing() -> None:
    """Who waits gives up long before the answer comes, and asks again; all checks, as above."""
    slow = {"latency": OVERTAKING["latency"], "loss": 0.2, "retransmission": {"timeout": 0.4, "max_attempts": 1}}
    network, overtaken = {**slow, "recovery": {"timeout": 0.5, "attempts": 2, "patience": 1.0}}, 0
    for seed in range(2):
        schedule = {"kind": "rounds", "turns": 30}
        simulated = run("fed_lin_ucb", {"threshold": 0.0}, agents=3, seed=seed, network=network, schedule=schedule)
        newest = [0, 0, 0]
        for row in simulated.events(tr.DELIVER):
            if row.node != SERVER and simulated.names[row.kind] == "model":
                overtaken += row.version < newest[row.node]
                newest[row.node] = max(newest[row.node], row.version)
    assert overtaken > 0


def test_who_waits_for_ever_says_where(tmp_path: Path) -> None:
    """An agent has gone for good, and the others wait for it."""
    file = tmp_path / "times.csv"
    file.write_text("agent,up,down\n2,0,4.5\n0,0,\n1,0,\n")
    agent = {"availability": {"kind": "trace", "file": str(file)}}
    schedule = {"kind": "rounds", "turns": 20}
    result = run("dis_lin_ucb", {"threshold": 0.1}, agent=agent, schedule=schedule, network={"latency": 0.3}).result
    assert result.stalled > 0
    waits = [sentence for sentence in result.warnings if "still waits at the end" in sentence]
    assert 2 <= len(waits) <= 3
    assert all(": SynchronousAgent." in sentence and sentence.endswith("from the server") for sentence in waits)
