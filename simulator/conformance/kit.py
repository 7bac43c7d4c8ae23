"""What every registered algorithm must pass, whatever it computes.

Runs on a small world: the same run twice, with work shared or not; random delays, loss and slow agents leave nothing
lost or counted twice; payloads are what the ledger counts; sizes of messages, closed forms and metrics are what the
algorithm declares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coband.simulator.conformance import graphs, runs
from coband.simulator.conformance.communication import check_closed_forms, check_memory, check_messages, check_metrics
from coband.simulator.conformance.demands import demand
from coband.simulator.conformance.runs import Run, algorithm, batches, run
from coband.simulator.core.audit import trace as tr

SCHEDULES: dict[str, dict[str, Any]] = {
    "one_at_a_time": {"kind": "one_at_a_time", "turns": 60},
    "rounds": {"kind": "rounds", "turns": 15},
    "renewal": {"kind": "renewal", "turns": 15, "think": {"kind": "exponential", "rate": 1.0}},
}
PHASES: dict[str, dict[str, Any]] = {
    "instant": {"kind": "phases", "pull_time": 0.0},
    "phases": {"kind": "phases", "pull_time": 1e-3},
}
FAULTS: dict[str, Any] = {
    "latency": {"kind": "exponential", "rate": 2.0},
    "loss": {"kind": "gilbert_elliott", "p": 0.1, "r": 0.4, "k": 0.95},
    "duplicate": 0.2,
    "partitions": [{"start": 8.0, "end": 9.0, "groups": [[1]], "one_way": True}],
}
NETWORKS: dict[str, dict[str, Any]] = {
    "ideal": {},
    "constant": {"latency": 0.7},
    "random": {"latency": {"kind": "lognormal", "median": 1.5, "sigma": 1.0}},
    "heavy": {"latency": {"kind": "pareto", "minimum": 0.2, "shape": 1.2}, "bandwidth": 60.0},
    "narrow": {"server": {"uplink": 40.0, "downlink": 80.0}, "latency": 0.1},
    "lossy": {"latency": {"kind": "exponential", "rate": 2.0}, "loss": 0.3},
    "faulty": {
        **FAULTS,
        "server": {"uplink": {"scalars": 200.0, "burst": 100.0}},
        "outages": [{"start": 4.0, "end": 8.0, "nodes": ["server", 1]}],
    },
}
GRAPH_NETWORKS: dict[str, dict[str, Any]] = {
    "narrow": {"bandwidth": 40.0, "latency": 0.1},
    "lossy": {**NETWORKS["lossy"], "partitions": [{"start": 3.0, "end": 6.0, "groups": [[0]]}]},
    "faulty": {**FAULTS, "outages": [{"start": 4.0, "end": 8.0, "nodes": [1]}]},
}
AGENTS: dict[str, dict[str, Any]] = {
    "fast": {},
    "slow": {
        "compute": {"kind": "shifted_exponential", "shift": 0.2, "rate": 2.0},
        "handling": {"kind": "exponential", "rate": 4.0},
        "stragglers": {"fraction": 0.34, "slowdown": 8},
    },
}
EXTRA: dict[str, dict[str, Any]] = {
    "churn": {**AGENTS["slow"], "availability": {"kind": "markov_on_off", "mean_up": 6.0, "mean_down": 3.0}},
}


@dataclass(frozen=True)
class Case(ABC):
    """One thing to check of an algorithm with certain parameters."""

    algorithm: str
    config: Mapping[str, Any] = field(hash=False)

    @abstractmethod
    def check(self) -> None:
        """Run and compare.

        Raises:
            NonConformance: the algorithm does not keep what it must.
        """

    def __str__(self) -> str:
        return "-".join([self.algorithm, *map(str, self.config)])


@dataclass(frozen=True)
class NothingLost(Case):
    """On one network and schedule, whoever is slow: nothing is lost or counted twice."""

    network: str
    schedule: str

    def check(self) -> None:
        for agents in AGENTS if self.network != "faulty" else ("churn",):
            result = simulate(self.algorithm, dict(self.config), self.schedule, self.network, agents, seed=3)
            check_complete(result, turns_of(self.schedule))
            check_ledger(result)
            check_messages(self.algorithm, result)

    def __str__(self) -> str:
        return f"{super().__str__()}-{self.schedule}-{self.network}"


@dataclass(frozen=True)
class AsDeclared(Case):
    """Without delays: sizes of messages, closed forms and metrics are what the algorithm declares."""

    schedule: str

    def check(self) -> None:
        result = simulate(self.algorithm, dict(self.config), self.schedule, "ideal", "fast", seed=3)
        check_messages(self.algorithm, result)
        check_closed_forms(self.algorithm, result, self.schedule)
        check_memory(self.algorithm, result)
        small = problem_of if on_graph(self.algorithm) else runs.problem_of
        check_metrics(self.algorithm, result, small(self.algorithm)["kind"])

    def __str__(self) -> str:
        return f"{super().__str__()}-{self.schedule}-as_declared"


@dataclass(frozen=True)
class Deterministic(Case):
    """The same scenario and seed give the same run, whether work is shared or not."""

    def check(self) -> None:
        check_deterministic(self.algorithm, dict(self.config))

    def __str__(self) -> str:
        return f"{super().__str__()}-deterministic"


def cases(name: str, *variants: Mapping[str, Any]) -> list[Case]:
    """All cases of a registered algorithm, for each of some variants of its parameters (its defaults if none)."""
    found: list[Case] = []
    for config in variants or ({},):
        found += [
            NothingLost(name, config, network, schedule) for network in NETWORKS for schedule in schedules_of(name)
        ]
        found += [AsDeclared(name, config, schedule) for schedule in schedules_of(name)]
        found.append(Deterministic(name, config))
    return found


def simulate(
    name: str, config: dict[str, Any], schedule: str, network: str, agents: str, seed: int, **more: Any
) -> Run:
    """One run of the kit; invariants are checked after every message.

    Algorithms without a server run on a line of agents, with a time to live of two hops where they have one.
    """
    if on_graph(name):
        entry = algorithm(name)
        hops = {"hops": 2} if "hops" in entry.config.model_fields else {}
        return graphs.run(
            name,
            {**hops, **config},
            problem_of(name),
            topology="line",
            agents=3,
            seed=seed,
            agent=(AGENTS | EXTRA)[agents],
            schedule=SCHEDULES[schedule],
            network=GRAPH_NETWORKS.get(network, NETWORKS[network]),
            **more,
        )
    return run(
        name,
        config,
        agents=3,
        seed=seed,
        schedule=schedules_of(name)[schedule],
        network=NETWORKS[network],
        agent=(AGENTS | EXTRA)[agents],
        **more,
    )


def schedules_of(name: str) -> dict[str, dict[str, Any]]:
    """The schedules that an algorithm runs on."""
    return PHASES if batches(name) else SCHEDULES


def on_graph(name: str) -> bool:
    """Whether the algorithm needs a graph of agents."""
    return "star" not in algorithm(name).needs.topologies


def problem_of(name: str) -> dict[str, Any]:
    """A small problem with network contexts that a peer-to-peer algorithm can run on."""
    fixed = algorithm(name).needs.fixed_arms
    return {
        "kind": "network",
        "kernel": {"kind": "gaussian", "gamma": 1.0},
        "contexts": {"kind": "ball", "dimension": 2},
        "arms": graphs.POOL if fixed else {"kind": "ball", "dimension": 3, "count": 5},
    }


def check_complete(result: Run, turns: int | None) -> None:
    """All turns were taken, every pull is with the server or still with its agent, every copy accounted for.

    ``turns``: how many; None for an algorithm that stops by its own rule, and then every agent must have stopped.
    """
    run_result, clients = result.result, result.engine.agents
    if turns is None:
        turns = run_result.turns
        demand(all(agent.done for agent in clients), "an agent has not stopped, though nothing is going on any more")
    demand(run_result.turns == turns, f"{run_result.turns} turns were taken, not {turns}")
    demand(run_result.stalled == 0, f"{run_result.stalled} turns were never taken: agents waited in vain")
    server = result.engine.server
    applied = server.applied if server is not None else 0
    unshared = sum(agent.unshared for agent in clients)
    demand(
        applied + unshared == turns,
        f"the server has applied {applied} pulls (Server.applied) and agents keep {unshared} (Client.unshared); "
        f"together that must be the {turns} pulls of the run",
    )
    demand(not any(agent.waiting for agent in clients), "an agent still waits at the end of the run")
    for kind, copies in run_result.audit.copies.items():
        made, fates = copies.sent + copies.duplicated, copies.delivered + copies.dropped + copies.duplicates
        demand(made == fates, f"{made} copies of {kind!r} were sent or doubled, but {fates} have come to an end")


def check_ledger(result: Run) -> None:
    """The ledger's totals are the sums over the trace's sends."""
    if result.engine.graph is not None:
        graphs.check_conservation(result)
        return
    totals = result.result.totals
    sends = result.events(tr.SEND)
    counted = {
        "scalars": sum(row.scalars * row.value for row in sends),
        "messages": sum(row.value for row in sends),
        "scalars_broadcast_once": sum(row.scalars for row in sends if row.value),
    }
    for name, count in counted.items():
        demand(totals[name] == count, f"the ledger counts {totals[name]} {name}, the trace {count}")
    delivered = Counter(row.message for row in result.events(tr.DELIVER))
    sent = Counter({row.message: int(row.value) for row in sends if row.value})
    demand(delivered == sent, "a message was not delivered exactly once to each of its receivers")


def check_deterministic(name: str, config: dict[str, Any]) -> None:
    """The same scenario and seed give the same fingerprint; another seed another one; shared work changes nothing."""
    schedule = "phases" if batches(name) else "one_at_a_time"

    def fingerprint(seed: int, **more: Any) -> str:
        return simulate(name, config, schedule, "random", "slow", seed, checks="cheap", **more).result.fingerprint

    first = fingerprint(1)
    demand(first == fingerprint(1), "the same run twice has two fingerprints: is something random but the streams?")
    demand(first != fingerprint(2), "two seeds give the same fingerprint: does the algorithm look at its arms?")
    demand(first == fingerprint(1, share=False), "the run changes with `share: off`: shared objects carry knowledge")


def turns_of(schedule: str) -> int | None:
    """Turns of all three agents together; None where nobody knows beforehand."""
    if schedule in PHASES:
        return None
    turns = int(SCHEDULES[schedule]["turns"])
    return turns if schedule == "one_at_a_time" else 3 * turns
