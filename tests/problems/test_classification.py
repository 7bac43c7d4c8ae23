import json
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from scipy.cluster.vq import ClusterError, kmeans2

from coband.simulator.problems import classification
from coband.simulator.problems.classification import PROBLEM, ClustersProblem, cluster_classes, k_means
from coband.simulator.problems.datasets import DataError, load
from coband.simulator.problems.world import World
from tests.data_files import data_file
from tests.problems.files import write_magic, write_mushroom
from tests.problems.helpers import named_streams


def config(path: Path | None, name: str = "magic", **parts: Any) -> ClustersProblem:
    return ClustersProblem.model_validate({"kind": "clusters", "data": {"name": name, "path": path}, **parts})


def world(path: Path, name: str = "magic", seed: int = 0, **parts: Any) -> World:
    return config(path, name, **parts).build(named_streams(seed), agents=3)


def test_three_separate_groups_are_the_three_clusters(tmp_path: Path) -> None:
    truth = world(write_magic(tmp_path), clusters=3).describe()
    assert sorted(truth["shares"]) == [0.0, 0.5, 1.0]
    assert truth["sizes"] == [20, 20, 20]
    assert truth["positive"] == "g"


def test_the_other_class_has_the_other_share(tmp_path: Path) -> None:
    path = write_mushroom(tmp_path)
    edible, poisonous = (np.array(world(path, "mushroom", positive=c, clusters=4).describe()["shares"]) for c in "ep")
    assert np.allclose(edible + poisonous, 1.0)


def test_centroids_are_the_means_of_their_members() -> None:
    points = np.random.default_rng(0).standard_normal((200, 3))
    centroids, labels = k_means(points, 6, np.random.default_rng(1))
    assert np.allclose(centroids, [points[labels == k].mean(axis=0) for k in range(6)])


def test_every_row_belongs_to_its_nearest_centroid() -> None:
    points = np.random.default_rng(0).standard_normal((200, 3))
    centroids, labels = k_means(points, 6, np.random.default_rng(1))
    assert np.array_equal(labels, np.linalg.norm(points[:, None] - centroids, axis=2).argmin(axis=1))


def test_standardised_columns_weigh_the_same(tmp_path: Path) -> None:
    path = write_magic(tmp_path)
    table = load("magic", path)
    scaled = cluster_classes(table, 3, "g", True, np.random.default_rng(0))
    assert np.allclose(scaled.sizes @ scaled.centroids, 0.0, atol=1e-9)
    plain = cluster_classes(table, 3, "g", False, np.random.default_rng(0))
    assert np.allclose(plain.sizes @ plain.centroids, table.features.sum(axis=0))


def test_a_constant_column_is_only_centred(tmp_path: Path) -> None:
    table = load("mushroom", write_mushroom(tmp_path))
    cut = cluster_classes(table, 4, "e", True, np.random.default_rng(0))
    assert np.isfinite(cut.centroids).all()
    assert np.abs(cut.centroids[:, -1]).max() == 0.0


def test_arms_fill_the_unit_ball_or_stay_as_they_are(tmp_path: Path) -> None:
    path = write_magic(tmp_path)
    scaled, plain = world(path, clusters=3).arms(0, 1), world(path, clusters=3, unit_ball=False).arms(0, 1)
    assert np.linalg.norm(scaled, axis=1).max() == pytest.approx(1.0, rel=1e-14)
    assert np.allclose(plain, scaled * np.linalg.norm(plain, axis=1).max())


def test_bernoulli_rewards_are_labels_with_the_right_share(tmp_path: Path) -> None:
    one = world(write_mushroom(tmp_path), "mushroom", clusters=4)
    means = one.means(0, 1)
    for arm in range(4):
        rewards = [one.pull(arm % 3, turn, arm)[0] for turn in range(arm * 2000 + 1, arm * 2000 + 2001)]
        assert set(rewards) <= {0.0, 1.0}
        assert np.mean(rewards) == pytest.approx(means[arm], abs=0.05)


def test_bernoulli_arms_share_the_uniform_of_the_turn(tmp_path: Path) -> None:
    """With one uniform per turn, an arm of larger mean never earns less than one of smaller mean."""
    one = world(write_mushroom(tmp_path), "mushroom", clusters=4)
    order = np.argsort(one.means(0, 1)).tolist()
    for turn in range(1, 200):
        rewards = [one.pull(0, turn, arm)[0] for arm in order]
        assert rewards == sorted(rewards)


