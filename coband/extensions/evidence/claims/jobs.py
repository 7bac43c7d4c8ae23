"""Running the jobs of claims: replications of some variants of a study, in a directory that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from coband.extending import Commands, Listener, ResultCache, RunDirectory, drive, executor
from coband.extensions.evidence.claims.progress import StudyProgress
from coband.extensions.evidence.claims.trials import ConditionProgress

JOBS = "jobs"
STUDIES = "studies"


class Stopped(Exception):
    """Somebody has interrupted it; what is finished is kept."""


class Jobs:
    """The finished jobs of a directory, and more of them.

    Args:
        place: the directory; what is finished there is not run again.
        pool: who runs jobs.
        listener: makes something that follows a study, by its name.
    """

    def __init__(self, place: Path, pool: executor.JobExecutor, listener: Callable[[str], Listener] | None) -> None:
        self._place, self._pool, self._listener = place, pool, listener
        self._cache = ResultCache(place / JOBS)

    def read(self, progress: StudyProgress) -> None:
        progress.read(self._cache)

    def run(self, wanted: Iterable[tuple[ConditionProgress, int]], start: int | None = None) -> None:
        """Run the variants of some conditions up to a number of replications of each."""
        together: dict[tuple[int, int, int], tuple[StudyProgress, set[int]]] = {}
        for one, end in wanted:
            begin = one.start if start is None else start
            for progress, numbers in one.used:
                together.setdefault((id(progress), begin, end), (progress, set()))[1].update(numbers)
        for (_, begin, end), (progress, numbers) in together.items():
            behind = progress.behind(numbers, end, begin)
            if behind:
                self._drive(progress, behind, range(begin, end))

    def _drive(self, progress: StudyProgress, numbers: Sequence[int], replications: range) -> None:
        """Run some replications of some variants of a study; those that have run are not run again."""
        study = progress.study.part(numbers, replications)
        where = self._place / STUDIES / progress.study.name
        where.mkdir(parents=True, exist_ok=True)
        if (lacking := study.lacking) is not None:
            progress.failures.update(dict.fromkeys(numbers, f"it cannot run here: {lacking}"))
            return
        listener = None if self._listener is None else self._listener(progress.study.name)
        report = drive(
            study,
            RunDirectory(where, resume=True, done=self._place / JOBS),
            workers=self._pool,
            commands=Commands(["coband", "run", progress.study.key[0]], ["coband", "reproduce"]),
            listener=listener,
        )
        progress.starts.add(replications.start)
        self.read(progress)
        if report.interrupted:
            raise Stopped
        reason = report.status.message or "no job has finished"
        if report.failures:
            reason = f"a job broke off: {report.failures[0].gist}"
        late = progress.behind(numbers, replications.stop, replications.start)
        progress.failures.update(dict.fromkeys(late, reason))
