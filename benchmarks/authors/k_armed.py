"""Algorithms with K arms against the programs of their authors, in small worlds. ``COBAND_DD_UCB_CODE`` and so on name
checkouts of `PROGRAMS`; the second argument is one of `CASES`.

What draws a reward in a program is replaced by the world's rewards. What else is random (GosInE's partners, posteriors)
differs. Faults that only the programs have are mended: DDUCB's tables share storage, so that own pulls of a stage stay
in them, and agents of flooding take in their own messages, and send messages back. DDUCB still makes all steps of
mixing in each step, with an s that grows; Dec-UCB counts t from its first K turns on; its m is the last neighbour's.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, cycle
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks.authors import checkout, compared, program, timed
from coband.extensions.conformance.runs import world


class Case(NamedTuple):
    """A setting."""

    algorithm: str
    config: dict[str, Any]
    graph: str
    agents: int
    turns: int
    problem: dict[str, Any]


class Rewards:
    """A world's rewards as a program asks for them, by agents in turn where it does not say whose they are."""

    def __init__(self, case: Case, seed: int) -> None:
        self.world, self.regret, self._turns = world(case.problem, seed, case.agents), 0.0, [0] * case.agents
        self.means: list[float] = self.world.describe()["means"]
        self.order: Iterator[int] = cycle(range(case.agents))

    def __call__(self, arm: int, agent: int | None = None) -> float:
        agent = next(self.order) if agent is None else agent
        self._turns[agent] += 1
        reward, lost = self.world.pull(agent, self._turns[agent], arm)
        self.regret += lost
        return float(reward)

    def of(self, mean: float, sd: float = 1.0) -> float:
        """The same where the program only gives the arm's mean; -1 in the order is an agent without a world."""
        agent = next(self.order)
        return 0.0 if agent < 0 else self(self.world.means(agent, 1).tolist().index(mean), agent)


def dd_ucb(code: Any, case: Case, rewards: Rewards) -> None:
    N, K, W = case.agents, len(rewards.means), code.compute_P(case.agents, "cycle")
    rewards.order = chain(np.repeat(range(N), K).tolist(), cycle(range(N)))
    arms, second = [partial(rewards, arm) for arm in range(K)], code.compute_constants(W, N)[1]
    copying = {"__setattr__": lambda table, name, value: object.__setattr__(table, name, np.array(value))}
    with mock.patch.object(code, "RewNumPulls", type("Tables", (code.RewNumPulls,), copying)):
        code.DDUCB(W, N, case.turns - 1, second, arms, 1 / 22, 2, 0.25, 0.0, case.config["accelerated"])


def dec_ts(code: Any, case: Case, rewards: Rewards) -> None:
    def drawn(agent: Any) -> float:
        agent.curr_reward = rewards(int(agent.curr_arm))
        return 0.0

    code.Thompson_sampling.get_reward_regret = drawn
    W, ones = code.compute_W(case.agents, case.graph.replace("ring", "cycle")), np.ones(len(rewards.means))
    code.run_MultiAgent_TS(case.turns, 1, W, ones, ones, np.array(rewards.means), 0, save=False, rerun=True)


def dec_ucb(code: Any, case: Case, rewards: Rewards) -> None:
    graph, K = code.nx.cycle_graph(case.agents), len(rewards.means)
    graph.add_edges_from((v, v) for v in graph)
    draws = [[SimpleNamespace(rvs=partial(rewards, arm, v)) for arm in range(K)] for v in graph]
    rule = 1 if case.config["weights"] == "neighbours" else 2
    code.Dec_UCB(graph, case.turns - K + 1, rule, rewards.means, draws).run()


def flooding_ucb(code: Any, case: Case, rewards: Rewards) -> int:
    """The copies that were sent."""

    class Agent(code.Agent):  # type: ignore[misc]
        def pull(self, arm: int) -> Any:
            message = super().pull(arm)
            self.history.append(message.hash_value)
            return message

    def passed(message: Any, agent: int) -> None:
        message.v_prev, message.holder = getattr(message, "holder", message.v_prev), agent

    N, hops, means = case.agents, case.config["hops"], dict(enumerate(rewards.means))
    graph, protocol = code.nx.cycle_graph(N), "Flooding" + "Absorption" * case.config.get("absorption", False)
    offered = [rewards.world.arms(v, 1).argmax(axis=1).tolist() for v in graph]
    agents = [Agent(v, offered[v], means, graph, hops, protocol, len(means)) for v in graph]
    for agent in agents:
        agent.history = code.deque(maxlen=hops * N)
    code.Message.update = passed
    with mock.patch.object(np.random, "normal", rewards.of):
        code.run_ucb(code.Problem(graph, agents, case.turns, N, len(means), (protocol, None, hops, 1, 1)), 1)
    return sum(agent.communication for agent in agents)


