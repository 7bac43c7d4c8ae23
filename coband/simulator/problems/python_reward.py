"""A mean reward that is a Python function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pydantic

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import JsonObject
from coband.simulator.plugins.functions import load
from coband.simulator.plugins.promises import finite, in_words, real, written
from coband.simulator.problems.arms import ArmSource
from coband.simulator.problems.rewards import Reward, RewardFunction
from coband.simulator.scenario_errors import BrokenOff


class PythonReward(Reward):
    """f(x) computed by a function of a module or file; the same f in every replication."""

    kind: Literal["python"]
    """A Python function of your own."""
    function: str
    """``module:function`` (installed or in the working directory) or ``path/to/file.py:function``,
    relative to the scenario. It gets the arms of a turn, an array (n, d), and returns their mean rewards, (n,), the
    same ones at each call."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> PythonReward:
        load(self.function)
        return self

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        return _Rewarded(self.function, load(self.function))


class _Rewarded:
    def __init__(self, name: str, function: Callable[[FloatArray], Any]) -> None:
        self._name, self._function, self._steady = name, function, False

    def __call__(self, arms: FloatArray) -> FloatArray:
        """f of the arms of several turns, turn by turn: (turns, n, d) -> (turns, n)."""
        if not self._steady and not np.array_equal(self._of_a_turn(arms[0]), self._of_a_turn(arms[0])):
            raise BrokenOff(
                f"{written(self._function)}{self._name} gave other values when it was called again; it must give mean "
                "rewards, and problem.noise adds noise"
            )
        self._steady = True
        return np.stack([self._of_a_turn(turn) for turn in arms])

    def _of_a_turn(self, arms: FloatArray) -> FloatArray:
        answer = self._function(arms)
        try:
            values = real(answer)
            right = finite(values, len(arms))
        except (TypeError, ValueError):
            right = False
        if not right:
            raise BrokenOff(
                f"{written(self._function)}{self._name} returned {in_words(answer, begins=True)} for arms of shape "
                f"{arms.shape}; return their mean rewards, {len(arms)} finite numbers"
            )
        return values

    def describe(self) -> JsonObject:
        return {"function": self._name}
