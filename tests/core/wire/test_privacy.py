"""Privacy: clips, noise and accounts, against formulas in plain loops, dp-accounting and direct integration."""

import json
import math
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from pydantic import ValidationError
from scipy import integrate, stats

from coband.agents.messages.linear import LinearUpload
from coband.agents.messages.synchronisation import NewPoints
from coband.extensions.conformance.runs import PROBLEM, TASKS, Run, algorithm, batches, registry, run, world
from coband.simulator.core.nodes.node import SERVER, UnsupportedScenario
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.wire.accounting import gaussian_epsilon, gaussian_sigma
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.core.wire.privacy import LaplaceLocal, Privacy, Released, Tree
from coband.simulator.core.wire.worlds import PrivateWorld
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError

LOSSY: dict[str, Any] = {"loss": 0.4, "latency": 0.2, "retransmission": {"timeout": 1.0, "max_attempts": 3}}
RELATION = dp.NeighboringRelation.REPLACE_SPECIAL
ACCOUNTANTS = {
    "pld": lambda: dp.pld.PLDAccountant(RELATION),
    "rdp": lambda: dp.rdp.RdpAccountant(neighboring_relation=RELATION),
}


def privately(name: str = "dis_lin_ucb", **more: Any) -> Run:
    """A run with all checks."""
    keys = ("mechanism", "epsilon", "sigma", "delta", "clip", "unit", "adversary", "accountant", "leak")
    privacy = {"mechanism": "gaussian", "leak": "allow"} | {key: more.pop(key) for key in keys if key in more}
    if "epsilon" not in privacy:
        privacy.setdefault("sigma", 2.0)
    small = {"threshold": 0.3} if "threshold" in algorithm(name).config.model_fields else {}
    return run(name, small, messages={**more.pop("messages", {}), "privacy": privacy}, **more)


def noising(made: Run) -> Any:
    return made.engine._noising


def uploads(made: Run) -> dict[int, list[Any]]:
    """The uploads of each agent, as they were sent."""
    found = defaultdict(list)
    for row, message in zip(made.events(tr.SEND), made.sent, strict=True):
        if isinstance(message, LinearUpload):
            found[row.node].append(message)
    return found


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize(("sigma", "count"), [(4.0, 2), (20.0, 9), (60.0, 24)])
def test_epsilon_is_that_of_dp_accounting(accountant: Any, sigma: float, count: int) -> None:
    accounts = ACCOUNTANTS[accountant]()
    accounts.compose(
        dp.ComposedDpEvent([dp.GaussianDpEvent(sigma), dp.SelfComposedDpEvent(dp.GaussianDpEvent(sigma), count - 1)])
    )
    once = ACCOUNTANTS[accountant]()
    once.compose(dp.SelfComposedDpEvent(dp.GaussianDpEvent(sigma), count))
    ours = gaussian_epsilon(sigma, count, 1e-5, accountant)
    assert abs(ours - once.get_epsilon(1e-5)) < 1e-9
    exact = gaussian_epsilon(sigma, count, 1e-5)
    assert abs(exact - dp.get_epsilon_gaussian(sigma / math.sqrt(count), 1e-5)) < 1e-9
    assert exact <= ours <= accounts.get_epsilon(1e-5) + 1e-9  # upper bounds; of parts, no tighter one


@pytest.mark.parametrize("messages", [1, 2, 3, 7, 8, 1000])
def test_epsilon_of_a_tree_is_that_of_dp_accounting(messages: int) -> None:
    accounts = ACCOUNTANTS["rdp"]()
    accounts.compose(dp.SingleEpochTreeAggregationDpEvent(10.0, messages))
    weight = Tree(kind="tree").weight(Released(messages), "new", agent=False)
    assert weight <= 1 + math.ceil(math.log2(messages))
    assert abs(gaussian_epsilon(10.0, weight, 1e-5, "rdp") - accounts.get_epsilon(1e-5)) < 1e-9


