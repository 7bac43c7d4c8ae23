"""A job is one algorithm on one replication; how it runs, wherever that is, and what is said if it breaks off."""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from coband.simulator.arrays import TooLarge
from coband.simulator.core.engine import Engine, Plan, RunResult
from coband.simulator.core.nodes.graphs import Graph, GraphError
from coband.simulator.core.nodes.message import NodeMistake
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.plan import Ties
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.trace import Sink
from coband.simulator.experiments.runs.code_version import one_thread
from coband.simulator.experiments.runs.results import Record, record
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.plugins.entry_points import exception_told, frames_of_plugins
from coband.simulator.problems.world import Problem, World
from coband.simulator.scenario_errors import RAISED, BrokenOff


def told(error: BaseException) -> str:
    """The text of a mistake, with the place in the code of a plugin; of other errors the traceback.

    Where the code of a plugin is involved the traceback begins with its first line, and what of coband called it is
    left out. Memory that runs out elsewhere is no mistake of anybody's.
    """
    frames = frames_of_plugins(error)
    if isinstance(error, MemoryError) and not frames:
        reason = f" ({error})" if str(error) else ""
        return f"out of memory{reason}; take fewer agents, turns or arms, or fewer --workers"
    if not isinstance(error, (NodeMistake, SystemExit)):
        return "".join(traceback.format_exception(type(error), error, frames[0] if frames else error.__traceback__))
    return _placed(error, frames)


def mistake(error: BaseException) -> str:
    """The mistake of a plugin in one sentence, with its place in its code; empty where no plugin is involved."""
    frames = frames_of_plugins(error)
    return _placed(error, frames) if frames or isinstance(error, NodeMistake) else ""


def _placed(error: BaseException, frames: list[TracebackType]) -> str:
    text = str(error) if isinstance(error, NodeMistake) else exception_told(error)
    if not frames or getattr(error, "placed", False):
        return text
    return f"{frames[-1].tb_frame.f_code.co_filename}:{frames[-1].tb_lineno}: {text}"


COMMIT_SECONDS = 1.0
YOUNG_OBJECTS = 50_000  # a trace makes thousands of small tuples; collecting garbage every 700 of them finds none

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
    """

    id: int
    label: str
    algorithm: str
    replication: int
    seed: int
    trace: str
    driver: int | None = None
    entry: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a job ended: ``finished`` with a record, or ``violated`` or ``failed`` with an error text."""

    status: str
    record: Record | None = None
    error: str | None = None


Runner = Callable[[Job, Scenario, Sink | None, OnPull | None], RunResult]
"""Runs a job: (job, scenario, where the trace goes, what is told the number of pulls now and then)."""


class DriverGone(Exception):
    """The process that handed out the jobs has died, so nobody waits for this one."""


class JobFailure(RuntimeError):
    """A job cannot go on, for a reason outside of the program; the text says why, and no traceback is needed."""


PASSED_ON: tuple[type[Exception], ...] = (*BAD_INPUT, DriverGone)
"""What ends more than one job."""


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


def attempt(
    job: Job,
    scenario: Scenario,
    keep: Callable[[RunResult], None],
    sink: Sink | None = None,
    on_pull: OnPull | None = None,
    run: Runner | None = None,
) -> Outcome:
    """Run a job, whatever comes of it.

    Args:
        job: what to run; its label names the entry of the scenario.
        scenario: what it is part of.
        keep: called with the result of a run that went well, before it counts as finished.
        sink: takes the trace, where the scenario has one.
        on_pull: called now and then with the number of pulls so far.
        run: what runs it; None: the simulator.

    Raises:
        ScenarioError, DataError, GraphError, UnsupportedScenario: the input is bad.
        DriverGone: nobody waits for the job.
    """
    with one_thread(), few_collections():
        return _attempt(job, scenario, keep, sink, on_pull, run or _run)


def _attempt(
    job: Job,
    scenario: Scenario,
    keep: Callable[[RunResult], None],
    sink: Sink | None,
    on_pull: OnPull | None,
    run: Runner,
) -> Outcome:
    """`attempt`; when it returns, nothing refers to the nodes of the run any more."""
    start, begun = time.perf_counter(), time.process_time()
    try:
        result = run(job, scenario, sink, on_pull)
        wall_seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - begun
        keep(result)
    except PASSED_ON:
        raise
    except InvariantViolation as violation:
        return Outcome("violated", error=str(violation))
    except (JobFailure, BrokenOff, TooLarge) as error:
        return Outcome("failed", error=str(error))
    except RAISED as error:
        return Outcome("failed", error=told(error))
    return Outcome("finished", record(result, job.seed, job.replication, wall_seconds, cpu_seconds))


def _run(job: Job, scenario: Scenario, sink: Sink | None, on_pull: OnPull | None) -> RunResult:
    return built(job, scenario, sink, on_pull).run()


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
    """The engine of one algorithm on a scenario's first replication, of which nobody keeps anything."""
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
    """The world of a problem, of which that of a plugin is looked at.

    Raises:
        BrokenOff: it is no world, or its arms are no (n, d) array.
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
    """The error with the place in the scenario, and what to do about it."""
    from coband.simulator.experiments.data.graph_files import explained  # only a mistake needs it

    return GraphError(f"{TOPOLOGY}{explained(error)}")


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


@contextmanager
def few_collections() -> Iterator[None]:
    """Let the garbage collector look less often, and once at the end, at what the job has made alone.

    A run's nodes refer to each other, and would keep their arrays while the next run needs the memory. What was there
    before, modules above all, takes ten times as long to look through as a small job takes to run, and is set aside.
    Where somebody else has set things aside already, these stay so, and what is older than the run is left alone.
    """
    thresholds, set_aside = gc.get_threshold(), gc.get_freeze_count() > 0
    if not set_aside:
        gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if set_aside:
            gc.collect(1)
        else:
            gc.collect()
            gc.unfreeze()
