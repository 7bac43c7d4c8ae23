"""Distributions of delays, as written in a scenario: ``{kind: ..., ...}`` or a bare number.

Every distribution uses one kind of elementary draw per value, so that drawing in blocks gives the same sequence as
drawing one by one (numpy generators fill arrays sequentially).
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import OF_THE_KEY, Config, Unit, existing, read_anew
from coband.simulator.core.reading import numbers_in
from coband.simulator.plugins.functions import load
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import finite, in_words, returns, written
from coband.simulator.scenario_errors import BrokenOff

FIRST_BLOCK, LARGEST_BLOCK = 4, 1024
DRAWS_OF_MEAN = 10_000
"""Values whose average is taken for the mean of a distribution that does not say it."""

PER_UNIT = Unit("1 / that of the key whose value it is")


class BaseDistribution(Config):
    """Base of distributions, from which delays are drawn."""

    model_config = ConfigDict(defer_build=False)  # built once, as each is a part of very many models

    @property
    @abstractmethod
    def mean(self) -> float:
        """The expected value (may be infinite)."""

    @abstractmethod
    @returns(
        "an array of {size} finite numbers >= 0",
        lambda found, rng, size: finite(found, size) and bool((found >= 0).all()),
    )
    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """``size`` independent values, >= 0; drawing them in several calls gives the same values."""

    @property
    def is_constant(self) -> bool:
        """Whether all values of one link are the same."""
        return False

    @property
    def largest_mean(self) -> float:
        """The mean of any link."""
        return self.mean

    def between(self, source: int, destination: int) -> BaseDistribution:
        """The latency of a link from one node to another: the same for all."""
        return self

    def of(self, agent: int) -> BaseDistribution:
        """The distribution of one agent: the same for all."""
        return self


class Constant(BaseDistribution):
    """Always ``value``."""

    kind: Literal["constant"] = "constant"
    value: Annotated[float, OF_THE_KEY] = Field(ge=0)
    """The value, always the same."""

    @property
    def is_constant(self) -> bool:
        return True

    @property
    def mean(self) -> float:
        return self.value

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return np.full(size, self.value)


class Uniform(BaseDistribution):
    """Uniform on [low, high]."""

    kind: Literal["uniform"] = "uniform"
    low: Annotated[float, OF_THE_KEY] = Field(default=0.0, ge=0)
    """The smallest value."""
    high: Annotated[float, OF_THE_KEY] = Field(ge=0)
    """The largest value."""

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.high < self.low:
            raise ValueError(f"high(={self.high}) must be >= low(={self.low})")
        return self

    @property
    def mean(self) -> float:
        return 0.5 * (self.low + self.high)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return self.low + (self.high - self.low) * rng.random(size)


class Exponential(BaseDistribution):
    """Exponential with ``rate``; mean 1/rate."""

    kind: Literal["exponential"] = "exponential"
    rate: Annotated[float, PER_UNIT] = Field(gt=0)
    """One divided by the mean."""

    @property
    def mean(self) -> float:
        return 1.0 / self.rate

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.standard_exponential(size) / self.rate


class ShiftedExponential(BaseDistribution):
    """``shift`` plus an exponential with ``rate``: the usual model of a straggling computation."""

    kind: Literal["shifted_exponential"] = "shifted_exponential"
    shift: Annotated[float, OF_THE_KEY] = Field(ge=0)
    """The smallest value."""
    rate: Annotated[float, PER_UNIT] = Field(gt=0)
    """One divided by the mean of what is added to ``shift``."""

    @property
    def mean(self) -> float:
        return self.shift + 1.0 / self.rate

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return self.shift + rng.standard_exponential(size) / self.rate


class Gamma(BaseDistribution):
    """Gamma with ``shape`` and ``scale``; mean shape*scale."""

    kind: Literal["gamma"] = "gamma"
    shape: float = Field(gt=0)
    """Shape k: the mean is k * ``scale``, the deviation sqrt(k) * ``scale``."""
    scale: Annotated[float, OF_THE_KEY] = Field(default=1.0, gt=0)
    """Factor of every value."""

    @property
    def mean(self) -> float:
        return self.shape * self.scale

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.standard_gamma(self.shape, size) * self.scale


_LARGEST_EXPONENT = math.log(sys.float_info.max)


class LogNormal(BaseDistribution):
    """``median`` * exp(``sigma`` * N(0, 1))."""

    kind: Literal["lognormal"] = "lognormal"
    median: Annotated[float, OF_THE_KEY] = Field(gt=0)
    """Half of the values are smaller."""
    sigma: float = Field(ge=0)
    """Standard deviation of the logarithm of the values."""

    @property
    def mean(self) -> float:
        exponent = 0.5 * self.sigma * self.sigma
        return self.median * math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return self.median * np.exp(self.sigma * rng.standard_normal(size))


class Pareto(BaseDistribution):
    """Pareto with smallest value ``minimum`` and tail index ``shape``."""

    kind: Literal["pareto"] = "pareto"
    minimum: Annotated[float, OF_THE_KEY] = Field(gt=0)
    """The smallest value."""
    shape: float = Field(gt=0)
    """Tail index: the smaller, the heavier the tail; with at most 1 the mean is infinite."""

    @property
    def mean(self) -> float:
        return math.inf if self.shape <= 1 else self.minimum * self.shape / (self.shape - 1)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return self.minimum * (1.0 - rng.random(size)) ** (-1.0 / self.shape)


@lru_cache(maxsize=16)
def _read_values(file: str) -> tuple[float, ...]:
    rows = numbers_in(existing(file, "a text file with one delay per line"))
    return tuple(value for _, row in rows for value in row)


class Empirical(BaseDistribution):
    """Resamples measured delays, given as ``values`` or as a text ``file`` with one number per line."""

    kind: Literal["empirical"] = "empirical"
    values: Annotated[tuple[float, ...] | None, OF_THE_KEY] = None
    """Measured values, each >= 0; give either this or ``file``."""
    file: str | None = None
    """A text file with one number per line, relative to the scenario; give either this or ``values``."""

    @model_validator(mode="after")
    def _given(self) -> Empirical:
        if (self.values is None) == (self.file is None):
            raise ValueError("give exactly one of values, file")
        if self.file is not None:
            read_anew(_read_values, self.file)
        sample = self.sample
        if not sample or min(sample) < 0 or not all(map(math.isfinite, sample)):
            raise ValueError("an empirical distribution needs at least one value, all finite and >= 0")
        return self

    @property
    def sample(self) -> tuple[float, ...]:
        return self.values if self.values is not None else _read_values(str(self.file))

    @property
    def mean(self) -> float:
        return float(np.mean(self.sample))

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        sample = np.asarray(self.sample, dtype=np.float64)
        return sample[(rng.random(size) * sample.size).astype(np.intp)]


class Sampler(BaseDistribution):
    """Drawn by a Python function of your own."""

    kind: Literal["sampler"]
    function: str
    """``module:function`` (installed or in the working directory) or ``path/to/file.py:function``, relative to the
    scenario. It gets a ``numpy.random.Generator`` and returns one value >= 0, drawn from it alone."""

    @model_validator(mode="after")
    def _readable(self) -> Sampler:
        load(self.function)
        return self

    @property
    def mean(self) -> float:
        """The average of many values from a stream of their own, since a function does not say."""
        return _average(self)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        function = load(self.function)
        return np.array([self._delay(function, function(rng)) for _ in range(size)], dtype=np.float64)

    def _delay(self, function: Callable[..., Any], answer: Any) -> float:
        """The number that the function has returned.

        Raises:
            BrokenOff: it is none, or no delay.
        """
        with suppress(TypeError, ValueError):
            if 0 <= (value := float(answer)) < math.inf:
                return value
        what = f"{written(function)}{self.function} returned {in_words(answer)}"
        raise BrokenOff(f"{what}; given a numpy.random.Generator, it returns one finite number >= 0")


@lru_cache(maxsize=64)
def _average(distribution: BaseDistribution) -> float:
    return float(distribution.draw(np.random.default_rng(0), DRAWS_OF_MEAN).mean())


DISTRIBUTIONS: Kinds[type[BaseDistribution]] = Kinds.of(
    "distributions",
    BaseDistribution,
    (Constant, Uniform, Exponential, ShiftedExponential, Gamma, LogNormal, Pareto, Empirical, Sampler),
)
"""The distributions that scenarios can name, wherever a time or a speed is drawn."""
AnyDistribution = Annotated[BaseDistribution, DISTRIBUTIONS.field()]


def number_is_constant(value: Any) -> Any:
    """A bare number means a constant."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {"kind": "constant", "value": value}
    return value


