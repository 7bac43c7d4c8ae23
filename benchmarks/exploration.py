"""Pure exploration: the min-max design."""

from __future__ import annotations

import numpy as np

from benchmarks import textbook
from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.maths.exploration.design import differences, min_max_design, root


def design(arms: int) -> Measured:
    """A min-max design on an asymmetric instance against 5000 steps of the paper's gradient descent."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((arms, 10)) * rng.uniform(0.3, 3.0, 10)
    groups = [list(range(start, start + 2 + start // 6)) for start in range(0, arms, 6)]
    pairs = [(i, j) for group in groups for i in group for j in group if i < j]
    features = root(table @ table.T)
    fast, found = seconds(lambda: min_max_design(features, differences(features, groups), 1e-3))
    slow, (_, value) = seconds(lambda: textbook.descend(table @ table.T, pairs, 1e-3, 5000, 0.1), 1)
    off = value / found.value - 1.0
    note = f"{1e3 * fast:.1f} ms, gap {found.gap:.1e}; the descent ends {off:.1e} above"
    return Measured(slow, fast, found.gap <= 1e-8 and off >= -found.gap, note)


CASES: Cases = {
    "design": (lambda: design(30), "min-max design, 30 arms of 5 agents; gap at most 1e-8"),
}
