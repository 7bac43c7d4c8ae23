"""What there is to run: the algorithms of a scenario on its replications, or those of a sweep at its points."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.runs.planner import FRESH, Planner, Tally, Task, Variant, replicated, together
from coband.simulator.experiments.runs.results import Failure, Results
from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.scenario.files import ScenarioText
from coband.simulator.experiments.scenario.loading import load_point
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import key_mark
from coband.simulator.scenario_errors import RequestError

if TYPE_CHECKING:
    from coband.simulator.experiments.store.manifest import Manifest
    from coband.simulator.problems.problem import DataError


def counted(number: int, noun: str) -> str:
    """A number of things, such as ``1 turn`` or ``1,000 turns``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class SelectionError(RequestError):
    """Nothing to run was selected; the text lists what there is."""


@dataclass(frozen=True)
class Study:
    """What there is to run.

    Attributes:
        text: the scenario file.
        variants: in the order of the file.
        numbers: of the replications, from 0; more follow them where ``until`` asks for more.
        until: when the mean of a variant is known well enough; None for the given replications alone.
        missing: a data set that is not there, if that is known; such a study cannot run.
        unknown: why finished jobs are never used again, a sentence for each reason.
    """

    name: str
    text: str
    variants: Sequence[Variant]
    numbers: tuple[int, ...]
    until: Until | None = None
    missing: DataError | None = None
    unknown: tuple[str, ...] = ()

    bad_input_ends: ClassVar[bool] = True
    """Whether bad input, found by a job, is that of all jobs."""

    @property
    def entries(self) -> list[str]:
        """Labels of the algorithms, in the order of the file."""
        return list(dict.fromkeys(variant.entry for variant in self.variants))

    @property
    def lacking(self) -> DataError | UnsupportedScenario | None:
        """What has to be here before anything of it can run: data, or a package; None if all is."""
        absent = (f"{one.entry}: {why}" for one in self.variants if (why := one.scenario.messages.absent))
        return self.missing or next(map(UnsupportedScenario, absent), None)

    @property
    def replications(self) -> int:
        """How many there are to begin with."""
        return len(self.numbers)

    @property
    def possible_replications(self) -> Sequence[int]:
        """Their numbers, with those that ``until`` may add."""
        return self.numbers if self.until is None else range(self.until.max_replications)

    @property
    def seed(self) -> int:
        return self.variants[0].scenario.seed

    @property
    def jobs(self) -> int:
        """How many jobs there are to begin with."""
        return len(self.variants) * self.replications

    @property
    def first_replications(self) -> int:
        """How many replications each variant has to begin with."""
        return self.replications

    def factors(self) -> tuple[str, str]:
        """What runs to begin with, such as ``5 algorithms × 6 replications``, and what follows it."""
        return f"{counted(len(self.variants), 'algorithm')} × {self.replications_in_words()}", ""

    def replications_in_words(self) -> str:
        """Their number, or the range of it where ``until`` may add some."""
        more = "" if self.until is None else f" to {self.until.max_replications:,}"
        return f"{self.replications:,}{more} replication{'s' * (bool(more) or self.replications != 1)}"

    def facts(self) -> Manifest:
        """What the manifest says beside."""
        return {}

    def planner(self, tally: Tally) -> Planner:
        """Decides what runs.

        Args:
            tally: what has run so far; whoever drives the planner keeps it.
        """
        return together(replicated(variant, self.numbers, self.until) for variant in self.variants)

    def summary(self, tally: Tally, failures: Sequence[Failure]) -> Results:
        """The object that ``--json`` prints and results.json holds."""
        entries = [tally.summary(variant, FRESH) for variant in self.variants]
        return results.report(self.name, entries, failures)

    def title(self, task: Task) -> str:
        """How results call the variant of a task."""
        return self.variants[task.variant].title(task.phase)


def study_of(
    scenario: Scenario,
    only: Sequence[str] = (),
    replications: Sequence[int] = (),
    until: Until | None = None,
    file: Path | None = None,
) -> Study:
    """A validated scenario as a study of one point.

    Args:
        only: labels or names of algorithms; empty for all.
        replications: their numbers, from 0, and no others; empty for as many as the scenario and ``until`` say.
        until: when the mean of a variant is known well enough.
        file: that it was read from, if it is one.

    Raises:
        SelectionError: an unknown name; the text lists the nearest ones.
    """
    names = {entry.label: entry.algorithm.name for entry in scenario.algorithms}
    for name in only:
        check_known(name, [word for entry in names.items() for word in entry])
    labels = [label for label, name in names.items() if not only or label in only or name in only]
    text = scenario.to_yaml()
    if until is not None:
        text += to_yaml({"until": until.model_dump(mode="json")})
    digests = configuration_digest(scenario, Files(scenario.base, file))
    return Study(
        scenario.name,
        text,
        tuple(Variant(number, label, scenario, digest=digests[label]) for number, label in enumerate(labels)),
        tuple(sorted(set(replications)) or range(scenario.replications)),
        None if replications else until,
    )


def load_run(
    path: str | Path | ScenarioText,
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    replications: Sequence[int] = (),
) -> Study:
    """Read a scenario file as a study of one point.

    Args:
        path: the file, or the name of a scenario that comes with coband, or the text itself.
        overrides: ``key.path=value``, as given to ``--set``.
        only: labels or names of algorithms; empty for all.
        replications: their numbers, and no others; empty for as many as the file says.

    Raises:
        ScenarioError: with everything that is wrong; a scenario with several points, or with ``tuning`` but for single
            replications, is a sweep.
        SelectionError: an unknown name, with the nearest ones; a replication that the file does not have.
    """
    point = load_point(path, overrides)
    if point.tuning is not None and not replications:
        text = (
            f"the best parameters are chosen among the points of a grid by `coband sweep {path}`; this is one of them"
        )
        raise key_mark(point.root, ("tuning",)).error(f"{text}: to run it alone, add --set tuning=null", ("tuning",))
    most = point.scenario.replications if point.until is None else point.until.max_replications
    low, high = min(replications, default=0), max(replications, default=0)
    if low < 0 or (high >= most and point.tuning is None):  # tuning numbers those of its own from afar
        advice = "." if low < 0 else f"; with --replications {high + 1} it has this one too."
        has = f"the scenario has {counted(most, 'replication')}, counted from 0"
        raise SelectionError(f"there is no replication {low if low < 0 else high}: {has}{advice}")
    return study_of(point.scenario, only, replications, point.until, path if isinstance(path, Path) else None)


def check_known(name: str, known: list[str]) -> None:
    """Refuse a name that is none of those known, by a SelectionError."""
    if name in known:
        return
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, n=3)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}."
    raise SelectionError(f"no algorithm or label {name!r} in this scenario; {advice}")
