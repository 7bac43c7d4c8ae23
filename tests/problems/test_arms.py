from typing import Any

import numpy as np
import pydantic
import pytest
from scipy import stats

from coband.simulator.problems.arms import ArmSource, ArmSpec, uniform_ball, uniform_sphere
from tests.every import every
from tests.problems.helpers import ARMS, BALL, BOX, POOL, SPHERE, named_streams

ADAPTER: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(ArmSpec)


def source(spec: dict[str, Any], seed: int = 0) -> ArmSource:
    return ADAPTER.validate_python(spec).build(named_streams(seed))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("dimension", [1, 2, 5, 20])
def test_ball_radius_law(dimension: int) -> None:
    """P(|x| <= r) = r^d, so |x|^d is uniform on [0, 1]."""
    norms = np.linalg.norm(uniform_ball(rng(), (4000,), dimension), axis=1)
    assert norms.max() <= 1.0
    assert stats.kstest(norms**dimension, "uniform").pvalue > 0.01


def test_ball_directions_are_uniform() -> None:
    """In R^3 each coordinate of the direction is uniform on [-1, 1], and independent of the radius."""
    points = uniform_ball(rng(1), (4000,), 3)
    norms = np.linalg.norm(points, axis=1)
    directions = points / norms[:, None]
    assert all(stats.kstest((directions[:, i] + 1) / 2, "uniform").pvalue > 0.01 for i in range(3))
    assert abs(np.corrcoef(norms, directions[:, 0])[0, 1]) < 0.05


def test_sphere() -> None:
    points = uniform_sphere(rng(), (4000,), 3, radius=2.0)
    assert np.allclose(np.linalg.norm(points, axis=1), 2.0, rtol=1e-14, atol=0.0)
    assert stats.kstest((points[:, 0] / 2.0 + 1) / 2, "uniform").pvalue > 0.01


def test_box() -> None:
    points = source(BOX).draw(rng(), 500).reshape(-1, 2)
    assert stats.kstest((points[:, 0] + 1.0) / 4.0, "uniform").pvalue > 0.01
    assert stats.kstest(points[:, 1] / 3.0, "uniform").pvalue > 0.01


def test_box_is_the_unit_cube_by_default() -> None:
    points = source({"kind": "box", "dimension": 3, "count": 50}).draw(rng(), 20)
    assert points.min() >= 0.0
    assert points.max() <= 1.0


