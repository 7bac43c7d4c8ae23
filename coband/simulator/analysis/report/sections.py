"""The sections of the page: each is a function that is given the sheet and returns a section, or None.

A further section is one more function in :data:`SECTIONS`. It gets figures by ``sheet.figures[name]`` (the drawings of
``contents.py``) and fills a template of ``templates/sections`` by ``sheet.fill``; see :func:`section`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from coband.simulator.analysis.report import contents, critical, diagram, multiples, provenance, tables, times
from coband.simulator.analysis.report.analysis import Analysis, Timing
from coband.simulator.analysis.report.comparison import MIN_BOOTSTRAP
from coband.simulator.analysis.report.fates import fates_table
from coband.simulator.analysis.report.figures import MAX_BANDS
from coband.simulator.analysis.report.frontier import standing_table
from coband.simulator.analysis.report.palette import TIMES, VARIABLES
from coband.simulator.analysis.report.svg import inline
from coband.simulator.analysis.report.tables import ReportTable

MAX_ENVIRONMENTS = multiples.MAX_ENVIRONMENTS
"""Largest number of environments with figures and tables of their own."""


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Attributes:
        anchor: its id in the page.
        link: its name in the list of sections.
        tall: whether the list of sections scrolls away above it instead of covering its top.
    """

    anchor: str
    link: str
    title: str
    body: Markup
    tall: bool = False


@dataclass(frozen=True)
class Inlined:
    """A figure as SVG, with the environment that it shows."""

    environment: str
    svg: Markup


class Sheet:
    """What sections are made of: the analysis, its figures as SVG, and templates.

    Args:
        templates: the environment of the templates.
        replications: replications whose messages come into the page before those of others.
    """

    def __init__(self, analysis: Analysis, templates: Environment, replications: Sequence[int] = ()) -> None:
        self.analysis = analysis
        self.replications = replications
        self.templates = templates

    @cached_property
    def figures(self) -> Mapping[str, list[Inlined]]:
        """Name of a figure -> its drawings: one, one for each environment, or none."""
        found: dict[str, list[Inlined]] = {name: [] for name in contents.NAMES}
        for order, one in enumerate(contents.figures(self.analysis, environments=MAX_ENVIRONMENTS)):
            title, name = f"{one.title} {one.environment}".strip(), f"f{order}"
            found[one.name].append(Inlined(one.environment, Markup(inline(one.figure, name, title))))
        return found

    @property
    def within(self) -> list[Analysis]:
        """The environments that the page shows one by one."""
        return self.analysis.within[:MAX_ENVIRONMENTS]

    def table(self, make: Callable[[Analysis], ReportTable | None], missing: str = "") -> ReportTable | None:
        """One table of all environments; None if no environment has a row."""
        made = [(one.environment, make(one)) for one in self.within]
        return tables.together([(environment, table) for environment, table in made if table is not None], missing)

    @property
    def single(self) -> bool:
        """Whether no label has more than one replication."""
        return max(self.analysis.replications) < 2

    def fill(self, name: str, **values: Any) -> Markup:
        """A template of ``templates/sections``; it also knows ``figures``, ``single``, ``swept`` and ``several``
        (environments)."""
        template = self.templates.get_template(f"sections/{name}.html.jinja")
        common = {
            "figures": self.figures,
            "single": self.single,
            "swept": self.analysis.swept,
            "several": len(self.within) > 1,
        }
        return Markup(template.render({**common, **values}))


Build = Callable[[Sheet], Section | None]


def _summary(sheet: Sheet) -> Section:
    found = sheet.analysis
    if len(found.within) > 1:
        first, more = tables.winners_within(found, found.measures[:1]), tables.winners_within(found, found.measures[1:])
    else:
        first, more = tables.winners(found.within[0]), None
    more = more if more and more.rows else None
    body = sheet.fill("summary", winners=first, more_winners=more, results=sheet.table(tables.results))
    return Section("summary", "Who wins", "Who wins on what", body)


def _sweep(sheet: Sheet) -> Section | None:
    surface = contents.surface(sheet.analysis)
    if surface is None:
        return None
    number = len(surface.environments)
    body = sheet.fill(
        "sweep",
        unseen=number if number > MAX_ENVIRONMENTS else 0,
        limit=MAX_ENVIRONMENTS,
        tuned=any(cell.variant.phase == "tuning" for cell in surface.cells),
        three=any(len(surface.choices(entry)) > 2 for entry in surface.entries),
    )
    return Section("sweep", "Parameters", "Parameters of the algorithms and of the environment", body)


