"""A job is one algorithm on one replication; the engine that runs it is made here, and `attempt` runs it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from coband.simulator.arrays import TooLarge
from coband.simulator.core.engine import Engine, Plan
from coband.simulator.core.nodes.graphs import Graph, GraphError, NoGraphFileError
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.plan import Ties
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records.trace import Sink
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.problems.world import Problem, World
from coband.simulator.scenario_errors import BrokenOff

COMMIT_SECONDS = 1.0

TOPOLOGY = "network.topology: "
"""Where the mistake is in what a `GraphError` says."""

OnPull = Callable[[int], None]
Level = Literal["off", "protocol", "full"]


@dataclass(frozen=True)
class Job:
    """One algorithm on one replication.

    Attributes:
        id: its number in the store, from 0.
        label: how results call it.
        trace: level of the trace.
        driver: process id of the driver, which is the parent of the job's process and whose end ends the job; else
            None.
        entry: label in the scenario, where results call it otherwise.
        address: digest of everything that determines its result (`runs.address`); empty where nothing is kept.
    """

    id: int
    label: str
    algorithm: str
    replication: int
    seed: int
    trace: str
    driver: int | None = None
    entry: str | None = None
    address: str = ""


class DriverGone(Exception):
    """The process that handed out the jobs has died, so nobody waits for this one."""


class JobFailure(RuntimeError):
    """A job cannot go on, for a reason outside of the program; the text says why, and no traceback is needed."""


class Heartbeat:
    """Called by the engine now and then: keeps the stored trace fresh and tells how far the job is."""

    def __init__(self, job: Job, on_pull: OnPull | None) -> None:
        self._job, self._on_pull = job, on_pull
        self._last = time.monotonic()
        self.flush: Callable[[], None] | None = None

    def __call__(self, pulls: int) -> None:
        """Note that ``pulls`` pulls have been made."""
        if self._on_pull is not None:
            self._on_pull(pulls)
        now = time.monotonic()
        if now - self._last < COMMIT_SECONDS:
            return
        self._last = now
        check_driver(self._job)
        if self.flush is not None:
            self.flush()


def check_driver(job: Job) -> None:
    """Raise DriverGone when the job's driver is not this process's parent any more."""
    if job.driver is not None and job.driver != os.getppid():
        raise DriverGone(f"the driving process {job.driver} has ended")


def built(job: Job, scenario: Scenario, sink: Sink | None = None, on_pull: OnPull | None = None) -> Engine:
    """The engine of a job."""
    entry, streams = entry_of(job, scenario), Streams(job.seed, job.replication)
    pulse = Heartbeat(job, on_pull)
    try:
        graph, world = graph_and_world(scenario, streams)
        parts = (entry.algorithm, entry.config, world, streams, sink, pulse, graph)
        engine = Engine(plan(scenario, entry.ties), *parts)
    except (UnsupportedScenario, TooLarge) as refusal:
        raise UnsupportedScenario(f"{job.label}: {refusal}") from None
    pulse.flush = engine.trace.flush
    return engine


def engine_of(scenario: Scenario, entry: ScenarioEntry, level: Level | None = None, sink: Sink | None = None) -> Engine:
    """Make the engine of one algorithm on a scenario's first replication; nobody keeps its results."""
    streams = Streams(scenario.seed)
    graph, world = graph_and_world(scenario, streams)
    of = entry.algorithm, entry.config, world, streams
    return Engine(plan(scenario, entry.ties, level), *of, sink=sink, graph=graph)


def entry_of(job: Job, scenario: Scenario) -> ScenarioEntry:
    """The entry of the scenario that a job runs."""
    return next(entry for entry in scenario.algorithms if entry.label == (job.entry or job.label))


def graph_and_world(scenario: Scenario, streams: Streams) -> tuple[Graph | None, World]:
    """The graph of the agents (None in a star) and the world of a replication.

    Raises:
        GraphError: there is no such graph.
        DataError: a dataset is missing or malformed.
    """
    count, topology = scenario.agents.count, scenario.network.graph
    if topology is None:
        return None, as_declared(scenario.problem, scenario.problem.build(streams, count, scenario.base))
    try:
        graph = topology.build(count, streams)
    except GraphError as error:
        raise graph_mistake(error) from None
    world = scenario.problem.build_on(graph.distances, streams, count, scenario.base)
    return graph, as_declared(scenario.problem, world)


def as_declared(problem: Problem, world: World) -> World:
    """Return the world of a problem; worlds from plugins are validated first.

    Raises:
        BrokenOff: it is not a world, or its arms are not an (n, d) array.
    """
    kind = type(problem)
    if kind.__module__.startswith("coband."):
        return world
    if lacking := [name for name in ("dimension", "fixed_arms", "arms") if not hasattr(world, name)]:
        what = f"a {type(world).__name__}, which lacks {', '.join(lacking)}"
        raise BrokenOff(f"{kind.__name__}.build returned {what}; return a coband.World.")
    shape = getattr(world.arms(0, 1), "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != world.dimension:
        what = "no array" if shape is None else f"an array of shape {shape}"
        wanted = f"an array (n, {world.dimension}), as dimension is {world.dimension}"
        raise BrokenOff(f"{type(world).__name__}.arms returned {what}; return {wanted}.")
    return world


def graph_mistake(error: GraphError) -> GraphError:
    """The error with the place in the scenario; where a file is missing, where it was looked for and how to get it."""
    if not isinstance(error, NoGraphFileError):
        return GraphError(f"{TOPOLOGY}{error}")
    from coband.simulator.problems.datasets import data_directory, graph_of  # only a mistake needs them

    name, known = error.path.name, graph_of(error.path.name)
    get = "Set" if known is None else f"Run `coband data fetch {known.name}` to download it, or set"
    return GraphError(
        f"{TOPOLOGY}the graph's file {name!r} is missing. Looked for: {error.path}, and {name} in {data_directory()} "
        f"and its folders. {get} `network.topology.file` to a file of links (on the command line: "
        "`--set network.topology.file=FILE`)."
    )


def plan(scenario: Scenario, ties: Ties, trace: Level | None = None) -> Plan:
    """What the engine needs of a scenario; ``ties``: of the entry that runs; ``trace``: another level of the trace."""
    return Plan(
        agents=scenario.agents,
        schedule=scenario.schedule,
        network=scenario.network,
        server=scenario.server,
        trace=scenario.trace if trace is None else trace,
        checks=scenario.checks,
        share=scenario.share,
        ties=ties,
        messages=scenario.messages,
        adversaries=scenario.adversaries,
    )
