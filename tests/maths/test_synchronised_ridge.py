"""What has been given out and taken back is news exactly once, and versions of a ridge regression do not change."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, RidgeVersion, SynchronisedRidge

STEPS = st.lists(st.sampled_from(["pull", "pull", "give", "clear", "restore"]), min_size=1, max_size=25)


@pytest.mark.parametrize("diagonal", [False, True])
@settings(max_examples=60, deadline=None)
@given(steps=STEPS, copies=st.booleans(), seed=st.integers(0, 2**16))
def test_news_that_are_taken_back_are_given_out_once_more(
    diagonal: bool, steps: list[str], copies: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    local = LocalRidge(SynchronisedRidge(ridge(3, 0.7, diagonal)))
    pulls: list[tuple[FloatArray, float]] = []  # all, in order
    here: list[int] = []  # what the plain form says is local, of these the first ones new
    new: list[int] = []
    out: list[tuple[int, Gram | FloatArray, FloatArray, list[int]]] = []
    for round, step in enumerate(steps):
        if step == "pull":
            x, y = rng.normal(size=3), float(rng.normal())
            local.update(Observations(x[None], np.array([y])))
            here.append(len(pulls))
            new.append(len(pulls))
            pulls.append((x, y))
        elif step == "give":
            out.append((round, *local.news(round), new))
            new = []
        elif step == "clear":
            local.clear()
            here = list(new)
        elif out:
            given_out, W, b, taken = out.pop(int(rng.integers(len(out))))
            local.restore(given_out, *(deepcopy((W, b)) if copies else (W, b)))
            new = [*new, *taken]
            here = [*[pull for pull in here if pull not in taken], *taken]
        V = 0.7 * np.eye(3) + sum((np.outer(pulls[i][0], pulls[i][0]) for i in here), start=np.zeros((3, 3)))
        V = np.diag(np.diag(V)) if diagonal else V
        b_here = sum((pulls[i][1] * pulls[i][0] for i in here), start=np.zeros(3))
        mean, squares = local.predict(np.eye(3))
        assert mean == pytest.approx(np.linalg.solve(V, b_here), abs=1e-8)
        assert squares == pytest.approx(np.diag(np.linalg.inv(V)), abs=1e-8)
    W, b = local.news(len(steps))
    W_new = sum((np.outer(pulls[i][0], pulls[i][0]) for i in new), start=np.zeros((3, 3)))
    assert (W.dense() if isinstance(W, Gram) else np.diag(W)) == pytest.approx(
        np.diag(np.diag(W_new)) if diagonal else W_new, abs=1e-8
    )
    assert b == pytest.approx(sum((pulls[i][1] * pulls[i][0] for i in new), start=np.zeros(3)), abs=1e-8)


def test_a_round_has_its_news_once() -> None:
    local = LocalRidge(SynchronisedRidge(ridge(3, 0.7, False)))
    local.news(4)
    with pytest.raises(ValueError, match=r"the news of round\(=4\) have been given out"):
        local.news(4)
    local.clear()
    local.news(4)


@pytest.mark.parametrize("diagonal", [False, True])
def test_agents_share_versions_and_may_act_on_different_ones(diagonal: bool) -> None:
    rng, start = np.random.default_rng(0), RidgeVersion(ridge(4, 1.0, diagonal))
    ahead, behind, alone = (SynchronisedRidge(node) for node in (start, start, RidgeVersion(ridge(4, 1.0, diagonal))))
    rows = rng.normal(size=(90, 4))
    seen = []
    for version in range(1, 10):
        grown = rows[: 10 * version]
        W = Gram(grown).diagonal if diagonal else Gram(grown)
        b = grown.sum(axis=0)
        ahead.follow(version, W, b)
        alone.follow(version, W, b)
        assert ahead.ridge.theta.tolist() == alone.ridge.theta.tolist()
        assert ahead.ridge is not alone.ridge
        seen.append((ahead.ridge, ahead.ridge.theta.copy(), ahead.ridge.variance(np.eye(4))))
        if version == 1:
            behind.follow(1, W, b)
            assert behind.ridge is ahead.ridge
    for held, theta, variance in seen:
        assert (held.theta.tolist(), held.variance(np.eye(4)).tolist()) == (theta.tolist(), variance.tolist())
    behind.follow(9, W, b)
    assert behind.ridge is not ahead.ridge
    assert behind.ridge.theta == pytest.approx(ahead.ridge.theta)


@pytest.mark.parametrize("diagonal", [False, True])
def test_who_is_alone_with_its_synchronisations_has_the_same(diagonal: bool) -> None:
    """Its ridge is changed in place; what was forked from it, and the start of all, stay as they are."""
    rng, start = np.random.default_rng(3), RidgeVersion(ridge(4, 1.0, diagonal))
    shared, alone = SynchronisedRidge(start), SynchronisedRidge(start, alone=True)
    rows, held = rng.normal(size=(200, 4)), []
    for version, size in enumerate((1, 2, 5, 30, 31, 90, 200), start=1):
        W = Gram(rows[:size]).diagonal if diagonal else Gram(rows[:size])
        for node in (shared, alone):
            node.follow(version, W, rows[:size].sum(axis=0))
        assert alone.ridge.theta.tolist() == shared.ridge.theta.tolist()
        assert alone.ridge.variance(np.eye(4)).tolist() == shared.ridge.variance(np.eye(4)).tolist()
        assert (alone.ridge.log_det, alone.version) == (shared.ridge.log_det, shared.version)
        fork = alone.ridge.forked()
        fork.add_squares(rows[:1])
        held.append((fork, fork.log_det, fork.variance(np.eye(4)).tolist(), fork.diagonal.tolist()))
        assert fork.diagonal == pytest.approx(alone.ridge.diagonal + rows[0] ** 2)
    for fork, log_det, variance, entries in held:
        assert (fork.log_det, fork.variance(np.eye(4)).tolist(), fork.diagonal.tolist()) == (log_det, variance, entries)
    assert start.ridge.theta.tolist() == [0.0] * 4
    assert start.ridge.diagonal.tolist() == [1.0] * 4
