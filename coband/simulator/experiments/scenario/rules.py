"""Rules that involve several sections of a scenario, such as one weight per agent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.clock.schedule import Recorded
from coband.simulator.core.network.links import BaseLatency
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.network.partitions import Outage, Partition
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import counted
from coband.simulator.experiments.scenario.wire_rules import of_the_wire
from coband.simulator.experiments.scenario.yaml_nodes import (
    MappingNode,
    Node,
    SequenceNode,
    deepest,
    descend,
    text_at,
)
from coband.simulator.scenario_errors import InputProblem, KeyPath, did_you_mean, key_path, quoted

LARGEST, SMALLEST = 1e100, 1e-100
"""Of absolute values: products of three, and one divided by such a product, are still numbers of 64 bits."""
MOST = 2**63 - 1
"""The largest whole number of 64 bits."""
ANY = ("seed",)
"""Keys of numbers that nothing is computed with."""
MOST_NAMES = 12
"""Largest number of algorithms that a message names."""
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


def _strange(agent: int, count: int) -> str:
    return f"agent {agent}: must be < {count}, the agents.count; agents are numbered from 0"


class _Rules:
    """The rules, and the sections that they are about; None for one that is invalid by itself."""

    def __init__(self, root: Node, valid: Mapping[str, Any], registry: Registry) -> None:
        self._root, self._valid, self._registry = root, valid, registry
        found: dict[str, Any] = {key: valid.get(key) for key in ("agents", "network", "problem", "schedule")}
        self._agents, self._network, self._problem, self._schedule = found.values()
        self._entries = list(_entries(root))

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
        yield from _magnitudes(self._root)
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
        """Links, partitions and outages may only name existing agents; times must be known, and mean the same."""
        named: list[tuple[KeyPath, Any]] = [
            *((("links", n, "agents"), one.agents) for n, one in enumerate(network.links) if one.agents != "all"),
            *(
                (("partitions", n, "groups", number), group)
                for n, one in enumerate(network.partitions)
                for number, group in enumerate(one.groups if isinstance(one, Partition) else ())
            ),
            *((("outages", n, "nodes"), one.nodes) for n, one in enumerate(network.outages) if isinstance(one, Outage)),
        ]
        for place, nodes in named:
            for position, agent in enumerate(nodes):
                if isinstance(agent, int) and agent >= count:
                    text = _strange(agent, count).replace(f"agent {agent}:", f"{agent} is not an agent:", 1)
                    yield ("network", *place, position), text
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
        kind = getattr(self._problem, "kind", "")
        usual = self._registry.metrics_of(kind, [str(name) for _, name, _ in self._entries])
        declared: Mapping[str, Any] = usual if all(name in usual for _, name in said) else self._registry.metrics
        known = counted(declared)
        unknown = {name: did_you_mean(name, known) for _, name in said if name not in known}
        for place, name in said:
            if name in unknown:
                message = f"{quoted(name)} is not allowed: must be one of {', '.join(known)}{unknown[name]}"
                yield place, message
        names = {label: name for _, name, label in self._entries if name in self._registry.algorithms}
        for index, expectation in enumerate(self._valid.get("expect", ()) if self._problem is not None else ()):
            count = expectation.count
            for label in (expectation.label, expectation.other):
                own = counted(self._registry.metrics_of(kind, (str(names[label]),))) if label in names else ()
                if own and count not in unknown and count not in own:
                    there = f"{did_you_mean(count, own) or ';'} there is {', '.join(own)}"
                    yield ("expect", index, "count"), f"{label} does not count {count!r}{there}"
                    break
                if own and count not in unknown and (key := self._left_out(count)):
                    yield ("expect", index, "count"), f"nothing counts {count!r} where {key} is left out"
                    break

    def _left_out(self, count: str) -> str:
        """The key without which no run has a number, where it is not there."""
        agents = self._agents
        missing = {
            "agents.energy": agents is not None and agents.energy is None,
            "agents.reward_delay": agents is not None and not agents.late_rewards,
            "adversaries": "adversaries" in self._valid and not self._valid["adversaries"],
        }
        return next((key for key, names in COUNTED_WITH.items() if count in names.split() and missing[key]), "")

    def _needs(self, algorithm: Algorithm, index: int) -> Iterator[str]:
        """What keeps an algorithm from running here."""
        needs, problem, network, schedule = algorithm.needs, self._problem, self._network, self._schedule
        if not _solves(needs, problem):
            yield f"cannot run on problem.kind {problem.kind}; it runs on: {', '.join(needs.problems)}"
        if not _follows(needs, schedule):
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
        if network is not None and not _links(needs, network):
            allowed = f"it runs on: {', '.join(needs.topologies)}{self._fitting(network)}"
            yield f"cannot run on network.topology {_topology(network)}; {allowed}"

    def _fitting(self, network: NetworkConfig) -> str:
        """The algorithms that run here, in words; those that run on few topologies come first."""
        known = sorted(self._registry.algorithms.items(), key=lambda pair: (len(pair[1].needs.topologies), pair[0]))
        found = [
            name
            for name, needs in ((name, one.needs) for name, one in known)
            if _links(needs, network) and _solves(needs, self._problem) and _follows(needs, self._schedule)
        ]
        more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
        return f". On {_topology(network)} run: {', '.join(found[:MOST_NAMES])}{more}" if found else ""

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


def _entries(root: Node) -> Iterator[tuple[int, str | None, str]]:
    """(index, algorithm, label) of every entry of ``algorithms`` that has a label or an algorithm."""
    algorithms = descend(root, "algorithms")
    for index in range(len(algorithms.items) if isinstance(algorithms, SequenceNode) else 0):
        algorithm, label = (text_at(root, "algorithms", index, key) for key in ("algorithm", "label"))
        if (name := label or algorithm) is not None:
            yield index, algorithm, name


def _of_turns(schedule: Any, count: int) -> Mistakes:
    weights = getattr(schedule, "weights", None)
    if weights is not None and len(weights) != count:
        yield ("schedule", "weights"), f"has {len(weights)} entries: must have one per agent (agents.count is {count})"
    if isinstance(schedule, Recorded) and schedule.agents > count:
        yield ("schedule", "file"), f"names {_strange(schedule.agents - 1, count)}"


def _solves(needs: Needs, problem: Any) -> bool:
    return problem is None or not needs.problems or problem.kind in needs.problems


def _follows(needs: Needs, schedule: Any) -> bool:
    """Whether an algorithm can run on a schedule; those of other packages count as recorded ones."""
    own = type(schedule).__module__.startswith("coband.")
    return schedule is None or (schedule.kind if own else "trace") in needs.schedules


def _topology(network: NetworkConfig) -> str:
    return "star" if network.graph is None else f"{{kind: {network.graph.kind}}}"  # type: ignore[attr-defined]


def _links(needs: Needs, network: NetworkConfig) -> bool:
    """Whether an algorithm can run on the topology of a network."""
    kinds = {"star"} if network.graph is None else {"graph", network.graph.kind}  # type: ignore[attr-defined]
    return not kinds.isdisjoint(needs.topologies)


def _reorders(network: NetworkConfig) -> bool:
    """Whether a message can overtake an earlier one on the same link."""
    free = network.reorder == "free" or any(rule.reorder == "free" for rule in network.links)
    latencies = [network.latency, *(rule.latency for rule in network.links if rule.latency is not None)]
    return free and not all(latency.is_constant for latency in latencies)


def _magnitudes(node: Node, path: KeyPath = ()) -> Mistakes:
    """Numbers in a document that are too large or too small to compute with; models refuse those that are infinite."""
    if isinstance(node, MappingNode):
        for key, (_, inner) in node.entries.items():
            yield from _magnitudes(inner, (*path, key)) if key not in ANY else ()
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _magnitudes(item, (*path, index))
    else:
        value, limits = node.value, f"between {SMALLEST:.0e} and {LARGEST:.0e} in absolute value"
        if isinstance(value, int) and abs(value) > MOST:
            yield path, f"{node.text} is not allowed: whole numbers must be between -{MOST} and {MOST}"
        elif (
            isinstance(value, float) and math.isfinite(value) and not (value == 0 or SMALLEST <= abs(value) <= LARGEST)
        ):
            yield path, f"{node.text} is not allowed: numbers must be 0, or {limits}, to be computed with"
