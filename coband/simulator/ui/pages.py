"""The pages as HTML, from what is stored and by the code of reports and comparisons."""

from __future__ import annotations

import difflib
import shlex
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from coband.simulator.analysis.report import data, tables
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.embedding import templates
from coband.simulator.experiments.runs.status import ENDED
from coband.simulator.experiments.safe_text import visible
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.statistics.numerals import number
from coband.simulator.experiments.store.store import StoredRun, open_run
from coband.simulator.scenario_errors import RequestError
from coband.simulator.ui.catalogue import DAMAGED, KILLED, RUNNING, UNKNOWN, Catalogue, Choice, Entry, signature

PACKAGE = "coband.simulator.ui"
MOST_ROWS = 500
"""Runs on one page of the list; more are found by the filter."""
MOST_FAILURES = 20
"""Jobs that broke off on the page of a run."""
CONTEXT = 4
"""Equal lines that are shown around a difference."""
MOST_REPORTS = 8
"""Reports that are kept in memory."""
STATES = (RUNNING, *ENDED, KILLED, DAMAGED, UNKNOWN)
SECTIONS = (
    *("seed", "agents", "schedule", "network", "server", "messages", "adversaries", "problem", "algorithms"),
    *("trace", "checks", "share", "grid", "tuning", "until"),
)
"""Keys of scenarios that are compared, in their order."""

Query = Mapping[str, Sequence[str]]


class PageError(RequestError):
    """A page cannot be made, and why that is in terms of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class DiffLine:
    """A line of the difference of two scenarios: ``kind`` is same, removed, added or left-out."""

    kind: str
    text: str

    @property
    def mark(self) -> str:
        """What the line begins with, as colours are not enough."""
        return {"removed": "- ", "added": "+ "}.get(self.kind, "  ")


class Pages:
    """Writes pages."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._templates = templates(PACKAGE, number=number, states=STATES, root=str(catalogue.root))
        self._reports: OrderedDict[object, str] = OrderedDict()
        self._rendering = Lock()

    def _page(self, template: str, **content: Any) -> str:
        return visible(self._templates.get_template(f"{template}.html.jinja").render(**content)) + "\n"

    # --- pages

    def runs(self, query: Query) -> str:
        """The list of runs, those that the query chooses."""
        entries = self.catalogue.entries()
        choice = Choice(**{one.name: _first(query, one.name).strip() for one in fields(Choice)})
        shown = list(choice.of(entries))
        return self._page(
            "runs",
            choice=choice,
            shown=shown[:MOST_ROWS],
            found=len(shown),
            total=len(entries),
            algorithms=sorted({name for entry in entries for name in entry.algorithms}),
            scenarios=sorted({entry.scenario for entry in entries if entry.scenario}),
            live=self.catalogue.unchecked or any(entry.status == RUNNING for entry in entries),
        )

    def run(self, query: Query) -> str:
        """One run: how it came about, how far it is, and its results."""
        (entry,) = self._chosen(query, least=1, most=1)
        if entry.status == DAMAGED or not entry.jobs:
            trouble = entry.trouble or "it has no jobs yet"
            return self._page(
                "run", entry=entry, facts=_facts(entry, None), trouble=trouble, results=None, failures=(), failed=0
            )
        with self._opened([entry]) as (run,):
            failures = [job for job in run.jobs if job.status in ("failed", "violated")]
            found = tables.results(Analysis(data.load([run]))) if any(job.record for job in run.jobs) else None
            return self._page(
                "run",
                entry=entry,
                facts=_facts(entry, run),
                trouble="",
                results=found,
                failures=failures[:MOST_FAILURES],
                failed=len(failures),
            )

    def compare(self, query: Query) -> str:
        """What ``coband compare`` prints."""
        entries = self._chosen(query, least=1)
        against = _first(query, "against") or None
        with self._opened(entries) as runs:
            analysis = Analysis(data.load(runs), against)
            return self._page(
                "compare",
                entries=entries,
                analysis=analysis,
                tables=tables,
                against=against,
                several=len(analysis.labels) > 1,
                ids=_ids(entries),
            )

    def report(self, query: Query) -> str:
        """The report that ``coband report`` writes; equal ones are written once."""
        entries = self._chosen(query, least=1)
        against = _first(query, "against") or None
        key = (against, *((entry.id, signature(entry.path)) for entry in entries))
        with self._rendering:
            if key not in self._reports:
                self._reports[key] = self._rendered(entries, against)
                while len(self._reports) > MOST_REPORTS:
                    self._reports.popitem(last=False)
            self._reports.move_to_end(key)
            return self._reports[key]

    def _rendered(self, entries: Sequence[Entry], against: str | None) -> str:
        from coband.simulator.analysis.report.page import page

        with self._opened(entries) as runs:
            return page(Analysis(data.load(runs), against))

    def scenario(self, query: Query) -> str:
        (entry,) = self._chosen(query, least=1, most=1)
        with self._opened([entry]) as (run,):
            return self._page("scenario", entry=entry, text=run.scenario, given=data.as_given(run))

    def difference(self, query: Query) -> str:
        """What two runs' scenarios have different."""
        entries = self._chosen(query, least=2, most=2)
        with self._opened(entries) as runs:
            first, second = map(data.parsed, runs)
            return self._page(
                "diff",
                entries=entries,
                keys=data.differing(first, second, SECTIONS),
                lines=list(_difference(to_yaml(first), to_yaml(second))),
                ids=_ids(entries),
            )

    def message(self, title: str, text: str) -> str:
        return self._page("message", title=title, text=text)

    def entered(self) -> str:
        """What is answered to the token. It leads on by itself: redirects from elsewhere would lose strict cookies."""
        return self._page("entered")

    # --- what they have in common

    def _chosen(self, query: Query, least: int, most: int | None = None) -> list[Entry]:
        """The runs that a query names.

        Raises:
            PageError: there is no such run.
            RequestError: they are too few or too many.
        """
        wanted = list(dict.fromkeys(query.get("id", ())))
        found = self.catalogue.find(wanted)
        if len(found) < len(wanted):
            raise PageError("There is no such run any more below this directory; go back to the list.", 404)
        if len(found) < least or (most is not None and len(found) > most):
            count = {1: "one run", 2: "two runs"}.get(most or 0, "at least one run")
            raise RequestError(f"Choose {count} in the list; {len(found)} are chosen.")
        return found

    @contextmanager
    def _opened(self, entries: Sequence[Entry]) -> Iterator[list[StoredRun]]:
        with ExitStack() as stack:
            yield [stack.enter_context(open_run(entry.path)) for entry in entries]


