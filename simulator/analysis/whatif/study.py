"""What is run to answer a question: the jobs that it is about, each with its change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coband.simulator.analysis.traces.reading import TraceReader, one_job
from coband.simulator.analysis.whatif.original import MANIFEST_KEY, Original, originals
from coband.simulator.analysis.whatif.question import Question, QuestionError
from coband.simulator.experiments.runs.counterfactual import Counterfactual, EventChange
from coband.simulator.experiments.runs.job import plan
from coband.simulator.experiments.runs.planner import Task
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.variant import FRESH, Variant
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.store.places import new_place
from coband.simulator.experiments.store.store import StoredRun
from coband.simulator.scenario_errors import ScenarioError


@dataclass(frozen=True)
class WhatIfStudy(Study):
    """What-if jobs.

    Attributes:
        of: label of the what-if run -> the label of the stored run.
        about: what the manifest says about the question.
    """

    of: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> Manifest:
        """What is changed, in which run."""
        return {MANIFEST_KEY: dict(self.about)}


class WhatIfDirectory(RunDirectory):
    """The directory of a what-if run, whose labels are variants of a stored run."""

    def add(self, tasks: Sequence[Task], chosen: Sequence[int] = ()) -> None:
        """Number jobs that are to be run, and note what each label changes."""
        super().add(tasks, chosen)
        for task in tasks:
            self.add_variant(task, self.job(task).label, None)


def place(study: WhatIfStudy, out: Path | None) -> WhatIfDirectory:
    """A new directory for a what-if run.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    return WhatIfDirectory(new_place(study.name, out))


def study_of(
    run: StoredRun, question: Question, label: str | None = None, replication: int | None = None
) -> WhatIfStudy:
    """The jobs that answer a question.

    Args:
        label, replication: of the jobs that it is about; None for all.

    Raises:
        StoreError: there is no such job, or no trace of it, or the question does not fit it.
        ScenarioError: the settings are wrong.
    """
    if question.about_events:
        job = one_job(run, label, replication, option="--label")
        label, replication = job.label, job.replication
    found = originals(run, label, replication)
    variants = [(one, _variant(one, question)) for one in found]
    return assembled(run, variants, question.as_json())


def _variant(original: Original, question: Question) -> Variant:
    """A label with the change; its number is given later."""
    before = original.scenario()
    try:
        after = original.scenario(*question.settings)
    except ScenarioError as error:
        for setting in question.settings:
            place, _, name = setting.partition(".algorithm=")
            if name and "unknown key" in str(error):
                raise QuestionError(
                    f"--set {setting} leaves keys that {name} does not have; give the whole entry: "
                    f'--set "{place}={{algorithm: {name}, label: {original.entry}}}".'
                ) from error
        raise
    if original.entry not in {entry.label for entry in after.algorithms}:
        raise QuestionError(
            f"--set takes the label {original.entry!r} out of the scenario, so that there is nothing to compare with; "
            "change its parameters instead, or run the scenario anew."
        )
    events: tuple[EventChange, ...] = ()
    if question.about_events:
        (job,) = original.jobs.values()
        events = question.changed_events(TraceReader(job), walks_hops=plan(before, "random").walks_hops)
    agents = question.changed_agents(after.agents.count)
    change = Counterfactual(before, original.fingerprints, events, agents)
    return Variant(0, original.entry, after, original.parameters + question.parameters(), whatif=change)


def assembled(run: StoredRun, changes: Sequence[tuple[Original, Variant]], question: Mapping[str, Any]) -> WhatIfStudy:
    """The study of some variants, each with what it changes."""
    found = list(dict.fromkeys(original.label for original, _ in changes))
    by_label = {original.label: original for original, _ in changes}
    numbered = tuple(replace(variant, number=number) for number, (_, variant) in enumerate(changes))
    of = {one.title(FRESH): original.label for one, (original, _) in zip(numbered, changes, strict=True)}
    stored = [
        {"label": label, "replication": number, "fingerprint": fingerprint}
        for label in found
        for number, fingerprint in by_label[label].fingerprints.items()
    ]
    name = str(run.manifest.get("scenario") or run.path.stem)
    about = {"run": str(run.path.absolute()), "scenario": name, **question, "jobs": stored}
    text = numbered[0].scenario.to_yaml()
    replications = tuple(by_label[found[0]].jobs)
    return WhatIfStudy(f"{name} what if", text, numbered, replications, of=of, about=about)
