"""The names for extensions, for type checkers; `extending.py` imports each from here when it is first used."""

from coband.simulator.analysis.report import draw as draw
from coband.simulator.analysis.report.analysis import Analysis as Analysis
from coband.simulator.analysis.report.data import (
    EVENT_COLUMNS as EVENT_COLUMNS,
    Contender as Contender,
    Events as Events,
    read_events as read_events,
)
from coband.simulator.analysis.report.embedding import static as static
from coband.simulator.analysis.report.palette import KINDS as KINDS, kind_colour as kind_colour
from coband.simulator.analysis.report.style import Styles as Styles
from coband.simulator.analysis.traces.reading import address_name as address_name
from coband.simulator.core.records import trace as trace
from coband.simulator.experiments.safe_text import visible as visible
from coband.simulator.experiments.store.store import StoredJob as StoredJob
from coband.simulator.plugins.extensions import Command as Command, Extension as Extension
from coband.simulator.cli import options as options
from coband.simulator.core.reading import read_graph as read_graph
from coband.simulator.experiments.runs import code_version as code_version
from coband.simulator.problems import datasets as datasets
from coband.simulator.problems.ratings import RATINGS as RATINGS
from coband.simulator.terminal import progress as progress, tables as tables
