"""Callbacks: functions of the user's that hear of every job and point that ends, and may stop the rest."""

from __future__ import annotations

from collections.abc import Iterable

from coband.simulator.experiments.runs.reporting import EndedJob, EndedPoint, Listener
from coband.simulator.experiments.runs.results import Failure
from coband.simulator.experiments.runs.status import Status


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

    def ended(self, end: EndedJob) -> str | None:
        """Tell all callbacks; a job's reason to stop counts before that of its label."""
        if self._bar is not None:
            self._bar.ended(end)
        for callback in self._callbacks:
            callback.on_job_end(end)
            if end.point is not None:
                callback.on_point_end(end.point)
        return end.reason or (None if end.point is None else end.point.reason)