def _regret(sheet: Sheet) -> Section | None:
    found = sheet.analysis
    if not sheet.figures["regret"] and found.comparison.aim == "regret":
        return None
    body = sheet.fill(
        "regret",
        aim=found.measures[0].heading,
        labels=len(found.labels),
        curves=multiples.MAX_CURVES,
        pale=any(len(one.labels) > multiples.MAX_CURVES for one in found.within),
        banded=any(sum(not line.pale for line in multiples.foremost(one)) <= MAX_BANDS for one in found.within),
    )
    return Section("regret", "Regret", "Regret", body)


def _communication(sheet: Sheet) -> Section:
    found = {
        "Pareto front, as a table": standing_table,
        "Kinds of messages, as a table": tables.communication,
        "Bits by field": tables.fields,
        "Who lied": tables.liars,
        "Privacy that was spent": tables.privacy,
    }
    made = [(title, sheet.table(make)) for title, make in found.items()]
    body = sheet.fill("communication", tables=[(title, table) for title, table in made if table is not None])
    return Section("communication", "Communication", "Communication", body)


def _differences(sheet: Sheet) -> Section | None:
    if not sheet.figures["differences"]:
        return None
    within = [one for one in sheet.within if len(one.labels) > 1]
    swept = sheet.analysis.swept
    most = contents.MAX_PANELS if swept else None
    several = zip(
        *([(one.environment, *each) for each in tables.differences(one)[:most]] for one in within), strict=True
    )
    found = [(each[0][1], tables.together([(name, table) for name, _, table in each])) for each in several]
    shown = [difference for one in within for difference in one.shown(one.measures[0])]
    body = sheet.fill(
        "differences",
        tables=found,
        one_run=len(sheet.analysis.comparison.runs) == 1,
        references=list(dict.fromkeys(one.reference for one in within if one.reference is not None)),
        chosen_by_default=any(len(one.labels) > 5 for one in within),
        bootstrapped=any(one.bootstrap is not None for one in shown),
        least=MIN_BOOTSTRAP,
    )
    return Section("differences", "Differences", "Differences between algorithms", body)


def _times(sheet: Sheet) -> Section:
    timings = [timing for one in sheet.within for timing in one.timings]
    untraced = sheet.analysis.untraced
    everything = sheet.analysis.swept and len(untraced) == len(sheet.analysis.labels)
    body = sheet.fill(
        "times",
        timed=bool(timings),
        found=sheet.table(lambda one: tables.shares(one.timings), missing="0"),
        fates=sheet.table(fates_table),
        untraced=["All variants"] if everything else untraced,
        untraced_many=sheet.analysis.swept,
        meanings=[(one, VARIABLES[TIMES[one.key]]) for one in times.MEANINGS if _occurs(timings, one.key)],
    )
    return Section("times", "Time", "Where the time went", body)


def _occurs(timings: Sequence[Timing], key: str) -> bool:
    return any(one.shares[:, times.CATEGORIES.index(key)].any() for one in timings)


def _rounds(sheet: Sheet) -> Section | None:
    paths = [
        critical.path(one.environment, timing, each)
        for one in sheet.within
        for timing in one.timings
        if timing.all_rounds
        for each in tables.longest(timing)
    ]
    if not paths:
        return None
    found = [
        sheet.table(lambda one: tables.critical_paths(one.timings)),
        sheet.table(lambda one: tables.waited_for(one.timings)),
    ]
    body = sheet.fill("rounds", tables=found, paths=paths)
    return Section("rounds", "Rounds", "Critical path of communication rounds", body)


def _diagram(sheet: Sheet) -> Section | None:
    jobs, absent = diagram.embedded(sheet.analysis, sheet.replications)
    if not jobs:
        return None  # there is no trace, as the section about times says
    wanted = [order for order, job in enumerate(jobs) if job.replication in sheet.replications]
    body = sheet.fill("diagram", jobs=jobs, absent=absent, chosen=wanted[0] if wanted else 0)
    return Section("diagram", "Messages", "Messages in space and time", body, tall=True)


def _reproduce(sheet: Sheet) -> Section:
    sources = [provenance.of(run) for run in sheet.analysis.comparison.runs]
    body = sheet.fill("reproduce", sources=sources, title=sheet.analysis.comparison.title)
    return Section("reproduce", "Reproduce", "Scenario, and how to reproduce", body, tall=True)


SECTIONS: tuple[Build, ...] = (
    _summary,
    _sweep,
    _regret,
    _communication,
    _differences,
    _times,
    _rounds,
    _diagram,
    _reproduce,
)
"""All sections, in the order of the page."""


def sections(sheet: Sheet) -> Iterator[Section]:
    """The sections for which there are data."""
    return (found for build in SECTIONS if (found := build(sheet)) is not None)