@pytest.mark.parametrize(("sigma", "weight"), [(1.0, 1), (2.0, 2), (5.0, 7), (0.8, 1)])
def test_epsilon_of_gaussian_noise_by_integration(sigma: float, weight: float) -> None:
    """delta = integral of (p - e^epsilon q)+ for p = N(0, s^2), q = N(1, s^2), s = sigma / sqrt(weight)."""
    epsilon, scale = gaussian_epsilon(sigma, weight, 1e-5), sigma / math.sqrt(weight)

    def excess(x: float) -> float:
        more: float = stats.norm.pdf(x, 0, scale) - math.exp(epsilon) * stats.norm.pdf(x, 1, scale)
        return max(0.0, more)

    crossing = 0.5 - epsilon * scale**2
    delta, _ = integrate.quad(excess, crossing - 40 * scale, crossing, epsabs=1e-15, limit=500)
    assert math.isclose(delta, 1e-5, rel_tol=1e-7)


@pytest.mark.parametrize("accountant", ["exact", "pld", "rdp"])
def test_noise_is_calibrated_for_an_epsilon(accountant: Any) -> None:
    for epsilon in (0.5,) if accountant == "pld" else (0.5, 3.0):  # with little noise it lays out much
        sigma = gaussian_sigma(epsilon, 4.0, 1e-5, accountant)
        assert epsilon * (1 - 1e-4) < gaussian_epsilon(sigma, 4.0, 1e-5, accountant) <= epsilon


def test_what_a_run_spends_by_hand() -> None:
    """Two fields; each pull in one upload, or in every later model; all pulls of an agent: sums of squares."""
    made = privately(sigma=3.0)
    assert made.result.totals["epsilon"] == gaussian_epsilon(3.0, 2, 1e-5)
    assert {agent["epsilon"] for agent in made.result.by_agent} == {made.result.totals["epsilon"]}
    whole = privately(sigma=30.0, unit="agent")
    for agent, sent in uploads(whole).items():
        weight = 2 * sum(upload.pulls**2 for upload in sent)
        assert whole.result.by_agent[agent]["epsilon"] == gaussian_epsilon(30.0, weight, 1e-5)
    tree = privately(sigma=3.0, mechanism="tree")
    for agent, sent in uploads(tree).items():
        weight = 2 * (math.floor(math.log2(len(sent))) + 1)
        assert tree.result.by_agent[agent]["epsilon"] == gaussian_epsilon(3.0, weight, 1e-5)
    others = privately("fed_lin_ucb", sigma=30.0, adversary="others")
    models = sum(made == "model" for made in (others.names[row.kind] for row in others.events(tr.SEND)))
    assert others.result.totals["epsilon"] == gaussian_epsilon(30.0, 2 * models, 1e-5)


def test_epsilon_grows_over_time_and_ends_where_it_was_asked_to() -> None:
    tree = privately(mechanism="tree", epsilon=4.0)
    for agent in tree.result.by_agent:
        quarters = [agent[f"epsilon_{share}"] or 0.0 for share in (25, 50, 75)] + [agent["epsilon"] or 0.0]
        assert quarters == sorted(quarters)
        assert 0.0 < quarters[-1] <= 4.0
    assert math.isclose(privately(epsilon=4.0).result.totals["epsilon"], 4.0, rel_tol=1e-6)


@pytest.mark.parametrize(("unit", "epsilon"), [("pull", 2 / 8.0), ("agent", 20 * 2 / 8.0)])
def test_local_noise_costs_its_two_parts_of_each_pull(unit: str, epsilon: float) -> None:
    schedule = {"kind": "rounds", "turns": 20}
    made = privately(mechanism="laplace_local", sigma=8.0, unit=unit, schedule=schedule)
    assert math.isclose(made.result.totals["epsilon"], epsilon)
    accounts = ACCOUNTANTS["pld"]()
    accounts.compose(dp.ComposedDpEvent([dp.LaplaceDpEvent(8.0), dp.LaplaceDpEvent(8.0)]))
    assert accounts.get_epsilon(1e-5) <= 2 / 8.0


def test_uploads_that_are_given_up_are_paid_for_again() -> None:
    made = privately("fed_lin_ucb", network={**LOSSY, "loss": 0.6}, epsilon=1.0)
    given_up = max(found.copies for released in noising(made)._released.values() for found in released.values())
    assert given_up > 1
    assert made.result.totals["epsilon"] > 1.0
    assert any("given up" in sentence for sentence in made.result.warnings)


