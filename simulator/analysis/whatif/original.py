"""The stored jobs that a question is about, with the scenario that they ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from coband.simulator.analysis.whatif.question import QuestionError
from coband.simulator.experiments.runs.variant import FRESH, Parameter
from coband.simulator.experiments.scenario.files import ScenarioText
from coband.simulator.experiments.scenario.loading import load_point
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store.store import StoredJob, StoredRun
from coband.simulator.experiments.store.variants import variants

MANIFEST_KEY: Final = "whatif"
"""Key of a manifest that only the manifest of a what-if run has."""


@dataclass(frozen=True)
class Original:
    """A label of a stored run.

    Attributes:
        entry: of the scenario; another one in a sweep.
        jobs: the finished jobs, by replication.
        parameters: those that it has in a sweep.
    """

    label: str
    entry: str
    text: ScenarioText
    jobs: dict[int, StoredJob]
    parameters: tuple[Parameter, ...] = ()

    def scenario(self, *settings: str) -> Scenario:
        """The scenario that ran, with the trace that was kept; ``settings``: as given to ``--set``.

        Full checks are left out, since they also watch which draws a link takes.

        Raises:
            ScenarioError: the settings are wrong.
        """
        trace = next(iter(self.jobs.values())).trace
        point = load_point(self.text, [f"trace={trace}", *settings, "checks=cheap", "expect=[]"])
        return point.scenario

    @property
    def fingerprints(self) -> dict[int, str]:
        return {number: str(job.record["fingerprint"]) for number, job in self.jobs.items() if job.record is not None}


def originals(run: StoredRun, label: str | None, replication: int | None) -> list[Original]:
    """The labels that are asked about, each with the replications that all of them have finished.

    Replications that chose parameters are left out, unless their label or number is given.

    Raises:
        StoreError: there is no such label or replication.
        QuestionError: nothing has finished, or the labels have no replication in common.
    """
    if MANIFEST_KEY in run.manifest:
        asked = run.manifest[MANIFEST_KEY].get("run", "")
        raise QuestionError(f"{run.path} is itself a what-if run; ask about the run that it changes: {asked}")
    by_label: dict[str, dict[int, StoredJob]] = {}
    asked = label is not None or replication is not None
    tuning = () if asked else {name for name, one in variants(run).items() if one.phase != FRESH}
    for job in run.select(label, replication):
        if job.label not in tuning:
            found = by_label.setdefault(job.label, {})
            if job.record is not None:
                found[job.replication] = job
    common = set.intersection(*map(set, by_label.values())) if by_label else set()
    if not common and any(by_label.values()):
        names = ", ".join(name for name, jobs in by_label.items() if jobs)
        raise QuestionError(
            f"{run.path}: the labels have no finished replication in common; choose one of them with --label ({names})."
        )
    if not common:
        raise QuestionError(f"{run.path}: no replication has finished, so there is nothing to compare with.")
    return [
        _original(run, name, {number: jobs[number] for number in sorted(common)}) for name, jobs in by_label.items()
    ]


def _original(run: StoredRun, label: str, jobs: dict[int, StoredJob]) -> Original:
    variant = variants(run).get(label)
    base = run.path if run.path.is_dir() else run.path.parent
    if variant is None:
        return Original(label, label, ScenarioText(run.scenario, str(run.path), base), jobs)
    return Original(label, variant.entry, ScenarioText(variant.text, str(run.path), base), jobs, variant.parameters)
