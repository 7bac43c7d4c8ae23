"""The tables of a report: all numbers that its figures show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.analysis.report import rounds, times
from coband.simulator.analysis.report.adversity import lies
from coband.simulator.analysis.report.analysis import Analysis, Timing
from coband.simulator.analysis.report.comparison import MIN_BOOTSTRAP, Difference, Ranking
from coband.simulator.analysis.report.rounds import Round
from coband.simulator.analysis.report.times import ARROWS
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.statistics.numerals import between, bounds, evidence, like, number
from coband.simulator.metrics import Metric

MAX_WAITED = 5
LONGEST = 5
ANY_TIME = ("95 % at any time", "e")
"""Columns of a confidence sequence and of the e-value of its process."""
FEW = f"needs {MIN_BOOTSTRAP} pairs"
"""What stands in place of a bootstrap interval where there are too few pairs for one."""


@dataclass(frozen=True)
class ReportTable:
    """A table of a report.

    Attributes:
        caption: text above the table.
        header: titles of the columns.
        rows: cells; the first cell is the heading of its row.
        texts: number of leading columns that contain text rather than numbers.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1


def together(found: Sequence[tuple[str, ReportTable]], missing: str = "") -> ReportTable | None:
    """One table of several environments, whose names come first; None if none of them has a row.

    Args:
        found: (environment, its table).
        missing: the cell of a column that an environment does not have.
    """
    found = [(environment, one) for environment, one in found if one.rows]
    if not any(environment for environment, _ in found):
        return found[0][1] if found else None
    first = found[0][1]
    header = tuple(dict.fromkeys(title for _, one in found for title in one.header))
    rows = tuple(
        (environment, *(dict(zip(one.header, row, strict=True)).get(title, missing) for title in header))
        for environment, one in found
        for row in one.rows
    )
    caption = " ".join(dict.fromkeys(one.caption for _, one in found))
    return ReportTable(caption, ("environment", *header), rows, first.texts + 1)


def winners(analysis: Analysis) -> ReportTable:
    """The best label on each measure, in words."""
    rows = tuple((one.measure.heading, one.sentence, _best(one)) for one in analysis.rankings)
    return ReportTable(_levels(analysis), ("measure", "in words", "best mean"), rows)


def winners_within(analysis: Analysis, measures: Sequence[Metric]) -> ReportTable:
    """The best label on each measure in each environment of a sweep, in words."""
    found = [(each, one) for by in measures for each in analysis.within for one in each.rankings if one.measure == by]
    if len(measures) == 1:
        rows = tuple((each.environment, one.sentence, _best(one)) for each, one in found)
        caption = f"{measures[0].heading[:1].upper()}{measures[0].heading[1:]}. {_levels(analysis)}"
        return ReportTable(caption, ("environment", "in words", "best mean"), rows)
    several = tuple((each.environment, one.measure.heading, one.sentence, _best(one)) for each, one in found)
    return ReportTable(_levels(analysis), ("environment", "measure", "in words", "best mean"), several, texts=2)


def _best(ranking: Ranking) -> str:
    return number(ranking.order[0][1].mean)


def _levels(analysis: Analysis) -> str:
    better = {measure.better for measure in analysis.measures}
    text = (
        "Lower is better everywhere."
        if better == {"lower"}
        else "The sentence above says whether lower or higher is better."
    )
    pairs = max(len(one.differences[analysis.measures[0].name]) for one in analysis.within)
    if analysis.swept:
        text += " Labels are compared within one environment only."
    if max(analysis.replications) < 2 or not pairs:
        return text
    level = f"at which all {pairs} comparisons{' of the environment' if analysis.swept else ''} hold together with 95 %"
    level = "of 95 %" if pairs == 1 else f"{level} (Bonferroni)"
    early = any(found.early for one in analysis.within for found in one.differences[analysis.measures[0].name])
    kind = "intervals at any time" if early else "t intervals"
    return f"{text} A winner is named when the {kind} of all its differences exclude 0 at a level {level}."