def test_noise_is_symmetric_and_that_of_named_streams() -> None:
    made = privately(sigma=2.0, clip={"points": 0.7, "rewards": 0.4}, messages={"repair": "shift"})
    streams = Streams(made.engine.wire._streams.seed)  # type: ignore[union-attr]
    for agent, sent in uploads(made).items():
        for number, upload in enumerate(sent, start=1):
            rng = streams("wire", agent, f"privacy LinearUpload.b {number}")
            assert np.allclose(upload.b, upload.original.b + 2.0 * 0.7 * 0.4 * rng.standard_normal(3))
            rng = streams("wire", agent, f"privacy LinearUpload.W {number}")
            noise = np.zeros((3, 3))
            for row, column in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
                noise[row, column] = noise[column, row] = 2.0 * 0.7**2 * rng.standard_normal()
            noised = np.asarray(upload.original.W) + noise
            shift = max(0.0, -float(np.linalg.eigvalsh(noised)[0]))
            assert np.allclose(np.asarray(upload.W), noised + shift * np.eye(3))


def test_uploads_of_a_tree_add_up_to_few_noisy_sums() -> None:
    """Of 13 = 8 + 4 + 1 uploads: the noise of three blocks, drawn in plain loops; each upload in at most 4 blocks."""
    draws: dict[str, float] = {}

    def draw(name: str) -> Any:
        value = draws.setdefault(name, float(len(draws) + 1) ** 1.5)
        return SimpleNamespace(standard_normal=lambda size: np.full(size, value))

    tree = Tree(kind="tree")
    total = sum((tree.noise(2, "new", number, draw) for number in range(1, 14)), start=np.zeros(2))
    blocks = [draws["3 0"], draws["2 2"], draws["0 12"]]
    assert np.allclose(total, sum(blocks))
    assert np.allclose(tree.noise(2, "all", 13, draw), sum(blocks))
    for place in range(13):
        holding = [name for name in draws if int(name.split()[1]) == place >> int(name.split()[0])]
        assert len(holding) <= 4


def test_a_message_that_comes_again_has_the_same_noise() -> None:
    made = privately("fed_lin_ucb", network=LOSSY)
    assert made.result.audit.given_up > 0
    seen: dict[int, Any] = {}
    for message in made.sent:
        if isinstance(message, LinearUpload):
            assert seen.setdefault(id(message.original), message.b) is message.b


def test_the_trace_says_what_was_noised_and_how_many_pulls_were_clipped() -> None:
    made = privately(clip={"points": 0.5, "rewards": 1.0})
    details = [json.loads(row.detail or "{}") for row in made.events(tr.SEND) if made.names[row.kind] == "upload"]
    assert all(detail["wire"]["noised"] == {"W": "gaussian", "b": "gaussian"} for detail in details)
    assert any(detail["wire"].get("clipped", 0) > 0 for detail in details)
    assert made.result.totals["clipped"] > 0


def test_points_and_rewards_are_clipped_before_agents_learn_from_them() -> None:
    made = privately(mechanism="gaussian", sigma=1e-12, clip={"points": 0.5, "rewards": 0.2})
    truth, points = world(PROBLEM, 0, 3), {}
    for agent, turn, arm, reward in made.pulls:
        x = np.array(truth.arms(agent, turn)[arm])
        points[agent, turn] = x * min(1.0, 0.5 / float(np.linalg.norm(x)))
        assert reward == np.clip(truth.pull(agent, turn, arm)[0], -0.2, 0.2)
    assert max(abs(reward) for _, _, _, reward in made.pulls) == 0.2
    for agent, sent in uploads(made).items():
        pulls = [(points[node, turn], reward) for node, turn, _, reward in made.pulls if node == agent]
        W, b, place = np.zeros((3, 3)), np.zeros(3), 0
        for upload in sent:
            for x, reward in pulls[place : place + upload.pulls]:
                W, b = W + np.outer(x, x), b + reward * x
            place += upload.pulls
        assert np.allclose(sum(np.asarray(upload.W) for upload in sent), W, atol=1e-9)
        assert np.allclose(sum(upload.b for upload in sent), b, atol=1e-9)


