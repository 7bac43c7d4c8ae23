"""Callbacks: functions of the user's that hear of every job and point that ends, and may stop the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from coband.simulator.experiments.runs.reporting import JobEnd, Listener
from coband.simulator.experiments.runs.results import Failure
from coband.simulator.experiments.runs.status import Status


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
class EndedJob(_End):
    """A job that has ended: one label on one replication; ``record``: a row of `Run.results`, None if it broke off."""

    replication: int = 0
    record: Mapping[str, Any] | None = None


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


class Callback:
    """Override what you want to hear; both are called in the process that drives, also for results kept from before.

    An exception that a callback raises ends the study like Ctrl-C: what has finished is kept.
    """

    def on_job_end(self, job: EndedJob) -> None:
        """A job has ended; ``job.stop()`` ends the study."""

    def on_point_end(self, point: EndedPoint) -> None:
        """All planned replications of a label have ended; ``point.stop()`` ends the study.

        With `until` in the scenario, it is called again when further replications have ended.
        """


def checked(callbacks: Iterable[Callback] | Callback) -> list[Callback]:
    """The callbacks that were given; one alone is a list of one.

    Raises:
        TypeError: something else was given.
    """
    found = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for one in found:
        if not isinstance(one, Callback):
            raise TypeError(f"callbacks: {one!r} is not a coband.Callback; derive a class and override on_job_end")
    return found


class Following:
    """Hands what a driver tells to a bar, if there is one, and to callbacks."""

    def __init__(self, bar: Listener | None, callbacks: Iterable[Callback]) -> None:
        self._bar, self._callbacks = bar, list(callbacks)

    def changed(self, status: Status) -> None:
        if self._bar is not None:
            self._bar.changed(status)

    def failed(self, failure: Failure) -> None:
        if self._bar is not None:
            self._bar.failed(failure)

    def ended(self, end: JobEnd) -> str | None:
        """Tell all callbacks; the first reason to stop counts."""
        if self._bar is not None:
            self._bar.ended(end)
        about = (end.label, end.phase, end.parameters, end.status.ended, end.status.total)
        job = EndedJob(*about, replication=end.replication, record=end.record)
        point = None if end.point is None else EndedPoint(*about, records=end.point)
        for callback in self._callbacks:
            callback.on_job_end(job)
            if point is not None:
                callback.on_point_end(point)
        return job.reason or (None if point is None else point.reason)
