"""The kernel is its formula, pair by pair; it is positive semidefinite; scenarios can name it."""

from __future__ import annotations

import numpy as np
import pytest
from rational_quadratic import RationalQuadratic

from coband.extensions.conformance import run

POINTS = np.random.default_rng(1).normal(size=(12, 3))


@pytest.mark.parametrize(
    "kernel", [RationalQuadratic(), RationalQuadratic(0.5, 2.0), RationalQuadratic(columns=(0, 2))]
)
def test_the_matrix_is_the_formula(kernel: RationalQuadratic) -> None:
    seen = POINTS if kernel.columns is None else POINTS[:, list(kernel.columns)]
    squares = ((seen[:, None] - seen[None]) ** 2).sum(axis=2)
    formula = (1 + squares / (2 * kernel.alpha * kernel.length_scale**2)) ** -kernel.alpha
    assert np.allclose(kernel(POINTS, POINTS.copy()), formula, rtol=1e-12)
    assert np.allclose(kernel.diag(POINTS), 1.0)
    assert np.linalg.eigvalsh(kernel(POINTS, POINTS)).min() > -1e-12


@pytest.mark.parametrize("algorithm", ["async_kernel_ucb", "dis_kernel_ucb", "kernel_ts"])
def test_algorithms_run_with_it(algorithm: str) -> None:
    simulated = run(algorithm, {"kernel": {"kind": "rational_quadratic", "alpha": 2.0}})
    assert simulated.result.turns == 60
