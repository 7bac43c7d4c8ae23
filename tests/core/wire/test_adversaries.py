"""Dishonest agents and defences, against their formulas in plain loops."""

import json
import math
from collections import defaultdict
from statistics import NormalDist, median
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from coband.agents.messages.linear import Gradient, LinearUpload, PrivateSums
from coband.agents.messages.sharing import Point
from coband.extensions.conformance.runs import Run, algorithm, run
from coband.simulator.core.engine import Engine
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.defences import BaseDefence, Defence, Defended, Listening
from coband.simulator.core.wire.rules import stand, undefended
from coband.simulator.core.wire.worlds import PoisonedWorld
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError

RING: dict[str, Any] = {"topology": {"kind": "ring"}}
Sent = list[tuple[int, LinearUpload, float]]


def lying(behaviour: Any, name: str = "dis_lin_ucb", agents: Any = (1, 3), **more: Any) -> Run:
    further = {key: more.pop(key) for key in ("fields", "messages", "start", "stop") if key in more}
    adversary = {"agents": agents, "behaviour": behaviour, **further}
    return run(name, {"threshold": 0.3}, agents=5, adversaries=[adversary], **more)


def uploads(made: Run) -> Sent:
    """(agent, upload as it was sent, time) in order."""
    pairs = zip(made.events(tr.SEND), made.sent, strict=True)
    return [(row.node, message, row.time) for row, message in pairs if isinstance(message, LinearUpload)]


def b(message: Any) -> np.ndarray:
    return np.asarray(message.b)


def gram(message: Any) -> np.ndarray:
    return np.asarray(message.W)


