"""A suite as data: its scenarios, what algorithms are told, how they are tuned, and the digest that freezes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field

from coband import Algorithm, ScenarioError
from coband.extending import (
    ALGORITHMS,
    OWN_DISTRIBUTION,
    Registry,
    RequestError,
    ScenarioText,
    Study,
    Variant,
    code_version,
    did_you_mean,
    distribution,
    installed,
    load_study,
    loading,
    preflight,
    ranges,
    read_scenario,
    to_yaml,
    yaml_nodes,
)

Size = Literal["quick", "full"]
HERE = Path(__file__).parent
"""The folder with a file NAME.yaml for each suite, whose scenarios come with coband as suite/NAME/SCENARIO."""
ALONE, CENTRAL = "Alone", "Central"
REFERENCES = (ALONE, CENTRAL)
COSTLY = ("network", "messages", "adversaries", "server")
"""Sections that the reference Central does without: all data are everywhere at once, and cost nothing."""
CHECKED = "checks=full"
"""Of everybody else's algorithms in all runs: nodes know only what they declare and what they were sent."""
Settings = Mapping[str, Any]
"""Values of an algorithm's parameters."""


class SuiteError(RequestError):
    """A suite is not there, or its files are not what was frozen."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class World(_Part):
    """What scenarios of one kind have in common.

    Attributes:
        given: values that every algorithm with a parameter of that name is given.
        tuned: ranges of parameters that are tuned in addition to those that an algorithm declares (`Algorithm.search`).
        alone, central: the references, without their labels.
        metric: what is compared, the lower the better.
        error: a metric that is 1 where a replication gave a wrong answer, and the largest share of them.
    """

    given: dict[str, Any] = {}
    tuned: dict[str, str] = {}
    alone: dict[str, Any]
    central: dict[str, Any]
    metric: str
    error: tuple[str, float] | None = None

    def entry(self, label: str) -> Settings:
        """What runs under a label: a reference, or the algorithm of that name."""
        return {ALONE: self.alone, CENTRAL: self.central}.get(label, {"algorithm": label})


class Budget(_Part):
    """How much everybody may try, and how long the test is.

    Attributes:
        candidates: settings that each algorithm may try in each scenario.
        tuning: replications of each candidate.
        replications: of the test.
        settings: ``key=value`` that make scenarios smaller.
    """

    candidates: int = Field(ge=1)
    tuning: int = Field(ge=1)
    replications: int = Field(ge=2)
    settings: tuple[str, ...] = ()


class Definition(_Part):
    """The file ``suite.yaml``."""

    name: str
    sha256: str
    worlds: dict[str, World]
    sizes: dict[Size, Budget]
    scenarios: dict[str, str]


@dataclass(frozen=True)
class Suite:
    """A suite and the folder of its scenarios."""

    definition: Definition
    folder: Path

    @property
    def name(self) -> str:
        """Such as ``core-1``."""
        return self.definition.name

    def world(self, scenario: str) -> World:
        """What a scenario is one of."""
        return self.definition.worlds[self.definition.scenarios[scenario]]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of every scenario with all defaults filled in, and of the definition but for this digest.

        It changes with the files, and with a default of coband that they rely on, not with what is new and off.
        """
        parts = [json.dumps(self.definition.model_dump(mode="json", exclude={"sha256"}), sort_keys=True)]
        for name in self.definition.scenarios:
            world = self.world(name)
            study = self.study(name, {ALONE: world.alone, CENTRAL: world.central}, size="full")
            resolved = (_stated(one.scenario.resolved()) for one in study.variants)
            parts += [json.dumps(one, sort_keys=True, default=str) for one in resolved]
        return code_version.sha256(*parts)

    def check(self) -> None:
        """Refuse to compare on files that have changed.

        Raises:
            SuiteError: the digest is not the frozen one.
        """
        if self.digest != self.definition.sha256:
            raise SuiteError(
                f"the suite {self.name} is not what was frozen: its files or defaults that they rely on have changed. "
                f"Give it a new name, and write sha256: {self.digest} into {HERE / self.name}.yaml."
            )

    def header(self, scenario: str) -> str:
        """What a scenario asks, from the comment at its top."""
        lines = self._text(scenario).splitlines()
        return " ".join(line[1:].strip() for line in lines[: next(i for i, one in enumerate(lines) if one[:1] != "#")])

    def _text(self, scenario: str) -> str:
        return (self.folder / f"{scenario}.yaml").read_text(encoding="utf-8")

    def study(
        self,
        scenario: str,
        entries: Mapping[str, Settings],
        *,
        size: Size,
        seed: int | None = None,
        first: int = 0,
        count: int | None = None,
        settings: Sequence[str] = (),
    ) -> Study:
        """Some entries in a scenario, each with a label; the reference Central in a world without costs.

        Its text has all entries but Central, so that each of their jobs can be repeated from it.

        Args:
            entries: label -> the entry as scenario files have it, without its label.
            size: of the scenario.
            seed: instead of the scenario's.
            first, count: which replications; by default as many as the test has.
            settings: further ``key=value``.

        Raises:
            ScenarioError: an entry is not valid there.
        """
        budget, world = self.definition.sizes[size], self.world(scenario)
        document = yaml.safe_load(self._text(scenario))
        free = {key: value for key, value in document.items() if key not in COSTLY}
        free["agents"] = {"count": document["agents"]["count"]}
        overrides = [*budget.settings, *settings, *([] if seed is None else [f"seed={seed}"])]
        last = first + (budget.replications if count is None else count)
        variants, takes, listed = list[Variant](), Registry.installed().takes, list[Settings]()
        for label, entry in entries.items():
            given = {key: value for key, value in world.given.items() if takes(str(entry["algorithm"]), key)}
            listed.append({**given, **entry, "label": label})
            base = free if label.partition("#")[0] == CENTRAL else document
            text = to_yaml({**base, "algorithms": listed[-1:]})
            said = overrides if is_own(str(entry["algorithm"])) else dict.fromkeys([*overrides, CHECKED])
            possible = _possible(said, base)
            made = load_study(ScenarioText(text, scenario, self.folder), possible).variants
            repeated = [one for one in possible if not one.startswith("seed=")]
            repeated.append("tuning={}" if first else f"replications={last}")  # with tuning there are those from afar
            variants += [replace(one, settings=tuple(repeated)) for one in made]
        numbered = tuple(replace(one, number=number) for number, one in enumerate(variants))
        shown = [one for one in listed if str(one["label"]).partition("#")[0] != CENTRAL]
        text = to_yaml({**document, "algorithms": shown}) if shown else text
        return Study(f"{self.name}-{scenario}", text, numbered, tuple(range(first, last)), points=1)

    def why_not(self, scenario: str, algorithm: Algorithm, size: Size) -> str:
        """Why an algorithm does not fit a scenario; empty where it does, also where a mistake in its code is found."""
        try:
            study = self.study(scenario, {algorithm.name: {"algorithm": algorithm.name}}, size=size)
            found = preflight(ScenarioText(study.text, scenario, self.folder), (), study)
        except loading.BAD_INPUT as error:
            found_problems = error.problems if isinstance(error, ScenarioError) else ()
            return found_problems[0].message if found_problems else str(error)
        return next((one.message for one in found.problems if one.message not in found.mistakes), "")

    def can_run(self, scenarios: Iterable[str], size: Size) -> None:
        """Refuse scenarios that need what is not here, such as a package, before anything runs.

        Raises:
            SuiteError: something is missing.
        """
        for scenario in scenarios:
            missing = self.study(scenario, {ALONE: self.world(scenario).alone}, size=size).lacking
            if missing is not None:
                why = str(missing).removeprefix(f"{ALONE}: ")
                raise SuiteError(f"the scenario {scenario} cannot run here: {why}.")

    def candidates(self, scenario: str, algorithm: Algorithm, size: Size) -> list[dict[str, Any]]:
        """The settings that an algorithm may try: its defaults, then points that cover what is tuned (Halton 1960)."""
        world, count = self.world(scenario), self.definition.sizes[size].candidates
        tuned = {key: text for key, text in world.tuned.items() if _is_number(algorithm, key)}
        space = {**tuned, **{key: text for key, text in algorithm.search.items() if key not in world.given}}
        spans = {
            key: ranges.parse(text, yaml_nodes.Mark(f"{algorithm.name}.{key}"), key) for key, text in space.items()
        }
        if not spans:
            return [{}]
        from scipy.stats import qmc

        points = qmc.Halton(len(spans), scramble=False).random(count)[1:]
        drawn = ({key: _at(one, u) for (key, one), u in zip(spans.items(), point, strict=True)} for point in points)
        return [{}, *drawn]


