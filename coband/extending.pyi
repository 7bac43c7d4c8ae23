"""The names for extensions, for type checkers; `extending.py` imports each from here when it is first used."""

from coband.simulator.analysis.report import draw as draw, palette as palette, style as style, svg as svg
from coband.simulator.analysis.report.analysis import Analysis as Analysis
from coband.simulator.analysis.report.data import (
    EVENT_COLUMNS as EVENT_COLUMNS,
    Contender as Contender,
    Events as Events,
    read_events as read_events,
)
from coband.simulator.analysis.report.embedding import static as static
from coband.simulator.analysis.traces.reading import address_name as address_name
from coband.simulator.arrays import IntArray as IntArray, TooLarge as TooLarge
from coband.simulator.cli import options as options
from coband.simulator.cli.lazy import Group as Group
from coband.simulator.cli.run import show_results as show_results
from coband.simulator.cli.runs import extra as extra
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
from coband.simulator.experiments.registry.registry import Registry as Registry, ensured_algorithm as ensured_algorithm
from coband.simulator.experiments.runs import code_version as code_version, executor as executor
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
from coband.simulator.experiments.runs.planner import Variant as Variant
from coband.simulator.experiments.runs.reporting import Commands as Commands, Listener as Listener, Report as Report
from coband.simulator.experiments.runs.study import Study as Study, study_of as study_of
from coband.simulator.experiments.safe_text import visible as visible
from coband.simulator.experiments.scenario import loading as loading
from coband.simulator.experiments.scenario.overrides import to_yaml as to_yaml
from coband.simulator.experiments.scenario.scenario import Scenario as Scenario, ScenarioEntry as ScenarioEntry
from coband.simulator.experiments.store import directory as directory, manifest as manifest
from coband.simulator.experiments.store.store import StoredJob as StoredJob
from coband.simulator.maths.linalg import gram as gram
from coband.simulator.metrics import by_name as by_name
from coband.simulator.plugins.extensions import Command as Command, Extension as Extension
from coband.simulator.problems import datasets as datasets
from coband.simulator.problems.network import NetworkProblem as NetworkProblem
from coband.simulator.problems.ratings import RATINGS as RATINGS
from coband.simulator.scenario_errors import RAISED as RAISED, BrokenOff as BrokenOff, RequestError as RequestError
from coband.simulator.terminal import progress as progress, tables as tables
