"""What a sweep with tuning has to run: candidates on replications of their own, then the best on fresh ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from coband.simulator.experiments.runs.planner import Planner, Task
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.sweep import tuning
from coband.simulator.experiments.sweep.tuning import FIRST_REPLICATION, Choice, Stopped

TUNING = "tuning"
"""The phase of replications that choose."""


class TuningPlanner(Planner):
    """Decides what runs; the same decisions whatever the order in which jobs end.

    Attributes:
        rule: how to choose.
        choices: what tuning has found so far.
        stopped: candidates that successive halving has stopped so far.
    """

    def __init__(self, study: Study, rule: Tuning) -> None:
        super().__init__(study)
        self.rule = rule
        self.choices: list[Choice] = []
        self.stopped: list[Stopped] = []
        self._stages: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        self._alive: dict[tuple[str, ...], list[int]] = {}
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for variant in study.variants:
            self._groups[variant.context].append(variant.number)

    def begin(self) -> list[Task]:
        """All candidates, replication by replication."""
        self._stages = {context: tuning.stages(self.rule, len(group)) for context, group in self._groups.items()}
        self._alive = {context: list(group) for context, group in self._groups.items()}
        self._counts = {context: [len(group)] for context, group in self._groups.items()}
        first = {variant.number: self._stages[variant.context][0][1] for variant in self._study.variants}
        return self._add(
            Task(number, TUNING, FIRST_REPLICATION + replication)
            for replication in range(max(first.values()))
            for number, made in first.items()
            if replication < made
        )

    def _next(self, variant: int, phase: str) -> list[Task]:
        """Choose among the candidates as soon as all of them have ended."""
        if phase != TUNING:
            return super()._next(variant, phase)
        context = self._study.variants[variant].context
        group = self._groups[context]
        if any(self._open[number, TUNING] for number in group):
            return []
        stages, entered = self._stages[context], len(self._counts[context])
        if entered < len(stages):
            return self._halved(context, stages[entered - 1][1], *stages[entered])
        found = {number: self.records(number, TUNING) for number in self._alive[context]}
        choice = replace(tuning.choose(self.rule, context, found), candidates=tuple(group))
        self.choices.append(choice)
        return [] if choice.variant is None else self._first([choice.variant])

    def _halved(self, context: tuple[str, ...], made: int, keep: int, wanted: int) -> list[Task]:
        """Stop the worse candidates of a stage, and go on with the others up to ``wanted`` replications."""
        found = {number: self.records(number, TUNING) for number in self._alive[context]}
        self._alive[context], stopped = tuning.halve(self.rule, made, keep, found)
        self.stopped += stopped
        self._counts[context].append(len(self._alive[context]))
        if not self._alive[context]:  # all broke off
            self._counts[context] += [0] * len(self._stages[context])
            self.choices.append(Choice(context, None, tuple(self._groups[context])))
        numbers = range(FIRST_REPLICATION + made, FIRST_REPLICATION + wanted)
        return self._add(Task(number, TUNING, at) for at in numbers for number in self._alive[context])

    @property
    def chosen(self) -> list[int]:
        return [choice.variant for choice in self.choices if choice.variant is not None]

    def expected(self) -> dict[str, int]:
        total = super().expected()
        for context, stages in self._stages.items():
            counts, before = self._counts[context], 0
            for stage, (planned, made) in enumerate(stages):
                total[context[0]] += (made - before) * (counts[stage] if stage < len(counts) else planned)
                before = made
        for context in set(self._groups) - {choice.context for choice in self.choices}:
            total[context[0]] += self._study.replications
        return total
