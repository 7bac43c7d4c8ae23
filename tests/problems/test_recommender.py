"""Ratings from their original formats; the recommender's worlds; refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_matrix

from coband.simulator.problems.datasets import DataError
from coband.simulator.problems.ratings import RATINGS, read
from coband.simulator.problems.recommender import RecommenderProblem, factors, most_rated
from coband.simulator.problems.world import World
from tests.data_files import data_file
from tests.problems.files import rating_lines, write_movielens, write_u_data, write_yelp
from tests.problems.helpers import named_streams

SMALL = {"rank": 3, "count": 6}


def test_one_user_and_one_item_are_enough() -> None:
    data = {"name": "movielens"}
    for name, least in (("users", 1), ("items", 1), ("rank", 1), ("count", 2), ("positive", 0.0)):
        found = RecommenderProblem.model_validate({"kind": "recommender", "data": data, name: least})
        assert getattr(found, name) == least
        with pytest.raises(ValidationError):
            RecommenderProblem.model_validate({"kind": "recommender", "data": data, name: least - 1})


def config(path: Path | None, name: str = "movielens", **parts: Any) -> RecommenderProblem:
    return RecommenderProblem.model_validate(
        {"kind": "recommender", "data": {"name": name, "path": path}, **SMALL, **parts}
    )


def world(path: Path, name: str = "movielens", seed: int = 0, agents: int = 4, **parts: Any) -> World:
    return config(path, name, **parts).build(named_streams(seed), agents)


def test_all_formats_hold_the_same_ratings(tmp_path: Path) -> None:
    files = [
        ("movielens", write_movielens(tmp_path)),
        ("movielens", write_u_data(tmp_path)),
        ("yelp", write_yelp(tmp_path)),
    ]
    lines = rating_lines()
    for name, file in files:
        found = read(RATINGS[name], file)
        users = [found.user_names[user] for user in found.users]
        assert users == [user for user, _, _ in lines]
        assert found.values.tolist() == [rating for _, _, rating in lines]
        first_items: dict[str, int] = {}
        assert found.items.tolist() == [first_items.setdefault(item, len(first_items)) for _, item, _ in lines]
    worlds = [world(file, name) for name, file in files]
    assert len({one.arms(0, 1).tobytes() for one in worlds}) == 1


def plain_matrix(
    lines: list[tuple[str, str, float]], users: int, items: int
) -> tuple[list[str], list[str], np.ndarray]:
    """The same choice by dictionaries and sorting."""
    names: list[list[str]] = []
    for place, most in ((0, users), (1, items)):
        counts: dict[str, int] = {}
        for line in lines:
            key = str(line[place])
            counts[key] = counts.get(key, 0) + 1
        names.append(sorted(counts, key=lambda key: -counts[key])[:most])
    matrix = np.zeros((len(names[0]), len(names[1])))
    for user, item, rating in lines:
        if user in names[0] and item in names[1]:
            matrix[names[0].index(user), names[1].index(item)] = rating
    return names[0], names[1], matrix


@pytest.mark.parametrize(("users", "items"), [(1000, 1000), (7, 1000), (1000, 11), (12, 9)])
def test_the_most_rated_stay_and_the_last_rating_counts(tmp_path: Path, users: int, items: int) -> None:
    lines = [*rating_lines(), ("u3", "i0", 4.5), ("u3", "i0", 0.5), ("u0", "i0", 1.5)]
    found = most_rated(read(RATINGS["movielens"], write_movielens(tmp_path, lines)), users, items)
    names, _, matrix = plain_matrix(lines, users, items)
    assert list(found.user_names) == names
    assert np.array_equal(found.matrix.toarray(), matrix)


def test_factors_are_the_truncated_decomposition(tmp_path: Path) -> None:
    matrix = most_rated(read(RATINGS["movielens"], write_movielens(tmp_path)), 100, 100).matrix
    users, items = factors(matrix, 4, "none")
    U, s, Vt = np.linalg.svd(matrix.toarray())
    assert users @ items.T == pytest.approx((U[:, :4] * s[:4]) @ Vt[:4])
    assert np.linalg.norm(users, axis=0) == pytest.approx(np.linalg.norm(items, axis=0))
    for one, other in zip(factors(matrix, 4, "normalise"), (users, items), strict=True):
        assert np.linalg.norm(one, axis=1) == pytest.approx(np.sqrt(0.5))
        assert one * np.linalg.norm(other, axis=1, keepdims=True) * np.sqrt(2) == pytest.approx(other)
    for one, other in zip(factors(matrix, 4, "unit_ball"), (users, items), strict=True):
        assert one == pytest.approx(other / np.linalg.norm(other, axis=1).max() / np.sqrt(2))


def test_a_turn_offers_one_liked_item_and_others(tmp_path: Path) -> None:
    """Every arm is looked up in a plain table of ratings: its user, and an item that pays what it must."""
    file = write_movielens(tmp_path)
    one = world(file, scale="none")
    names, _, matrix = plain_matrix(rating_lines(), 100, 100)
    users, items = factors(most_rated(read(RATINGS["movielens"], file), 100, 100).matrix, 3, "none")
    assert one.fixed_arms is False
    acting = one.describe()["acting"]
    places, seen = set(), set()
    for turn in range(1, 40):
        for agent in range(4):
            arms, means = one.arms(agent, turn), one.means(agent, turn)
            assert arms.shape == (6, 6)
            user = int(np.argmin(np.abs(users - arms[0, :3]).sum(axis=1)))
            assert names[user] in acting[agent]
            seen.add(user)
            assert np.array_equal(arms[:, :3], np.tile(users[user], (6, 1)))
            chosen = [int(np.argmin(np.abs(items - arm[3:]).sum(axis=1))) for arm in arms]
            assert len(set(chosen)) == 6
            assert means.tolist() == [float(matrix[user, item] > 2) for item in chosen]
            assert means.sum() == 1
            places.add(int(means.argmax()))
            right = int(means.argmax())
            assert one.pull(agent, turn, right) == (1.0, 0.0)
            assert one.pull(agent, turn, (right + 1) % 6) == (0.0, 1.0)
    assert places == set(range(6))
    assert len(seen) == 4


def test_rounding_errors_of_factors_are_no_features() -> None:
    """Ten users with an item of their own each, which the five largest singular values know nothing of."""
    ratings = np.zeros((40, 40))
    ratings[:30, :30] = np.random.default_rng(0).integers(1, 6, (30, 30))
    ratings[30:, 30:] = np.eye(10)
    for rows in factors(csr_matrix(ratings), 5, "normalise"):
        assert (rows[30:] == 0.0).all()
        assert np.linalg.norm(rows[:30], axis=1) == pytest.approx(np.full(30, 0.5**0.5))


def able_users() -> int:
    """Users with an item above 2 and five others."""
    _, _, matrix = plain_matrix(rating_lines(), 100, 100)
    liked = (matrix > 2).sum(axis=1)
    return int(((liked >= 1) & (matrix.shape[1] - liked >= 5)).sum())


@pytest.mark.parametrize("agents", [1, 4, 20, 75])
def test_users_are_dealt_to_agents(tmp_path: Path, agents: int) -> None:
    file, able = write_movielens(tmp_path), able_users()
    one = world(file, agents=agents).describe()["acting"]
    assert [len(users) for users in one] == [1] * agents
    assert len({users[0] for users in one}) == min(agents, able)
    assert all(users == one[agent % able] for agent, users in enumerate(one))


def test_agents_that_share_a_user_draw_for_themselves(tmp_path: Path) -> None:
    one = world(write_movielens(tmp_path), agents=60)
    acting, able = one.describe()["acting"], able_users()
    assert 4 < able < 60
    assert acting[0] == acting[able]
    assert not np.array_equal(one.arms(0, 1), one.arms(able, 1))


def test_turns_depend_on_agent_and_number_alone(tmp_path: Path) -> None:
    file = write_movielens(tmp_path)
    first, second = world(file), world(file)
    forwards = [first.arms(agent, turn).tobytes() for agent in range(4) for turn in range(1, 50)]
    assert forwards == [second.arms(agent, turn).tobytes() for agent in range(4) for turn in range(1, 50)]
    other = world(file, seed=1)
    assert other.arms(0, 1).tobytes() != forwards[0]
    with pytest.raises(IndexError, match=r"arm\(=6\) must be one of 0 .. 5"):
        first.pull(0, 49, 6)


HEADER = "userId,movieId,rating,timestamp\n"
BAD_FILES = [
    ("movielens", "", "ratings.csv: there are no ratings in this file."),
    ("movielens", HEADER, "ratings.csv: there are no ratings in this file."),
    ("movielens", HEADER + "1,2,3.0,4\n1,2,x,4\n", "ratings.csv:3: '1,2,x,4' is not a rating: expected userId,movieId"),
    ("movielens", HEADER + "1,2,3.0,4\n\n1,2,3.0\n", "ratings.csv:4: '1,2,3.0' is not a rating"),
    ("movielens", HEADER + "1,2,9.0,4\n", "ratings.csv:2: rating 9 must be > 0 and <= 5."),
    ("movielens", HEADER + "1,2,nan,4\n", "ratings.csv:2: rating nan must be > 0 and <= 5."),
    ("movielens", "movieId,title,genres\n", "ratings.csv:1: 'movieId,title,genres' is not a file of MovieLens:"),
    ("movielens", "1\t2\t3\t4\n1\t2\t3\n", r"ratings.csv:2: '1\\t2\\t3' is not a rating: expected user, item"),
    ("yelp", '{"user_id": "a", "business_id": "b"}\n', 'ratings.csv:1: \'{"user_id": "a", "business_id": "b"}\' is no'),
    (
        "yelp",
        '{"user_id": "a", "business_id": "b", "stars": 4}\n[1]\n',
        "ratings.csv:2: '[1]' is not a rating: expected",
    ),
    ("yelp", "1,2,3.0,4\n", "ratings.csv:1: '1,2,3.0,4' is not a rating: expected a JSON object"),
    ("yelp", '{"user_id": 7, "business_id": "b", "stars": 4}\n', "is not a rating"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES)
def test_malformed_files_are_refused_with_the_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        world(file, name)
    assert message in str(caught.value).replace("\\\\", "\\").replace("\\t", "\\\\t")


def test_a_missing_file_says_where_to_get_it_and_how_to_name_it(tmp_path: Path) -> None:
    for name, url in (("movielens", "https://grouplens.org/datasets/movielens/"), ("yelp", "open-dataset")):
        with pytest.raises(DataError) as caught:
            world(tmp_path / "nothing", name)
        assert url in str(caught.value)
        assert "--set problem.data.path=FILE" in str(caught.value)


def test_too_few_users_or_items_are_refused(tmp_path: Path) -> None:
    file = write_movielens(tmp_path)
    with pytest.raises(DataError, match=r"rank\(=5\) must be less than .* 5 users and 60 items"):
        world(file, users=5, rank=5)
    with pytest.raises(DataError, match=r"no user can act: none has .* above 2 and 69 items that it has not rated"):
        world(file, count=70)


def test_a_long_line_is_shown_in_part(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps({"text": "x" * 500}) + "\n")
    with pytest.raises(DataError) as caught:
        world(file, "yelp")
    assert len(str(caught.value)) < 300


def test_the_real_ratings() -> None:
    """ml-latest-small: sizes as its README says, arms on the unit sphere, about every user can act."""
    one = RecommenderProblem.model_validate(
        {"kind": "recommender", "data": {"name": "movielens", "path": data_file("ml-latest-small/ratings.csv")}}
    ).build(named_streams(), 700)
    truth = one.describe()
    assert (truth["users"], truth["items"], truth["ratings"]) == (610, 9724, 100_836)
    assert truth["positive"] == 87_313
    assert one.dimension == 20
    arms = one.arms(0, 1)
    assert arms.shape == (20, 20)
    assert np.linalg.norm(arms, axis=1) == pytest.approx(1.0)
    assert len({users[0] for users in truth["acting"]}) == 610
