"""A generator of devices fitted to a table: any number of them, jointly like its rows.

A Gaussian copula over the empirical quantiles of each column (Nelsen 2006, section 2.3): Z ~ N(0, R), and column j of a
device is F_j^-1(Phi(Z_j)). R_ij = sin(pi tau_ij / 2), with Kendall's tau of the rows, which for a Gaussian copula is
its correlation (Lindskog et al. 2003, theorem 5.1). Availability is a column as the share of time for which a device is
up; a device drawn has the windows of the row with that share, so that hours of the day stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.fleet.populations import SAMPLE, BasePopulation, FilePopulation, modified_at
from coband.simulator.core.fleet.presets import Preset
from coband.simulator.core.fleet.public import FedScale, Flash
from coband.simulator.core.fleet.table import AVAILABILITY, Fleet

MOST_ROWS = 20_000
"""Rows from which Kendall's tau is computed; of more, every so many are taken."""
LEAST_ROWS = 10


def columns_of(fleet: Fleet) -> dict[str, FloatArray]:
    """The columns whose joint distribution is fitted: the numbers, and the share of time for which devices are up."""
    shares = {} if fleet.windows is None else {AVAILABILITY: fleet.shares}
    return {**fleet.numbers, **shares}


def whole_columns_of(rows: Fleet) -> dict[str, FloatArray]:
    """`columns_of` rows that a generator can be fitted to, or compared with.

    Raises:
        ValueError: there are too few rows, or cells are empty.
    """
    columns = columns_of(rows)
    if rows.count < LEAST_ROWS:
        raise ValueError(f"a fit needs at least {LEAST_ROWS} rows; there are {rows.count}")
    for name, values in columns.items():
        if (empty := int(np.isnan(values).sum())) > 0:
            raise ValueError(f"a fit needs rows without empty cells; {empty} of {rows.count} lack {name}")
    return columns


def kendall(columns: Sequence[FloatArray]) -> FloatArray:
    """Kendall's tau-b of each pair of columns, shape (columns, columns); 0 with a constant column."""
    from scipy.stats import kendalltau

    taus = np.eye(len(columns))
    step = -(-len(columns[0]) // MOST_ROWS)
    for one in range(len(columns)):
        for other in range(one):
            tau = kendalltau(columns[one][::step], columns[other][::step]).statistic
            taus[one, other] = taus[other, one] = np.nan_to_num(tau)
    return taus


@dataclass(frozen=True)
class Copula:
    """A fitted generator.

    Attributes:
        rows: those it was fitted to.
        columns: of them, each in ascending order.
        root: a root of the correlation R, shape (columns, columns): Z = root times independent normal numbers.
    """

    rows: Fleet
    columns: dict[str, FloatArray]
    root: FloatArray

    @staticmethod
    def of(rows: Fleet) -> Copula:
        """Fit a generator.

        Raises:
            ValueError: there are too few rows, or cells are empty.
        """
        columns = whole_columns_of(rows)
        R = np.sin(0.5 * np.pi * kendall(list(columns.values())))
        values, vectors = np.linalg.eigh(R)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        root /= np.sqrt((root**2).sum(axis=1, keepdims=True))  # of the nearest R with unit diagonal that has a root
        return Copula(rows, {name: np.sort(column) for name, column in columns.items()}, root)

    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        from scipy.special import ndtr

        U = ndtr(rng.standard_normal((count, len(self.root))) @ self.root.T)
        numbers, trace = {}, None
        for place, (name, column) in enumerate(self.columns.items()):
            if name == AVAILABILITY:
                assert self.rows.trace is not None
                by_share = self.rows.trace[np.argsort(self.rows.shares, kind="stable")]
                trace = by_share[_step(U[:, place], len(by_share))]
            elif len(np.unique(column)) < len(column) / 2:  # classes of devices, between which there is nothing
                numbers[name] = column[_step(U[:, place], len(column))]
            else:
                numbers[name] = np.interp(U[:, place], np.linspace(0.0, 1.0, len(column)), column)
        return Fleet(count, numbers, trace, self.rows.windows)


def _step(u: FloatArray, rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """The places of quantiles among sorted rows."""
    return np.minimum((u * rows).astype(np.intp), rows - 1)


class Fit(BasePopulation):
    """Devices from a generator that is fitted, jointly, to the rows of another population: any number of different
    ones from a small table."""

    kind: Literal["fit"]
    of: Annotated[FilePopulation | Flash | FedScale | Preset, Field(discriminator="kind")]
    """The population whose rows it is fitted to."""

    @property
    def offers(self) -> frozenset[str]:
        return self.of.sets

    @property
    def dropped(self) -> str:
        return self.of.dropped

    def halves(self, rng: np.random.Generator) -> list[tuple[Fleet, Fleet]]:
        return self.of.halves(rng)

    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        found = Fleet(count, {})
        for part in _fitted(self, self._changed):
            found = part.draw(count, rng).beside(found)
        return found

    @model_validator(mode="after")
    def _fits(self) -> Fit:
        if self.time_unit != self.of.time_unit:
            raise ValueError(f"time_unit is {self.time_unit}, and of.time_unit {self.of.time_unit}: must be the same")
        if isinstance(self.of, FilePopulation) and self.of.columns.weight is not None:
            raise ValueError("a fit counts all rows alike; leave of.columns.weight out")
        _fitted(self, self._changed)
        return self

    @property
    def _changed(self) -> tuple[int, ...]:
        """When its files were changed."""
        return tuple(modified_at(value) for name, value in self.of if name.endswith("file"))


@lru_cache(maxsize=4)
def _fitted(config: Fit, changed: tuple[int, ...]) -> tuple[Copula, ...]:
    """A generator for each table: columns of different tables are independent of each other."""
    tables = config.of.tables() or (config.of.draw(SAMPLE, np.random.default_rng(0)),)
    parts = (table.only(config.of.sets) for table in tables)
    return tuple(Copula.of(part) for part in parts if columns_of(part))
