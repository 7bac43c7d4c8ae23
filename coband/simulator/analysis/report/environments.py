"""The environments of a sweep: what the algorithms face, as opposed to what one chooses.

The keys of a grid are of two kinds. Those under ``algorithms.`` are parameters of algorithms, which one chooses. All
others (world, network, schedule, agents) are the environment, which one faces. Algorithms are rivals only within one
environment: a lower regret under less noise is no merit of an algorithm. A single run has one environment without a
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coband.simulator.analysis.report.data import Contender, RunComparison, name_of


@dataclass(frozen=True, eq=False)
class Environment:
    """One combination of the values that one faces.

    Attributes:
        values: name of each key of the grid -> label of its value; empty in a single run.
        comparison: the contenders in this environment. In a sweep their labels are without the environment, such as
            ``Async [alpha=0.1]``.
    """

    values: dict[str, str]
    comparison: RunComparison

    @property
    def name(self) -> str:
        """Such as "noise=0.1, latency=near"."""
        return named(self.values)


def environments(comparison: RunComparison) -> list[Environment]:
    """The environments in the order of runs and grids.

    A variant that a key of the environment does not affect has run once for all its values, and belongs to each of
    them. Two sweeps share an environment if the keys of their grids have the same values. A single run beside a sweep
    is an environment of its own.
    """
    if not any(one.variant for one in comparison.contenders):
        return [Environment({}, comparison)]
    found: dict[tuple[tuple[str, str], ...], list[Contender]] = {}
    for run in dict.fromkeys(one.run for one in comparison.contenders):
        own = [one for one in comparison.contenders if one.run is run]
        for values in combinations([one.faced for one in own]):
            inside = [one for one in own if one.faced.items() <= values.items()]
            key = values if values or len(comparison.runs) == 1 else {"run": name_of(run)}
            found.setdefault(tuple(key.items()), []).extend(inside)
    several = _several(comparison.contenders)
    return [Environment(dict(key), _inside(comparison, members, several)) for key, members in found.items()]


def _inside(
    comparison: RunComparison, members: Sequence[Contender], several: dict[tuple[str, str], set[str]]
) -> RunComparison:
    """The contenders of one environment, by algorithm, with labels that leave out the environment."""
    entries = list(dict.fromkeys(one.entry for one in members))
    ordered = sorted(members, key=lambda one: entries.index(one.entry))
    labels = _short(ordered, several)
    relabelled = tuple(replace(one, label=label, family=one.entry) for one, label in zip(ordered, labels, strict=True))
    return replace(comparison, contenders=relabelled)


def combinations(faced: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The combinations of values that occur, in the order of the grid; partial ones where no whole one has them."""
    longest = list(dict.fromkeys(tuple(one.items()) for one in sorted(faced, key=len, reverse=True)))
    order = list(dict.fromkeys(name for one in longest for name, _ in one))
    ranks = {name: list(dict.fromkeys(one[name] for one in faced if name in one)) for name in order}
    found: list[dict[str, str]] = []
    for values in map(dict, longest):
        if not any(values.items() <= known.items() for known in found):
            found.append({name: values[name] for name in order if name in values})
    return sorted(found, key=lambda values: [ranks[name].index(text) for name, text in values.items()])


def named(values: Mapping[str, str]) -> str:
    """Values of keys in words, such as "noise=0.1, latency=near"."""
    return ", ".join(f"{name}={text}" for name, text in values.items())


def _several(contenders: Sequence[Contender]) -> dict[tuple[str, str], set[str]]:
    """(algorithm, parameter) -> its values."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in contenders:
        for name, text in one.chosen.items():
            found.setdefault((one.entry, name), set()).add(text)
    return found


def _short(inside: Sequence[Contender], several: dict[tuple[str, str], set[str]]) -> list[str]:
    """Labels without the environment: the algorithm, and its parameters that have several values in the grid."""
    labels = []
    for one in inside:
        values = [f"{name}={text}" for name, text in one.chosen.items() if len(several[one.entry, name]) > 1]
        labels.append(f"{one.entry} [{', '.join(values)}]" if values else one.entry)
    return [label if labels.count(label) == 1 else one.label for label, one in zip(labels, inside, strict=True)]