def results(analysis: Analysis) -> ReportTable:
    """Means and intervals of every label."""
    columns = [[_estimate(measure, found) for found in analysis.estimates(measure)] for measure in analysis.measures]
    rows = tuple(
        (one.label, one.algorithm, str(len(one.records)), *cells)
        for one, cells in zip(analysis.contenders, zip(*columns, strict=True), strict=True)
    )
    header = ("label", "algorithm", "n", *(measure.heading for measure in analysis.measures))
    caption = "Mean over n replications ± half the width of the 95 % confidence interval of the mean (Student t)."
    if shares := [measure.heading for measure in analysis.measures if measure.proportion]:
        caption += f" Of {' and '.join(shares)}: the share, and Wilson's 95 % interval."
    return ReportTable(caption, header, rows, texts=2)


def _estimate(measure: Metric, found: Estimate) -> str:
    if measure.proportion:
        return f"{found.mean:.3g} ({bounds(found.interval)})"
    return between(found.mean, found.interval)


def differences(analysis: Analysis) -> list[tuple[str, ReportTable]]:
    """(title, table) of each measure."""
    header = ("difference", "mean", "relative", "95 % t interval", "95 % bootstrap interval", *ANY_TIME, "n", "verdict")
    return [
        (
            measure.heading,
            ReportTable(_caption(analysis.shown(measure)), header, tuple(map(_row, analysis.shown(measure)))),
        )
        for measure in analysis.measures
    ]


def _caption(found: Sequence[Difference]) -> str:
    if all(one.paired for one in found):
        early = " Replications were added until a mean was known: what holds at any time decides."
        more = early if any(one.early for one in found) else ""
        return f"Differences within the same replication (same arms, same noise); n pairs.{more}"
    if any(one.paired for one in found):
        return "Differences within the same replication where n says pairs; otherwise of independent means (Welch)."
    return "Differences of independent means (Welch): the runs had different arms and noise."


def _row(one: Difference) -> tuple[str, ...]:
    relative = "" if one.relative is None else _percent(100 * one.relative)
    count = f"{one.count} pair{'s' * (one.count != 1)}" if one.paired else f"{one.count}, unpaired"
    resampled = FEW if one.bootstrap is None and one.student is not None else bounds(one.bootstrap)
    at_any_time = (bounds(one.any_time), evidence(one.e_value))
    numbers = (like(one.mean, one.student), relative, bounds(one.student), resampled, *at_any_time)
    return (f"{one.first} − {one.second}", *(number.replace("-", "−") for number in numbers), count, one.verdict)


def _percent(value: float) -> str:
    if value == 0:
        return "0 %"
    return f"{value:+,.0f} %" if abs(value) >= 100 else f"{value:+.3g} %"


def communication(analysis: Analysis) -> ReportTable:
    """Sends, messages and scalars by label, kind and direction."""
    rows = tuple(
        (
            label,
            flow.kind,
            ARROWS[flow.direction],
            *(number(round(value, 1)) for value in (flow.sends, flow.messages, flow.scalars, flow.once)),
        )
        for label, found in analysis.flows
        for flow in found
    )
    header = ("label", "kind", "direction", "sends", "messages", "scalars", "scalars, broadcast once")
    return ReportTable(
        "Means of a replication. A broadcast to N agents is one send and N messages.", header, rows, texts=3
    )


def fields(analysis: Analysis) -> ReportTable:
    """Scalars and bits by label, kind, direction and field."""
    rows = tuple(
        (one.label, kind, ARROWS[direction], field, meaning, *(number(round(value, 1)) for value in (scalars, bits)))
        for one in analysis.contenders
        for kind, direction, field, meaning, scalars, bits in times.fields(one)
    )
    header = ("label", "kind", "direction", "field", "holds", "scalars", "bits")
    return ReportTable("Means of a replication, without headers.", header, rows, texts=5)


def liars(analysis: Analysis) -> ReportTable:
    """Who was dishonest, in each replication of each label, and the regret of the honest."""
    rows = []
    for one in analysis.contenders:
        jobs = {job.replication: job for job in one.jobs}
        for replication, record in sorted(one.records.items()):
            who = [str(agent["agent"]) for agent in record.get("agents", ()) if agent.get("dishonest")]
            if who:
                regret = (
                    number(round(record["honest_regret_per_agent"], 3)) if len(who) < len(record["agents"]) else "–"
                )
                times = [lie.time for lie in lies(jobs[replication])]
                when = [number(round(time, 3)) for time in (times[0], times[-1])] if times else ["–", "–"]
                rows.append((one.label, str(replication), ", ".join(who), number(len(times)), *when, regret))
    header = ("label", "replication", "dishonest agents", "lies", "the first", "the last", "regret of an honest agent")
    caption = "Lies are messages that were changed or kept back, with their simulated times, where there is a trace."
    return ReportTable(caption, header, tuple(rows), texts=3)


