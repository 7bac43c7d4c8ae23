"""How far the jobs are that are under way: worker processes write it to files, which the driver reads."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.study import Study

PROGRESS_SECONDS = 0.5


class ProgressFile:
    """Follows a job and writes the number of its pulls to a file, at most twice a second, whole or not at all."""

    def __init__(self, file: Path) -> None:
        self._file, self._last = file, time.monotonic()

    def __call__(self, pulls: int) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_SECONDS:
            self._last = now
            draft = self._file.with_suffix(".new")
            with suppress(OSError):  # the job goes on without it
                draft.write_text(str(pulls), encoding="ascii")
                os.replace(draft, self._file)


class UnderWay:
    """The jobs under way, and the pulls that each has made and will make.

    Args:
        folder: where worker processes write their `ProgressFile`; None where jobs run in this process.
    """

    def __init__(self, study: Study, folder: Path | None) -> None:
        self._study, self._folder = study, folder
        self._files: dict[Hashable, Path | None] = {}
        self._to_make: dict[Hashable, int] = {}
        self._made: dict[Hashable, int] = {}
        self._begun = 0

    def begins(self, key: Hashable, variant: int) -> Path | None:
        """A job is handed out; where it is to write how far it is."""
        scenario = self._study.variants[variant].scenario
        self._begun += 1
        self._files[key] = None if self._folder is None else self._folder / str(self._begun)
        self._to_make[key] = scenario.schedule.total_turns(scenario.agents.count) or 0
        return self._files[key]

    def advances(self, key: Hashable, pulls: int) -> None:
        """A job has made so many pulls."""
        self._made[key] = pulls

    def ends(self, key: Hashable) -> None:
        """A job has ended."""
        if (file := self._files.pop(key)) is not None:
            file.unlink(missing_ok=True)
        self._made.pop(key, None)

    def look(self) -> float:
        """How much of the jobs under way is done, in jobs; of those without a known number of pulls nothing."""
        for key, file in self._files.items():
            if file is not None:
                with suppress(OSError, ValueError):  # there is none yet
                    self._made[key] = int(file.read_text(encoding="ascii"))
        return sum(min(1.0, made / most) for key, made in self._made.items() if (most := self._to_make[key]))
