"""The report as one self-contained HTML file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from coband.simulator.experiments.report import contents, tables, theory_table, times
from coband.simulator.experiments.report.analysis import Analysis, Timing
from coband.simulator.experiments.report.data import name_of
from coband.simulator.experiments.report.diagram import pack
from coband.simulator.experiments.report.events import Events, node_name
from coband.simulator.experiments.report.frontier import standing_table
from coband.simulator.experiments.report.palette import TIMES, VARIABLES
from coband.simulator.experiments.report.rounds import Round
from coband.simulator.experiments.report.svg import inline
from coband.simulator.experiments.runs.expectations import ROUNDING
from coband.simulator.experiments.statistics.numerals import number
from coband.simulator.experiments.store.store import StoredRun
from coband.simulator.experiments.visible import visible

PACKAGE = "coband.simulator.experiments.report"
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
        label: label of the contender.
        round: the round.
        steps: descriptions of the events, in order.
        event: seq of the last event.
    """

    label: str
    round: Round
    steps: tuple[str, ...]
    event: int


@dataclass(frozen=True)
class Provenance:
    """How a run was made: its command, its resolved scenario, versions, and fingerprints."""

    name: str
    scenario: str
    command: str
    facts: tuple[tuple[str, str], ...]
    fingerprints: tables.ReportTable


def page(analysis: Analysis) -> str:
    """The report as the text of an HTML file; equal runs give equal text."""
    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return visible(environment.get_template("page.html.jinja").render(**_content(analysis))) + "\n"


def _content(analysis: Analysis) -> Mapping[str, Any]:
    comparison, timed = analysis.comparison, analysis.timings
    with_rounds = [one for one in timed if one.all_rounds]
    found = {figure.name: _inlined(figure, number) for number, figure in enumerate(contents.figures(analysis))}
    events = [one for one in timed if len(one.first)]
    return {
        "standing_table": standing_table,
        "theory": theory_table,
        "title": comparison.title,
        "description": next((text for one in comparison.scenarios if (text := one.get("description"))), ""),
        "facts": list(_facts(analysis)),
        "remarks": comparison.remarks(),
        "analysis": analysis,
        "figures": found,
        "tables": tables,
        "number": number,
        "with_rounds": with_rounds,
        "paths": [_critical_path(one, round_) for one in with_rounds for round_ in tables.longest(one)],
        "meanings": [(one, VARIABLES[TIMES[one.key]]) for one in times.MEANINGS if _occurs(timed, one.key)],
        "sources": [_provenance(run) for run in comparison.runs],
        "diagrams": Markup(_script([_diagram(one) for one in events])),
        "diagram_labels": [(one.contender.label, one.contender.jobs[0].replication) for one in events],
        "css": Markup(_static("report.css")),
        "script": Markup(_static("diagram.js")),
    }


def _inlined(found: contents.NamedFigure, order: int) -> Markup:
    return Markup(inline(found.figure, f"f{order}", found.title))


def _static(name: str) -> str:
    return resources.files(PACKAGE).joinpath("static", name).read_text(encoding="utf-8")


def _facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    counts = sorted(set(analysis.replications))
    yield "algorithms" if len(analysis.labels) > 1 else "algorithm", str(len(analysis.labels))
    yield "replications of each", " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    for key, title in (("agents", "agents"), ("schedule", "schedule"), ("problem", "problem"), ("network", "network")):
        words = {_fact(key, scenario.get(key)) for scenario in analysis.comparison.scenarios}
        if len(words) == 1 and (word := words.pop()):
            yield title, word


def _fact(key: str, section: Any) -> str:
    if not isinstance(section, dict):
        return ""
    if key == "agents":
        return number(section.get("count"))
    if key == "network":
        topology = section.get("topology")
        return str(topology.get("kind") if isinstance(topology, dict) else topology).replace("_", " ")
    kind = str(section.get("kind", "")).replace("_", " ")
    turns = section.get("turns")
    return f"{kind}, {number(turns)} turns" if turns else kind


def _occurs(timings: list[Timing], key: str) -> bool:
    return any(one.shares[:, times.CATEGORIES.index(key)].any() for one in timings)


def _critical_path(timing: Timing, found: Round) -> CriticalPath:
    steps = tuple(_step(timing.first, index) for index in reversed(found.chain))
    return CriticalPath(timing.contender.label, found, steps, found.chain[0])


def _step(events: Events, index: int) -> str:
    """An event in words, such as "12.5: agent 3 sends upload to server"."""
    word, kind = events.words[int(events.event[index])], int(events["kind"][index])
    head = f"{float(events.time[index]):,.6g}: {node_name(int(events.node[index]))} {VERBS.get(word, word)}"
    if kind < 0:
        return head
    return f"{head} {events.names[kind]} {'to' if word == 'send' else 'from'} {node_name(int(events['peer'][index]))}"


def _diagram(timing: Timing) -> dict[str, Any]:
    job = timing.contender.jobs[0]
    end = timing.contender.values("simulated_time").get(job.replication, 0.0)
    return {"label": timing.contender.label, "replication": job.replication, "end": end, **pack(timing.first)}


def _script(value: Any) -> str:
    """JSON that is safe inside a script element; characters that deceive stay spelled out when it is read."""
    return json.dumps(_spelled(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _spelled(value: Any) -> Any:
    """The value with texts that cannot deceive a reader; lists that begin with a number hold numbers alone."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    return (
        [_spelled(item) for item in value]
        if isinstance(value, list) and isinstance(next(iter(value), 0), (str, dict, list))
        else value
    )


def _provenance(run: StoredRun) -> Provenance:
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
    return Provenance(name_of(run), run.scenario, command, tuple(fact for fact in facts if fact[1]), table)


def _gap(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else "-"


def _blas(library: Mapping[str, Any]) -> str:
    return " ".join(str(library[key]) for key in ("internal_api", "version", "architecture") if library.get(key))