FORMULAS: dict[str, tuple[dict[str, Any], Any]] = {
    "sign_flip": ({"kind": "sign_flip", "scale": 3.0}, lambda true: -3.0 * true),
    "scale": ({"kind": "scale", "factor": 0.5}, lambda true: 0.5 * true),
    "constant": ({"kind": "constant", "value": 7.0}, lambda true: np.full(3, 7.0)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_moments_are_changed_and_sums_of_squares_are_not(name: str) -> None:
    behaviour, formula = FORMULAS[name]
    made = lying(behaviour)
    seen = set()
    for agent, sent, _ in uploads(made):
        true = sent.original
        assert isinstance(true, LinearUpload)
        assert np.array_equal(b(sent), formula(b(true)) if agent in (1, 3) else b(true))
        assert np.array_equal(gram(sent), gram(true))
        seen.add(agent)
    assert seen == set(range(5))


def test_fields_that_are_named_are_changed_instead_and_matrices_repaired() -> None:
    made = lying({"kind": "constant", "value": -2.0}, fields=["gram"])
    liars = [sent for agent, sent, _ in uploads(made) if agent in (1, 3)]
    assert len(liars) > 2
    for sent in liars:
        assert np.array_equal(b(sent), b(sent.original))
        assert np.allclose(gram(sent), -2.0 * np.ones((3, 3)) + 6.0 * np.eye(3))  # the least eigenvalue was -6


def test_a_free_rider_gives_nothing_and_noise_has_its_deviation() -> None:
    for agent, sent, _ in uploads(lying({"kind": "free_rider"})):
        share = 0.0 if agent in (1, 3) else 1.0
        assert np.array_equal(gram(sent), share * gram(sent.original))
        assert np.array_equal(b(sent), share * b(sent.original))
    made = lying({"kind": "noise", "sigma": 4.0}, agents=list(range(5)), schedule={"kind": "rounds", "turns": 60})
    noise = np.concatenate([b(sent) - b(sent.original) for _, sent, _ in uploads(made)])
    assert len(noise) > 100
    assert abs(noise.mean()) < 4.0 * 4.0 / math.sqrt(len(noise))
    assert abs(noise.std() / 4.0 - 1.0) < 4.0 / math.sqrt(2 * len(noise))


def test_an_invented_model_is_one_of_the_agents_own() -> None:
    thetas = defaultdict(list)
    for agent, sent, _ in uploads(lying({"kind": "random_arm_model", "norm": 2.0})):
        if agent in (1, 3):
            thetas[agent].append((gram(sent), b(sent)))
    found = {}
    for agent, pairs in thetas.items():
        theta = np.linalg.lstsq(np.vstack([A for A, _ in pairs]), np.concatenate([c for _, c in pairs]), rcond=None)[0]
        assert all(np.allclose(A @ theta, c, atol=1e-8) for A, c in pairs)
        assert math.isclose(float(np.linalg.norm(theta)), 2.0, rel_tol=1e-6)
        found[agent] = theta
    assert not np.allclose(found[1], found[3])


@pytest.mark.parametrize("kind", ["inner_product", "alie"])
def test_who_colludes_knows_the_last_messages_of_the_honest(kind: str) -> None:
    honest: dict[int, np.ndarray] = {}
    z = NormalDist().inv_cdf((3 - (5 // 2 + 1 - 2)) / 3)  # n = 5, m = 2, s = 1
    lies = 0
    for agent, sent, _ in uploads(lying({"kind": kind})):
        if agent not in (1, 3):
            honest[agent] = b(sent)
            continue
        expected = b(sent.original)
        if honest:
            rows = [honest[other] for other in honest]
            mean = [sum(row[i] for row in rows) / len(rows) for i in range(3)]
            spread = [math.sqrt(sum((row[i] - mean[i]) ** 2 for row in rows) / len(rows)) for i in range(3)]
            expected = (
                [-m for m in mean]
                if kind == "inner_product"
                else [m - z * s for m, s in zip(mean, spread, strict=True)]
            )
            lies += 1
        assert np.allclose(b(sent), expected)
    assert lies > 3


def test_stale_messages_are_those_of_some_messages_ago() -> None:
    own = defaultdict(list)
    for agent, sent, _ in uploads(lying({"kind": "stale", "age": 2})):
        if agent in (1, 3):
            old = own[agent][max(0, len(own[agent]) - 2)] if own[agent] else sent.original
            assert np.array_equal(b(sent), b(old))
            assert np.allclose(gram(sent), gram(old), atol=1e-12)
            own[agent].append(sent.original)
    assert max(map(len, own.values())) > 3


def test_who_is_silent_is_not_heard_and_the_others_go_on() -> None:
    made = lying({"kind": "silent"}, agents=[1])
    assert not [row for row in made.events(tr.DELIVER) if row.peer == 1 and row.node == -1]
    drops = [made.names[row.reason] for row in made.events(tr.DROP)]
    assert drops
    assert set(drops) == {"silent"}
    assert made.result.rounds > 1
    assert made.result.stalled == 0


def test_who_equivocates_says_different_things_to_different_neighbours() -> None:
    made = run(
        "coop_kernel_ucb",
        {"hops": 1},
        agents=5,
        network=RING,
        adversaries=[{"agents": [2], "behaviour": {"kind": "equivocate"}}],
    )
    said = defaultdict(set)
    for row, message in zip(made.events(tr.SEND), made.sent, strict=True):
        if row.node == 2:
            said[id(message.original)].add((row.peer, message.reward / message.original.reward))
    assert all(len(pairs) == 2 for pairs in said.values())
    assert {len({sign for _, sign in pairs}) for pairs in said.values()} == {1, 2}


def test_lies_last_from_start_to_stop_and_are_in_the_trace() -> None:
    made = lying({"kind": "sign_flip"}, start=20.0, stop=40.0)
    for row, message in zip(made.events(tr.SEND), made.sent, strict=True):
        lied = row.node in (1, 3) and 20.0 <= row.time < 40.0 and isinstance(message, LinearUpload)
        assert (json.loads(row.detail or "{}").get("wire") == {"adversary": "sign_flip"}) == lied


def test_messages_that_are_not_named_are_left_alone() -> None:
    plain = run("dis_lin_ucb", {"threshold": 0.3}, agents=5).result.fingerprint
    assert lying({"kind": "constant", "value": 9.0}, messages=["model"]).result.fingerprint == plain
    assert lying({"kind": "constant", "value": 9.0}, messages=["upload"]).result.fingerprint != plain


def test_poisoned_rewards_are_moved_as_far_as_the_budget_goes() -> None:
    """Two agents of three, each with a budget of 2.5, from time 2 on: by a plain loop over their rewards."""
    truth = [1.0, -0.5, 0.75, 0.25, -2.0, 0.5, 0.5]
    times = iter(range(len(truth)))
    behaviour = {"kind": "reward_poisoning", "budget": 2.5, "scale": 0.5}
    adversary = TypeAdapter(Adversary).validate_python({"agents": [0, 2], "behaviour": behaviour, "start": 2.0})
    world: Any = SimpleNamespace(pull=lambda agent, turn, arm: (truth[turn], 0.125), dimension=7)
    poisoned = PoisonedWorld(world, [adversary], 3, Streams(0), lambda: next(times))
    left, expected = 2.5, []
    for time, reward in enumerate(truth):
        change = min(1.5 * abs(reward), left) if time >= 2 else 0.0
        left -= change
        expected.append(reward - math.copysign(change, reward))
    assert left == 0.0
    assert [poisoned.pull(2, turn, 0) for turn in range(len(truth))] == [(told, 0.125) for told in expected]
    assert [poisoned.pull(1, turn, 0)[0] for turn in range(len(truth))] == truth
    assert poisoned.dimension == 7


def test_agents_that_are_lied_to_are_honest() -> None:
    poison = {"agents": {"fraction": 0.4}, "behaviour": {"kind": "reward_poisoning", "budget": 50.0}}
    made = run("dis_lin_ucb", {"threshold": 0.3}, agents=5, adversaries=[poison])
    assert "honest_regret" not in made.result.totals
    assert made.result.fingerprint != run("dis_lin_ucb", {"threshold": 0.3}, agents=5).result.fingerprint
    with pytest.raises(UnsupportedScenario, match="pulled in batches"):
        run("co_kernel_fc", {}, adversaries=[poison])


def test_regret_of_the_honest_is_theirs() -> None:
    result = lying({"kind": "sign_flip"}).result
    expected = sum(agent["regret"] or 0.0 for agent in result.by_agent if agent["agent"] not in (1, 3))
    assert math.isclose(result.totals["honest_regret"], expected)
    assert math.isclose(result.totals["honest_regret_per_agent"], expected / 3)
    assert [agent["dishonest"] for agent in result.by_agent] == [0, 1, 0, 1, 0]
    assert result.totals["dishonest"] == 2


def test_a_share_of_the_agents_is_drawn_once_for_all_algorithms() -> None:
    adversary = TypeAdapter(Adversary).validate_python({"agents": {"fraction": 0.25}, "behaviour": {"kind": "silent"}})
    drawn = [adversary.drawn(0, 10, Streams(seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(who) for who in drawn] == [3, 3, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"behaviour": {"kind": "sign_flop"}},
        {"behaviour": {"kind": "silent"}, "fields": ["points"]},
        {"behaviour": {"kind": "silent"}, "start": 5, "stop": 4},
        {"behaviour": {"kind": "scale", "factor": 1e7}},
    ],
    ids=str,
)
def test_impossible_adversaries_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Adversary).validate_python({"agents": [0], **wrong})


def test_equivocation_over_several_hops_is_refused_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "run", None)
    with pytest.raises(UnsupportedScenario, match="over several hops"):
        run(
            "coop_kernel_ucb",
            {"hops": 2},
            agents=5,
            network=RING,
            adversaries=[{"agents": [2], "behaviour": {"kind": "equivocate"}}],
        )


ENTRIES = {
    "dis_lin_ucb": "{algorithm: dis_lin_ucb}",
    "pls": "{algorithm: pls, C: 0.1}",
    "n_kernel_ucb": "{algorithm: n_kernel_ucb}",
}


def told_of(adversaries: str, *names: str) -> list[tuple[str, str]]:
    """(key path, message) of what is wrong with a scenario with these adversaries."""
    text = f"""\
name: lies
agents: {{count: 5}}
schedule: {{kind: rounds, turns: 20}}
problem:
  kind: fixed_domain
  domain: {{kind: sphere, dimension: 3, points: 12}}
  reward: {{kind: linear}}
adversaries: [{adversaries}]
algorithms: [{", ".join(ENTRIES[name] for name in names)}]
"""
    try:
        loads(text, "lies")
    except ScenarioError as error:
        return [(one.key, one.message) for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("what", "names", "where"),
    [
        ("behaviour: {kind: sign_flip}", ["pls"], "adversaries[0]"),
        ("behaviour: {kind: stale}", ["pls", "n_kernel_ucb"], "adversaries[0]"),
        ("behaviour: {kind: noise, sigma: 1}", ["dis_lin_ucb", "pls"], "adversaries"),
        ("behaviour: {kind: sign_flip}, messages: [SyncRequest]", ["dis_lin_ucb"], "adversaries[0]"),
        ("behaviour: {kind: sign_flip}, fields: [weights]", ["dis_lin_ucb"], "adversaries[0]"),
        ("behaviour: {kind: silent}", ["pls"], ""),
        ("behaviour: {kind: reward_poisoning, budget: 3}", ["pls"], ""),
        ("behaviour: {kind: silent}, messages: [SyncRequest]", ["dis_lin_ucb"], ""),
        ("behaviour: {kind: sign_flip}", ["n_kernel_ucb"], ""),
        ("behaviour: {kind: sign_flip}", ["dis_lin_ucb", "n_kernel_ucb"], ""),
    ],
)
def test_liars_that_cannot_lie_are_refused(what: str, names: list[str], where: str) -> None:
    """Of all algorithms together, or of one of them; who sends nothing has nobody to lie."""
    found = told_of(f"{{agents: [1], {what}}}", *names)
    assert [place for place, _ in found] == ([where] if where else [])
    for _, message in found:
        assert ("EstimateLevels.levels (count)" if "pls" in names else "LinearUpload.b (moment)") in message


def test_each_entry_may_be_about_another_algorithm() -> None:
    """Two entries that no algorithm has both messages of; alone, each leaves out an algorithm that it means not."""
    flips = "{agents: [1], behaviour: {kind: sign_flip}}"
    levels = "{agents: [1], behaviour: {kind: silent}, messages: [EstimateLevels]}"
    assert told_of(f"{flips}, {levels}", "dis_lin_ucb", "pls") == []
    assert [place for place, _ in told_of(levels, "dis_lin_ucb", "pls")] == ["adversaries"]


TABLES = st.lists(st.lists(st.floats(-5, 5), min_size=2, max_size=2), min_size=1, max_size=7)


def defence(spec: Any) -> BaseDefence:
    return TypeAdapter(Defence).validate_python(spec)  # type: ignore[no-any-return]


def norm(row: list[float]) -> float:
    return math.sqrt(sum(value * value for value in row))


def distance(one: Any, other: Any) -> float:
    return norm([a - c for a, c in zip(one, other, strict=True)])


@settings(max_examples=50, deadline=None)
@given(TABLES)
def test_robust_means_by_hand(rows: list[list[float]]) -> None:
    n, columns = len(rows), list(zip(*rows, strict=True))
    table, middle = np.array(rows), [median(column) for column in columns]
    found = {kind: defence(kind).mean(table) for kind in ("sum", "clip", "coordinate_median", "reject_outliers")}
    most = median(norm(row) for row in rows)
    short = [[v * min(1.0, most / norm(row)) if norm(row) else v for v in row] for row in rows]
    limit = 3.0 * median(distance(row, middle) for row in rows)
    kept = [row for row in rows if distance(row, middle) <= limit * (1 + 1e-12)]
    assert np.allclose(found["sum"], [sum(column) / n for column in columns])
    assert np.allclose(found["coordinate_median"], middle)
    assert np.allclose(found["clip"], [sum(column) / n for column in zip(*short, strict=True)])
    assert np.allclose(found["reject_outliers"], [sum(column) / len(kept) for column in zip(*kept, strict=True)])
    trimmed = [sorted(column)[1:-1] for column in columns] if n > 2 else [[value] for value in middle]
    assert np.allclose(defence({"kind": "trimmed_mean", "f": 1}).mean(table), [sum(c) / len(c) for c in trimmed])


@settings(max_examples=50, deadline=None)
@given(TABLES)
@example([[0.0, 0.0], [0.0, 0.5], [3.0, 0.5], [3.0, 0.5]])
def test_no_point_near_the_geometric_median_has_a_smaller_sum_of_distances(rows: list[list[float]]) -> None:
    point = defence("geometric_median").mean(np.array(rows))

    def total(x: Any) -> float:
        return sum(distance(row, x) for row in rows)

    for angle in range(12):
        for step in (1e-3, 0.1, 1.0):
            other = point + step * np.array([math.cos(angle), math.sin(angle)])
            assert total(point) <= total(other) + 1e-6


@pytest.mark.parametrize("name", ["dis_lin_ucb", "fed_lin_ucb"])
@pytest.mark.parametrize("kind", ["coordinate_median", "geometric_median"])
def test_the_server_has_n_times_the_robust_mean_of_what_each_agent_sent_in_all(name: str, kind: str) -> None:
    made = lying({"kind": "sign_flip", "scale": 5.0}, name, server={"aggregate": kind})
    own: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(3))
    for agent, sent, _ in uploads(made):
        own[agent] = own[agent] + b(sent)
    expected = len(own) * defence(kind).mean(np.array([own[agent] for agent in sorted(own)]))
    assert np.allclose(made.engine.server.sums.b, expected)  # type: ignore[union-attr]


def test_a_defence_keeps_regret_down_where_a_sum_does_not() -> None:
    problem = {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": 3, "count": 5},
        "reward": {"kind": "rkhs", "kernel": {"kind": "linear"}},
        "noise": 0.1,
    }
    found = {}
    for aggregate in ("sum", "geometric_median"):
        regrets = []
        for seed in range(2):
            adversaries = [{"agents": {"fraction": 0.3}, "behaviour": {"kind": "sign_flip", "scale": 3}}]
            parts: dict[str, Any] = {
                "problem": problem,
                "seed": seed,
                "server": {"aggregate": aggregate},
                "checks": "cheap",
            }
            schedule = {"kind": "rounds", "turns": 60}
            made = run("dis_lin_ucb", {}, agents=10, schedule=schedule, adversaries=adversaries, **parts)
            regrets.append(made.result.totals["honest_regret"])
        found[aggregate] = regrets
    assert all(robust < summed for robust, summed in zip(found["geometric_median"], found["sum"], strict=True))


def test_a_late_upload_does_not_divide_a_round() -> None:
    """Gradients of step 2; one of step 1 comes between them, and changes the robust sum of its own step. A step that is
    long over is no longer heard of."""
    defended, values = Defended(defence("coordinate_median")), np.array([[1.0], [5.0], [2.0]])
    heard = []
    for agent, step in ((0, 1), (1, 1), (0, 2), (2, 1), (1, 2), (2, 2)):
        message = Gradient(gradient=values[agent] + step, round=4, step=step)
        change = defended.taken(agent, message, {"gradient": message.gradient})["gradient"]
        heard.append((step, agent, float(change[0])))
    assert sum(change for step, _, change in heard if step == 2) == pytest.approx(3 * 4.0)
    assert sum(change for step, _, change in heard if step == 1) == pytest.approx(3 * 3.0)
    for step in (*range(3, 40), 1):
        message = Gradient(gradient=values[0], round=4, step=step)
        last = defended.taken(0, message, {"gradient": message.gradient})["gradient"]
    assert last == np.zeros(1)


def test_the_newest_of_each_agent_add_up_to_the_robust_mean() -> None:
    """What a server has of agents that were not heard in a round, or were heard late, is the newest of each."""
    rng, defended = np.random.default_rng(5), Defended(defence("geometric_median"))
    said, kept = dict[int, PrivateSums](), dict[int, np.ndarray]()
    for turn in range(40):
        agent, back = int(rng.integers(5)), int(rng.integers(3))
        A = rng.standard_normal((2, 2)) * (1.0 if agent else 30.0)
        message = PrivateSums(W=A @ A.T, b=rng.standard_normal(2), round=30 + 3 * turn - 10 * back)
        change = defended.taken(agent, message, {"b": np.asarray(message.b)})["b"]
        if agent not in said or message.round > said[agent].round:  # as the server does
            said[agent], kept[agent] = message, change
        rows = np.array([said[one].b for one in sorted(said)])
        assert sum(kept.values()) == pytest.approx(len(rows) * defence("geometric_median").mean(rows), abs=1e-9)


def test_a_quorum_that_goes_on_with_changes_is_refused_with_a_defence() -> None:
    wait = {"wait": {"quorum": 0.5, "timeout": 2.0}}
    with pytest.raises(UnsupportedScenario, match="a change alone"):
        run("approx_dis_kernel_ucb", wait, server={"aggregate": "clip"})
    short: dict[str, Any] = {"server": {"aggregate": "clip"}, "schedule": {"kind": "rounds", "turns": 12}}
    late = {"latency": {"kind": "exponential", "rate": 0.7}}
    assert run("fed_ucb", wait | {"threshold": 0.1}, agents=4, network=late, **short).result.rounds > 2


def test_async_kernel_ucb_takes_the_robust_mean_over_its_newest_dictionary() -> None:
    """With all checks: each upload re-expressed from its own dictionary, and the robust mean of the agents' sums."""
    found = {}
    for aggregate in ("sum", "clip", "geometric_median"):
        adversaries = [{"agents": {"fraction": 0.2}, "behaviour": {"kind": "sign_flip", "scale": 3}}]
        parts: dict[str, Any] = {"agents": 10, "schedule": {"kind": "rounds", "turns": 25}, "seed": 2}
        parts |= {"network": {"latency": {"kind": "lognormal", "median": 0.5, "sigma": 0.5}}}
        options = {"alpha": 0.1, "threshold": 0.5, "q": 0.5, "transfer": "delta"}
        made = run("async_kernel_ucb", options, adversaries=adversaries, server={"aggregate": aggregate}, **parts)
        found[aggregate] = made.result.totals["honest_regret"]
    assert max(found["clip"], found["geometric_median"]) < found["sum"]


def plain_share(kind: str, rows: list[list[float]], which: int) -> float:
    """How much of what one agent says is taken, in plain loops."""
    middle = [median(row[place] for row in rows) if kind == "reject_outliers" else 0.0 for place in range(len(rows[0]))]
    sizes = [math.sqrt(sum((value - mid) ** 2 for value, mid in zip(row, middle, strict=True))) for row in rows]
    if kind == "reject_outliers":
        return float(sizes[which] <= 3.0 * median(sizes))
    return min(1.0, median(sizes) / sizes[which])


@pytest.mark.parametrize("kind", ["clip", "reject_outliers"])
def test_an_agent_of_a_graph_compares_the_mean_pulls_of_those_it_hears(kind: str) -> None:
    listening, rng = Listening(defence(kind)), np.random.default_rng(3)
    told: dict[int, list[tuple[float, np.ndarray]]] = defaultdict(list)
    shares = []
    for _ in range(60):
        origin = int(rng.integers(5))
        point, reward = rng.random(2), float(rng.normal(1.0, 0.2)) * (-4.0 if origin == 4 else 1.0)
        told[origin].append((reward, point))
        message = Point(point=point, reward=reward)
        if origin == 0:  # its own
            assert listening.note(0, 0, message) == "reward"
            continue
        rows = []
        for agent in sorted(told):
            n = len(told[agent])
            rows.append([sum(y * x for y, x in zip(ys, xs, strict=True)) / n for ys, xs in _columns(told[agent])])
        share = plain_share(kind, rows, sorted(told).index(origin))
        heard = listening.heard(0, origin, message)
        assert (heard is None) == (share == 0.0)
        if isinstance(heard, Point):
            assert heard.reward == pytest.approx(share * reward)
            assert heard.original is message
        shares.append((origin, share))
    assert np.mean([share for origin, share in shares[10:] if origin == 4]) < 0.5
    assert np.mean([share for origin, share in shares[10:] if origin != 4]) > 0.8


def _columns(pulls: list[tuple[float, np.ndarray]]) -> list[tuple[list[float], list[float]]]:
    """(rewards, what they are multiplied by) for each number that agents are compared by."""
    rewards = [y for y, _ in pulls]
    return [(rewards, [1.0] * len(pulls)), *((rewards, [float(x[place]) for _, x in pulls]) for place in range(2))]


def test_on_a_graph_a_defence_keeps_regret_down() -> None:
    found = {}
    for aggregate in ("sum", "clip", "reject_outliers"):
        adversaries = [{"agents": [1, 4], "behaviour": {"kind": "sign_flip", "scale": 3}}]
        parts: dict[str, Any] = {"agents": 8, "schedule": {"kind": "rounds", "turns": 40}, "checks": "cheap"}
        parts |= {"network": {"topology": {"kind": "complete"}}, "adversaries": adversaries}
        runs = [run("eager_kernel_ucb", {}, server={"aggregate": aggregate}, seed=seed, **parts) for seed in range(1)]
        found[aggregate] = sum(made.result.totals["honest_regret"] for made in runs)
    assert max(found["clip"], found["reject_outliers"]) < 0.8 * found["sum"], found


def test_a_defence_of_networks_that_are_not_averaged_is_refused() -> None:
    """The server of FN-UCB takes one network as it was sent, where a defence changes all of them."""
    few = {"width": 2, "average": "best"}
    with pytest.raises(UnsupportedScenario, match=r"average == 'best'.*takes one agent's network"):
        run("fn_ucb", few, server={"aggregate": "clip"})
    assert run("fn_ucb", few, schedule={"kind": "rounds", "turns": 3}).result.rounds
    averaged = {"width": 2, "average": "weights"}
    assert run("fn_ucb", averaged, schedule={"kind": "rounds", "turns": 3}, server={"aggregate": "clip"}).result.rounds


@pytest.mark.parametrize(
    ("name", "kind", "graph", "why"),
    [
        ("fed_pe", "clip", False, "results of arms that each is dealt alone"),
        ("one_kernel_ucb", "clip", False, "pass on single pulls"),
        ("fts_de", "clip", False, "weights that each has drawn"),
        ("delb", "clip", False, "results of arms that each is dealt alone"),
        ("pls", "clip", False, "sums whole numbers of steps"),
        ("async_lin_ucb", "geometric_median", False, "what an agent lacks"),
        ("async_lin_ucb_am", "coordinate_median", False, "what an agent lacks"),
        ("fed_ucb", "clip", False, ""),
        ("fn_ucb", "clip", False, ""),
        ("rclb", "clip", False, "it takes the median of the agents' estimates"),
        ("n_kernel_ucb", "clip", False, "sends nothing to a server"),
        ("n_kernel_ucb", "clip", True, "tells neighbours nothing"),
        ("fed_ucb_graph", "clip", True, "tell each other no single pulls"),
        ("coop_kernel_ucb", "geometric_median", True, "give clip or reject_outliers"),
        ("coop_kernel_ucb", "clip", True, ""),
        ("async_kernel_ucb", "geometric_median", False, ""),
    ],
)
def test_a_defence_without_a_meaning_is_refused(name: str, kind: str, graph: bool, why: str) -> None:
    found = undefended(algorithm(name), defence(kind), graph)
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "dis_lin_ucb",
            "the sum of what it is sent, which is not a defence; server.aggregate can be clip, coordinate_median",
        ),
        (
            "coop_kernel_ucb",
            "what others tell them, which is not a defence; server.aggregate can be clip, reject_outliers",
        ),
        ("fn_ucb", "refused with average == 'best': its server takes one agent's network"),
        ("pls", "server.aggregate is refused: no defence can take the place"),
        ("rclb", "it takes the median of the agents' estimates"),
        ("n_kernel_ucb", ""),
    ],
)
def test_what_stands_between_an_algorithm_and_liars_is_said(name: str, said: str) -> None:
    found = stand(algorithm(name))
    assert said in found
    assert bool(said) == bool(found)
