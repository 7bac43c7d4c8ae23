"""A mean reward that is a Python function of the user's."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic

from coband.simulator.arrays import FloatArray
from coband.simulator.problems.arms import ArmSource
from coband.simulator.problems.rewards import Reward, RewardFunction


class PythonReward(Reward):
    """f(x) computed by a function of a module or file; the same f in every replication."""

    kind: Literal["python"]
    """A Python function of your own."""
    function: str
    """``module:function`` (installed or in the working directory) or ``path/to/file.py:function``,
    relative to the scenario. It gets the arms of a turn, an array (n, d), and returns their mean rewards, (n,)."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> PythonReward:
        load(self.function)
        return self

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        """The function; nothing is drawn."""
        return _Rewarded(self.function, load(self.function))


class _Rewarded:
    def __init__(self, name: str, function: Callable[[FloatArray], Any]) -> None:
        self._name, self._function = name, function

    def __call__(self, arms: FloatArray) -> FloatArray:
        """f of the arms of several turns, turn by turn: (turns, n, d) -> (turns, n)."""
        return np.stack([self._of_a_turn(turn) for turn in arms])

    def _of_a_turn(self, arms: FloatArray) -> FloatArray:
        values = np.asarray(self._function(arms), dtype=np.float64)
        if values.shape != (len(arms),) or not np.isfinite(values).all():
            given = f"shape {values.shape}" if values.shape != (len(arms),) else "values that are not finite"
            raise ValueError(
                f"{self._name} must return the mean rewards of {len(arms)} arms, {len(arms)} finite numbers; it "
                f"returned {given} for an array of shape {arms.shape}."
            )
        return values

    def describe(self) -> dict[str, Any]:
        """The function's name."""
        return {"function": self._name}


def load(name: str) -> Callable[[FloatArray], Any]:
    """The function of that name.

    Raises:
        ValueError: there is none; the text says what to write.
    """
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute.isidentifier():
        raise ValueError(f"function(={name!r}) must be module:function or path/to/file.py:function.")
    module = _module(place)
    function = getattr(module, attribute, None)
    if not callable(function):
        offered = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise ValueError(f"{place} has no function {attribute!r}; it has {', '.join(offered) or 'none'}.")
    found: Callable[[FloatArray], Any] = function
    return found


def _module(place: str) -> Any:
    if place.endswith(".py"):
        file = Path(place).expanduser().resolve()
        if not file.is_file():
            raise ValueError(f"there is no file {place}; write module:function or path/to/file.py:function.")
        return _executed(file, file.stat().st_mtime_ns)
    _findable(Path.cwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{place}.".startswith(f"{error.name}."):
            raise ValueError(f"{place} cannot be imported: {error}.") from None
        raise ValueError(
            f"there is no module {place!r}, neither installed nor in {Path.cwd()}; write module:function or "
            "path/to/file.py:function."
        ) from None
    except Exception as error:  # whatever the user's module raises
        raise ValueError(f"{place} cannot be imported: {type(error).__name__}: {error}.") from None


@lru_cache(maxsize=16)
def _executed(file: Path, changed: int) -> Any:
    """The module in a file, which may import its neighbours; ``changed`` tells its states apart."""
    _findable(file.parent)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises
        raise ValueError(f"{file} cannot be executed: {type(error).__name__}: {error}.") from None
    return module


def _findable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
