"""The public names, for type checkers; `__init__.py` imports each from here when it is first used."""

from coband.simulator.api.callbacks import Callback as Callback
from coband.simulator.api.stored import Causes as Causes
from coband.simulator.api.errors import RunError as RunError, RunWarning as RunWarning
from coband.simulator.api.folders import load as load, runs as runs
from coband.simulator.api.frontier import Frontier as Frontier, frontier as frontier
from coband.simulator.api.plots import Plots as Plots
from coband.simulator.api.running import run as run, sweep as sweep
from coband.simulator.api.scenario import Scenario as Scenario
from coband.simulator.api.stored import Run as Run, Sweep as Sweep
from coband.simulator.analysis.report.catalogue import add_panel as add_panel
from coband.simulator.analysis.report.panel import Panel as Panel
from coband.simulator.arms import ArmSet as ArmSet
from coband.simulator.arrays import FloatArray as FloatArray
from coband.simulator.core.algorithm import (
    Algorithm as Algorithm,
    ClosedForm as ClosedForm,
    MessageSize as MessageSize,
    Needs as Needs,
)
from coband.simulator.core.classes import (
    Agent as Agent,
    BatchAgent as BatchAgent,
    Server as Server,
    algorithm_of as algorithm_of,
    plain as plain,
)
from coband.simulator.core.clock.schedule import BaseSchedule as BaseSchedule
from coband.simulator.core.config import Config as Config
from coband.simulator.core.populations.populations import BasePopulation as BasePopulation
from coband.simulator.core.populations.table import Fleet as Fleet, Windows as Windows
from coband.simulator.core.hosts.availability import BaseAvailability as BaseAvailability
from coband.simulator.core.hosts.energy import BaseRecharge as BaseRecharge
from coband.simulator.core.hosts.speed import BaseStragglers as BaseStragglers
from coband.simulator.core.network.bandwidth import BaseBandwidth as BaseBandwidth
from coband.simulator.core.network.links import BaseLatency as BaseLatency
from coband.simulator.core.network.links import BaseLoss as BaseLoss
from coband.simulator.core.network.partitions import BaseOutage as BaseOutage, BasePartition as BasePartition
from coband.simulator.core.network.topologies import BaseGraph as BaseGraph, RandomGraph as RandomGraph
from coband.simulator.core.nodes.graphs import Graph as Graph, GraphError as GraphError
from coband.simulator.core.nodes.message import Message as Message, payload as payload, size_of as size_of
from coband.simulator.core.nodes.node import (
    ALL_AGENTS as ALL_AGENTS,
    NEIGHBOURS as NEIGHBOURS,
    SERVER as SERVER,
    Address as Address,
    Client as Client,
    Later as Later,
    Multicast as Multicast,
    Neighbours as Neighbours,
    Node as Node,
    NodeContext as NodeContext,
    Note as Note,
    Outbox as Outbox,
    Sharing as Sharing,
    Timer as Timer,
    UnsupportedScenario as UnsupportedScenario,
)
from coband.simulator.core.nodes.outbox import Silence as Silence
from coband.simulator.core.randomness.distributions import BaseDistribution as BaseDistribution
from coband.simulator.core.result import RunResult as RunResult
from coband.simulator.core.conversations import (
    Answers as Answers,
    Declined as Declined,
    Line as Line,
    Talks as Talks,
    Unanswered as Unanswered,
    late as late,
    lost as lost,
    on as on,
)
from coband.simulator.core.wire.behaviours import BaseBehaviour as BaseBehaviour, Sight as Sight
from coband.simulator.core.wire.defences import BaseDefence as BaseDefence
from coband.simulator.core.wire.encodings import BaseEncoding as BaseEncoding
from coband.simulator.core.wire.privacy import BaseMechanism as BaseMechanism, Released as Released
from coband.simulator.core.world import World as World
from coband.simulator.experiments.registry.registry import register as register
from coband.simulator.experiments.runs.reporting import EndedJob as EndedJob, EndedPoint as EndedPoint
from coband.simulator.maths.kernels.base import (
    BaseKernel as BaseKernel,
    Columns as Columns,
    Positive as Positive,
    StationaryKernel as StationaryKernel,
)
from coband.simulator.metrics import Metric as Metric, RunMetric as RunMetric
from coband.simulator.plugins.entry_points import PluginError as PluginError
from coband.simulator.problems.arms import ArmSource as ArmSource
from coband.simulator.problems.problem import Problem as Problem, ProblemEntry as ProblemEntry
from coband.simulator.problems.drift import BaseDrift as BaseDrift
from coband.simulator.problems.rewards import BaseNoise as BaseNoise, Reward as Reward, RewardFunction as RewardFunction
from coband.simulator.scenario_errors import ScenarioError as ScenarioError

__version__: str
BLAS_IS_PINNED: bool

def homes(stub: str) -> dict[str, tuple[str, str]]: ...
def imported(module: str, name: str, home_of: dict[str, tuple[str, str]]) -> object: ...
