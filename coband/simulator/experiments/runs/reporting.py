"""What is said of a study: how large it is, events for listeners and callbacks, and the report at its end."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from coband.simulator.core.clock.schedule import Phases, Renewal, Rounds
from coband.simulator.experiments.runs.results import Failure, Results
from coband.simulator.experiments.runs.status import Status
from coband.simulator.experiments.runs.study import Study, counted
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store.files import DATABASE


class Listener(Protocol):
    """Follows a run or a sweep."""

    def changed(self, status: Status) -> None:
        """Jobs have ended or gone on, or some time has passed; the first call comes before the first job."""

    def failed(self, failure: Failure) -> None:
        """A job broke off."""

    def ended(self, end: EndedJob) -> str | None:
        """A job has ended; a text ends the study, and says why."""


@dataclass
class _End:
    """Something that has ended.

    Attributes:
        label: of its results.
        phase: "fresh", or "tuning" for replications that choose parameters.
        parameters: name -> label of the value, in a sweep.
        done, total: jobs of the study that have ended, and all that are planned.
        reason: why the study is to stop, after `stop`; None to go on.
    """

    label: str
    phase: str
    parameters: Mapping[str, str]
    done: int
    total: int
    reason: str | None = None

    def stop(self, reason: str = "") -> None:
        """Run no more jobs; what has finished is kept. ``reason`` is what the warning says."""
        self.reason = f"stopped by a callback{reason and f': {reason}'}"


@dataclass
class EndedPoint(_End):
    """A label, in a sweep an algorithm at a point, whose planned replications have all ended.

    Attributes:
        records: of the replications that finished.
    """

    records: Sequence[Mapping[str, Any]] = ()

    def mean(self, name: str = "regret") -> float:
        """Mean of a number over the replications; NaN if there is none.

        Raises:
            KeyError: no record has such a number.
        """
        if self.records and not any(name in record for record in self.records):
            raise KeyError(f"no number {name!r}; there is {', '.join(dict.fromkeys(chain(*self.records)))}")
        found = [float(record[name]) for record in self.records if record.get(name) is not None]
        return sum(found) / len(found) if found else float("nan")


@dataclass
class EndedJob(_End):
    """A job that has ended, here or in an earlier driver: one label on one replication.

    Attributes:
        record: a row of `Run.results`; None if it broke off.
        point: its label, if this was the last of its replications that are planned.
    """

    replication: int = 0
    record: Mapping[str, Any] | None = None
    point: EndedPoint | None = None


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


def workload(study: Study) -> str:
    """The size of a study, such as ``600 turns × 50 agents × 5 algorithms × 6 replications = 900,000 pulls``.

    Empty as long as it is not known what runs. A duration, or ``until``, makes the product a bound. With ``tuning`` it
    counts the candidates alone. There is no product where only time, or the algorithm's own rule, ends jobs.
    """
    scenarios = [variant.scenario for variant in study.variants]
    if not scenarios:
        return ""
    jobs = [scenario.schedule.total_turns(scenario.agents.count) for scenario in scenarios]
    known = [pulls for pulls in jobs if pulls is not None]
    each = list(dict.fromkeys(map(_job, scenarios)))
    if len(each) > 1:
        each = [f"{min(known):,} to {max(known):,} pulls" if len(known) == len(jobs) else "jobs of several lengths"]
    first, later = study.factors()
    bounds = {"at most": any(scenario.schedule.duration is not None for scenario in scenarios)}
    bounds["at least"] = study.until is not None and not later
    bound = "".join(f"{name} " for name, holds in bounds.items() if holds)
    if len(known) < len(jobs) or all(bounds.values()):
        return f"{each[0]} × {first}{later}"
    return f"{each[0]} × {first} = {bound}{sum(known) * (study.tuning or study).replications:,} pulls{later}"


def _job(scenario: Scenario) -> str:
    """The turns of one job, as its schedule counts them."""
    schedule, agents = scenario.schedule, counted(scenario.agents.count, "agent")
    end = "" if schedule.duration is None else f" until time {schedule.duration:g}"
    if isinstance(schedule, Phases):
        return f"pulls{end or ' until the algorithm stops by its own rule'} × {agents}"
    if isinstance(schedule, Rounds | Renewal):
        if schedule.turns is None:
            return f"turns{end} × {agents}"
        return f"{counted(schedule.turns, 'turn')}{end and f', at most{end},'} × {agents}"
    total = schedule.total_turns(scenario.agents.count)
    if total is None:
        return f"turns{end} of {agents} together"
    return f"{counted(total, 'turn')} of {agents} together{end and f', at most{end},'}"