def gosine(code: str, case: Case, rewards: Rewards) -> None:
    """The program is a script with constants of its own, in which an agent without neighbours pulls first."""
    rewards.order = cycle([-1, *range(case.agents)])
    space = {"n": case.agents, "K": len(rewards.means), "m": round(case.turns ** (1 / 3)), "itr": 1}
    script = re.sub(r"(?m)^(n|K|m|itr|mu)\b *[=\[].*", "", code.split("# computing mean")[0])
    draw = type("Draw", (), {"__le__": lambda self, mean: rewards.of(mean) > 0})
    with mock.patch.multiple(np, create=True, int=int, Inf=np.inf), mock.patch.object(np.random, "rand", draw):
        exec(script, {**space, "mu": np.array(rewards.means)})


DD = "ring", 6, 1000, {"kind": "k_armed", "means": [0.8, 0.5, 0.4], "reward": "gaussian", "sd": 0.5}
TS, UCB = (4, 300, {"kind": "k_armed", "means": [0.7, 0.5, 0.3]}), (1002, {"kind": "k_armed", "means": [0.8, 0.6, 0.3]})
FLOODING = "ring", 8, 300, {"kind": "k_armed", "means": [0.2, 0.4, 0.6, 0.9], "reward": "gaussian", "offered": 3}
TEN = 2744, {"kind": "k_armed", "means": [0.8, 0.6, 0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.1]}
CASES = {
    "dd_ucb": Case("dd_ucb", {"fresh": True, "accelerated": True}, *DD),
    "dd_ucb_plain": Case("dd_ucb", {"fresh": True, "accelerated": False}, *DD),
    "dec_ts_ring": Case("dec_ts", {}, "ring", *TS),
    "dec_ts_complete": Case("dec_ts", {}, "complete", *TS),
    "dec_ucb_1": Case("dec_ucb", {"weights": "neighbours"}, "ring", 4, *UCB),
    "dec_ucb_2": Case("dec_ucb", {"weights": "metropolis"}, "ring", 4, *UCB),
    "flooding_1": Case("flooding_ucb", {"hops": 1}, *FLOODING),
    "flooding_3": Case("flooding_ucb", {"hops": 3}, *FLOODING),
    "absorption": Case("flooding_ucb", {"hops": 3, "absorption": True}, *FLOODING),
    "gosine": Case("gosine", {}, "complete", 4, *TEN),
    "gosine_asynchronous": Case("gosine", {"mode": "asynchronous"}, "complete", 4, *TEN),
}
PROGRAMS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "dd_ucb": ("damaru2/decentralized-bandits", "bandit algorithms executions.py", dd_ucb),
    "dec_ts": ("anushalalitha5/Decentralized-Thompson-Sampling", "utils_decentralized.py", dec_ts),
    "dec_ucb": ("csasmith/vip-mab", "code/NIPS2021CodeSubmission/Dec_UCB.py", dec_ucb),
    "flooding_ucb": ("nick-jhlee/bandits-network", "algorithms.py", flooding_ucb),
    "gosine": ("ronshee/gosine", "Synch.py", gosine),
}


def main(worlds: int = 100, name: str = "dd_ucb") -> int:
    """Compare; 0 whatever the outcome, which the module explains."""
    case = CASES[name]
    repository, file, play = PROGRAMS[case.algorithm]
    place = f"COBAND_{case.algorithm.upper()}_CODE", repository, "Asynch.py" if "mode" in case.config else file
    code: Any = checkout(*place).read_text()
    for absent in ("matplotlib", "matplotlib.pyplot", "seaborn", "tqdm"):  # only figures and progress need them
        sys.modules.setdefault(absent, mock.MagicMock())
    if case.algorithm != "gosine":
        code = program(*place)
    pairs, plan = [], {"schedule": {"kind": "rounds", "turns": case.turns}, "network": {"topology": case.graph}}
    for seed in range(worlds):
        result, seconds = timed(case.algorithm, case.config, case.problem, case.agents, seed, **plan)
        rewards, started = Rewards(case, seed), time.process_time()
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  programs draw from the global streams
        with mock.patch("builtins.print"), np.errstate(divide="ignore"):
            copies = play(code, case, rewards)
        own, other = (result.regret, seconds), (rewards.regret, time.process_time() - started)
        if copies:
            own, other = (result.totals["transmissions"], *own), (copies, *other)
        pairs.append((own, other))
    print(f"{name}: {case}")
    compared(pairs, *("copies", "regret")[-len(pairs[0][0]) + 1 :])
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:3]))
