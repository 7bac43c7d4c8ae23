"""What the page says in words: who wins and by how much, what the study is about, and what one must know before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.experiments.statistics.numerals import bounds, like, number

SINGLE = "There is one replication of each algorithm, so there are no intervals: differences may be chance."
MAX_VALUES = 4
"""Largest number of values of a fact that differs between environments."""
UNTRACED = "kept no trace (trace: off), so times, rounds and messages cannot be shown; --trace protocol keeps one."


def winner(analysis: Analysis) -> str:
    """Who wins by the aim of one environment, and by how much: by the difference from the next best mean."""
    ranking = analysis.rankings[0]
    if len(ranking.order) < 2:
        return ranking.sentence
    if len(ranking.leaders) == len(ranking.order):
        return f"All are equal in {ranking.measure.heading}."
    (first, best), (second, _) = ranking.order[:2]
    both = next(one for one in analysis.differences[ranking.measure.name] if {one.first, one.second} == {first, second})
    if len(ranking.leaders) > 1 or not both.mean:
        return ranking.sentence
    gap = both if both.first == first else replace(both, turned=not both.turned)
    share = f"{abs(100 * gap.relative):.0f} % " if gap.relative and abs(gap.relative) >= 0.005 else ""
    relative = f"{share}{'less' if gap.mean < 0 else 'more'} than that of {second}"
    interval = f" (95 % interval {bounds(gap.student)})" if gap.student else ""
    difference = f"{like(gap.mean, gap.student)}{interval}".replace("-", "−")
    return f"{ranking.sentence} Its mean of {like(best.mean, gap.student)} is {relative}, a difference of {difference}."


def at_equal_time(analysis: Analysis) -> str:
    """Who has earned the most by the time when the first label has finished; empty where all are equally fast."""
    last = [one for one in analysis.at_times if one.time == max(each.time for each in analysis.at_times)]
    known = [one for one in last if one.reward is not None]
    if len(known) < 2 or analysis.comparison.stops_itself():
        return ""
    best = max(known, key=lambda one: one.reward or 0.0)
    said = "has earned the most reward" if best.verdict else "has the highest reward, which is not certain"
    pulls = sorted({one.turns for one in known})
    made = f"after {number(round(best.turns))} pulls"
    others = f"; others made {number(round(pulls[0]))} to {number(round(pulls[-1]))}" if len(pulls) > 1 else ""
    return (
        f"At equal time, when the first label has finished ({number(best.time)}), {best.label} {said}, {made}{others}."
    )


def levels(analysis: Analysis) -> str:
    """When a winner is named."""
    pairs = max(len(one.differences[analysis.measures[0].name]) for one in analysis.within)
    if max(analysis.replications) < 2 or not pairs:
        return ""
    several = len(analysis.within) > 1
    where = " of an environment" if several else ""
    level = "of 95 %" if pairs == 1 else f"at which all {pairs} comparisons{where} hold together with 95 % (Bonferroni)"
    early = any(found.early for one in analysis.within for found in one.differences[analysis.measures[0].name])
    kind = "intervals at any time" if early else "t intervals"
    text = f"A winner is named when the {kind} of all its differences exclude 0 at a level {level}."
    return f"{text} Labels are compared within one environment only." if several else text


def remarks(analysis: Analysis) -> list[str]:
    """What one must know before one reads numbers, each once."""
    found = list(analysis.comparison.remarks())
    if max(analysis.replications) < 2:
        found.append(SINGLE)
    if untraced := analysis.untraced:
        everything = len(untraced) == len(analysis.labels)
        found.append(f"{'The jobs' if everything else ', '.join(untraced)} {UNTRACED}")
    return found


def facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Names and values of what the study is about; keys of the grid with all their values."""
    entries, counts = analysis.shared.entries, sorted(set(analysis.replications))
    yield "algorithms" if len(entries) > 1 else "algorithm", str(len(entries))
    if analysis.swept:
        yield "variants", number(len(analysis.labels))
    if len(analysis.within) > 1:
        yield "environments", number(len(analysis.within))
    yield "replications of each", " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    scenarios = [analysis.comparison.scenario_of(one) for one in analysis.contenders]
    for key in ("agents", "schedule", "problem", "network"):
        words = list(dict.fromkeys(word for one in scenarios if (word := _fact(key, one.get(key)))))
        if len(words) == 1 or (analysis.swept and 1 < len(words) <= MAX_VALUES):
            yield key, " or ".join(words)


def _fact(key: str, section: Any) -> str:
    if not isinstance(section, dict):
        return ""
    if key == "agents":
        return number(section.get("count"))
    if key == "network":
        topology = section.get("topology")
        kind = topology.get("kind") if isinstance(topology, dict) else topology
        return str(kind).replace("_", " ") if kind else ""
    kind = str(section.get("kind", "")).replace("_", " ")
    turns = section.get("turns")
    return f"{kind}, {number(turns)} turns" if turns else kind