def _first(query: Query, name: str) -> str:
    return next(iter(query.get(name, ())), "")


def _ids(entries: Sequence[Entry]) -> str:
    """The part of an address that names runs."""
    return urlencode([("id", entry.id) for entry in entries])


def _facts(entry: Entry, run: StoredRun | None) -> list[tuple[str, str]]:
    manifest = {} if run is None else run.manifest
    versions = manifest.get("versions") or {}
    found = [
        ("scenario", entry.scenario),
        ("started", entry.started),
        ("finished", entry.finished),
        ("took", entry.duration),
        ("algorithms", ", ".join(entry.algorithms)),
        ("jobs", ", ".join(f"{count} {status}" for status, count in sorted(entry.jobs.items()))),
        ("seed", str(manifest.get("seed", ""))),
        ("coband", str(versions.get("coband") or "")),
        ("command", shlex.join(["coband", *map(str, manifest["command"][1:])]) if manifest.get("command") else ""),
        ("directory", str(entry.path)),
    ]
    return [(name, text) for name, text in found if text]


def _difference(first: str, second: str) -> Iterator[DiffLine]:
    before, after = first.splitlines(), second.splitlines()
    shown = 0
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        yield from _left_out(group[0][1] - shown)
        for tag, start, end, other, last in group:
            kind = "same" if tag == "equal" else "removed"
            yield from (DiffLine(kind, line) for line in before[start:end])
            yield from (DiffLine("added", line) for line in after[other:last] if tag != "equal")
        shown = group[-1][2]
    yield from _left_out(len(before) - shown)


def _left_out(count: int) -> Iterator[DiffLine]:
    if count:
        yield DiffLine("left-out", f"({count} equal line{'s' * (count != 1)})")
