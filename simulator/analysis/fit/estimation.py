"""The scenario that a trace shows: the distribution of each kind of delay, stragglers, bandwidth and loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from coband.simulator.analysis.fit.families import Fitted, best
from coband.simulator.analysis.fit.samples import Samples
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.estimates import wilson
from coband.simulator.experiments.statistics.numerals import bounds

FEW = 20
"""Fewer values than this are not fitted."""
SLOW = 2.0
"""An agent is a straggler if its turns take so many times as long as the typical agent's."""
ALIKE = 0.01
"""Two directions have a latency each if a test of Kolmogorov and Smirnov says so at this level."""


@dataclass(frozen=True)
class Stragglers:
    """Agents that are slower than the others by a factor.

    Attributes:
        interval: of the slowdown, from the logarithms of the two means (delta method).
    """

    agents: tuple[int, ...]
    fraction: float
    slowdown: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Share:
    """A probability with its interval."""

    value: float
    interval: tuple[float, float]
    count: int


@dataclass(frozen=True)
class Estimates:
    """What was estimated; None where the trace shows too little.

    Attributes:
        latency: of all links, or by direction where these differ.
        bandwidth: scalars per time unit and link, with its interval; None where delays do not grow with size.
    """

    compute: Fitted | None
    stragglers: Stragglers | None
    latency: dict[str, Fitted]
    bandwidth: Share | None
    loss: Share | None

    def listed(self) -> dict[str, object]:
        plain: dict[str, object] = _finite(asdict(self))
        return plain


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def estimates(found: Samples) -> Estimates:
    """Estimate what a trace shows."""
    stragglers, compute = _compute(found)
    slope, latency = _latency(found)
    loss = None
    if found.copies:
        share = found.lost / found.copies
        loss = Share(share, wilson([1.0] * found.lost + [0.0] * (found.copies - found.lost)), found.copies)
    return Estimates(compute, stragglers, latency, slope, loss)


def _compute(found: Samples) -> tuple[Stragglers | None, Fitted | None]:
    """Compute times of agents of speed 1; stragglers' are divided by their slowdown."""
    times = {agent: np.array(values) for agent, values in found.compute.items() if values}
    if sum(map(len, times.values())) < FEW:
        return None, None
    medians = {agent: float(np.median(values)) for agent, values in times.items()}
    typical = float(np.median(list(medians.values())))
    slow = tuple(sorted(agent for agent, median in medians.items() if typical > 0 and median > SLOW * typical))
    if not slow:
        return None, best(np.concatenate(list(times.values())))
    usual = np.concatenate([values for agent, values in times.items() if agent not in slow])
    late = np.concatenate([times[agent] for agent in slow])
    slowdown = float(late.mean() / usual.mean())
    error = math.sqrt(sum((sample.std() / sample.mean()) ** 2 / len(sample) for sample in (late, usual)))
    interval = (slowdown * math.exp(-1.96 * error), slowdown * math.exp(1.96 * error))
    return Stragglers(slow, len(slow) / len(times), slowdown, interval), best(usual)


def _latency(found: Samples) -> tuple[Share | None, dict[str, Fitted]]:
    tables = {way: found.delay_table(way) for way in ("up", "down", "peer")}
    tables = {way: table for way, table in tables.items() if len(table) >= FEW}
    if not tables:
        return None, {}
    slope = _slope(np.concatenate(list(tables.values())))
    if _alike(delays := _latencies(tables, slope)):
        return slope, {"all": best(np.concatenate(delays))}
    ways = [one for table in tables.values() if (one := _slope(table)) is not None]  # sizes may differ as latencies do
    slope = min(ways, key=lambda share: share.interval[1] / share.interval[0], default=None)
    return slope, {way: best(values) for way, values in zip(tables, _latencies(tables, slope), strict=True)}


