"""The panels of the report: its own, those of the rooms of single features, of extensions, and of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from coband.simulator.analysis.comparison.data import ReportError
from coband.simulator.analysis.report import draw, frames, sweeps
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.plugins.entry_points import PluginError, extensions, imported, kind_of

FEATURES = {
    "availability": "coband.simulator.analysis.devices:AVAILABILITY",
    "bits": "coband.simulator.analysis.wire:BITS",
    "devices": "coband.simulator.analysis.devices:DEVICES",
    "dishonest": "coband.simulator.analysis.wire:DISHONEST",
    "energy": "coband.simulator.analysis.devices:ENERGY",
    "epsilon": "coband.simulator.analysis.wire:EPSILON",
    "fates": "coband.simulator.analysis.devices:FATES",
    "lies": "coband.simulator.analysis.wire:LIES",
    "privacy": "coband.simulator.analysis.wire:PRIVACY",
    "ran_out": "coband.simulator.analysis.devices:RAN_OUT",
    "trade_off": "coband.simulator.analysis.frontier.panel:TRADE_OFF",
}
"""Name -> where a panel is that belongs to a feature."""
MEANS = "Means over replications with 95 % t intervals"
PANELS: tuple[Panel, ...] = (
    Panel(
        "results",
        "Results",
        f"{MEANS}; of proportions, Wilson's.",
        frames.results,
        draw.points,
        each="measure",
        rows=True,
        table=frames.wide("measure", "label", "n"),
        main=True,
    ),
    Panel(
        "sensitivity",
        "Parameters",
        f"{MEANS} against each parameter of an algorithm, its others at their best in that environment, and against "
        "each key of the environment. The best of several looks better than it is.",
        sweeps.sensitivity,
        draw.response,
        each="parameter",
        whole=True,
        main=True,
    ),
    Panel(
        "heat",
        "Pairs of parameters",
        "Means over two parameters of an algorithm, its others at their best; dark is low, on a scale of each map.",
        sweeps.heat,
        draw.heat,
        each="map",
        whole=True,
    ),
    Panel(
        "regret",
        "Regret",
        "Means over replications; bands are 95 % t intervals. Curves end where the first replication ends. Against "
        "scalars: the regret when so many had been sent; a dotted line is an algorithm that sends nothing.",
        frames.regret,
        draw.curves,
        each="x",
        table=frames.places,
        main=True,
    ),
    Panel(
        "progress",
        "Turns against time",
        "Regret against time flatters whoever takes fewer turns.",
        frames.progress,
        partial(draw.curves, up="turns taken"),
        table=frames.places,
    ),
    Panel(
        "communication",
        "Communication",
        "Means of a replication. A broadcast to N agents counts N times.",
        frames.communication,
        draw.stack,
        each="measure",
        rows=True,
        table=frames.wide("measure", "label", "part"),
    ),
    Panel(
        "differences",
        "Differences",
        "First minus second, or each minus one label, in the same replication where both met the same arms and noise; "
        "95 % t intervals, of which one in twenty may miss. In the style of the better one; crosses are undecided.",
        frames.differences,
        draw.differences,
        rows=True,
        table=lambda frame: frame.drop(columns=["measure", "better", *([] if frame["minus"].any() else ["minus"])]),
    ),
    Panel(
        "age",
        "Age of information",
        "What decisions were made without: pulls that were not in the model, and the time since the newest message "
        "that it had learnt from. Algorithms whose models nobody counts are left out.",
        frames.age,
        frames.draw_age,
        each="age",
        table=frames.places,
    ),
    Panel(
        "times",
        "Where the time went",
        "Simulated time of an average agent, which is in one of these states at any moment.",
        frames.times,
        draw.stack,
        rows=True,
        table=frames.wide("part", "label"),
    ),
    Panel(
        "rounds",
        "Critical path of rounds",
        "What determined when an average round ended: the chain of causes from its last event back to its beginning.",
        frames.rounds,
        draw.stack,
        rows=True,
        table=frames.wide("part", "label", "n"),
    ),
    Panel(
        "stragglers",
        "Whom rounds waited for",
        "The agents with the most time on the critical paths of the first replication. coband trace why RUN EVENT "
        "shows the chain of causes of the longest of these rounds.",
        frames.stragglers,
    ),
)
"""In the order of the page; `Panel.after` says where those of features and extensions stand."""
_ADDED: dict[str, Panel] = {}


def add_panel(panel: Panel) -> Panel:
    """Show a panel in all reports and plots of this Python process; one of the same name is replaced.

    An installed package offers its panels as an extension.
    """
    if not isinstance(panel, Panel):
        raise PluginError(f"a coband.Panel is expected, not {kind_of(panel)}")
    _ADDED[panel.name] = panel
    return panel


def panels() -> dict[str, Panel]:
    """Return all panels by name, in the order of the page: coband's own, those of extensions, added ones.

    Where an extension has a panel of the name of one of coband's own, coband's counts.
    """
    found = list(PANELS)
    for one in [*_offered()[0], *_ADDED.values()]:
        found = [other for other in found if other.name != one.name]
        names = [other.name for other in found]
        found.insert(names.index(one.after) + 1 if one.after in names else len(found), one)
    return {one.name: one for one in found}


def broken() -> Mapping[str, str]:
    """Return why panels of extensions are left out, by name."""
    return _offered()[1]


def _offered() -> tuple[list[Panel], dict[str, str]]:
    own = {one.name for one in PANELS}
    offered = {name: where for one in extensions().values() for name, where in one.panels.items() if name not in own}
    found, reasons = list[Panel](), dict[str, str]()
    for name, where in sorted({**offered, **FEATURES}.items()):
        try:
            found.append(replace(imported(where, Panel), name=name))
        except PluginError as error:
            reasons[name] = str(error)
    return found, reasons


def panel(name: str) -> Panel:
    """The panel of that name.

    Raises:
        ReportError: there is none; the text lists those that exist.
    """
    known = panels()
    if name in (reasons := broken()):
        raise ReportError(f"the panel {name!r} of an extension does not work: {reasons[name]}.")
    if name not in known:
        raise ReportError(f"there is no panel {name!r}; the panels are {', '.join(known)}.")
    return known[name]
