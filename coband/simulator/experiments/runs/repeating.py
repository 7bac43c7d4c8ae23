"""A stored run as something to run again, with changes: on the same arms and noise, with the same draws of links.

`pulls` runs a stored job again to get every arm and reward: a store keeps the regret after at most 1000 turns, and
neither arms nor rewards without a trace. The fingerprint shows that the repeated run equals the stored one bit by bit.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coband.simulator.core.engine import Engine
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.records import trace as tr
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


_Noted = tuple[int, int, float, int, int, float]
"""A pull as the trace has it: all but its regret."""


class _Notes:
    """Takes the trace of a job and keeps its pulls."""

    def __init__(self) -> None:
        self.pulls: list[_Noted] = []
        self._turns: dict[int, int] = {}
        self._chosen: dict[int, tuple[int, int, float, int]] = {}

    def __call__(self, rows: Sequence[tr.PlainRow], names: Sequence[str]) -> None:
        for seq, time, event, node, _, _, cause, *_, value, _, detail in rows:
            if event == tr.TURN:
                self._turns[seq] = int(value)
            elif event == tr.CHOOSE:
                self._chosen[seq] = node, self._turns.pop(cause), time, int(value)
            elif event == tr.REWARD:
                agent, turn, _, arm = self._chosen.pop(cause)
                count = 1 if detail is None else int(json.loads(detail)["pulls"])
                self.pulls.append((agent, turn, time, arm, count, value))
                if detail is not None:
                    self._turns[seq] = turn  # of the next arm of the batch

    def never_rewarded(self, rewards: Mapping[int, float]) -> list[_Noted]:
        """Pulls whose rewards have not come until the end, at the time of their choices."""
        return [(*chosen, 1, rewards[seq]) for seq, chosen in self._chosen.items()]


def pulls(job: Job, scenario: Scenario, fingerprint: str) -> list[Pull]:
    """The pulls of a job, in the order of their events, as rows of `PULL`.

    Args:
        job: what ran.
        scenario: what it was part of.
        fingerprint: of the stored run.

    Raises:
        NotRepeatableError: it is another run here.
    """
    notes = _Notes()
    engine = built(job, replace(scenario, trace="protocol"), notes)
    result = engine.run()
    if result.fingerprint != fingerprint:
        raise NotRepeatableError(
            f"{job.label}, replication {job.replication}: the stored run cannot be repeated here: its fingerprint is "
            f"{fingerprint[:12]}…, and now it is {result.fingerprint[:12]}…. Its manifest.json names the versions and "
            "the hardware that it was made with: use those, or run the scenario again with this coband."
        )
    return list(_with_regret([*notes.pulls, *notes.never_rewarded(engine.progress.unrewarded)], engine))


def _with_regret(noted: Sequence[_Noted], engine: Engine) -> Iterator[Pull]:
    """Pulls with the regret that the engine has noted; of a batch, of which it has the sum alone, the world's."""
    progress, turns, regrets = engine.progress, Counter[int](), dict[tuple[int, int], float]()
    for agent, regret in zip(progress.agents, progress.regrets, strict=True):
        turns[agent] += 1
        regrets[agent, turns[agent]] = regret
    batches = Counter(one[:2] for one in noted)
    for one in noted:
        agent, turn, _, arm, count, _ = one
        if count == 1 and batches[agent, turn] == 1:
            yield (*one, regrets[agent, turn])
        else:
            means = engine.world.means(agent, turn)
            yield (*one, float(count * (means.max() - means[arm])))
