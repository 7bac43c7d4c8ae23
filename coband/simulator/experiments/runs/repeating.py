"""A stored run as something to run again, with changes: on the same arms and noise, with the same draws of links.

`pulls` runs a stored job again and looks at the world: a store keeps the regret after at most 1000 turns, and neither
arms nor rewards without a trace. The fingerprint shows that the repeated run equals the stored one bit by bit.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.arrays import IntArray
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.runs.job import Job, built
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import plain, read
from coband.simulator.experiments.store.files import DATABASE, RUN, SCENARIO, StoreError, called
from coband.simulator.experiments.store.store import open_run


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
    place = called(path)
    if not (place / DATABASE).is_file():
        return None
    with open_run(place) as run:
        if run.kind != RUN:
            again = f"`coband sweep {place / SCENARIO}` runs it again"
            if "objectives" in run.manifest:  # what was searched is not in the file
                again = f"it was made by `{shlex.join(map(str, run.manifest.get('command') or []))}`"
            raise StoreError(f"{place} is {run.kind}; {again}.")
        document: Any = plain(read(run.scenario, SCENARIO)[0])
        every = {entry["label"] for entry in document["algorithms"]}
        numbers = tuple(sorted({job.replication for job in run.jobs}))
        labels = () if every == set(run.labels) else tuple(run.labels)
        return Repeated(place, labels, () if numbers == tuple(range(document["replications"])) else numbers)


PULL = ("agent", "turn", "time", "arm", "pulls", "reward", "regret")
"""Columns of a pull: the agent's turn, from 1, or its phase where it pulls in batches; the arm's index in the arms of
that turn; how often it is pulled at once; the (mean) reward, and the regret of all of its pulls."""
Pull = tuple[int, int, float, int, int, float, float]


class NotRepeatableError(UnsupportedScenario):
    """A stored run gives something else here; the text says what to do."""


def pulls(job: Job, scenario: Scenario, fingerprint: str) -> list[Pull]:
    """The pulls of a job, in their order, as rows of `PULL`.

    Args:
        job: what ran.
        scenario: what it was part of.
        fingerprint: of the stored run.

    Raises:
        NotRepeatableError: it is another run here.
    """
    engine = built(job, replace(scenario, trace="protocol"), lambda rows, names: None)
    world: Any = engine.world
    found: list[Pull] = []
    pull: Any = world.pull
    pull_batch: Any = getattr(world, "pull_batch", None)

    def pulled(agent: int, turn: int, arm: int) -> Any:
        reward, regret = answer = pull(agent, turn, arm)
        found.append((agent, turn, engine.clock.now, int(arm), 1, float(reward), float(regret)))
        return answer

    def pulled_batch(agent: int, phase: int, counts: IntArray) -> Any:
        rewards, _ = answer = pull_batch(agent, phase, counts)
        means = world.means(agent, phase)
        for arm in np.flatnonzero(counts).tolist():
            regret = float(counts[arm] * (means.max() - means[arm]))
            found.append((agent, phase, engine.clock.now, arm, int(counts[arm]), float(rewards[arm]), regret))
        return answer

    world.pull = pulled
    if pull_batch is not None:
        world.pull_batch = pulled_batch
    result = engine.run()
    if result.fingerprint != fingerprint:
        raise NotRepeatableError(
            f"{job.label}, replication {job.replication}: the stored run cannot be repeated here: its fingerprint is "
            f"{fingerprint[:12]}…, and now it is {result.fingerprint[:12]}…. Its manifest.json names the versions and "
            "the hardware that it was made with: use those, or run the scenario again with this coband."
        )
    return found