def test_radius_scales_the_ball() -> None:
    unit, large = source(BALL).draw(rng(), 3), source({**BALL, "radius": 2.5}).draw(rng(), 3)
    assert np.allclose(large, 2.5 * unit, rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("spec", ARMS)
def test_shapes(spec: dict[str, Any]) -> None:
    one = source(spec)
    assert one.domain(rng(), 30).shape == (30, one.dimension)
    if one.fixed is None:
        assert one.draw(rng(), 9).shape == (9, one.count, one.dimension)
    else:
        assert one.fixed.shape == (one.count, one.dimension)


@pytest.mark.parametrize("spec", [BALL, SPHERE, BOX, POOL])
def test_turns_drawn_together_or_apart_are_equal_to_the_last_bit(spec: dict[str, Any]) -> None:
    one, apart = source(spec), rng(5)
    pieces = [one.draw(apart, turns) for turns in (1, 2, 4, 6)]
    assert np.array_equal(one.draw(rng(5), 13), np.concatenate(pieces))


def test_pool_offers_distinct_members_uniformly_and_in_any_order() -> None:
    one = source({"kind": "pool", "points": [[float(i)] for i in range(6)], "count": 3})
    drawn = one.draw(rng(), 3000)[..., 0]
    assert all(len(set(turn)) == 3 for turn in drawn.tolist())
    for place in range(3):
        counts = np.bincount(drawn[:, place].astype(int), minlength=6)
        assert stats.chisquare(counts).pvalue > 0.01


def test_pool_draw_of_everything_is_a_permutation() -> None:
    points = [[float(i)] for i in range(5)]
    drawn = source({"kind": "pool", "points": points, "count": 5}).draw(rng(), 50)[..., 0]
    assert all(sorted(turn) == [0, 1, 2, 3, 4] for turn in drawn.tolist())
    assert len({tuple(turn) for turn in drawn.tolist()}) > 30


def test_given_points_are_the_pool() -> None:
    one = source({"kind": "pool", "points": [[0, 1], [2, 3], [4, 5]]})
    assert one.fixed.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert {tuple(point) for point in one.domain(rng(), 3).tolist()} == {(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)}


@pytest.mark.parametrize(("shape", "low", "high"), [("ball", 0.0, 1.0), ("sphere", 1.0, 1.0), ("box", 0.0, 3**0.5)])
def test_pool_is_drawn_once_from_its_shape(shape: str, low: float, high: float) -> None:
    spec = {"kind": "pool", "dimension": 3, "size": 40, "from": shape}
    first, again, other = source(spec).fixed, source(spec).fixed, source(spec, seed=1).fixed
    assert again is not None
    assert other is not None
    norms = np.linalg.norm(first, axis=1)
    assert low - 1e-12 <= norms.min()
    assert norms.max() <= high + 1e-12
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_specs_survive_a_round_trip() -> None:
    for spec in [*ARMS, {"kind": "pool", "points": [[1.0], [2.0]]}]:
        parsed = ADAPTER.validate_python(spec)
        assert ADAPTER.validate_json(ADAPTER.dump_json(parsed, by_alias=True)) == parsed
        assert ADAPTER.validate_json(ADAPTER.dump_json(parsed)) == parsed


@every(
    ("spec", "message"),
    [
        ({**BALL, "dimension": 0}, "greater than or equal to 1"),
        ({**BALL, "count": 0}, "greater than or equal to 1"),
        ({**BALL, "radius": 0}, "greater than 0"),
        ({**BALL, "radius": float("inf")}, "finite number"),
        ({**BALL, "raduis": 1}, "Extra inputs are not permitted"),
        (
            {**BALL, "kind": "cube"},
            "does not match any of the expected tags: 'ball', 'sphere', 'box', 'normalised_cube', 'pool'",
        ),
        ({**BOX, "low": [0, 0, 0]}, "low has 3 numbers but dimension is 2."),
        ({**BOX, "high": 0.0}, r"low\(=\(-1.0, 0.0\)\) must be below high\(=0.0\) in every coordinate."),
        ({"kind": "pool", "count": 3}, "a pool needs either `dimension` and `size`, or `points`."),
        ({"kind": "pool", "points": [[1.0]], "size": 4}, "leave out `dimension`, `size` and `from`."),
        ({"kind": "pool", "points": [[1.0], [1.0, 2.0]]}, "must have the same number of coordinates"),
        ({"kind": "pool", "points": [[], []]}, "must have the same number of coordinates, at least one"),
        ({"kind": "pool", "points": []}, "at least 1 item"),
        ({**POOL, "count": 13}, r"count\(=13\) must be <= the 12 points of the pool."),
    ],
)
def test_bad_specs(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        ADAPTER.validate_python(spec)


def test_the_normalised_cube_is_on_the_sphere_and_denser_towards_corners() -> None:
    arms = source({"kind": "normalised_cube", "dimension": 2, "count": 1})
    points = arms.domain(rng(), 20_000)
    assert np.linalg.norm(points, axis=1) == pytest.approx(np.ones(20_000))
    angles = np.arctan2(points[:, 1], points[:, 0]) % (np.pi / 2)
    # Half a square's quarter lies between the angles 0 and pi/4, and tan(pi/8) of that half below pi/8.
    assert np.mean(np.abs(angles - np.pi / 4) < np.pi / 8) == pytest.approx(1 - np.tan(np.pi / 8), abs=0.015)