def privacy(analysis: Analysis) -> ReportTable:
    """What each replication has spent by each quarter of its time, and what is not private."""
    rows, remarks, registry = [], [], Registry.installed()
    for one in analysis.contenders:
        asked = (analysis.comparison.scenario_of(one).get("messages") or {}).get("privacy")
        for replication, record in sorted(one.records.items()):
            agents = [agent for agent in record.get("agents", ()) if agent.get("epsilon") is not None]
            if asked and agents:
                most = [max(agent[f"epsilon{share}"] for agent in agents) for share in ("_25", "_50", "_75", "")]
                spent = [number(round(value, 3)) for value in most]
                rows.append((one.label, str(replication), *spent, number(record.get("clipped") or 0)))
        if asked:
            remarks.append(f"{one.label}: {'; '.join(registry.unprotected(one.algorithm, asked)) or 'nothing'}.")
    header = ("label", "replication", "epsilon by 25 %", "50 %", "75 %", "the end", "pulls clipped")
    caption = f"Of the agent that has spent most. What is sent without noise: {' '.join(remarks)}"
    return ReportTable(caption, header, tuple(rows), texts=2)


def shares(timings: Sequence[Timing]) -> ReportTable:
    """The time of an average agent in each category."""
    keys = [one.key for one in times.MEANINGS]
    shown = [number for number, _ in enumerate(keys) if any(one.shares[:, number].any() for one in timings)]
    rows = []
    for one in timings:
        mean = one.shares.mean(axis=0)
        bands = statistics.bands(one.shares)
        cells = [between(mean[i], None if bands is None else (bands[0][i], bands[1][i])) for i in shown]
        whole = statistics.interval(one.shares.sum(axis=1).tolist())
        rows.append((one.contender.label, *cells, like(float(mean.sum()), whole)))
    header = ("label", *(times.MEANINGS[i].title for i in shown), "all of it")
    return ReportTable(
        "Simulated time of an average agent; mean over replications ± half the width of its 95 % interval.",
        header,
        tuple(rows),
    )


def critical_paths(timings: Sequence[Timing]) -> ReportTable:
    """Number, mean duration and critical path of the rounds of every label."""
    rows = []
    for one in timings:
        if not (found := one.all_rounds):
            continue
        mean = float(np.mean([each.duration for each in found]))
        parts = [_share(part, mean) for part in one.parts]
        count = np.mean([len(each) for each in one.rounds])
        rows.append((one.contender.label, number(round(float(count), 1)), f"{mean:,.4g}", *parts))
    header = ("label", "rounds", "mean duration", *rounds.PARTS)
    return ReportTable(
        "Rounds of a replication that took time, their mean duration, and what their critical paths consist of.",
        header,
        tuple(rows),
    )


def waited_for(timings: Sequence[Timing]) -> ReportTable:
    """The agents that rounds waited for in the first replication of every label."""
    rows = [
        (
            one.contender.label,
            f"agent {wait.agent}",
            f"{wait.rounds} of {len(one.rounds[0])}",
            f"{wait.time:,.4g}",
            _share(wait.time, sum(each.duration for each in one.rounds[0])),
        )
        for one in timings
        for wait in one.waits[:MAX_WAITED]
    ]
    header = ("label", "waited for", "rounds", "time on the critical path", "share of all rounds' time")
    caption = f"The (at most {MAX_WAITED}) agents that cost rounds the most, in the first replication."
    return ReportTable(caption, header, tuple(rows), texts=2)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if part else "0"


def longest(timing: Timing) -> list[Round]:
    """The longest rounds of the first replication."""
    return sorted(timing.rounds[0], key=lambda one: (-one.duration, one.number))[:LONGEST]
