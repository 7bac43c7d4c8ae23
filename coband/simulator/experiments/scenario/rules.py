"""Rules that involve several sections of a scenario, such as one weight per agent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import Recorded
from coband.simulator.core.network.links import BaseLatency
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.wire.rules import of_the_wire
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import counted
from coband.simulator.experiments.scenario.yaml_nodes import Node, deepest, descend, text_at
from coband.simulator.scenario_errors import InputProblem, KeyPath, did_you_mean, key_path, quoted

LARGEST, SMALLEST = 1e100, 1e-100
"""Of absolute values: products of three, and one divided by such a product, are still numbers of 64 bits."""
MOST = 2**63 - 1
"""The largest whole number of 64 bits."""
NAMES_AN_AGENT = re.compile(
    r"(adversaries|network\.(links|outages|partitions))\[\d+\]\.(agents|nodes|groups\[\d+\])\[\d+\]"
)
"""Key paths at which a number is that of an agent."""
OF_AGENTS = "must be < {}, the agents.count; agents are numbered from 0"
COUNTED_WITH = {
    "agents.energy": "energy energy_turns energy_up energy_down energy_idle energy_charged ran_out",
    "agents.reward_delay": "outstanding",
    "adversaries": "dishonest honest_regret honest_regret_per_agent",
}
"""Keys of a scenario, and the numbers that no run has without."""
Mistakes = Iterator[tuple[KeyPath, str]]
"""(key path, what is wrong with it)."""


def broken_rules(root: Node, valid: Mapping[str, Any], registry: Registry) -> Iterator[InputProblem]:
    """Yield a problem for each violated rule, at the deepest part of its path that there is.

    Args:
        valid: the sections that are valid when considered alone.
    """
    for path, message in _Rules(root, valid, registry).broken():
        yield deepest(root, path)[0].mark.problem(path, message)


class _Rules:
    """The rules, and the sections that they are about; None for one that is invalid by itself."""

    def __init__(self, root: Node, valid: Mapping[str, Any], registry: Registry) -> None:
        self._root, self._valid, self._registry = root, valid, registry
        found: dict[str, Any] = {key: valid.get(key) for key in ("agents", "network", "problem", "schedule")}
        self._agents, self._network, self._problem, self._schedule = found.values()
        entries = descend(root, "algorithms")
        names = [(text_at(one, "algorithm"), text_at(one, "label")) for one in (entries.items if entries else ())]
        self._entries = [(n, name, label or name or "") for n, (name, label) in enumerate(names) if label or name]

    def broken(self) -> Mistakes:
        """(key path, what is wrong with it) of each rule that is broken."""
        if self._agents is not None:
            count = self._agents.count
            if self._schedule is not None:
                yield from _of_turns(self._schedule, count)
            if self._network is not None:
                yield from self._of_network(self._network, count)
            if self._problem is not None:
                yield from ((("problem", *path), text) for path, text in self._problem.validate_for(count))
        yield from self._numbers()
        yield from self._labels()
        yield from self._replications()
        yield from self._names()
        yield from self._counted()
        algorithms = [self._registry.algorithms.get(str(name)) for _, name, _ in self._entries]
        yield from of_the_wire(self._valid, algorithms)
        for (index, _, _), algorithm in zip(self._entries, algorithms, strict=True):
            if algorithm is not None:
                for message in (*self._needs(algorithm, index), *self._datagrams(algorithm)):
                    yield ("algorithms", index, "algorithm"), f"{algorithm.name} {message}"

    def _of_network(self, network: NetworkConfig, count: int) -> Mistakes:
        """Times must be known, and mean the same."""
        star, latency, agents = network.graph is None, network.latency, self._agents
        if isinstance(latency, BaseLatency) and (message := latency.misfit(count, star)):
            yield ("network", "latency"), message
        waits = agents.intermittent and network.transport != "datagram" and network.retransmission.timeout is None
        if waits and not math.isfinite(network.largest_mean):
            message = "follows from the mean latency, which is infinite here; give it, since agents can be down"
            yield ("network", "retransmission", "timeout"), message
        said: list[tuple[KeyPath, str]] = [(("network", *place), unit) for place, unit in network.clock_units()]
        if agents.population is not None:
            said.insert(0, (("agents", "population", "time_unit"), agents.population.time_unit))
        for place, unit in said[1:]:
            if unit != (usual := said[0][1]):
                message = f"{unit} is not allowed: must be {usual}, since {key_path(said[0][0])} says what a unit of "
                yield place, f"{message}simulated time stands for; give both the same"

    def _numbers(self) -> Mistakes:
        """Numbers that are too large or too small to compute with, and those of agents that there are not; models
        refuse numbers that are infinite."""
        limits = f"between {SMALLEST:.0e} and {LARGEST:.0e} in absolute value"
        for path, node in _scalars(self._root):
            value, count = node.scalar, MOST if self._agents is None else self._agents.count
            if isinstance(value, int) and abs(value) > MOST and path[-1] != "seed":
                yield path, f"{node.text} is not allowed: whole numbers must be between -{MOST} and {MOST}"
            elif isinstance(value, int) and value >= count and NAMES_AN_AGENT.fullmatch(key_path(path)):
                yield path, f"{value} is not an agent: {OF_AGENTS.format(count)}"
            elif isinstance(value, float) and value and math.isfinite(value) and not SMALLEST <= abs(value) <= LARGEST:
                yield path, f"{node.text} is not allowed: numbers must be 0, or {limits}, to be computed with"

    def _labels(self) -> Mistakes:
        taken: dict[str, int] = {}
        for index, _, label in self._entries:
            if (first := taken.setdefault(label, index)) != index:
                key = "label" if text_at(self._root, "algorithms", index, "label") else "algorithm"
                taken_by = f"the label {quoted(label)} is that of algorithms[{first}] already"
                yield ("algorithms", index, key), f"{taken_by}; give each entry its own label"

    def _replications(self) -> Mistakes:
        if (replications := self._valid.get("replications")) is None:
            return
        until = self._valid.get("until")
        if until is not None and until.max_replications < replications:
            message = f"{until.max_replications} is not allowed: must be >= {replications}, the replications to begin "
            yield ("until", "max_replications"), f"{message}with"
        for index, expectation in enumerate(self._valid.get("expect", ())):
            values = expectation.equals
            if isinstance(values, tuple) and len(values) < replications:
                message = f"has {len(values)} entries: must have one per replication (replications is {replications})"
                yield ("expect", index, "equals"), message

    def _names(self) -> Mistakes:
        """Expectations are about entries of ``algorithms``."""
        labels = [label for _, _, label in self._entries]
        for index, expectation in enumerate(self._valid.get("expect", ())):
            for key in ("label", "less_than", "more_than"):
                named = getattr(expectation, key)
                if labels and named is not None and named not in labels:
                    near = did_you_mean(named, labels)
                    message = f"{quoted(named)} is not an entry of algorithms{near or ';'} labels: {', '.join(labels)}"
                    yield ("expect", index, key), message
            if expectation.other == expectation.label:
                key = "less_than" if expectation.less_than else "more_than"
                yield ("expect", index, key), f"nothing is {key.replace('_', ' ')} itself; name another entry"

    def _counted(self) -> Mistakes:
        """A number must be declared by something, and the results of an expectation's entry must have it."""
        said: list[tuple[KeyPath, str]] = [
            *((("expect", index, "count"), one.count) for index, one in enumerate(self._valid.get("expect", ()))),
            *(((key, "on"), one.on) for key in ("tuning", "until") if (one := self._valid.get(key)) is not None),
        ]
        if not said:
            return
        kind, names = getattr(self._problem, "kind", ""), {label: str(name) for _, name, label in self._entries}
        usual = self._registry.metrics_of(kind, list(names.values()))
        known = counted(usual if all(name in usual for _, name in said) else self._registry.metrics)
        for place, name in said:
            if name not in known:
                near = did_you_mean(name, known)
                yield place, f"{quoted(name)} is not allowed: must be one of {', '.join(known)}{near}"
        agents = self._agents
        without = {
            "agents.energy": agents is not None and agents.energy is None,
            "agents.reward_delay": agents is not None and not agents.late_rewards,
            "adversaries": not self._valid.get("adversaries", True),
        }
        left_out = {name: key for key, gone in without.items() if gone for name in COUNTED_WITH[key].split()}
        for index, expectation in enumerate(self._valid.get("expect", ()) if self._problem is not None else ()):
            count = expectation.count
            for label in (expectation.label, expectation.other):
                own = counted(self._registry.metrics_of(kind, (names[label],))) if label in names else ()
                message = f"{label} does not count {count!r}{did_you_mean(count, own) or ';'} there is {', '.join(own)}"
                if count in own and count in left_out:
                    message = f"nothing counts {count!r} where {left_out[count]} is left out"
                if own and count in known and (count not in own or count in left_out):
                    yield ("expect", index, "count"), message
                    break

    def _needs(self, algorithm: Algorithm, index: int) -> Iterator[str]:
        """What keeps an algorithm from running here."""
        needs, problem, network, schedule = algorithm.needs, self._problem, self._network, self._schedule
        if problem is not None and needs.problems and problem.kind not in needs.problems:
            yield f"cannot run on problem.kind {problem.kind}; it runs on: {', '.join(needs.problems)}"
        if problem is not None and needs.unit_rewards and getattr(problem, "adds_noise", False):
            yield f"needs rewards from 0 to 1, and this noise leads beyond; write problem.{problem.bernoulli}"
        own = type(schedule).__module__.startswith("coband.")
        kind = schedule and (schedule.kind if own else "trace")
        if kind and kind not in needs.schedules:  # those of other packages count as recorded ones
            yield f"cannot run on schedule.kind {schedule.kind}; it runs on: {', '.join(needs.schedules)}"
        agents, entries = self._agents, self._valid.get("algorithms")
        if agents is not None and agents.late_rewards and (reason := algorithm.needs_rewards):
            yield f"{reason}; leave out agents.reward_delay, or run it in a scenario of its own"
        changing = agents is not None and agents.changing
        timed = changing or (schedule is not None and schedule.duration is not None)
        if changing and needs.ends_together:
            reason = "plans for the same agents from the start to the end, and cannot do without any"
            yield f"{reason}; leave out agents.joins and agents.leaves"
        elif needs.horizon and timed and entries is not None and getattr(entries[index].config, "horizon", 0) is None:
            left_out = "agents.joins and agents.leaves" if changing else "schedule.duration"
            yield f"must know the number of turns; give horizon (turns of each agent), or leave out {left_out}"
        graph = network and network.graph
        kinds = {"star"} if graph is None else {"graph", graph.kind}
        if network is not None and kinds.isdisjoint(needs.topologies):
            topology = "star" if graph is None else f"{{kind: {graph.kind}}}"
            yield f"cannot run on network.topology {topology}; it runs on: {', '.join(needs.topologies)}"
        drawn = network.redrawn.graph if network is not None and network.redrawn else graph
        if needs.connected and not getattr(drawn, "connected", True):
            yield "needs a connected graph, and others may be drawn; leave out network.topology's connected: false"
        if needs.reliable and network is not None and network.redrawn and network.redrawn.absent == "unsent":
            yield "needs every message, and absent links leave some unsent; give a graph that is not redrawn"

    def _datagrams(self, algorithm: Algorithm) -> Iterator[str]:
        """What keeps an algorithm that needs a reliable transport, or ordered messages, from running on datagrams."""
        needs, network, agents = algorithm.needs, self._network, self._agents
        if network is None or network.transport != "datagram":
            return
        remedy = "set network.transport: reliable, or"
        if needs.reliable and network.lossy:
            yield f"needs every message, but this network loses some; {remedy} remove the loss"
        elif needs.reliable and agents is not None and agents.intermittent:
            reason = "needs every message, but agents that are down lose some"
            yield f"{reason}; {remedy} agents.availability: {{kind: always}}"
        if needs.reliable and any(one.behaviour.withholds for one in self._valid.get("adversaries") or ()):
            reason = "needs every message, but silent agents send none, of which datagrams tell nobody"
            yield f"{reason}; {remedy} another behaviour"
        if needs.reliable and network.duplicating and network.graph is None:
            yield f"needs every message once, but this network doubles some; {remedy} remove duplicate"
        if needs.ordered and _reorders(network):
            reason = "needs messages in order, but datagrams overtake each other"
            yield f"{reason}; {remedy} network.reorder: fifo, or give constant latencies"


def _of_turns(schedule: Any, count: int) -> Mistakes:
    weights = getattr(schedule, "weights", None)
    if weights is not None and len(weights) != count:
        yield ("schedule", "weights"), f"has {len(weights)} entries: must have one per agent (agents.count is {count})"
    if isinstance(schedule, Recorded) and schedule.agents > count:
        yield (
            ("schedule", "file"),
            f"names agent {schedule.agents - 1}: {OF_AGENTS.format(count)}",
        )


def _reorders(network: NetworkConfig) -> bool:
    """Whether a message can overtake an earlier one on the same link."""
    free = network.reorder == "free" or any(rule.reorder == "free" for rule in network.links)
    latencies = [network.latency, *(rule.latency for rule in network.links if rule.latency is not None)]
    return free and not all(latency.is_constant for latency in latencies)


def _scalars(node: Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
    """Every scalar of a document with its path."""
    parts: list[tuple[str | int, Node]] = [*node.entries.items(), *enumerate(node.items)]
    for step, part in parts:
        yield from _scalars(part, (*path, step))
    if not parts:
        yield path, node
