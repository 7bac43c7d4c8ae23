"""The names for extensions, for type checkers; `extending.py` imports each from here when it is first used."""

from coband.simulator.analysis.comparison.analysis import Analysis as Analysis
from coband.simulator.analysis.frontier import ranges as ranges
from coband.simulator.analysis.report import draw as draw, palette as palette, style as style, svg as svg
from coband.simulator.analysis.report.svg import static as static
from coband.simulator.analysis.traces.columns import (
    EVENT_COLUMNS as EVENT_COLUMNS,
    Events as Events,
    read_events as read_events,
)
from coband.simulator.analysis.traces.reading import address_name as address_name
from coband.simulator.arrays import IntArray as IntArray, TooLarge as TooLarge
from coband.simulator.cli import options as options
from coband.simulator.cli.lazy import Group as Group
from coband.simulator.cli.run import show_results as show_results
from coband.simulator.core import formulas as formulas
from coband.simulator.core.algorithm import attributes as attributes
from coband.simulator.core.clock import clock as clock
from coband.simulator.core.conversations import Talks as Talks
from coband.simulator.core.engine import Engine as Engine
from coband.simulator.core.hosts.host import ClientHost as ClientHost
from coband.simulator.core.hosts.turns import Turns as Turns
from coband.simulator.core.making.hosts import HostContext as HostContext, make_hosts as make_hosts
from coband.simulator.core.making.nodes import Setup as Setup, make_nodes as make_nodes
from coband.simulator.core.making.parts import make_wire as make_wire, veiled as veiled, what_was_done as what_was_done
from coband.simulator.core.network.network import Network as Network, NetworkConfig as NetworkConfig
from coband.simulator.core.network.reliable import ReliableTransport as ReliableTransport
from coband.simulator.core.network.transport import Receiving as Receiving, Transport as Transport
from coband.simulator.core.nodes.decisions import ClosestDecision as ClosestDecision
from coband.simulator.core.nodes.message import NodeMistake as NodeMistake, unary_bits as unary_bits
from coband.simulator.core.nodes.node import BatchAgent as BatchAgent, Server as Server
from coband.simulator.core.nodes.outbox import called as called
from coband.simulator.core.packet import Packet as Packet
from coband.simulator.core.plan import Plan as Plan
from coband.simulator.core.randomness.streams import Streams as Streams
from coband.simulator.core.reading import read_graph as read_graph
from coband.simulator.core.records import invariants as invariants, ledger as ledger, trace as trace
from coband.simulator.core.records.progress import Progress as Progress
from coband.simulator.core.result import Ended as Ended
from coband.simulator.core.router import Router as Router
from coband.simulator.core.run_context import Down as Down, RunContext as RunContext
from coband.simulator.core.wire import packing as packing
from coband.simulator.core.wire.encodings import Delta as Delta, reals as reals
from coband.simulator.core.wire.layout import Field as Field, Layout as Layout
from coband.simulator.core.world import in_batches as in_batches
from coband.simulator.experiments.registry.registry import (
    ALGORITHMS as ALGORITHMS,
    Registry as Registry,
    ensured_algorithm as ensured_algorithm,
)
from coband.simulator.experiments.runs import (
    code_version as code_version,
    executor as executor,
    footing as footing,
)
from coband.simulator.experiments.runs.address import ForeignCode as ForeignCode, address as address
from coband.simulator.experiments.runs.attempt import told as told
from coband.simulator.experiments.runs.driver import drive as drive
from coband.simulator.experiments.runs.job import (
    Job as Job,
    JobFailure as JobFailure,
    OnPull as OnPull,
    engine_of as engine_of,
    entry_of as entry_of,
    graph_and_world as graph_and_world,
    plan as plan,
)
from coband.simulator.experiments.runs.planner import FIRST_REPLICATION as FIRST_REPLICATION, Variant as Variant
from coband.simulator.experiments.runs.preflight import preflight as preflight
from coband.simulator.experiments.runs.reporting import Commands as Commands, Listener as Listener, Report as Report
from coband.simulator.experiments.runs.results import Record as Record, dump as dump
from coband.simulator.experiments.runs.status import now as now
from coband.simulator.experiments.runs.study import Study as Study, study_of as study_of
from coband.simulator.experiments.safe_text import visible as visible
from coband.simulator.experiments.scenario import loading as loading, yaml_nodes as yaml_nodes
from coband.simulator.experiments.scenario.explain import Explainer as Explainer, Wording as Wording
from coband.simulator.experiments.scenario.files import ScenarioText as ScenarioText, read_scenario as read_scenario
from coband.simulator.experiments.scenario.overrides import to_yaml as to_yaml
from coband.simulator.experiments.scenario.scenario import Scenario as Scenario, ScenarioEntry as ScenarioEntry
from coband.simulator.experiments.statistics import estimates as estimates, numerals as numerals
from coband.simulator.experiments.statistics.dominance import non_dominated as non_dominated
from coband.simulator.experiments.statistics.evidence import (
    mean_of_logs as mean_of_logs,
    mean_processes as mean_processes,
    share_process as share_process,
)
from coband.simulator.experiments.store import directory as directory, files as files, manifest as manifest
from coband.simulator.experiments.store.directory import RunDirectory as RunDirectory
from coband.simulator.experiments.store.recording import ResultCache as ResultCache
from coband.simulator.experiments.store.store import Series as Series
from coband.simulator.experiments.sweep.study import load_study as load_study
from coband.simulator.maths.linalg import gram as gram
from coband.simulator.metrics import by_name as by_name
from coband.simulator.plugins.entry_points import (
    Command as Command,
    Extension as Extension,
    OWN_DISTRIBUTION as OWN_DISTRIBUTION,
    distribution as distribution,
    installed as installed,
)
from coband.simulator.problems import datasets as datasets
from coband.simulator.problems.network import NetworkProblem as NetworkProblem
from coband.simulator.problems.ratings import RATINGS as RATINGS
from coband.simulator.scenario_errors import (
    BrokenOff as BrokenOff,
    RAISED as RAISED,
    RequestError as RequestError,
    did_you_mean as did_you_mean,
)
from coband.simulator.terminal import progress as progress, tables as tables
from coband.simulator.terminal.output import warn_of_plugins as warn_of_plugins
