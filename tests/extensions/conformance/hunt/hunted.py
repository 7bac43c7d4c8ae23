"""Small scenarios with every algorithm, to hunt in."""

from typing import Any

from coband.extensions.conformance.runs import ARMS, FIXED_PROBLEM, PROBLEM, STEADY_PROBLEM, TASKS, algorithm
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.scenario.scenario import Scenario

QUORUM = {"quorum": 0.5, "timeout": 1.0}
NEURAL = {"width": 4, "steps": 2, "threshold": 0.5}
CONTEXTS = {
    "kind": "network",
    "kernel": {"kind": "gaussian", "gamma": 1.0},
    "contexts": {"kind": "ball", "dimension": 2},
    "arms": {"kind": "pool", "dimension": 3, "size": 6},
}
ROUNDS = {"kind": "rounds", "turns": 8}
PHASES = {"kind": "phases", "pull_time": 1e-3}


def entry(algorithm: str, label: str | None = None, **parameters: Any) -> dict[str, Any]:
    return {"algorithm": algorithm, "label": label or algorithm, **parameters}


HUNTED: dict[str, dict[str, Any]] = {
    "synchronous": {
        "schedule": ROUNDS,
        "problem": PROBLEM,
        "algorithms": [
            entry("approx_dis_kernel_ucb", threshold=0.5),
            entry("approx_dis_kernel_ucb", "approx quorum", threshold=0.5, wait=QUORUM),
            entry("dis_kernel_ucb"),
            entry("dis_kernel_ucb", "dis quorum", wait=QUORUM),
            entry("dis_lin_ucb"),
            entry("dis_lin_ucb", "dis lin quorum", wait=QUORUM),
            entry("discounted_dis_lin_ucb", gamma=0.9),
            entry("discounted_dis_lin_ucb", "discounted quorum", gamma=0.9, wait=QUORUM),
            entry("fed_glb_ucb", threshold=0.3, max_rounds=3),
            entry("fn_ucb", **NEURAL),
            entry("fn_ucb", "fn quorum", **NEURAL, wait=QUORUM, less_comm=False),
            entry("fn_ucb", "fn every turn", **{**NEURAL, "threshold": 0.0}, diagonal=True),
            entry("fn_ucb", "fn best", **NEURAL, wait=QUORUM, diagonal=True, average="best", train_from="averaged"),
        ],
    },
    "asynchronous": {
        "schedule": ROUNDS,
        "problem": PROBLEM,
        "algorithms": [
            entry("async_kernel_ucb", threshold=0.5),
            entry("async_kernel_ucb", "blocking", threshold=0.5, blocking=True, transfer="delta"),
            entry("async_kernel_ucb", "interleaved", threshold=0.5, server={"exchanges": "interleaved"}),
            entry("async_kernel_ucb", "delta", threshold=0.5, transfer="delta", server={"exchanges": "interleaved"}),
            entry("fed_lin_ucb", threshold=0.2),
            entry("async_lin_ucb", gamma_u=1.3, gamma_d=1.3),
            entry("async_lin_ucb_am", gamma_u=1.3, gamma_d=1.3),
            entry("fed_lin_ucb", "fed lin blocking", threshold=0.2, blocking=True),
            entry("fed_ucb", threshold=20.0),
            entry("one_kernel_ucb"),
            entry("n_kernel_ucb"),
        ],
    },
    "fixed": {
        "schedule": ROUNDS,
        "problem": FIXED_PROBLEM,
        "algorithms": [
            entry("duets"),
            entry("duets", "public", inducing="rate", elimination="ucb", beta="theory"),
            entry("bpe"),
            entry("delb", C=0.001),
            entry("rclb", C=0.01),
            entry("pls", C=0.002),
            *(entry(name, features=20, initial=3) for name in ("fts", "fts_de", "dp_fts", "dp_fts_de")),
            entry("gp_ucb"),
        ],
    },
    "steady": {
        "schedule": {"kind": "rounds", "turns": 20},
        "problem": STEADY_PROBLEM,
        "algorithms": [
            entry("fed_pe"),
            entry("fed_pe", "fed pe together", variant="collaborative", parameters="shared"),
        ],
    },
    "exploration": {
        "schedule": PHASES,
        "problem": TASKS,
        "algorithms": [
            entry("co_kernel_fc"),
            entry("co_kernel_fc", "by server", via="server"),
            entry("co_kernel_fb", budget=200),
            entry("co_kernel_fb", "fb by server", budget=200, via="server", allocation="individual"),
            entry("ind_rage"),
        ],
    },
    "graph": {
        "schedule": ROUNDS,
        "problem": CONTEXTS,
        "network": {"topology": {"kind": "ring"}},
        "algorithms": [
            entry("coop_kernel_ucb", hops=2),
            entry("eager_kernel_ucb", hops=2, network_kernel="mmd"),
            entry("naive_coop", hops=2),
            entry("dist_kernel_ucb", hops=2),
            entry("push_gossip_kernel_ucb"),
            entry("gob_lin"),
            entry("club"),
            entry("fed_ucb_graph", threshold=20.0),
        ],
    },
    "k_armed": {
        "schedule": ROUNDS,
        "problem": ARMS,
        "network": {"topology": {"kind": "ring"}},
        "algorithms": [
            entry("ucb1", sharing="all"),
            *(entry(name) for name in ("coop_ucb2", "dd_ucb", "dec_ts", "dec_ucb", "gossip_se", "ucb_odc")),
            entry("ucb_odc", "redemand", redemand=3.0),
            entry("gosine", growth=1.5),
            entry("flooding_ucb"),
            entry("flooding_ucb", "absorption", absorption=True),
        ],
    },
}
MOVES = {
    "count": 5,
    "joins": {"kind": "poisson", "rate": 0.5, "at_start": 2},
    "leaves": {"kind": "poisson", "rate": 0.06},
}
"""Agents that join and leave, at other times with each seed."""


def _moving(*families: str) -> list[dict[str, Any]]:
    """Their algorithms, with the number of turns that those have to be told which cannot read it off the schedule."""
    entries = [one for family in families for one in HUNTED[family]["algorithms"]]
    return [one | {"horizon": 32} if algorithm(one["algorithm"]).needs.horizon else one for one in entries]


HUNTED |= {
    "members": {**HUNTED["asynchronous"], "agents": MOVES, "algorithms": _moving("synchronous", "asynchronous")},
    "members_graph": {**HUNTED["graph"], "agents": MOVES, "algorithms": _moving("graph")},
    "members_k_armed": {**HUNTED["k_armed"], "agents": MOVES, "algorithms": _moving("k_armed")},
}


def hunted(name: str, **changes: Any) -> Scenario:
    document = {"name": f"hunted_{name}", "agents": {"count": 4}, **HUNTED[name], **changes}
    return loads(to_yaml(document))


def impatient(name: str) -> Scenario:
    """One of the scenarios on a network that sends no copy twice: whatever is lost is given up at once."""
    network = {**HUNTED[name].get("network", {}), "retransmission": {"max_attempts": 1}}
    return hunted(name, network=network)
