"""Rules that involve several sections of a scenario, such as one weight per agent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.clock.schedule import SCHEDULES, Recorded
from coband.simulator.core.network.links import BaseLatency
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.network.partitions import Outage, Partition
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.wire_rules import of_the_wire
from coband.simulator.experiments.scenario.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
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


def _entries(root: Node) -> Iterator[tuple[int, str | None, str]]:
    """(index, algorithm, label) of every entry of ``algorithms`` that has a label or an algorithm."""
    algorithms = descend(root, "algorithms")
    for index in range(len(algorithms.items) if isinstance(algorithms, SequenceNode) else 0):
        algorithm, label = (text_at(root, "algorithms", index, key) for key in ("algorithm", "label"))
        name = label or algorithm
        if name is not None:
            yield index, algorithm, name


def broken_rules(root: Node, valid: Mapping[str, Any], registry: Registry) -> Iterator[InputProblem]:
    """Yield a problem for each violated rule.

    Args:
        valid: the sections that are valid when considered alone.
    """
    if "agents" in valid:
        yield from _weights(root, valid)
        yield from _recorded_turns(root, valid)
        yield from _indices(root, valid)
        yield from _latency(root, valid)
        yield from _timeout(root, valid)
        yield from _time_units(root, valid)
        if "problem" in valid:
            for path, message in valid["problem"].validate_for(valid["agents"].count):
                yield _at(root, ("problem", *path), message)
    yield from magnitudes(root)
    yield from _labels(root)
    yield from _until(root, valid)
    yield from _expectations(root, valid)
    yield from _counted(root, valid, registry)
    entries = [name for _, name, _ in _entries(root)]
    for path, message in of_the_wire(valid, [registry.algorithms.get(str(name)) for name in entries]):
        yield _at(root, path, message)
    for index, name, _ in _entries(root):
        if name is not None and name in registry.algorithms:
            yield from _needs(root, valid, registry, registry.algorithms[name], index)


def _weights(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    weights, agents = getattr(valid.get("schedule"), "weights", None), valid["agents"].count
    if weights is not None and len(weights) != agents:
        message = f"has {len(weights)} entries: must have one per agent (agents.count is {agents})"
        yield _at(root, ("schedule", "weights"), message)


def _recorded_turns(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    schedule, count = valid.get("schedule"), valid["agents"].count
    if isinstance(schedule, Recorded) and schedule.agents > count:
        message = f"names agent {schedule.agents - 1}: must be < {count}, the agents.count; agents are numbered from 0"
        yield _at(root, ("schedule", "file"), message)


def _indices(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    """Links, partitions and outages may only name existing agents."""
    network, count = valid.get("network"), valid["agents"].count
    if network is None:
        return
    places: list[tuple[KeyPath, Any]] = [
        (("network", "links", number, "agents"), rule.agents if rule.agents != "all" else ())
        for number, rule in enumerate(network.links)
    ]
    for number, partition in enumerate(network.partitions):
        places += [
            (("network", "partitions", number, "groups", index), group)
            for index, group in enumerate(partition.groups if isinstance(partition, Partition) else ())
        ]
    places += [
        (("network", "outages", number, "nodes"), outage.nodes)
        for number, outage in enumerate(network.outages)
        if isinstance(outage, Outage)
    ]
    for place, nodes in places:
        for position, agent in enumerate(nodes):
            if isinstance(agent, int) and agent >= count:
                message = f"{agent} is not an agent: must be < {count}, the agents.count; agents are numbered from 0"
                yield _at(root, (*place, position), message)


def _latency(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    network, count = valid.get("network"), valid["agents"].count
    if network is not None and isinstance(network.latency, BaseLatency):
        message = network.latency.misfit(count, network.graph is None)
        if message:
            yield _at(root, ("network", "latency"), message)


def _timeout(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    network = valid.get("network")
    if network is None or not valid["agents"].intermittent or network.transport == "datagram":
        return
    if network.retransmission.timeout is None and not math.isfinite(network.largest_mean):
        message = "follows from the mean latency, which is infinite here; give it, since agents can be down"
        yield _at(root, ("network", "retransmission", "timeout"), message)


def _time_units(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    """What stands for a unit of simulated time is one length of time for all of a scenario."""
    population, network = valid["agents"].population, valid.get("network")
    said: list[tuple[KeyPath, str]] = []
    if population is not None:
        said.append((("agents", "population", "time_unit"), population.time_unit))
    if network is not None:
        said += [(("network", *place), unit) for place, unit in network.clock_units()]
    for place, unit in said[1:]:
        if unit != (usual := said[0][1]):
            message = f"{unit} is not allowed: must be {usual}, since {key_path(said[0][0])} says what a unit of "
            yield _at(root, place, f"{message}simulated time stands for; give both the same")


def _labels(root: Node) -> Iterator[InputProblem]:
    taken: dict[str, int] = {}
    for index, _, label in _entries(root):
        first = taken.setdefault(label, index)
        if first != index:
            key = "label" if text_at(root, "algorithms", index, "label") else "algorithm"
            message = f"the label {quoted(label)} is that of algorithms[{first}] already; give each entry its own label"
            yield _at(root, ("algorithms", index, key), message)


def _until(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    until, replications = valid.get("until"), valid.get("replications")
    if until is not None and replications is not None and until.max_replications < replications:
        message = f"{until.max_replications} is not allowed: must be >= {replications}, the replications to begin with"
        yield _at(root, ("until", "max_replications"), message)


def _expectations(root: Node, valid: Mapping[str, Any]) -> Iterator[InputProblem]:
    labels = [label for _, _, label in _entries(root)]
    for index, expectation in enumerate(valid.get("expect", ())):
        for key in ("label", "less_than", "more_than"):
            named = getattr(expectation, key)
            if labels and named is not None and named not in labels:
                near = did_you_mean(named, labels)
                message = f"{quoted(named)} is no entry of algorithms{near or ';'} labels: {', '.join(labels)}"
                yield _at(root, ("expect", index, key), message)
        if expectation.other == expectation.label:
            key = "less_than" if expectation.less_than else "more_than"
            yield _at(root, ("expect", index, key), f"nothing is {key.replace('_', ' ')} itself; name another entry")
        values, replications = expectation.equals, valid.get("replications")
        if isinstance(values, tuple) and replications is not None and len(values) < replications:
            message = f"has {len(values)} entries: must have one per replication (replications is {replications})"
            yield _at(root, ("expect", index, "equals"), message)


def _uncounted(valid: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Numbers that a scenario does not have, and what it would have to say for them."""
    agents = valid.get("agents")
    missing = {
        "agents.energy": agents is not None and agents.energy is None,
        "agents.reward_delay": agents is not None and not agents.late_rewards,
        "adversaries": "adversaries" in valid and not valid["adversaries"],
    }
    for key, names in COUNTED_WITH.items():
        yield from ((name, key) for name in names.split() if missing[key])