def _latencies(tables: Mapping[str, FloatArray], slope: Share | None) -> list[FloatArray]:
    """Delays without the time for sizes, of each way."""
    rate = 0.0 if slope is None else 1.0 / slope.value
    return [np.maximum(0.0, table[:, 0] - rate * table[:, 1]) for table in tables.values()]


def _alike(samples: Sequence[FloatArray]) -> bool:
    first, *rest = samples
    return all(stats.ks_2samp(first, other).pvalue > ALIKE for other in rest)


def _slope(table: FloatArray) -> Share | None:
    """Bandwidth, where delays grow with the number of scalars, by 1 / bandwidth for each.

    The slope is that of Theil and Sen, the median over pairs of messages, with its interval: least squares would be
    moved by the tail of the latency.
    """
    sizes, delays = table[:, 1], table[:, 0]
    if len(np.unique(sizes)) < 3 or np.ptp(delays) == 0:
        return None
    thinned = table[:: max(1, len(table) // 1000)]
    with np.errstate(invalid="ignore"):  # the variance of the rank statistic may come out below zero with many ties
        slope, _, low, high = stats.theilslopes(thinned[:, 0], thinned[:, 1])
    if not low > 0 or slope * float(sizes.max()) < 0.05 * float(np.median(delays)):
        return None
    return Share(1.0 / float(slope), (1.0 / float(high), 1.0 / float(low)), len(thinned))


# --- the lines of a scenario


def lines(found: Estimates) -> Iterator[str]:
    """Lines of a scenario, with what is known about each number as a comment."""
    if found.compute is not None:
        yield "agents:"
        yield f"  compute: {_written(found.compute)}"
        if (slow := found.stragglers) is not None:
            remark = f"agents {', '.join(map(str, slow.agents))}; 95 %: slowdown {bounds(slow.interval)}"
            numbers = f"{{fraction: {_short(slow.fraction)}, slowdown: {_short(slow.slowdown)}}}"
            yield f"  stragglers: {numbers}    # {remark}"
    network = list(_network(found))
    if network:
        yield "network:"
        yield from network


def _network(found: Estimates) -> Iterator[str]:
    if "all" in found.latency:
        yield f"  latency: {_written(found.latency['all'])}"
    elif found.latency:
        yield "  links:"
        for way, fitted in found.latency.items():
            if way != "peer":
                yield f"    - {{direction: {way}, latency: {_inline(fitted)}}}    # {_remark(fitted)}"
        if "peer" in found.latency:
            yield f"  latency: {_written(found.latency['peer'])}"
    if found.bandwidth is not None:
        yield f"  bandwidth: {_short(found.bandwidth.value)}    # 95 %: {bounds(found.bandwidth.interval)}"
    if found.loss is not None:
        remark = f"95 %: {bounds(found.loss.interval)}; of {found.loss.count:,} copies"
        yield f"  loss: {_short(found.loss.value)}    # {remark}"


def _written(fitted: Fitted) -> str:
    return f"{_inline(fitted)}    # {_remark(fitted)}"


def _inline(fitted: Fitted) -> str:
    values = ", ".join(f"{name}: {_short(value)}" for name, value in fitted.parameters.items())
    return f"{{kind: {fitted.kind}, {values}}}"


def _remark(fitted: Fitted) -> str:
    """How sure it is."""
    intervals = ", ".join(f"{name} {bounds(interval)}" for name, interval in fitted.intervals.items())
    parts = [f"95 %: {intervals}", f"n = {fitted.count:,}"]
    if fitted.kind != "constant":
        parts.append(f"KS {fitted.distance:.3f} (p {fitted.p:.2g})")
    if fitted.runner_up is not None:
        parts.append(f"next {fitted.runner_up[0]}, AIC {fitted.runner_up[1]:+.3g}")
    return "; ".join(parts)


def _short(value: float) -> str:
    """A number that YAML reads as one."""
    return f"{value:.5g}" if 1e-4 <= abs(value) < 1e15 or value == 0 else f"{value:.5e}"
