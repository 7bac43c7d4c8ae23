"""A stored run as something to run again, with changes: on the same arms and noise, with the same draws of links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coband.simulator.experiments.scenario.nodes import plain
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.experiments.store.files import DATABASE, SCENARIO, StoreError
from coband.simulator.experiments.store.finding import LATEST, called
from coband.simulator.experiments.store.store import open_run
from coband.simulator.experiments.store.variants import is_sweep


@dataclass(frozen=True)
class Repeated:
    """A stored run.

    Attributes:
        path: its directory.
        labels: those that it has run; empty for all of its scenario.
        replications: their numbers; empty for those that the scenario says.
    """

    path: Path
    labels: tuple[str, ...] = ()
    replications: tuple[int, ...] = ()

    @property
    def file(self) -> Path:
        """Its scenario."""
        return self.path / SCENARIO


def repeated(path: Path) -> Repeated | None:
    """The stored run that is called so, by its directory or ``latest``; None for anything else, such as a scenario.

    Raises:
        StoreError: it cannot be read, or it is a sweep.
    """
    place = called(path) if str(path) == LATEST else path
    if not (place / DATABASE).is_file():
        return None
    with open_run(place) as run:
        if is_sweep(run):
            command, name = (
                ("frontier", "the search of a frontier") if "objectives" in run.manifest else ("sweep", "a sweep")
            )
            raise StoreError(f"{place} is {name}; `coband {command} {place / SCENARIO}` runs it again.")
        document: Any = plain(read(run.scenario, SCENARIO)[0])
        every = {entry["label"] for entry in document["algorithms"]}
        numbers = tuple(sorted({job.replication for job in run.jobs}))
        labels = () if every == set(run.labels) else tuple(run.labels)
        return Repeated(place, labels, () if numbers == tuple(range(document["replications"])) else numbers)