def test_gaussian_rewards(tmp_path: Path) -> None:
    path = write_magic(tmp_path)
    exact = world(path, clusters=3, rewards="gaussian", noise=0)
    assert [exact.pull(0, 1, arm)[0] for arm in range(3)] == exact.means(0, 1).tolist()
    noisy = world(path, clusters=3, rewards="gaussian")
    errors = [noisy.pull(0, turn, 1)[0] - noisy.means(0, 1)[1] for turn in range(1, 2001)]
    assert np.std(errors) == pytest.approx(0.1, rel=0.05)


def test_regret(tmp_path: Path) -> None:
    one = world(write_magic(tmp_path), clusters=3)
    assert sorted(one.pull(0, 1, arm)[1] for arm in range(3)) == [0.0, 0.5, 1.0]


def test_same_seed_same_partition_another_seed_another(tmp_path: Path) -> None:
    path = write_mushroom(tmp_path)
    first, again, other = (world(path, "mushroom", seed, clusters=7) for seed in (0, 0, 1))
    assert np.array_equal(first.arms(0, 1), again.arms(0, 1))
    assert not np.array_equal(first.arms(0, 1), other.arms(0, 1))
    assert [first.pull(2, t, 0) for t in range(1, 50)] == [again.pull(2, t, 0) for t in range(1, 50)]
    assert first.fixed_arms
    assert json.loads(json.dumps(first.describe())) == first.describe()


def test_algorithms_of_one_replication_share_the_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_magic(tmp_path)
    before = world(path, clusters=5)
    monkeypatch.setattr(classification, "cluster_classes", None)  # a second call would fail
    assert np.array_equal(world(path, clusters=5, rewards="gaussian").arms(0, 1), before.arms(0, 1))


def test_a_relative_path_starts_from_the_scenario(tmp_path: Path) -> None:
    write_magic(tmp_path)
    built = config(Path("magic04.data"), clusters=3).build(named_streams(), agents=1, base=tmp_path)
    assert built.dimension == 10


def test_more_clusters_than_distinct_rows() -> None:
    points = np.repeat(np.eye(3), 5, axis=0)
    with pytest.raises(DataError, match=r"^clusters\(=4\) must be <= the 3 distinct rows of the data\.$"):
        k_means(points, 4, np.random.default_rng(0))


def test_empty_clusters_are_tried_again_and_then_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def failing(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) <= failures:
            raise ClusterError("One of the clusters is empty.")
        return kmeans2(*args, **options)

    monkeypatch.setattr("scipy.cluster.vq.kmeans2", failing)
    points = np.random.default_rng(0).standard_normal((50, 2))
    failures = 3
    assert k_means(points, 4, np.random.default_rng(0))[0].shape == (4, 2)
    failures = 10**6
    with pytest.raises(DataError, match=r"^clusters\(=4\) is too many: k-means left a cluster empty in 20 starts\.$"):
        k_means(points, 4, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"positive": "x"}, r"positive\(='x'\) must be a class of magic: g or h\."),
        ({"noise": 0.1}, r"noise\(=0.1\) needs `rewards: gaussian`"),
        ({"clusters": 0}, "greater than or equal to 1"),
        ({"data": {"name": "iris"}}, "Input should be 'magic' or 'mushroom'"),
        ({"scale": "standardize"}, "Input should be 'standardise' or 'none'"),
    ],
)
def test_bad_specs(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        config(None, **parts)


@pytest.mark.parametrize(
    ("name", "file", "positives", "rows"),
    [("magic", "magic/magic04.data", 12332, 19020), ("mushroom", "mushroom/agaricus-lepiota.data", 4208, 8124)],
)
def test_the_real_files(name: str, file: str, positives: int, rows: int) -> None:
    """20 clusters; the shares, weighted by size, are the share of the class in the file, to the last member."""
    one = PROBLEM.config.model_validate({"kind": "clusters", "data": {"name": name, "path": data_file(file)}})
    built = one.build(named_streams(), agents=100)
    truth = built.describe()
    members = np.array(truth["shares"]) * truth["sizes"]
    assert built.arms(0, 1).shape == (20, 10 if name == "magic" else 117)
    assert sum(truth["sizes"]) == rows
    assert min(truth["sizes"]) > 0
    assert np.allclose(members, np.rint(members), rtol=0.0, atol=1e-9)
    assert np.rint(members).sum() == positives
    assert np.linalg.norm(built.arms(0, 1), axis=1).max() == pytest.approx(1.0, rel=1e-14)


def test_the_schema_explains_every_field() -> None:
    schema = PROBLEM.config.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        assert all(content.get("description") for content in part["properties"].values())
