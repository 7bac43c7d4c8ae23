"""What-if runs from Python: what one message, one agent or one value has cost."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from coband.simulator.analysis.traces.tables import TEXTS
from coband.simulator.analysis.whatif.answer import Answer, answers
from coband.simulator.analysis.whatif.question import Question
from coband.simulator.analysis.whatif.split import Split, split_study, splits
from coband.simulator.analysis.whatif.study import WhatIfStudy, place, study_of
from coband.simulator.api.driving import drive_study, pool_of
from coband.simulator.api.errors import translated
from coband.simulator.api.scenario import Settings, settings_of
from coband.simulator.api.table import Table
from coband.simulator.cli.progress import Bar
from coband.simulator.experiments.runs.reporting import Commands
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.store.store import Event, open_run

Events = int | Iterable[int]
_CHANGES = ("label", "number", "stored", "changed", "difference", "low", "high")
_SHARES = ("label", "owed_to", "owed", "low", "high", "regret")


class WhatIf:
    """A what-if run beside the run that it changes.

    Attributes:
        path: the directory of the what-if run, which `coband.load` reads.
        changes: a row per label and number of the results: mean in the stored run, mean in the what-if run, and their
            difference with its 95 % interval (paired by replication).
        first_differences: the first event at which the traces part, in the stored run (``side`` "stored") and in the
            what-if run ("changed"), for each label and replication; empty where they are the same or none was kept.
        same: whether all traces are the same; None if none was kept.
    """

    def __init__(self, path: Path, found: Iterable[Answer]) -> None:
        self.path = path
        given = list(found)
        self.changes = Table.from_rows(
            _CHANGES,
            (
                (answer.label, one.name, one.stored, one.changed, *_ends(one.difference))
                for answer in given
                for one in answer.changes
            ),
            ("label", "number"),
        )
        partings = [parting for answer in given for parting in answer.parting.values()]
        self.same = all(parting.same for parting in partings) if partings else None
        sides = [(parting, side) for parting in partings for side in ("stored", "changed")]
        events = [(side, parting.here if side == "stored" else parting.there) for parting, side in sides]
        self.first_differences = Table.from_rows(
            ("side", *Event._fields), [(side, *event) for side, event in events if event is not None], ("side", *TEXTS)
        )

    def __repr__(self) -> str:
        return repr(self.changes)

    def _repr_html_(self) -> str:
        return f"{self.changes._repr_html_()}{self.first_differences._repr_html_()}"


class RegretSplit:
    """The regret of stored jobs, by cause.

    Attributes:
        path: the directory of the what-if runs, which `coband.load` reads.
        shares: a row per label and cause, in the order in which causes are taken away: the regret that is due to it
            with its 95 % interval, and the mean regret of the runs without it and all before; the last row of a label
            is the rest. What a scenario does not have has no share.
    """

    def __init__(self, path: Path, found: Iterable[Split]) -> None:
        self.path = path
        rows: list[tuple[Any, ...]] = []
        for split in found:
            for share in split.shares:
                owed = (0.0, None, None) if share.owed is None else _ends(share.owed)
                rows.append((split.label, share.cause, *owed, share.regret))
            rows.append((split.label, "the rest", *_ends(split.rest), split.rest.mean))
        self.shares = Table.from_rows(_SHARES, rows, ("label", "owed_to"))

    def __repr__(self) -> str:
        return repr(self.shares)

    def _repr_html_(self) -> str:
        return f"<p>regret of <code>{html.escape(str(self.path))}</code></p>{self.shares._repr_html_()}"


@dataclass(frozen=True)
class Again:
    """Which jobs of a stored run are run again, and where; the arguments of `Run.whatif` of these names."""

    path: Path
    label: str | None
    replication: int | None
    workers: int | None
    out: str | PathLike[str] | None
    progress: bool

    def ask(
        self,
        drop: Events,
        for_good: bool,
        delay: Mapping[int, float] | None,
        agents: Mapping[int, Mapping[str, Any]] | None,
        settings: Settings | None,
    ) -> WhatIf:
        """What `Run.whatif` returns."""
        changes = [(int(agent), text) for agent, values in (agents or {}).items() for text in settings_of(values)]
        with translated(), open_run(self.path) as run:
            drops = tuple(int(event) for event in (drop if isinstance(drop, Iterable) else [drop]))
            delays = tuple((int(event), float(late)) for event, late in (delay or {}).items())
            chosen = settings_of(settings)
            asked = Question(drops, for_good, delays, tuple(changes), chosen)
            study = study_of(run, asked, self.label, self.replication)
            made = self._performed(study)
            with open_run(made) as changed:
                found = [answer for answer in answers(run, changed, study.of) if answer.replications]
        return WhatIf(made, found)

    def split(self) -> RegretSplit:
        """What `Run.split` returns."""
        with translated(), open_run(self.path) as run:
            study = split_study(run, self.label, self.replication)
            made = self._performed(study)
            with open_run(made) as changed:
                found = list(splits(run, changed, study))
        return RegretSplit(made, found)

    def _performed(self, study: WhatIfStudy) -> Path:
        """The directory of the run of a study."""
        with closing(pool_of(self.workers, study.jobs)) as pool:
            where = place(study, None if self.out is None else Path(self.out))
            commands = Commands((), ("coband", "whatif", str(study.about["run"])))
            report = drive_study(study, where, pool, commands, Bar(study.name) if self.progress else None)
        return report.directory


def _ends(found: Estimate) -> tuple[float, float | None, float | None]:
    """A mean and the ends of its interval."""
    return (found.mean, *(found.interval or (None, None)))