Distribution = Annotated[
    AnyDistribution,
    BeforeValidator(number_is_constant, json_schema_input_type=Annotated[float, Field(ge=0)] | AnyDistribution),
]

ZERO = Constant(value=0.0)


class Draws:
    """Successive values of a distribution from one stream, drawn in growing blocks.

    Args:
        rng: the stream; it belongs to this object alone.
        factor: every value is multiplied by it (an agent's slowness).
    """

    __slots__ = ("_block", "_distribution", "_factor", "_position", "_rng", "_values")

    def __init__(self, distribution: BaseDistribution, rng: np.random.Generator, factor: float = 1.0) -> None:
        self._distribution, self._rng, self._factor = distribution, rng, factor
        self._values: list[float] = []
        self._position = 0
        self._block = FIRST_BLOCK

    def __call__(self) -> float:
        """The next value.

        Raises:
            BrokenOff: some are infinite.
        """
        if self._position == len(self._values):
            with np.errstate(over="ignore"):
                self._values = (self._factor * self._distribution.draw(self._rng, self._block)).tolist()
            if max(self._values) == math.inf:
                raise BrokenOff(f"{self._distribution!r} draws values too large for a number; give it a lighter tail.")
            self._position = 0
            self._block = min(2 * self._block, LARGEST_BLOCK)
        value = self._values[self._position]
        self._position += 1
        return value


def is_zero(distribution: object) -> bool:
    """True when the distribution is the constant 0, so that nothing need be drawn."""
    return isinstance(distribution, Constant) and distribution.value == 0.0
