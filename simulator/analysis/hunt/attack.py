"""Search for the worst attack: which behaviour costs honest agents most, and how few liars are enough.

Every behaviour is tried with the largest share of liars. The worst one is shrunk: liars become honest one by one as
long as the attack still costs what it is asked to cost. Costs are ratios of the honest agents' mean regret to that of
the same agents in the same worlds when the others are honest too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.experiments.runs.blas import one_thread
from coband.simulator.experiments.runs.job import engine_of
from coband.simulator.experiments.scenario.loading import BAD_INPUT, from_document
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.wire_checks import untouched
from coband.simulator.experiments.scenario.yaml_text import to_yaml
from coband.simulator.scenario_errors import BrokenOff, RequestError

REFUSALS: tuple[type[Exception], ...] = (*BAD_INPUT, BrokenOff)
"""Why a run ends without a regret."""
LIARS = 0.4
"""Largest share of them."""
HONEST: dict[str, Any] = {"kind": "scale", "factor": 1.0}
"""What a liar does whose messages stay as they are."""
ALWAYS: Mapping[str, float] = {}
NEVER: Mapping[str, float] = {"stop": 0.0}
"""When a liar lies; who never does is honest in the place of one whose messages have nothing that `HONEST` names."""
BEHAVIOURS: tuple[dict[str, Any], ...] = (
    {"kind": "sign_flip", "scale": 1.0},
    {"kind": "sign_flip", "scale": 3.0},
    {"kind": "scale", "factor": 10.0},
    {"kind": "noise", "sigma": 10.0},
    {"kind": "constant", "value": -10.0},
    {"kind": "random_arm_model"},
    {"kind": "inner_product", "scale": 3.0},
    {"kind": "alie"},
    {"kind": "alie", "z": 1.5},
    {"kind": "stale"},
    {"kind": "free_rider"},
    {"kind": "silent"},
    {"kind": "equivocate"},
)
"""What is tried."""


class AttackError(RequestError):
    """A scenario in which nobody can be attacked."""


@dataclass(frozen=True)
class Attack:
    """What a behaviour costs an algorithm.

    Attributes:
        cost: honest agents' regret over what it is without lies; NaN where there is none.
        why: there is none: it was refused, or left out since it changes nothing that the agents send.
    """

    label: str
    behaviour: dict[str, Any]
    liars: int
    cost: float
    why: str = ""


class Attacks:
    """Attacks on the algorithms of a scenario.

    Args:
        scenario: its own adversaries are replaced, its expectations ignored.
        seeds: of the worlds over which regrets are averaged.

    Raises:
        AttackError: there is one agent alone.
    """

    def __init__(self, scenario: Scenario, seeds: Sequence[int]) -> None:
        self._base, self._seeds, self._count = scenario.base, seeds, scenario.agents.count
        if self._count < 2:
            raise AttackError("an attack needs a liar and somebody honest; set agents.count: 2, or more")
        document = {**scenario.resolved(), "replications": 1, "expect": [], "trace": "off"}
        self._document = json.dumps(document)
        self._algorithms = {entry.label: entry.algorithm for entry in scenario.algorithms}
        self.most = max(1, round(LIARS * self._count))
        self._known: dict[str, float] = {}

    def tried(self, label: str) -> Iterator[Attack]:
        """Every behaviour with the largest share of liars."""
        for behaviour in BEHAVIOURS:
            if why := self._untouched(label, behaviour):
                yield Attack(label, behaviour, self.most, float("nan"), f"left out: {why}")
                continue
            try:
                yield Attack(label, behaviour, self.most, self.cost(label, behaviour, self.most))
            except REFUSALS as refusal:
                yield Attack(label, behaviour, self.most, float("nan"), f"refused: {refusal}")

    def shrunk(self, attack: Attack, least: float) -> Attack:
        """The same attack with as few liars as cost so much: one less would cost less than ``least``, or be refused."""
        while attack.liars > 1:
            try:
                fewer = self.cost(attack.label, attack.behaviour, attack.liars - 1)
            except REFUSALS:
                break
            if not fewer >= least:
                break
            attack = Attack(attack.label, attack.behaviour, attack.liars - 1, fewer)
        return attack

    def cost(self, label: str, behaviour: dict[str, Any], liars: int) -> float:
        """Mean regret of the honest agents over what it is without lies."""
        honest = (behaviour, NEVER) if self._untouched(label, HONEST) else (HONEST, ALWAYS)
        return self._regret(label, behaviour, liars) / max(self._regret(label, honest[0], liars, honest[1]), 1e-300)

    def _untouched(self, label: str, behaviour: dict[str, Any]) -> str:
        """Why a behaviour changes nothing; empty if it does."""
        adversary = Adversary.model_validate({"agents": [0], "behaviour": behaviour})
        return untouched(self._algorithms[label], adversary)

    def scenario(self, attack: Attack) -> str:
        return to_yaml(self._with(attack.label, attack.behaviour, attack.liars, self._seeds[0]))

    def _with(
        self, label: str, behaviour: dict[str, Any], liars: int, seed: int, when: Mapping[str, float] = ALWAYS
    ) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._document)
        document["seed"] = seed
        document["algorithms"] = [entry for entry in document["algorithms"] if entry["label"] == label]
        document["adversaries"] = [{"agents": {"fraction": liars / self._count}, "behaviour": behaviour, **when}]
        return document

    def _regret(self, label: str, behaviour: dict[str, Any], liars: int, when: Mapping[str, float] = ALWAYS) -> float:
        key = json.dumps([label, behaviour, liars, dict(when)])
        if key not in self._known:
            runs = [self._run(self._with(label, behaviour, liars, seed, when)) for seed in self._seeds]
            self._known[key] = float(np.mean(runs))
        return self._known[key]

    def _run(self, document: dict[str, Any]) -> float:
        scenario = from_document(document, "attack", Path(self._base))
        with one_thread():
            return float(engine_of(scenario, scenario.algorithms[0]).run().totals["honest_regret_per_agent"])
