"""What a run would refuse, found without running: the world is drawn and a few nodes are made, by the code of a run.

Large data are not read for that: their first lines are looked at, and worlds, graphs and nodes that need all of it are
not made. What was left out is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coband.simulator.arrays import TooLarge
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.making.nodes import Setup, make_nodes
from coband.simulator.core.making.parts import make_wire, veiled
from coband.simulator.core.nodes.graphs import Graph, GraphError
from coband.simulator.core.nodes.node import Client, UnsupportedScenario
from coband.simulator.core.plan import settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import warnings_of
from coband.simulator.core.world import World
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.attempt import mistake
from coband.simulator.experiments.runs.job import TOPOLOGY, graph_and_world, graph_mistake, plan
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario
from coband.simulator.experiments.scenario.loading import read_document
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import deepest
from coband.simulator.problems.problem import DataError
from coband.simulator.problems.world import InstanceError
from coband.simulator.scenario_errors import RAISED, BrokenOff, InputProblem, KeyPath

MOST_BYTES = 20_000_000
"""Larger files are only begun."""
MOST_AGENTS_ON_A_GRAPH = 1_000
"""Distances between more agents take too long for a check."""
MOST_VARIANTS = 64
"""If a sweep has more variants, only the first ones are tried."""

GraphAndWorld = tuple[Graph | None, World]
Tried = dict[str, GraphAndWorld | Exception]
"""Problem, topology, agents and seed -> what was drawn, or why nothing could be."""


@dataclass
class Preflight:
    """What was found.

    Attributes:
        problems: what a run would refuse, each once.
        mistakes: which of them are mistakes in the code of a plugin.
        left_out: what was not checked, in words.
        warnings: what can be run but shows less than one may think, each once.
    """

    problems: list[InputProblem] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class LeftOut(Exception):
    """Something that takes too long for a check; the text says what was looked at in its place."""


def preflight(file: Path | ScenarioText, settings: tuple[str, ...], study: Study) -> Preflight:
    """Try the first replication of every variant of a study.

    Args:
        file: the scenario file, or the text itself, to say where a problem is.
        settings: ``key.path=value``, as given to ``--set``.
    """
    found = Preflight()
    tried: Tried = {}
    refused: list[tuple[KeyPath, str]] = []
    for variant in study.variants[:MOST_VARIANTS]:
        refused += _refusals(variant.scenario, variant.entry, study, tried, found)
    if refused:
        root, _ = read_document(read_scenario(file)[0], str(file), settings, Registry.installed())
        places = [(*deepest(root, path), message) for path, message in refused]
        found.problems += dict.fromkeys(node.mark.problem(path, message) for node, path, message in places)
    if len(study.variants) > MOST_VARIANTS:
        found.left_out.append(f"only the first {MOST_VARIANTS} of {len(study.variants)} variants were tried")
    return found


def _refusals(
    scenario: Scenario, entry: str, study: Study, tried: Tried, found: Preflight
) -> Iterator[tuple[KeyPath, str]]:
    """(where, what) of everything that a run of a variant would refuse."""
    streams, algorithm = Streams(scenario.seed, 0), scenario.algorithms[0]
    try:
        graph, world = _drawn(scenario, streams, tried)
        setup = Setup(settled(plan(scenario, algorithm.ties), streams), world, streams, graph)
        setup, noising = veiled(setup, algorithm.algorithm, clock := Clock())
        agents, server = make_nodes(setup, algorithm.algorithm, algorithm.config, made=1)
        make_wire(setup, clock, noising)
        words = [f"{text}, in the first replication" for text in _cautions(algorithm.algorithm, agents)]
        words += warnings_of([*agents, *([] if server is None else [server])])
        texts = [*getattr(world, "warnings", ()), *(f"{entry}: {text}" for text in words)]
        if absent := scenario.messages.absent:
            texts.append(f"{entry}: {absent}")
        if (privacy := scenario.messages.privacy) is not None and (seen := privacy.unprotected(algorithm.algorithm)):
            texts.append(f"{entry}: leak: allow, so that epsilon does not cover {'; '.join(seen)}")
        texts += filter(None, [scenario.idle])
        if (population := scenario.agents.population) is not None and population.dropped:
            texts.append(f"agents.population: {population.dropped}")
        found.warnings += [text for text in texts if text not in found.warnings]
    except LeftOut as reason:
        if str(reason) not in found.left_out:
            found.left_out.append(str(reason))
    except DataError as error:
        yield ("problem", "data", "path"), str(error)
    except InstanceError as error:
        yield ("problem",), str(error)
    except GraphError as error:
        yield ("network", "topology", "file"), str(error).removeprefix(TOPOLOGY)
    except (UnsupportedScenario, BrokenOff, TooLarge) as refusal:
        yield ("algorithms", study.entries.index(entry), "algorithm"), f"{entry}: {refusal}"
    except RAISED as error:
        if not (said := mistake(error)):
            raise
        found.mistakes.append(f"{entry}: {said}")
        yield ("algorithms", study.entries.index(entry), "algorithm"), found.mistakes[-1]


def _cautions(algorithm: Algorithm, agents: Sequence[Client]) -> list[str]:
    """What the numbers that agents know before they act give reason to warn of."""
    cautious = [metric for metric in algorithm.metrics if metric.caution]
    reported = [agent.report() for agent in agents] if cautious else []
    return [metric.caution for metric in cautious if any(numbers.get(metric.name) == 0 for numbers in reported)]


def _drawn(scenario: Scenario, streams: Streams, tried: Tried) -> GraphAndWorld:
    """Graph and world of the first replication, drawn once for all variants that share them."""
    key = repr((scenario.problem, scenario.network.topology, scenario.agents.count, scenario.seed))
    if key not in tried:
        try:
            _look_at_files(scenario)
            tried[key] = graph_and_world(scenario, streams)
        except (LeftOut, DataError, InstanceError, GraphError, TooLarge) as error:
            tried[key] = error
    found = tried[key]
    if isinstance(found, Exception):
        raise found
    return found


def _look_at_files(scenario: Scenario) -> None:
    """Refuse malformed beginnings of large files; leave the rest of large scenarios out."""
    topology, agents = scenario.network.graph, scenario.agents.count
    seen = [scenario.problem.peek(scenario.base, MOST_BYTES)]
    if topology is not None:
        try:
            seen.append(topology.peek(MOST_BYTES))
        except GraphError as error:
            raise graph_mistake(error) from None
    if words := " and ".join(filter(None, seen)):
        raise LeftOut(f"only {words} were read; agents and server were not made")
    if topology is not None and agents > MOST_AGENTS_ON_A_GRAPH:
        raise LeftOut(f"the graph of {agents:,} agents was not drawn; agents were not made")
