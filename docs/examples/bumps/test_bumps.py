"""The reward is its formula; its largest value is 1; problems draw it from the streams of a replication."""

from __future__ import annotations

import numpy as np
from bumps import BumpFunction

from coband.extensions.conformance import run


def test_the_values_are_the_formula() -> None:
    function = BumpFunction(np.array([[0.0, 0.0], [1.0, 0.0]]), width=0.5)
    arms = np.array([[[0.0, 0.0], [0.5, 0.5], [2.0, 0.0]]])
    assert np.allclose(function(arms), [[1.0, np.exp(-0.5 / 0.5), np.exp(-1.0 / 0.5)]])


def test_a_turn_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(3)
    function = BumpFunction(rng.normal(size=(4, 3)), width=1.0)
    arms = rng.normal(size=(8, 5, 3))
    assert (function(arms)[2:3] == function(arms[2:3])).all()


def test_problems_use_it() -> None:
    problem = {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": 2, "count": 4},
        "reward": {"kind": "bumps", "count": 2},
    }
    simulated = run("n_kernel_ucb", {}, problem=problem)
    assert len(simulated.engine.world.describe()["centres"]) == 2
