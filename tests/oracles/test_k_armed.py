"""The oracles of K-armed bandits: first turns by hand, closed forms of message counts, sums that averaging keeps."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.oracles import OracleRun, k_armed
from tests.oracles.k_armed import alone, coop_ucb2, dd_ucb, dec, flooding_ucb, gosine, gossip_se, ucb1, ucb_odc
from tests.oracles.local import Flooding
from tests.oracles.turns import coins, rounds

MEANS = [0.2, 0.5, 0.9]
PATH = [[1], [0, 2], [1]]
EDGES = 2


def cycle(agents: int) -> list[list[int]]:
    return [sorted({(v - 1) % agents, (v + 1) % agents} - {v}) for v in range(agents)]


def complete(agents: int) -> list[list[int]]:
    return [[u for u in range(agents) if u != v] for v in range(agents)]


def play(run: Any, turns: int = 20, adjacency: Any = PATH, schedule: Any = None, **config: Any) -> OracleRun:
    """Rounds on a path of three unless said otherwise."""
    c, N = SimpleNamespace(**{"means": MEANS, "noise": 0.3, "seed": 1, "offered": None, **config}), len(adjacency)
    world = k_armed.KArmed(c.means, N, turns, c.seed, c.noise, c.offered)
    return run(schedule or rounds(N, turns), world, c, coins(c.seed), N, adjacency)  # type: ignore[no-any-return]


def places(run: OracleRun, agent: int) -> list[int]:
    return [place for v, _, place, _, _ in run.pulls if v == agent]


def pairs(run: OracleRun) -> str:
    """Who sent to whom, in order."""
    return " ".join(f"{source}{destination}" for _, source, destination, _ in run.messages)


def pulled(run: OracleRun, K: int = 3) -> list[int]:
    return [sum(1 for pull in run.pulls if pull[2] == k) for k in range(K)]


def total(run: OracleRun, name: str = "n") -> list[float]:
    """The sum over the agents of what they know, by arm."""
    return [sum(column) for column in zip(*(state[name] for state in run.state), strict=True)]


@pytest.mark.parametrize("kind", ["metropolis", "max_degree", "neighbours", "n"])
def test_rows_of_averaging_matrices_sum_to_one_and_so_do_columns_but_of_neighbours(kind: str) -> None:
    W = np.array(k_armed.averaging_matrix([[1, 2, 3], [0], [0, 3], [0, 2]], kind))
    assert np.allclose(W.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(W.sum(axis=0), 1, atol=1e-12) == (kind != "neighbours")
    assert W[2, 3] == pytest.approx(1 / 3 if kind in ("metropolis", "neighbours") else 1 / 4)


def test_ucb1_pulls_each_arm_once_then_the_best_bound_and_a_shared_pull_counts_as_own() -> None:
    run = play(ucb1.run, alpha=2, sd=0.5, sharing="none")
    assert places(run, 0)[:3] == [0, 1, 2]
    assert not run.messages
    first = [reward for v, _, _, reward, _ in run.pulls if v == 0][:3]
    assert places(run, 0)[3] == int(np.argmax(first))  # equal widths
    run = play(ucb1.run, alpha=2, sd=0.5, sharing="all", schedule=[[0], [1], [0], [2]])
    assert [pull[2] for pull in run.pulls] == [0, 1, 2, 0]  # agent 2 heard only of arm 1
    assert run.messages[:2] == [("arm_reward", 0, 1, 2), ("arm_reward", 1, 0, 2)]
    assert run.state[0]["n"] == [1, 1, 1]
    run = play(ucb1.run, alpha=2, sd=0.5, sharing="all", adjacency=complete(3))
    assert len(run.messages) == 2 * 3 * 20
    assert all(state["n"] == pulled(run) for state in run.state)


def test_agents_alone_count_their_rewards() -> None:
    run = play(alone.thompson_bernoulli, noise=0.0)
    a, b = total(run, "a"), total(run, "b")
    assert [x + y - 6 for x, y in zip(a, b, strict=True)] == pulled(run)
    assert sum(a) - 9 == sum(pull[3] for pull in run.pulls)
    assert play(alone.epsilon_greedy, epsilon=0.0).pulls[-1][2] == 2
    run = play(alone.epsilon_greedy, 3000, epsilon="decay", c=5, d=0.4)
    assert total(run) == pulled(run)
    explored = sum(min(1, 5 * 3 / (0.4**2 * t)) for t in range(1, 3001))
    assert 0.8 * explored < pulled(run)[0] < 1.2 * explored  # a third of the draws of three agents


def test_coop_ucb2_averages_counts_and_keeps_their_sum() -> None:
    config = {"sigma": 0.5, "eta": 2, "gamma": 2.9, "weights": "max_degree", "missing": "own"}
    run = play(coop_ucb2.run, 40, **config)
    assert np.allclose(total(run), pulled(run), rtol=0, atol=1e-9)
    assert [len(run.messages), run.downlink] == [2 * EDGES * 40, 4 * EDGES * 3 * 40]
    assert all(places(run, v)[:3] == [0, 1, 2] for v in range(3))
    for missing, count in {"own": 10 / 9, "last": 29 / 27, "reweigh": 7 / 6}.items():
        run = play(coop_ucb2.run, schedule=[[0], [1], [1]], **{**config, "missing": missing})
        assert run.state[0]["n"][0] == pytest.approx(count)


def test_dec_ts_counts_a_reward_for_all_and_keeps_the_sum_of_evidence() -> None:
    run = play(dec.dec_ts, noise=0.0, weights="metropolis")
    evidence = [(a + b - 6) / 3 for a, b in zip(total(run, "a"), total(run, "b"), strict=True)]
    assert np.allclose(evidence, pulled(run), rtol=0, atol=1e-9)
    assert [len(run.messages), run.downlink] == [2 * EDGES * 20, 4 * EDGES * 3 * 20]


@pytest.mark.parametrize("weights", ["metropolis", "neighbours"])
def test_dec_ucb_tracks_means_and_never_falls_far_behind(weights: str) -> None:
    run = play(dec.dec_ucb, 200, weights=weights)
    means = [sum(state["s"][k] / state["n"][k] for state in run.state) for k in range(3)]
    assert np.allclose(total(run, "z"), means, rtol=0, atol=1e-9) == (weights == "metropolis")
    assert len(run.messages) == 2 * EDGES * (200 - 3 + 1)
    assert all(n > m - 3 - 2 for state in run.state for n, m in zip(state["n"], state["m"], strict=True))
    run = play(dec.dec_ucb, schedule=[[0]] * 3 + [[1]] * 12, weights=weights)
    rewards = {place: reward for v, _, place, reward, _ in run.pulls if v == 0}
    first, share = rewards[0], 1 / 3 if weights == "metropolis" else 1 / 2
    assert run.state[0]["z"][0] == pytest.approx((1 - share) * first + share * run.state[1]["z"][0])
    run = play(dec.dec_ucb, schedule=[[1]] * 3 + [[2]] * 3 + [[0]] * 12 + [[1], [2]], weights=weights)
    assert run.state[2]["m"] == np.max([state["n"] for state in run.state], axis=0).tolist()  # by way of agent 1


def test_gossip_se_pulls_in_turn_then_drops_and_tells() -> None:
    run = play(gossip_se.run, 300, complete(3), noise=0.01, p=1.0, horizon=60, L=2, tau=None)
    assert places(run, 0)[:6] == [0, 1, 2] * 2
    assert all(state["active"] == [2] for state in run.state)
    means = [sum(state["s"][k] / state["n"][k] for state in run.state) for k in range(3)]
    assert np.allclose(total(run, "z"), means, rtol=0, atol=1e-9)
    assert [len(run.messages), run.downlink] == [2 * 3 * 300, 4 * 3 * 3 * 300]
    assert gossip_se.connectivity(complete(5)) == pytest.approx(5)
    run = play(gossip_se.run, 4, cycle(4), p=0.5, horizon=100, L=None, tau=None)  # nothing is dropped before L pulls
    assert pulled(run) == [8, 4, 4]


def test_ucb_odc_messages_of_a_pair_alternate() -> None:
    run = play(ucb_odc.run, 60, alpha=2, sd=0.5, threshold=2, growth=1, redemand=None)
    assert run.messages[:2] == [("totals", 0, 1, 6), ("totals", 1, 0, 6)]
    assert len(run.messages) == 2 * EDGES * 60 / 2
    run = play(ucb_odc.run, schedule=[[0]] * 10 + [[1], [0], [1], [2], [1]], alpha=2, sd=0.5, threshold=1, growth=2)
    assert pairs(run) == "01 10 12 01 21 10 12"
    assert run.state[1]["sent"] == {0: 2, 2: 2}
    assert sum(run.state[1]["n"]) == 3 + 1 + 10 + 1
    assert (run.state[1]["open"], run.state[2]["open"]) == ({0: False, 2: False}, {1: True})


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_gosine_asks_once_per_phase_and_keeps_what_is_sticky(mode: str) -> None:
    run = play(gosine.run, 64, means=[0.1] * 5 + [0.9], mode=mode, growth=3, slack=0.5, alpha=4)
    assert places(run, 0)[:4] == [0, 1, 2, 3]
    assert all(state["held"][:2] == [2 * v, 2 * v + 1] for v, state in enumerate(run.state))
    assert all(len(set(state["held"])) == 4 for state in run.state)
    phases = [state["phase"] - 1 for state in run.state]
    assert len(run.messages) == 2 * sum(phases)
    assert phases == [4, 4, 4] if mode == "synchronous" else all(3 <= phase <= 4 for phase in phases)
    assert 5 in run.state[1]["held"]


def test_flooding_copies_are_those_of_a_walk_by_hops_and_absorption_saves_some() -> None:
    walk = Flooding(cycle(8), hops=3)
    for time in range(10):
        walk.trial([(time, v) for v in range(8)])
    run = play(flooding_ucb.run, 10, cycle(8), hops=3, absorption=False)
    assert len(run.messages) == walk.transmissions
    assert sum(total(run)) == 80 + walk.deliveries
    assert len(play(flooding_ucb.run, 10, cycle(8), hops=3, absorption=True).messages) == 2 * 8 * 10
    assert len(play(flooding_ucb.run, 10, cycle(8), hops=1, absorption=False).messages) == 2 * 8 * 10
    run = play(flooding_ucb.run, schedule=[[0], [1], [2], [1]], hops=2, absorption=False)
    assert pairs(run) == "01 10 12 12 21 10 12 10"


@pytest.mark.parametrize("accelerated", [True, False])
def test_dd_ucb_stages_keep_sums_and_have_the_papers_length(accelerated: bool) -> None:
    config = {"accelerated": accelerated, "eta": 2, "eps": 1 / 22, "sd": 0.5, "weights": "max_degree", "fresh": False}
    run = play(dd_ucb.run, 100, cycle(6), **config)
    assert [len(run.messages), run.downlink] == [2 * 6 * 97, 2 * 6 * 97 * 8]
    tables = ["alpha", "beta", "gamma"] if accelerated else ["beta", "gamma"]
    known = np.sum([total(run, name) for name in tables], axis=0)[3:]
    assert np.allclose(known, pulled(run), rtol=0, atol=1e-9)
    stage = 7 if accelerated else 13
    assert len(set(places(run, 0)[3 : 3 + stage])) == 1
    assert len(set(places(play(dd_ucb.run, 3 + stage, cycle(6), **{**config, "fresh": True}), 0)[3:])) > 1


TEN = [0.8, 0.6, 0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.1]
GOSINE = {"means": TEN, "turns": 2744, "growth": 3, "slack": 0.5, "alpha": 4}
DEC_TS = {"means": [0.7, 0.5, 0.3], "turns": 300, "weights": "metropolis"}
DEC_UCB = {"means": [0.8, 0.6, 0.3], "turns": 1000, "skip": 3}  # does not count the initialisation
FLOODING = {"means": [0.2, 0.4, 0.6, 0.9], "turns": 300, "noise": 1.0, "offered": 3}
FACTS: list[tuple[Any, list[list[int]], float, float, dict[str, Any]]] = [
    (gosine.run, complete(4), 195.6, 1.9, {**GOSINE, "mode": "synchronous"}),
    (gosine.run, complete(4), 198.5, 3.0, {**GOSINE, "mode": "asynchronous"}),
    (gosine.run, [[]], 386.5, 4.0, {**GOSINE, "mode": "synchronous"}),
    (dec.dec_ts, cycle(4), 3.24, 0.22, DEC_TS),
    (dec.dec_ts, complete(4), 2.86, 0.18, DEC_TS),
    (alone.thompson_bernoulli, [[]], 8.2, 0.6, DEC_TS),
    (dec.dec_ucb, cycle(4), 32.46, 0.25, {**DEC_UCB, "weights": "neighbours"}),
    (dec.dec_ucb, [[]], 32.4, 0.53, {**DEC_UCB, "weights": "neighbours"}),
    (dec.dec_ucb, cycle(4), 26.85, 0.24, {**DEC_UCB, "weights": "metropolis"}),
    (dec.dec_ucb, [[]], 54.9, 0.53, {**DEC_UCB, "weights": "metropolis"}),
    (flooding_ucb.run, [[]] * 8, 230 / 8, 12 / 8, {**FLOODING, "hops": 1, "absorption": False}),
    (flooding_ucb.run, cycle(8), 185 / 8, 11 / 8, {**FLOODING, "hops": 1, "absorption": False}),
    (flooding_ucb.run, cycle(8), 104 / 8, 11 / 8, {**FLOODING, "hops": 3, "absorption": False}),
    (flooding_ucb.run, cycle(8), 134 / 8, 6 / 8, {**FLOODING, "hops": 3, "absorption": True}),
]
"""Who runs, the graph, the regret per agent of the published program (Dec-UCB: 200 runs of it, or 50) and its standard
error, the setting."""


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(FACTS)))
def test_regret_is_that_of_public_codes(row: int) -> None:
    run, adjacency, published, error, setting = FACTS[row]
    N, regrets = len(adjacency), []
    for seed in range(20 if setting["turns"] > 1000 else 100):
        rng, drawn = np.random.default_rng([seed, row]), {}
        if "offered" in setting:
            drawn["offered"] = [sorted(rng.choice(4, setting["offered"], replace=False)) for _ in range(N)]
        result = play(run, adjacency=adjacency, seed=seed, **{"noise": 0.0, **setting, **drawn})
        regrets.append(sum(pull[4] for pull in result.pulls if pull[1] > setting.get("skip", 0)) / N)
    own = np.std(regrets) / len(regrets) ** 0.5
    assert np.mean(regrets) == pytest.approx(published, abs=3 * np.hypot(own, error))


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "growth", "speed", "sent"), [(1, 1, 1, 30108), (10, 1, 50, 620), (1, 2, 1, 302)])
def test_on_demand_messages_are_as_many_as_once_counted(threshold: int, growth: int, speed: int, sent: int) -> None:
    acting = np.random.default_rng(1).choice(6, (12000, 1), p=np.array([speed] + [1] * 5) / (speed + 5)).tolist()
    config = {"alpha": 2, "sd": 0.5, "threshold": threshold, "growth": growth}
    run = play(ucb_odc.run, 12000, complete(6), schedule=acting, **config)
    assert len(run.messages) == pytest.approx(sent, rel=0.05)