COUNTED_WITH = {
    "agents.energy": "energy energy_turns energy_up energy_down energy_idle energy_charged ran_out",
    "agents.reward_delay": "outstanding",
    "adversaries": "dishonest honest_regret honest_regret_per_agent",
}
"""Keys of a scenario, and the numbers that no run has without."""


def _counted(root: Node, valid: Mapping[str, Any], registry: Registry) -> Iterator[InputProblem]:
    """An expectation may only name a number that the results of its entry have."""
    problem: Any = valid.get("problem")
    uncounted = dict(_uncounted(valid))
    names = {label: name for _, name, label in _entries(root) if name in registry.algorithms}
    for index, expectation in enumerate(valid.get("expect", ()) if problem is not None else ()):
        for label in (expectation.label, expectation.other):
            if label not in names:
                continue
            found = registry.metrics_of(problem.kind, (str(names[label]),))
            known = [name for name, metric in found.items() if metric.aggregate is not None]
            if expectation.count not in known:
                near = did_you_mean(expectation.count, known)
                message = f"{label} does not count {expectation.count!r}{near or ';'} there is {', '.join(known)}"
                yield _at(root, ("expect", index, "count"), message)
                break
            if (key := uncounted.get(expectation.count)) is not None:
                message = f"nothing counts {expectation.count!r} where {key} is left out"
                yield _at(root, ("expect", index, "count"), message)
                break


def _needs(
    root: Node, valid: Mapping[str, Any], registry: Registry, algorithm: Algorithm, index: int
) -> Iterator[InputProblem]:
    name, needs, place = algorithm.name, algorithm.needs, ("algorithms", index, "algorithm")
    problem, network, schedule = valid.get("problem"), valid.get("network"), valid.get("schedule")
    if problem is not None and needs.problems and problem.kind not in needs.problems:
        allowed = ", ".join(needs.problems)
        yield _at(root, place, f"{name} cannot run on problem.kind {problem.kind}; it runs on: {allowed}")
    if schedule is not None and _like(schedule.kind) not in needs.schedules:
        allowed = ", ".join(needs.schedules)
        yield _at(root, place, f"{name} cannot run on schedule.kind {schedule.kind}; it runs on: {allowed}")
    agents = valid.get("agents")
    if agents is not None and agents.late_rewards and (reason := algorithm.needs_rewards):
        yield _at(root, place, f"{name} {reason}; leave out agents.reward_delay, or run it in a scenario of its own")
    changing = agents is not None and agents.changing
    if changing and needs.ends_together:
        reason = "plans for the same agents from the start to the end, and cannot do without any"
        yield _at(root, place, f"{name} {reason}; leave out agents.joins and agents.leaves")
        return
    entries = valid.get("algorithms")
    timed = changing or (schedule is not None and schedule.duration is not None)
    if needs.horizon and timed and entries is not None and getattr(entries[index], "horizon", None) is None:
        left_out = "agents.joins and agents.leaves" if changing else "schedule.duration"
        remedy = f"give horizon (turns of each agent), or leave out {left_out}"
        yield _at(root, place, f"{name} must know the number of turns; {remedy}")
    if network is None:
        return
    if not _links(needs, network):
        fitting = _fitting(registry, network, problem, schedule)
        kind, allowed = _topology(network), ", ".join(needs.topologies)
        found = _at(root, place, f"{name} cannot run on network.topology {kind}; it runs on: {allowed}")
        yield replace(found, fitting=fitting)
    if network.transport == "datagram":
        yield from _datagrams(root, valid, algorithm, place)


