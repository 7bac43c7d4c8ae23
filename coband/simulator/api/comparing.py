"""Comparisons of algorithms, and chains of causes, as notebooks and terminals show them."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from coband.simulator.analysis.traces.causes import Chain
from coband.simulator.analysis.traces.tables import TEXTS
from coband.simulator.api.table import Table
from coband.simulator.experiments.store.store import Event


class Comparison:
    """Rankings of the labels on each measure, and the differences between them.

    Attributes:
        differences: a row per measure and pair: ``mean`` is that of ``first`` minus ``second``, ``low`` and ``high``
            are the ends of the 95 % t interval (``bootstrap_low`` and ``bootstrap_high`` those of the bootstrap,
            ``any_time_low`` and ``any_time_high`` those of the confidence sequence, with its ``e_value``),
            ``paired`` says whether it is taken replication by replication, and ``verdict`` says which one is better.
        rankings: a row per measure: the sentence, and the labels that lead. In a sweep both tables begin with the
            environment, within which labels are compared.
        remarks: what readers must know before they compare numbers.
    """

    def __init__(self, listed: Mapping[str, Any]) -> None:
        self.remarks = tuple(listed["remarks"])
        place = ("environment",) if any("environment" in one for one in listed["rankings"]) else ()
        self.differences = Table.from_dicts(
            (_difference(one, (*place, *_DIFFERENCE)) for one in listed["differences"]),
            (*place, "measure", "first", "second", "verdict"),
            first=(*place, *_DIFFERENCE),
        )
        self.rankings = Table.from_rows(
            (*place, "measure", "sentence", "leaders"),
            (
                (*(one[key] for key in place), one["measure"], one["sentence"], ", ".join(_leaders(one)))
                for one in listed["rankings"]
            ),
            (*place, "measure", "sentence", "leaders"),
        )

    def __repr__(self) -> str:
        return "\n".join([*self.remarks, repr(self.rankings), "", repr(self.differences)])

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in self.remarks)
        return f"{remarks}{self.rankings._repr_html_()}{self.differences._repr_html_()}"


_DIFFERENCE = (
    "measure",
    "first",
    "second",
    "paired",
    "n",
    "mean",
    "relative",
    "low",
    "high",
    "bootstrap_low",
    "bootstrap_high",
    "any_time_low",
    "any_time_high",
    "e_value",
    "verdict",
)


def _difference(one: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """A difference with the ends of intervals in columns of their own."""
    row = {key: one.get(key) for key in keys}
    row["low"], row["high"] = one["ci95_t"] or (None, None)
    row["bootstrap_low"], row["bootstrap_high"] = one["ci95_bootstrap"] or (None, None)
    row["any_time_low"], row["any_time_high"] = one["cs95"] or (None, None)
    return row


def _leaders(ranking: Mapping[str, Any]) -> list[str]:
    """The labels with the best mean, which is the lowest or the highest."""
    return ranking.get("lowest") or ranking.get("highest") or []


class Causes:
    """Why an event happened.

    Attributes:
        events: the event, its cause, the cause of that, and so on.
        sentence: the chain in words.
        messages: number of deliveries in the chain.
        delay: simulated time from the first cause to the event.
    """

    def __init__(self, chain: Chain) -> None:
        self.events = Table.from_rows(Event._fields, chain.events, TEXTS)
        self.sentence = chain.sentence + chain.further("whole=True")
        self.messages, self.delay = chain.messages, chain.delay

    def __repr__(self) -> str:
        return f"{self._shown()!r}\n{self.sentence}"

    def _repr_html_(self) -> str:
        return f"{self._shown()._repr_html_()}<p>{html.escape(self.sentence)}</p>"

    def _shown(self) -> Table:
        """The columns that fit on a line."""
        return self.events.select("seq", "time", "event", "node", "peer", "kind", "message", "cause")
