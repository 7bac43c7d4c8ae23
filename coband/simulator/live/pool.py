"""Jobs of a study that run live, one after the other, where the simulator's would run in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from coband.simulator.core.records.trace import Sink
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs import executors
from coband.simulator.experiments.runs.job import Job, OnPull
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.work import JobResult, Work, work
from coband.simulator.experiments.runs.workers import InProcess
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.live.deployment import deploy, end_journal
from coband.simulator.live.terms import Terms


class LivePool(InProcess):
    """Runs each job as processes that talk over sockets.

    Args:
        terms: how.
        say: tells the user something.
    """

    def __init__(self, terms: Terms, say: Callable[[str], None]) -> None:
        self._terms, self._say = terms, say

    def submit(self, item: Work, on_pull: OnPull | None = None, *, alone: bool = False) -> Future[JobResult]:
        future, journals = executors.Serial().submit(work, item, on_pull, self._run), self._terms.journals
        if journals is not None and future.exception() is None and future.result().outcome.record is not None:
            end_journal(journals)
        return future

    def _run(self, job: Job, scenario: Scenario, sink: Sink | None, on_pull: OnPull | None) -> RunResult:
        return asyncio.run(deploy(job, scenario, self._terms, sink, on_pull, self._say))

    def describe(self) -> str:
        return "live processes"


@dataclass(frozen=True)
class LiveStudy(Study):
    """A study whose runs are live; its manifest says how."""

    terms: Terms | None = None

    def facts(self) -> Manifest:
        terms = self.terms
        assert terms is not None
        return {"live": {"speed": terms.speed, "agents_per_process": terms.share, "host": terms.host}}

    @classmethod
    def of(cls, study: Study, terms: Terms) -> LiveStudy:
        """A study, to be run so."""
        return cls(**vars(study), terms=terms)
