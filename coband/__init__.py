"""coband: a discrete-event simulator for collaborative bandits.

This module is the public interface: how scenarios are run and runs are read, and what an algorithm, a problem, a kernel
or a test of one is written with. Names are imported when they are first used, so that ``import coband`` takes no time
and pins BLAS before numpy is loaded.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coband.simulator.api.comparing import Causes, Comparison
    from coband.simulator.api.errors import RunError, RunWarning
    from coband.simulator.api.folders import Runs, load, runs
    from coband.simulator.api.frontier import Frontier, frontier
    from coband.simulator.api.plots import Plots
    from coband.simulator.api.running import run, sweep
    from coband.simulator.api.scenario import Scenario
    from coband.simulator.api.stored import Run, Sweep
    from coband.simulator.api.table import Table
    from coband.simulator.api.whatif import RegretSplit, WhatIf
    from coband.simulator.arms import ArmSet
    from coband.simulator.arrays import FloatArray
    from coband.simulator.conformance import Case, NonConformance, Vacuous, cases
    from coband.simulator.core.algorithm import Algorithm, Assumption, Bound, ClosedForm, MessageSize, Needs
    from coband.simulator.core.clock.schedule import BaseSchedule
    from coband.simulator.core.config import Config
    from coband.simulator.core.hosts.availability import BaseAvailability
    from coband.simulator.core.hosts.speed import BaseStragglers
    from coband.simulator.core.memory import Memory, RunSize
    from coband.simulator.core.network.links import BaseBandwidth, BaseLatency
    from coband.simulator.core.network.loss import BaseLoss
    from coband.simulator.core.network.partitions import BaseOutage, BasePartition
    from coband.simulator.core.network.topologies import BaseGraph, RandomGraph
    from coband.simulator.core.nodes.graphs import Graph, GraphError
    from coband.simulator.core.nodes.message import Message, payload, size_of
    from coband.simulator.core.nodes.node import (
        ALL_AGENTS,
        NEIGHBOURS,
        SERVER,
        Address,
        Agent,
        BatchAgent,
        Client,
        Later,
        Multicast,
        Neighbours,
        Node,
        NodeContext,
        Note,
        Outbox,
        Server,
        Sharing,
        Timer,
        UnsupportedScenario,
    )
    from coband.simulator.core.nodes.timers import Silence
    from coband.simulator.core.randomness.distributions import BaseDistribution
    from coband.simulator.core.result import RunResult
    from coband.simulator.core.talks import Answers, Declined, Line, Talks, Unanswered, late, lost, on
    from coband.simulator.core.wire.encodings import BaseEncoding
    from coband.simulator.core.world import World
    from coband.simulator.experiments.registry.registry import register
    from coband.simulator.maths.kernels.base import BaseKernel, Columns, Positive, StationaryKernel
    from coband.simulator.metrics import Metric, RunMetric
    from coband.simulator.plugins.entry_points import PluginError
    from coband.simulator.problems.arms import ArmSource
    from coband.simulator.problems.problem import Problem, ProblemEntry
    from coband.simulator.problems.rewards import Reward, RewardFunction
    from coband.simulator.scenario_errors import ScenarioError

__version__ = "0.1.0"

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Checkout:
    """Finds the parts of coband in a checkout, where they are folders beside ``coband/``; installed, they are in it."""

    PARTS = ("coband.agents", "coband.server", "coband.simulator")

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """As the import system asks; any other name is left to the other finders."""
        return PathFinder.find_spec(name, [os.path.dirname(_HERE)]) if name in cls.PARTS else None


if not os.path.isdir(os.path.join(_HERE, "simulator")):
    sys.meta_path.append(_Checkout)

_HOMES = {
    "coband.simulator.api.comparing": ("Causes", "Comparison"),
    "coband.simulator.api.errors": ("RunError", "RunWarning"),
    "coband.simulator.api.folders": (
        "Runs",
        "load",
        "runs",
    ),
    "coband.simulator.api.frontier": ("Frontier", "frontier"),
    "coband.simulator.api.plots": ("Plots",),
    "coband.simulator.api.running": ("run", "sweep"),
    "coband.simulator.api.scenario": ("Scenario",),
    "coband.simulator.api.stored": ("Run", "Sweep"),
    "coband.simulator.api.table": ("Table",),
    "coband.simulator.api.whatif": ("RegretSplit", "WhatIf"),
    "coband.simulator.arms": ("ArmSet",),
    "coband.simulator.arrays": ("FloatArray",),
    "coband.simulator.conformance": (
        "Case",
        "NonConformance",
        "Vacuous",
        "cases",
    ),
    "coband.simulator.core.algorithm": (
        "Algorithm",
        "Assumption",
        "Bound",
        "ClosedForm",
        "MessageSize",
        "Needs",
    ),
    "coband.simulator.core.config": ("Config",),
    "coband.simulator.core.memory": (
        "Memory",
        "RunSize",
    ),
    "coband.simulator.core.nodes.message": (
        "Message",
        "payload",
        "size_of",
    ),
    "coband.simulator.core.nodes.node": (
        "ALL_AGENTS",
        "NEIGHBOURS",
        "SERVER",
        "Address",
        "Agent",
        "BatchAgent",
        "Client",
        "Later",
        "Multicast",
        "Neighbours",
        "Node",
        "NodeContext",
        "Note",
        "Outbox",
        "Server",
        "Sharing",
        "Timer",
        "UnsupportedScenario",
    ),
    "coband.simulator.core.talks": (
        "Answers",
        "Declined",
        "Line",
        "Talks",
        "Unanswered",
        "late",
        "lost",
        "on",
    ),
    "coband.simulator.core.nodes.timers": ("Silence",),
    "coband.simulator.core.world": ("World",),
    "coband.simulator.maths.kernels.base": (
        "BaseKernel",
        "Columns",
        "Positive",
        "StationaryKernel",
    ),
    "coband.simulator.core.clock.schedule": ("BaseSchedule",),
    "coband.simulator.core.hosts.availability": ("BaseAvailability",),
    "coband.simulator.core.hosts.speed": ("BaseStragglers",),
    "coband.simulator.core.network.links": (
        "BaseBandwidth",
        "BaseLatency",
    ),
    "coband.simulator.core.network.loss": ("BaseLoss",),
    "coband.simulator.core.network.partitions": (
        "BaseOutage",
        "BasePartition",
    ),
    "coband.simulator.core.network.topologies": (
        "BaseGraph",
        "RandomGraph",
    ),
    "coband.simulator.core.nodes.graphs": (
        "Graph",
        "GraphError",
    ),
    "coband.simulator.core.randomness.distributions": ("BaseDistribution",),
    "coband.simulator.core.result": ("RunResult",),
    "coband.simulator.core.wire.encodings": ("BaseEncoding",),
    "coband.simulator.experiments.registry.registry": ("register",),
    "coband.simulator.plugins.entry_points": ("PluginError",),
    "coband.simulator.metrics": ("Metric", "RunMetric"),
    "coband.simulator.problems.arms": ("ArmSource",),
    "coband.simulator.problems.problem": (
        "Problem",
        "ProblemEntry",
    ),
    "coband.simulator.problems.rewards": (
        "Reward",
        "RewardFunction",
    ),
    "coband.simulator.scenario_errors": ("ScenarioError",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ALL_AGENTS",
    "NEIGHBOURS",
    "SERVER",
    "Address",
    "Agent",
    "Algorithm",
    "Answers",
    "ArmSet",
    "ArmSource",
    "Assumption",
    "BaseAvailability",
    "BaseBandwidth",
    "BaseDistribution",
    "BaseEncoding",
    "BaseGraph",
    "BaseKernel",
    "BaseLatency",
    "BaseLoss",
    "BaseOutage",
    "BasePartition",
    "BaseSchedule",
    "BaseStragglers",
    "BatchAgent",
    "Bound",
    "Case",
    "Causes",
    "Client",
    "ClosedForm",
    "Columns",
    "Comparison",
    "Config",
    "Declined",
    "FloatArray",
    "Frontier",
    "Graph",
    "GraphError",
    "Later",
    "Line",
    "Memory",
    "Message",
    "MessageSize",
    "Metric",
    "Multicast",
    "Needs",
    "Neighbours",
    "Node",
    "NodeContext",
    "NonConformance",
    "Note",
    "Outbox",
    "Plots",
    "PluginError",
    "Positive",
    "Problem",
    "ProblemEntry",
    "RandomGraph",
    "RegretSplit",
    "Reward",
    "RewardFunction",
    "Run",
    "RunError",
    "RunMetric",
    "RunResult",
    "RunSize",
    "RunWarning",
    "Runs",
    "Scenario",
    "ScenarioError",
    "Server",
    "Sharing",
    "Silence",
    "StationaryKernel",
    "Sweep",
    "Table",
    "Talks",
    "Timer",
    "Unanswered",
    "UnsupportedScenario",
    "Vacuous",
    "WhatIf",
    "World",
    "cases",
    "frontier",
    "late",
    "load",
    "lost",
    "on",
    "payload",
    "register",
    "run",
    "runs",
    "size_of",
    "sweep",
]


def _pin_blas() -> bool:
    """Let BLAS use one thread per process and one kind of kernel: faster for small matrices, and reproducible.

    Environment variables that the user has set stay.

    Returns:
        Whether it has any effect on this process: numpy reads these variables when it is imported.
    """
    kind = os.environ.get("OPENBLAS_CORETYPE")
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if sys.platform == "linux" and os.uname().machine == "x86_64" and "OPENBLAS_CORETYPE" not in os.environ:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpus:
            if " avx2 " in cpus.read(8192):
                os.environ["OPENBLAS_CORETYPE"] = "Haswell"
    return "numpy" not in sys.modules or os.environ.get("OPENBLAS_CORETYPE") == kind


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'coband' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__


BLAS_IS_PINNED = _pin_blas()
"""False if numpy was imported before; `coband.run` then leaves the computations to worker processes."""
