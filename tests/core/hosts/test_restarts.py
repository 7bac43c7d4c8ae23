"""Nodes that begin anew when rewards change: against plain loops, for every algorithm, over lossy links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coband.simulator.conformance import graphs, kit, runs
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.hosts import restarts
from coband.simulator.core.hosts.detectors import Badness, Watch
from coband.simulator.core.hosts.restarts import Restart, RestartingHost
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.live.refusals import refusal
from coband.simulator.scenario_errors import BrokenOff
from tests.agents.test_conformance import CASES
from tests.everyday import slow
from tests.oracles import SERVER, OracleRun, badness
from tests.oracles.dis_lin_ucb import linear

PARAMETERS: dict[str, Any] = {
    "noise": 0.1,
    "norm": 1.0,
    "lam": 1.0,
    "window": 20,
    "delta": 0.05,
    "delta_share": 0.05,
}
RESTART: dict[str, Any] = {"restart": {"kind": "badness", **PARAMETERS}}
DRIFTING: dict[str, Any] = {
    "kind": "contextual",
    "arms": {"kind": "ball", "dimension": 3, "count": 5},
    "reward": {"kind": "linear", "theta": "sphere"},
    "noise": 0.1,
    "drift": {"kind": "piecewise", "at": [150, 300]},
}
FIRST = list({name: (name, config) for name, config in reversed(CASES)}.values())


@pytest.mark.parametrize(
    "parameters", [PARAMETERS, {**PARAMETERS, "lam": 0.3, "norm": 2.0, "window": 5, "delta": 0.2, "delta_share": 0.3}]
)
def test_a_change_is_noticed_when_the_plain_loop_notices_it(parameters: dict[str, Any]) -> None:
    rng, moments = np.random.default_rng(7), list[int]()
    config = Badness(kind="badness", **parameters)
    fast, slow_ = config.watch(3), badness.Watch(**parameters)
    for pull in range(600):
        theta = np.array([1.0, 0.0, 0.0]) if pull // 200 % 2 else np.array([0.0, -0.6, 0.8])
        x = rng.standard_normal(3) / 3
        y = float(x @ theta + 0.1 * rng.standard_normal())
        found = fast.changed(x, y)
        assert found == slow_.changed(x, y), pull
        if found:
            moments.append(pull)
            fast, slow_ = config.watch(3), badness.Watch(**parameters)
    assert sum(200 <= pull < 260 for pull in moments) == 1, moments
    assert sum(400 <= pull < 460 for pull in moments) == 1, moments


def test_what_notices_no_change_is_refused() -> None:
    with pytest.raises(ValueError, match=r"with window\(=1\) .* no change is ever noticed: a share of 1\.27 would"):
        Badness(kind="badness", noise=0.1, window=1)
    watch = Badness(kind="badness", noise=0.1, lam=1e-19).watch(3)
    rows = np.random.default_rng(0).standard_normal((200, 3))
    with pytest.raises(BrokenOff, match=r"agents\.restart: lam\(=1e-19\) is lost beside the pulls"):
        [watch.changed(x, float(x.sum())) for x in rows]


def test_a_watch_that_says_neither_yes_nor_no_is_told_of() -> None:
    class Silent(Watch):
        def changed(self, x: Any, reward: float) -> bool:
            return None  # type: ignore[return-value]

    with pytest.raises(
        BrokenOff, match=r"test_restarts\.py:\d+: .*Silent\.changed returned None; coband\.Watch\.changed "
    ):
        Silent().changed(np.zeros(2), 0.0)


def test_false_alarms_are_rare_and_changes_are_noticed_soon() -> None:
    """Of 200 agents, in 300 pulls before a change and 100 after it."""
    config, rng, alarms, delays = Badness(kind="badness", **PARAMETERS), np.random.default_rng(1), 0, list[int]()
    for _ in range(200):
        watch, theta = config.watch(3), rng.standard_normal(3)
        theta /= np.linalg.norm(theta)
        for pull in range(400):
            x = rng.standard_normal(3) / 2
            if watch.changed(x, float(x @ (theta if pull < 300 else -theta) + 0.1 * rng.standard_normal())):
                alarms += pull < 300
                delays += [pull - 299] if pull >= 300 else []
                break
    assert alarms <= 4, "of 200 agents"
    assert len(delays) >= 196
    assert np.mean(delays) < 15


def test_fed_lin_ucb_with_restarts_is_the_sequential_algorithm() -> None:
    """Without delays: arm by arm and scalar by scalar; whoever notices a change has everybody begin anew at once."""
    agents, turns = 3, 450
    config = runs.algorithm("fed_lin_ucb").config.model_validate({"alpha": 0.4, "threshold": 0.8, "lam": 0.5})
    schedule = {"kind": "one_at_a_time", "turns": turns}
    run = runs.run(
        "fed_lin_ucb", config.model_dump(), agents=agents, schedule=schedule, problem=DRIFTING, agent=RESTART, seed=5
    )
    world, now = runs.world(DRIFTING, 5, agents), [0.0]
    world.follow_clock(lambda: now[0])
    out, d = OracleRun(), 3

    def begin() -> None:
        nonlocal V_server, b_server, V, b, V_loc, b_loc, watches
        V_server, b_server = config.lam * np.eye(d), np.zeros(d)
        V, b = [V_server] * agents, [b_server] * agents
        V_loc, b_loc = [np.zeros((d, d))] * agents, [np.zeros(d)] * agents
        watches = [badness.Watch(**PARAMETERS) for _ in range(agents)]

    V_server = b_server = V = b = V_loc = b_loc = watches = None  # type: ignore[assignment]
    begin()
    restarted = 0
    for row in run.events(tr.CHOOSE):
        i, now[0] = row.node, row.time
        x, y, _ = out.act(world, i, linear(V[i], b[i]), config.alpha)
        V_loc[i], b_loc[i] = V_loc[i] + np.outer(x, x), b_loc[i] + y * x
        upload = np.linalg.slogdet(V[i] + V_loc[i])[1] > np.log(1 + config.threshold) + np.linalg.slogdet(V[i])[1]
        if upload:
            out.send("upload", i, SERVER, d * d + d)
        if watches[i].changed(x, y):
            restarted += 1
            if (
                upload
            ):  # the server gets it first; its answer comes to an agent that has begun anew, which says so again
                out.send("model", SERVER, i, d * d + d)
                out.send("restart", i, SERVER, 0)
            out.send("restart", i, SERVER, 0)
            for j in range(agents):
                if j != i:
                    out.send("restart", SERVER, j, 0)
            begin()
        elif upload:
            V_server, b_server = V_server + V_loc[i], b_server + b_loc[i]
            V_loc[i], b_loc[i] = np.zeros((d, d)), np.zeros(d)
            out.send("model", SERVER, i, d * d + d)
            V[i], b[i] = V_server, b_server
    assert [pull[:3] for pull in run.pulls] == [pull[:3] for pull in out.pulls]
    assert {kind for kind, *_ in run.messages} == {"upload", "model", "restart"}
    assert sorted(map(str, run.messages)) == sorted(map(str, out.messages))
    assert run.result.totals["new_epochs"] == run.result.totals["changes_noticed"] == restarted == 2
    assert run.result.totals["scalars"] == out.uplink + out.downlink


def _refused(name: str) -> bool:
    entry = runs.algorithm(name)
    return runs.batches(name) or entry.needs.ends_together or entry.private is not None


def _complaint(name: str, config: dict[str, Any], seed: int = 3) -> str | None:
    """What is wrong with runs of an algorithm that begins anew, with all checks.

    Rewards are not linear, so that changes are noticed where there are none: there is a restart.
    """
    networks = kit.GRAPH_NETWORKS if graphs.on_graph(name) else kit.NETWORKS
    eager = {"restart": {"kind": "badness", "noise": 0.02, "norm": 0.1, "window": 10}}
    for agent, network, schedule in (
        ({}, {}, "one_at_a_time"),
        ({}, {"latency": {"kind": "exponential", "rate": 1.0}}, "rounds"),
        (kit.EXTRA["churn"], networks["faulty"], "renewal"),
    ):
        try:
            run = graphs.run_anywhere(
                name, config, agent={**agent, **eager}, network=network, schedule=kit.SCHEDULES[schedule], seed=seed
            )
        except InvariantViolation as violation:
            return str(violation)
        epochs = {host.epoch for host in run.engine._hosts if isinstance(host, RestartingHost)}
        if run.result.totals["new_epochs"] != max(epochs) or not run.events(tr.RESTART):
            return f"epochs {epochs}, {run.result.totals['restarts']} restarts"
        if not agent and len(epochs) > 1 and any(isinstance(message, Restart) for message in run.sent):
            return f"epochs {epochs} at the end, though no message was lost"
    return None


@pytest.mark.parametrize("cases", [FIRST, slow(CASES)], ids=["one of each", "all"])
def test_every_algorithm_begins_anew(cases: list[tuple[str, dict[str, Any]]]) -> None:
    checked = {str((name, config)): _complaint(name, config) for name, config in cases if not _refused(name)}
    wrong = {case: complaint for case, complaint in checked.items() if complaint is not None}
    assert not wrong, "\n".join(f"{case}: {complaint}" for case, complaint in wrong.items())
    assert len(checked) > 18


def test_those_that_cannot_are_refused() -> None:
    for name in filter(_refused, runs.registry().algorithms):
        with pytest.raises(UnsupportedScenario, match=r"agents\.restart: .* leave out agents\.restart"):
            graphs.run_anywhere(name, {}, agent=RESTART)


def test_a_lost_restart_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not heard of an epoch hears of it with the next message of that epoch, or in answer to its own."""
    tell, lost = RestartingHost._tell, list[int]()

    def silent(host: RestartingHost, outbox: Any, cause: int) -> None:
        if len(lost) < 1 and host.address == -1:
            lost.append(host.epoch)
        else:
            tell(host, outbox, cause)

    monkeypatch.setattr(RestartingHost, "_tell", silent)
    schedule = {"kind": "one_at_a_time", "turns": 400}
    config = {"alpha": 0.4, "threshold": 0.5}
    run = runs.run("fed_lin_ucb", config, schedule=schedule, problem=DRIFTING, agent=RESTART, seed=5, checks="cheap")
    assert lost == [1]
    assert run.result.totals["new_epochs"] >= 1
    assert {host.epoch for host in run.engine._hosts if isinstance(host, RestartingHost)} == {
        run.result.totals["new_epochs"]
    }