def _stated(found: Any) -> Any:
    """A resolved scenario without what it does not have: None, and empty lists."""
    if isinstance(found, Mapping):
        return {key: _stated(value) for key, value in found.items() if value is not None and value != []}
    return [_stated(one) for one in found] if isinstance(found, list) else found


def suites() -> list[str]:
    """The names of the suites that come with coband."""
    return sorted(file.stem for file in HERE.glob("*.yaml"))


def suite(name: str) -> Suite:
    """A suite by its name.

    Raises:
        SuiteError: there is none.
    """
    if name not in suites():
        raise SuiteError(
            f"there is no suite {name!r}{did_you_mean(name, suites()) or ';'} there is {', '.join(suites())}."
        )
    text = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
    definition = Definition.model_validate(yaml.safe_load(text))
    _, folder = read_scenario(f"suite/{name}/{next(iter(definition.scenarios))}")
    return Suite(definition, folder)


def _is_number(algorithm: Algorithm, parameter: str) -> bool:
    """Whether an algorithm has a parameter that can be any positive number."""
    field = algorithm.config.model_fields.get(parameter)
    return field is not None and isinstance(field.default, float)


def point_of(algorithm: str) -> EntryPoint | None:
    """What offers an installed algorithm, coband first; None for one of this process alone."""
    points = [one for one in installed(ALGORITHMS.group) if one.name == algorithm]
    return min(points, key=lambda one: distribution(one) != OWN_DISTRIBUTION, default=None)


def is_own(algorithm: str) -> bool:
    """Whether an algorithm comes with coband."""
    return (point := point_of(algorithm)) is not None and distribution(point) == OWN_DISTRIBUTION


def _possible(overrides: Iterable[str], document: Mapping[str, Any]) -> list[str]:
    """The settings that a scenario can have: turns where its schedule counts them."""
    turns = "turns" in document.get("schedule", {})
    return [one for one in overrides if turns or not one.startswith("schedule.turns=")]


def _at(found: ranges.Range, u: float) -> Any:
    """The value at a share of a range."""
    if not isinstance(found, ranges.Between):
        return yaml_nodes.plain(found.values[min(int(u * len(found.values)), len(found.values) - 1)].node)
    low, high = (np.log(found.low), np.log(found.high)) if found.log else (found.low, found.high)
    at = low + u * (high - low)
    return yaml_nodes.plain(found.value(float(np.exp(at) if found.log else at)).node)