def _like(schedule: str) -> str:
    """The schedule to look for among those that an algorithm can run on; those of others count as recorded ones."""
    return "trace" if schedule in SCHEDULES.foreign() else schedule


def _datagrams(root: Node, valid: Mapping[str, Any], algorithm: Algorithm, place: KeyPath) -> Iterator[InputProblem]:
    """Problems of an algorithm that needs a reliable transport or ordered messages on a datagram network."""
    name, needs, network, agents = algorithm.name, algorithm.needs, valid["network"], valid.get("agents")
    if needs.reliable and network.lossy:
        remedy = "set network.transport: reliable, or remove the loss"
        yield _at(root, place, f"{name} needs every message, but this network loses some; {remedy}")
    elif needs.reliable and agents is not None and agents.intermittent:
        remedy = "set network.transport: reliable, or agents.availability: {kind: always}"
        yield _at(root, place, f"{name} needs every message, but agents that are down lose some; {remedy}")
    if needs.reliable and any(one.behaviour.withholds for one in valid.get("adversaries") or ()):
        remedy = "set network.transport: reliable, or another behaviour"
        yield _at(
            root,
            place,
            f"{name} needs every message, but silent agents send none, of which datagrams tell nobody; {remedy}",
        )
    if needs.reliable and network.duplicating and network.graph is None:
        remedy = "set network.transport: reliable, or remove duplicate"
        yield _at(root, place, f"{name} needs every message once, but this network doubles some; {remedy}")
    if needs.ordered and _reorders(network):
        remedy = "set network.transport: reliable, or network.reorder: fifo, or give constant latencies"
        yield _at(root, place, f"{name} needs messages in order, but datagrams overtake each other; {remedy}")


def _topology(network: NetworkConfig) -> str:
    return "star" if network.graph is None else f"{{kind: {network.graph.kind}}}"  # type: ignore[attr-defined]


def _links(needs: Needs, network: NetworkConfig) -> bool:
    """Whether an algorithm can run on the topology of a network."""
    kinds = {"star"} if network.graph is None else {"graph", network.graph.kind}  # type: ignore[attr-defined]
    return not kinds.isdisjoint(needs.topologies)


def _fitting(registry: Registry, network: NetworkConfig, problem: Any, schedule: Any) -> str:
    """The algorithms that run on a topology, with this problem and schedule, in words; those of it alone come first."""
    algorithms = sorted(registry.algorithms.items(), key=lambda pair: (len(pair[1].needs.topologies), pair[0]))
    found = [
        name
        for name, needs in ((name, one.needs) for name, one in algorithms)
        if _links(needs, network)
        and (problem is None or not needs.problems or problem.kind in needs.problems)
        and (schedule is None or _like(schedule.kind) in needs.schedules)
    ]
    more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return f"On {_topology(network)} run: {', '.join(found[:MOST_NAMES])}{more}" if found else ""


def _reorders(network: NetworkConfig) -> bool:
    """Whether a message can overtake an earlier one on the same link."""
    free = network.reorder == "free" or any(rule.reorder == "free" for rule in network.links)
    latencies = [network.latency, *(rule.latency for rule in network.links if rule.latency is not None)]
    return free and not all(latency.is_constant for latency in latencies)


def _at(root: Node, path: KeyPath, message: str) -> InputProblem:
    node, above = descend(root, *path), path
    while node is None:
        above = above[:-1]
        node = descend(root, *above)
    return node.mark.problem(path, message)


def magnitudes(node: Node, path: KeyPath = ()) -> Iterator[InputProblem]:
    """A problem for each number in a document that is too large or too small to compute with."""
    if isinstance(node, MappingNode):
        for key, (_, value) in node.entries.items():
            if key not in ANY:
                yield from magnitudes(value, (*path, key))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from magnitudes(item, (*path, index))
    elif isinstance(node, ScalarNode) and (wrong := _wrong(node.value)) is not None:
        yield node.mark.problem(path, f"{node.text} is not allowed: {wrong}")


def _wrong(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return None if abs(value) <= MOST else f"whole numbers must be between -{MOST} and {MOST}"
    if not math.isfinite(value):
        return None  # models refuse it
    if value == 0 or SMALLEST <= abs(value) <= LARGEST:
        return None
    return f"numbers must be 0, or between {SMALLEST:.0e} and {LARGEST:.0e} in absolute value, to be computed with"