def test_who_joins_later_hears_of_the_epoch_with_its_first_message() -> None:
    run = runs.run(
        "fed_lin_ucb",
        {"alpha": 0.4, "threshold": 0.5},
        schedule={"kind": "rounds", "turns": 400},
        problem=DRIFTING,
        agent={**RESTART, "joins": {"kind": "times", "times": [[2, 200.5]]}},
        network={"latency": {"kind": "exponential", "rate": 1.0}},
        seed=5,
    )
    begun = [row.time for row in run.events(tr.RESTART) if row.node == 2]
    first = next(row.time for row in run.events(tr.SEND) if row.node == 2)
    assert 200.5 < first < begun[0] < first + 30
    assert len({host.epoch for host in run.engine._hosts if isinstance(host, RestartingHost)}) == 1


def test_a_node_that_keeps_something_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all checks a node that does not begin anew does not do what its twin does."""
    begin_anew, kept = restarts.begin_anew, {"now": True}

    def keeping(node: Any) -> None:
        model = getattr(node, "downloaded", None)
        begin_anew(node)
        if kept["now"] and model is not None:
            node.downloaded = model

    monkeypatch.setattr(restarts, "begin_anew", keeping)
    with pytest.raises(InvariantViolation):
        runs.run(
            "fed_lin_ucb",
            {"alpha": 0.4},
            schedule={"kind": "one_at_a_time", "turns": 400},
            problem=DRIFTING,
            agent=RESTART,
            seed=5,
        )


SCENARIO = """
name: anew
agents: {{count: 2, restart: {{kind: badness, noise: 0.1}}{agents}}}
schedule: {{kind: rounds, turns: 9}}
problem: {{kind: contextual, arms: {{kind: ball, dimension: 2, count: 3}}, reward: {{kind: linear}}}}
algorithms: [{{algorithm: fed_lin_ucb}}]
"""


@pytest.mark.parametrize(
    "parts",
    [
        {"messages": {"encoding": {"default": {"kind": "float16"}}}},
        {"server": {"aggregate": {"kind": "coordinate_median"}}},
        {"adversaries": [{"agents": [1], "behaviour": {"kind": "silent"}}]},
        {"messages": {"privacy": {"mechanism": {"kind": "gaussian"}, "sigma": 1.0, "leak": "allow"}}},
    ],
    ids=["bits", "defence", "liars", "privacy"],
)
def test_what_is_done_to_messages_does_not_go_with_restarts(parts: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedScenario, match="nothing to add encoded, noised or false messages to"):
        runs.run("fed_lin_ucb", {}, agent=RESTART, **parts)


def test_late_rewards_and_live_runs_are_refused() -> None:
    with pytest.raises(ScenarioError, match="restart needs the reward of a pull before the next turn"):
        loads(SCENARIO.format(agents=", reward_delay: 3"))
    study = study_of(loads(SCENARIO.format(agents="")))
    assert "agents.restart is for `coband run`" in str(refusal(study.variants[0]))
