"""Turns that are worked out together, against plain loops over them one by one."""

import math
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.agents.linear.fed_lin_ucb import Episode
from coband.simulator.arms import ArmSet
from coband.simulator.arms import coming as of_block
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.decisions import gaps
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge

STEPS = st.lists(
    st.sampled_from(["best", "best", "best", "other", "unseen", "look", "model", "upload", "back"]), max_size=40
)
LAM, ALPHA = 0.7, 0.4


def squares(rows: list[FloatArray]) -> FloatArray:
    return sum((np.outer(x, x) for x in rows), start=np.zeros((3, 3)))


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, even=st.booleans(), ahead=st.booleans(), most=st.sampled_from([0.0, 0.3, 1.5]), seed=st.integers(0))
def test_an_episode_is_its_turns_one_by_one(steps: list[str], even: bool, ahead: bool, most: float, seed: int) -> None:
    """V, b are the model; X, y the pulls since the last upload; ``sums`` what others and uploads add to the model."""
    rng = np.random.default_rng(seed)
    model = SynchronisedRidge(RidgeRegression(3, LAM), alone=True)
    episode = Episode(model, ALPHA)
    V, b = LAM * np.eye(3), np.zeros(3)
    X, y, sums = list[FloatArray](), list[float](), list[FloatArray]()
    out = list[tuple[Gram, FloatArray]]()
    coming = list[ArmSet]()
    noted = list[float]()

    def best_of(scores: FloatArray) -> int:
        noted.extend(gaps(scores[None]))
        return int(scores.argmax())

    closest = Mock(note_gap=lambda _, gap: noted.append(gap))
    agent: Any = SimpleNamespace(context=SimpleNamespace(index=0, closest=closest), best=best_of)

    def arm_set() -> ArmSet:
        return ArmSet(rng.normal(size=(4 if even else int(rng.integers(1, 5)), 3)))

    for step in steps:
        if step == "look" or (ahead and not coming):
            features = [arm_set().features for _ in range(int(rng.integers(1, 6)))]
            coming = of_block(np.stack(features)) if even else list(map(ArmSet, features))
            episode.look_ahead(coming)
        if step in ("best", "other", "unseen"):
            arms = arm_set() if step == "unseen" or not coming else coming.pop(0)
            coming = [] if step == "unseen" else coming
            plain = [x @ np.linalg.solve(V, b) + ALPHA * math.sqrt(x @ np.linalg.solve(V, x)) for x in arms.features]
            best = int(np.argmax(plain))
            assert episode.choose(agent, arms) == best
            assert noted.pop() == pytest.approx(gaps(np.array([plain]))[0], abs=1e-7)
            arm = best if step == "best" else int(rng.integers(len(arms)))
            X.append(arms.features[arm])
            y.append(float(rng.normal()))
            episode.pull(arms, arm, y[-1])
            exact = np.linalg.slogdet(V + squares(X))[1] - np.linalg.slogdet(V)[1]
            gain = episode.gain(most)
            assert (gain > most) == (exact > most)
            assert gain == pytest.approx(exact, abs=1e-9) if gain > most else gain >= exact - 1e-9
        elif step == "model":
            sums += [*X, *rng.normal(size=(2, 3))] if rng.random() < 0.5 else [rng.normal(size=3)]
            V, b = LAM * np.eye(3) + squares(sums), rng.normal(size=3)
            model.follow(model.version + 1, Gram(np.array(sums)), b)
            episode.begin()
        elif step == "upload" or (step == "back" and out):
            W_loc, b_loc = episode.news.news(0)
            assert isinstance(W_loc, Gram)
            assert W_loc.dense() == pytest.approx(squares(X), abs=1e-9)
            assert b_loc == pytest.approx(sum((v * x for x, v in zip(X, y, strict=True)), start=np.zeros(3)), abs=1e-9)
            episode.clear()
            X, y = [], []
            out.append((W_loc, b_loc))
            if step == "back":
                W_back, b_back = out.pop(int(rng.integers(len(out))))
                episode.restore(W_back, b_back)
                X = list(W_back.rows)
                y = np.linalg.lstsq(W_back.rows.T, b_back, rcond=None)[0].tolist()  # some that have this b


def test_determinants_are_worked_out_only_where_a_bound_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pull adds log 2, as its bound says; with the second one the bound is log 4, and the truth log 3."""
    found = list[float]()
    exact = LocalRidge.gain
    monkeypatch.setattr(LocalRidge, "gain", lambda *given: found.append(exact(*given)) or found[-1])
    episode = Episode(SynchronisedRidge(RidgeRegression(3, 1.0), alone=True), 1.0)
    gains = list[float]()
    for _ in range(4):
        arms = ArmSet(np.eye(3))
        episode.choose(Mock(), arms)
        episode.pull(arms, 0, 1.0)
        gains.append(episode.gain(1.2))
    assert found == pytest.approx(np.log([3, 4, 5]).tolist())
    assert gains == pytest.approx(np.log([2, 3, 4, 5]).tolist())