def test_all_that_is_sent_is_made_of_noised_pulls() -> None:
    made = privately("dis_kernel_ucb", mechanism="laplace_local", sigma=0.5, leak="refuse")
    sent = np.vstack([message.points for message in made.sent if isinstance(message, NewPoints)])
    assert len(sent) > 10
    truth, streams, noised = world(PROBLEM, 0, 3), Streams(0), []
    for agent, turn, arm, reward in made.pulls:
        scale, most = 0.5 * math.sqrt(3), 1.0
        x = np.array(truth.arms(agent, turn)[arm])
        x *= min(1.0, most / float(np.linalg.norm(x)))
        noised.append(x + scale * streams("wire", agent, f"privacy point {turn}").laplace(size=3))
        true = np.clip(truth.pull(agent, turn, arm)[0], -1.0, 1.0)
        assert math.isclose(reward, true + 0.5 * streams("wire", agent, f"privacy reward {turn}").laplace(size=1)[0])
    assert all(min(float(np.abs(np.array(noised) - point).max(axis=1).min()), 1.0) < 1e-12 for point in sent)


def test_what_local_noise_adds_to_a_pull() -> None:
    privacy = Privacy.model_validate({"mechanism": "laplace_local", "sigma": 3.0, "clip": {"points": 2.0}})
    asked: list[Any] = []

    def on_pull(*given: Any) -> Any:
        asked.append(given)
        return np.ones(given[3])

    around = SimpleNamespace(on_pull=on_pull, pulled=lambda agent, clipped: asked.append(clipped))
    world = SimpleNamespace(fixed_arms=False, arms=lambda *_: np.array([[3.0, 4.0]]), pull=lambda *_: (-7.0, 0.5))
    private = PrivateWorld(world, privacy, around)  # type: ignore[arg-type]
    assert np.allclose(private.arms(0, 1), [[1.2, 1.6]])
    assert private.pull(0, 1, 0) == (0.0, 0.5)
    assert asked == [True, (0, 1, "reward", 1, 1.0)]
    assert LaplaceLocal(kind="laplace_local").noise(3, "new", 1, lambda _: np.random.default_rng(1)).shape == (3,)


def test_a_damaged_matrix_can_be_refused() -> None:
    with pytest.raises(UnsupportedScenario, match=r"messages.repair: a W arrives with the eigenvalue -"):
        privately(sigma=5.0, messages={"repair": "refuse"})
    quiet = privately(sigma=1e-15, messages={"repair": "refuse"}, schedule={"kind": "rounds", "turns": 40})
    assert quiet.result.turns == 120


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("coop_kernel_ucb", {"network": {"topology": "ring"}}, "gaussian finds no sum of pulls with a declared bound"),
        ("duets", {"mechanism": "laplace_local"}, "laplace_local cannot hide which arm was pulled"),
        (
            "dis_lin_ucb",
            {"epsilon": 1.0, "mechanism": "tree", "schedule": {"kind": "renewal", "think": 1.0, "duration": 5.0}},
            "nobody knows how many turns",
        ),
    ],
)
def test_what_cannot_be_promised_is_refused(name: str, more: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedScenario, match=why):
        privately(name, **more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("", ""),
        ("  encoding: {kinds: {LinearModel: {b: sign}}}\n", ""),
        ("  encoding: {kinds: {LinearUpload: {b: sign}}}\n", "write LinearUpload exactly"),
        ("server: {aggregate: coordinate_median}\n", "leave out server.aggregate"),
    ],
)
def test_noise_on_sums_of_a_server_needs_exact_sums(more: str, why: str) -> None:
    """A median, or the sign of a sum, changes by more than the bound of a pull when an agent makes one more."""
    text = """name: sums
seed: 1
agents: {count: 3}
schedule: {kind: rounds, turns: 5}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: linear}, noise: 0.1}
algorithms: [{algorithm: dis_lin_ucb}]
messages:
  privacy: {mechanism: gaussian, adversary: others, epsilon: 1, delta: 1.0e-5, leak: allow}
"""
    if not why:
        assert loads(text + more).messages.privacy is not None
        return
    with pytest.raises(ScenarioError, match=f"messages.privacy.adversary: with adversary: others.*{why}"):
        loads(text + more)


