"""The style of every label: one colour, one marker and one kind of dashes in all figures of a study."""

from __future__ import annotations

from collections.abc import Sequence

from coband.simulator.analysis.report.environments import Environment
from coband.simulator.analysis.report.palette import LineStyle, line_style, variant_style
from coband.simulator.experiments.store.store import StoredRun


def styles(found: Sequence[Environment], entries: Sequence[str]) -> dict[tuple[StoredRun, str], LineStyle]:
    """(run, label in the run) -> its style.

    In a single run every label has a colour of its own. In a sweep an algorithm has one colour in all environments,
    and its variants differ in marker and dashes.

    Args:
        entries: the algorithms, whose order determines the colours.
    """
    contenders = [one for each in found for one in each.comparison.contenders]
    pairs = list(dict.fromkeys((one.entry, one.label) for one in contenders))
    if len(entries) == len(pairs):
        known = {pair: line_style(entries.index(pair[0])) for pair in pairs}
    else:
        labels = {entry: [label for other, label in pairs if other == entry] for entry in entries}
        known = {pair: variant_style(entries.index(pair[0]), labels[pair[0]].index(pair[1])) for pair in pairs}
    return {(one.run, one.own): known[one.entry, one.label] for one in contenders}
