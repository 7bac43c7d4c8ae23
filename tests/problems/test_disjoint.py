"""The disjoint conversion of classification data."""

from pathlib import Path

import numpy as np
import pytest

from coband.simulator.core.randomness.streams import Streams
from coband.simulator.problems.datasets import DataError, load
from coband.simulator.problems.disjoint import DisjointProblem, DisjointWorld, scaled
from tests.data_files import data_file
from tests.problems.files import write_magic, write_shuttle


def world(path: Path, name: str = "shuttle", seed: int = 0, **more: object) -> DisjointWorld:
    section = {"kind": "classification", "data": {"name": name, "path": str(path)}, **more}
    return DisjointProblem.model_validate(section).build(Streams(seed), 2)


def test_arms_are_the_row_in_one_block_each(tmp_path: Path) -> None:
    one = world(write_shuttle(tmp_path))
    assert one.dimension == 63
    arms = one.arms(0, 1)
    assert arms.shape == (7, 63)
    blocks = arms.reshape(7, 7, 9)
    for k in range(7):
        assert np.array_equal(blocks[k, k], blocks[0, 0])
        assert np.count_nonzero(blocks[k]) == np.count_nonzero(blocks[0, 0])
    assert not arms.flags.writeable
    assert one.arms(0, 1) is arms


def test_the_right_class_pays(tmp_path: Path) -> None:
    one = world(write_shuttle(tmp_path), scale="none")
    for turn in range(1, 61):
        x = one.arms(1, turn)[0, :9]
        right = round(float(x.mean()) / 30)  # the class that write_shuttle gave
        assert one.means(1, turn).tolist() == [float(k == right) for k in range(7)]
        assert one.pull(1, turn, right) == (1.0, 0.0)
        assert one.pull(1, turn, (right + 1) % 7) == (0.0, 1.0)
    with pytest.raises(IndexError, match="one of 0 .. 6"):
        one.pull(1, 61, 7)


def test_each_agent_has_its_own_order_and_sees_every_row_once_a_pass(tmp_path: Path) -> None:
    path = write_shuttle(tmp_path)
    one, again, other = world(path), world(path), world(path, seed=1)
    passes = {}
    for agent in (0, 1):
        for number in (0, 1):
            passes[agent, number] = [one.arms(agent, 60 * number + turn).tobytes() for turn in range(1, 61)]
    assert len({tuple(sorted(order)) for order in passes.values()}) == 1
    assert len({tuple(order) for order in passes.values()}) == 4
    assert again.arms(0, 1).tobytes() == passes[0, 0][0]
    assert [other.arms(0, turn).tobytes() for turn in range(1, 61)] != passes[0, 0]
    with pytest.raises(ValueError, match="do not go back"):
        one.arms(0, 1)


def test_scales() -> None:
    X = np.array([[3.0, 4.0, 1.0], [0.0, 0.0, 0.0], [6.0, -8.0, 1.0]])
    assert scaled(X, "none") is X
    norms = np.sqrt([26.0, 1.0, 101.0])
    assert scaled(X, "normalise") == pytest.approx(X / norms[:, None])
    standard = scaled(X, "standardise")
    assert standard.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-15)
    assert standard.std(axis=0) == pytest.approx(np.ones(3))
    both = X / norms[:, None]
    assert scaled(X, "normalise_standardise") == pytest.approx((both - both.mean(axis=0)) / both.std(axis=0))
    assert scaled(np.ones((4, 2)), "standardise").tolist() == [[0.0, 0.0]] * 4
    units = np.column_stack([np.full(1000, 1234567.891), 1e-13 * np.arange(1000.0)])
    assert scaled(units, "standardise").std(axis=0) == pytest.approx([0.0, 1.0], abs=1e-9)


def test_a_subset_of_rows(tmp_path: Path) -> None:
    one = world(write_magic(tmp_path), "magic", rows=12)
    assert one.dimension == 20
    assert one.describe()["rows"] == sum(one.describe()["by_class"]) == 12


def test_a_missing_second_file(tmp_path: Path) -> None:
    path = write_shuttle(tmp_path)
    (tmp_path / "shuttle.tst").unlink()
    with pytest.raises(DataError, match=r"shuttle.tst is missing; it belongs beside .*shuttle.trn"):
        world(path)


def test_a_malformed_line_of_the_second_file(tmp_path: Path) -> None:
    path = write_shuttle(tmp_path)
    (tmp_path / "shuttle.tst").write_text("1 2 3 4 5 6 7 8 9 8\n")
    with pytest.raises(DataError, match=r"shuttle.tst:1: column 10 is '8'; shuttle needs a class, '1' or"):
        load("shuttle", path)


def test_where_shuttle_comes_from(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"shuttle.trn is missing.*Get it from https://.*, unpack it, and set"):
        load("shuttle", tmp_path)


def test_the_real_shuttle_data() -> None:
    table = load("shuttle", data_file("shuttle/shuttle.trn"))
    assert table.features.shape == (58_000, 9)
    names, counts = np.unique(table.labels, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True))["1"] == 45_586
    assert len(names) == 7