def test_who_is_asked_more_often_than_it_pulls_spends_more_and_is_told_so() -> None:
    made = run(
        "dis_lin_ucb",
        {"threshold": 0.0},
        agents=8,
        schedule={"kind": "one_at_a_time", "order": "round_robin", "turns": 80},
        messages={"privacy": {"mechanism": "tree", "epsilon": 1.0, "delta": 1e-5, "leak": "allow"}},
        checks="cheap",
    )
    (warning,) = [one for one in made.result.warnings if "spent an epsilon" in one]
    assert warning.endswith("agents that are asked by others have sent more")


def test_leaks_are_listed_by_field() -> None:
    def leaks(name: str, **more: Any) -> list[str]:
        return Privacy.model_validate({"mechanism": "gaussian", "sigma": 1.0} | more).unprotected(algorithm(name))

    assert leaks("dis_lin_ucb") == ["time of sync_request (it depends on pulls, as does how many it brings)"]
    assert leaks("fed_lin_ucb", adversary="others") == []
    assert leaks("fed_lin_ucb", mechanism="laplace_local") == []
    assert "upload.count (a count gets no noise)" in leaks("async_lin_ucb")
    assert "pull.point (single pulls, not a sum of them)" in leaks("coop_kernel_ucb")
    assert leaks("coop_kernel_ucb", mechanism="laplace_local") == []
    assert "upload.b (clip.rewards is null)" in leaks("dis_lin_ucb", clip={"rewards": None})


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0, "sigma": 1.0}])
def test_epsilon_or_sigma_is_given(given: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="give either epsilon or sigma"):
        MessagesConfig.model_validate({"privacy": {"mechanism": "gaussian", **given}})


def begun(made: Run) -> dict[tuple[str, str], list[tuple[float, int]]]:
    """When which node sent what is not an answer to a message, by kind and direction."""
    found = defaultdict(list)
    for row in made.events(tr.SEND):
        cause = made.rows[row.cause]
        while cause.event not in (tr.DELIVER, tr.TURN) and cause.cause >= 0:
            cause = made.rows[cause.cause]
        if cause.event != tr.DELIVER:
            direction = "down" if row.node == SERVER else "up" if row.peer == SERVER else "peer"
            found[made.names[row.kind], direction].append((row.time, row.node))
    return found


def test_messages_whose_times_tell_nothing_come_when_they_come_whatever_rewards_are() -> None:
    """`MessageSize(due=True)`, of all algorithms: they answer at once, or come at the same times with other rewards."""
    different, compared = set(), set()
    for name, one in registry().algorithms.items():
        graph = "star" not in one.needs.topologies
        parts: dict[str, Any] = {"network": {"topology": {"kind": "complete"}} if graph else {"latency": 0.1}}
        if batches(name):
            worlds: list[dict[str, Any]] = [{"problem": {**TASKS, "gap": gap}} for gap in (0.8, 0.6)]
        else:
            poison = {"agents": [0, 1, 2], "behaviour": {"kind": "reward_poisoning", "budget": 1e6, "scale": 0.3}}
            worlds = [{"adversaries": []}, {"adversaries": [poison]}]
        first, second = (begun(run(name, {}, checks="cheap", **parts, **world)) for world in worlds)
        due = {(size.message.kind, size.direction): size.due for size in one.messages}
        for key in first.keys() | second.keys():
            if due.get(key):
                compared.add(name)
                assert first.get(key) == second.get(key), (name, key)
            elif first.get(key) != second.get(key):
                different.add(name)
    assert {"bpe", "coop_kernel_ucb", "duets", "one_kernel_ucb", "push_gossip_kernel_ucb"} <= compared
    assert {"async_kernel_ucb", "async_lin_ucb", "dis_lin_ucb", "fed_lin_ucb"} <= different
