"""What a driver is told before it begins, and what it tells while it runs and at its end."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coband.simulator.experiments.runs.results import Failure, Record, Results
from coband.simulator.experiments.runs.status import Status
from coband.simulator.experiments.store.files import DATABASE


class Listener(Protocol):
    """Follows a run or a sweep."""

    def changed(self, status: Status) -> None:
        """Jobs have ended or gone on, or some time has passed; the first call comes before the first job."""

    def failed(self, failure: Failure) -> None:
        """A job broke off."""

    def ended(self, end: JobEnd) -> str | None:
        """A job has ended; a text ends the study, and says why."""


@dataclass(frozen=True)
class JobEnd:
    """A job that has ended, here or in an earlier driver.

    Attributes:
        label: of its results.
        phase: "fresh", or "tuning" for replications that choose parameters.
        parameters: name -> label of the value, in a sweep.
        record: its results; None if it broke off.
        point: the records of all replications of its label in this phase, if this was the last one that is planned.
        status: how far the study is.
    """

    label: str
    replication: int
    phase: str
    parameters: Mapping[str, str]
    record: Record | None
    point: Sequence[Record] | None
    status: Status


@dataclass(frozen=True)
class Report:
    """What came out of a run or a sweep.

    Attributes:
        object: what ``--json`` prints.
        status: how far it came.
        failures: jobs that broke off.
        missing: number of jobs that have not ended.
        remarks: sentences about results of earlier drivers that were not used, and about means that are not known well
            enough.
    """

    object: Results
    status: Status
    failures: list[Failure]
    missing: int
    directory: Path
    remarks: list[str] = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        """Whether it was ended by Ctrl-C."""
        return self.status.state == "interrupted"

    @property
    def gone(self) -> bool:
        """Whether somebody has removed its directory, or the store in it, while it ran."""
        return not (self.directory / DATABASE).exists()


@dataclass(frozen=True)
class Commands:
    """Command lines that users and the manifest are told about.

    Attributes:
        replay: start of the one that repeats a job, such as ``["coband", "run", "x.yaml"]``.
        given: began it.
        resume: goes on with it, where that is possible.
    """

    replay: Sequence[str] = ("coband", "run", "FILE")
    given: Sequence[str] = ()
    resume: str = ""

    def repeat(self, settings: Sequence[str], seed: int, replication: int, entry: str) -> str:
        """The one that repeats a job with a full trace."""
        changed = [word for setting in settings for word in ("--set", setting)]
        chosen = ["--seed", seed, "--replication", replication, "--only", entry]
        return shlex.join([*self.replay, *changed, *map(str, chosen), "--trace", "full"])
