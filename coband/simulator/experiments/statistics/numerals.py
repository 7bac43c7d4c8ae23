"""Formatting numbers for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence

ROUNDING = 1e-7
"""An interval narrower than this, relative to the mean, comes from rounding errors, or is the root of one."""


def number(value: float | int | None) -> str:
    """A number with thousands separators and about six digits; "-" for None."""
    if value is None:
        return "-"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.5g}"


def column(values: Sequence[float | None], digits: int = 4) -> list[str]:
    """Numbers below each other, all with the decimals that give the largest this many digits; "-" for None."""
    most = max((abs(value) for value in values if value is not None), default=0.0)
    decimals = max(0, digits - 1 - math.floor(math.log10(most))) if most else 0
    return ["-" if value is None else f"{value:,.{decimals}f}" for value in values]


def between(mean: float | None, bounds: Sequence[float] | None) -> str:
    """A mean ± half the width of its interval; the half width has two digits, the mean as many decimals."""
    if mean is None or bounds is None:
        return number(mean)
    half_width = 0.5 * (bounds[1] - bounds[0])
    if half_width <= ROUNDING * abs(mean):
        return number(mean)
    decimals = _decimals(half_width)
    return f"{mean:z,.{decimals}f} ± {half_width:,.{decimals}f}"


def bounds(interval: Sequence[float] | None) -> str:
    """Both ends of an interval, with as many decimals as give its half width two digits; "-" for None."""
    if interval is None:
        return "-"
    low, high = interval
    half_width = 0.5 * (high - low)
    if half_width <= ROUNDING * max(abs(low), abs(high), ROUNDING):
        return f"{number(low)} to {number(high)}"
    decimals = _decimals(half_width)
    return f"{low:z,.{decimals}f} to {high:z,.{decimals}f}"


def like(mean: float, interval: Sequence[float] | None) -> str:
    """A mean with as many decimals as :func:`bounds` gives its interval."""
    if interval is None or interval[1] - interval[0] <= ROUNDING * max(abs(mean), ROUNDING):
        return number(mean)
    return f"{mean:z,.{_decimals(0.5 * (interval[1] - interval[0]))}f}"


def _decimals(half_width: float) -> int:
    return max(0, 1 - math.floor(math.log10(half_width)))


def evidence(e_value: float | None) -> str:
    """An e-value, as far as its size matters."""
    if e_value is None:
        return "-"
    return "> 10,000" if e_value > 1e4 else "< 0.001" if 0 < e_value < 1e-3 else number(float(f"{e_value:.2g}"))
