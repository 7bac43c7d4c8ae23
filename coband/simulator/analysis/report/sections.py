"""The sections of the page: each is a function that is given the sheet and returns a section, or None.

A further section is one more function in :data:`SECTIONS`. It gets figures by ``sheet.figures[name]`` (the drawings of
``contents.py``) and fills a template of ``templates/sections`` by ``sheet.fill``; see :func:`section`.

How a run was made and the critical path of a round, in words, are such sections.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from coband.simulator.analysis.report import contents, diagram, multiples, tables, times
from coband.simulator.analysis.report.analysis import Analysis, Timing
from coband.simulator.analysis.report.comparison import MIN_BOOTSTRAP
from coband.simulator.analysis.report.data import Events, as_given, name_of
from coband.simulator.analysis.report.devices import fates_table
from coband.simulator.analysis.report.diagram import key_of, title_of
from coband.simulator.analysis.report.drawing import inline
from coband.simulator.analysis.report.figures import MAX_BANDS
from coband.simulator.analysis.report.frontier import standing_table
from coband.simulator.analysis.report.palette import TIMES, VARIABLES
from coband.simulator.analysis.report.rounds import Round
from coband.simulator.analysis.report.tables import ReportTable
from coband.simulator.analysis.traces.reading import address_name
from coband.simulator.experiments.runs.expectations import ROUNDING
from coband.simulator.experiments.store.store import StoredRun

ELSEWISE = {"live", "not_installed"}
"""Keys that only manifests of runs have which the scenario alone does not repeat."""


@dataclass(frozen=True)
class Provenance:
    """How a run was made: its command, its scenario, versions, and fingerprints.

    Attributes:
        given: whether the scenario is the file as it was given, and not the resolved one.
        repeats: whether ``coband run`` with the scenario gives the same fingerprints.
    """

    name: str
    scenario: str
    given: bool
    repeats: bool
    command: str
    facts: tuple[tuple[str, str], ...]
    fingerprints: tables.ReportTable


def of(run: StoredRun) -> Provenance:
    """How a run was made."""
    manifest = run.manifest
    versions = manifest.get("versions") or {}
    platform = manifest.get("platform") or {}
    command = shlex.join(["coband", *map(str, (manifest.get("command") or ["coband", "run"])[1:])])
    facts = [
        ("seed", str(manifest.get("seed", ""))),
        ("started", str(manifest.get("started", ""))),
        ("finished", str(manifest.get("finished") or "not finished")),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items() if version)),
        ("platform", str(platform.get("system", ""))),
        ("BLAS", ", ".join(dict.fromkeys(_blas(one) for one in manifest.get("blas") or []))),
    ]
    hardware = manifest.get("hardware") or {}
    facts += [
        (part, str(hardware[part])) for part in ("processor", "numpy's SIMD features", "C library") if part in hardware
    ]
    rows = tuple(
        (job.label, str(job.replication), str(job.record["fingerprint"]), _gap(job.record.get("closest_decision")))
        for job in run.jobs
        if job.record is not None
    )
    header = ("label", "replication", "fingerprint", "closest decision")
    table = tables.ReportTable(
        "SHA-256 over every event of a job, and the smallest gap between the best arm's score and the next one at any "
        f"turn, as a share of the larger one: below {ROUNDING:.0e} rounding may have decided, so that another kind "
        "of processor may come to other results.",
        header,
        rows,
        texts=3,
    )
    return Provenance(
        name_of(run),
        run.scenario,
        as_given(run),
        not as_given(run) and not ELSEWISE & manifest.keys(),
        command,
        tuple(fact for fact in facts if fact[1]),
        table,
    )


def _gap(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else "-"


def _blas(library: Mapping[str, Any]) -> str:
    return " ".join(str(library[key]) for key in ("internal_api", "version", "architecture") if library.get(key))


VERBS = {
    "turn": "starts a turn",
    "choose": "chooses",
    "reward": "sees its reward",
    "trigger": "triggers",
    "send": "sends",
    "deliver": "receives",
    "apply": "applies its data",
    "model": "adopts the model",
    "wait": "begins to wait",
    "resume": "resumes",
    "eliminate": "eliminates arms",
    "stop": "stops",
}


@dataclass(frozen=True)
class CriticalPath:
    """The critical path of one round, in words.

    Attributes:
        job: key of its job in the diagram.
        steps: descriptions of the events, in order.
        event: seq of the last event.
    """

    label: str
    job: str
    round: Round
    steps: tuple[str, ...]
    event: int


def path(environment: str, timing: Timing, found: Round) -> CriticalPath:
    """The critical path of a round of the first replication."""
    steps = tuple(_step(timing.first, index) for index in reversed(found.chain))
    job = key_of(environment, timing.contender, timing.contender.jobs[0].replication)
    return CriticalPath(title_of(environment, timing.contender), job, found, steps, found.chain[0])


def _step(events: Events, index: int) -> str:
    """An event in words, such as "12.5: agent 3 sends upload to server"."""
    word, kind = events.words[int(events["event"][index])], int(events["kind"][index])
    node, peer = (address_name(int(events[name][index])) or "" for name in ("node", "peer"))
    head = f"{float(events['time'][index]):,.6g}: {node} {VERBS.get(word, word)}"
    return head if kind < 0 else f"{head} {events.names[kind]} {'to' if word == 'send' else 'from'} {peer}"


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
        path(one.environment, timing, each)
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
    sources = [of(run) for run in sheet.analysis.comparison.runs]
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
