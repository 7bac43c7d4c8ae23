"""One's own arrays and functions as problems."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.plugins.functions import importable_name
from coband.simulator.problems import array_problem
from coband.simulator.problems.array_files import Arrays, file_of, read_arrays
from coband.simulator.problems.datasets import DataError
from coband.simulator.problems.world import InstanceError
from tests.every import every

ARMS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
REWARDS = np.array([0.25, 0.5, 0.75, 0.75])
TURNS = np.arange(12.0).reshape(3, 2, 2)
MEANS = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 4.0]])


class Frame(dict[str, list[Any]]):
    @property
    def columns(self) -> list[str]:
        return list(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(list(self.values()), dtype=object).T


def built(problem: Any, agents: int = 2, base: Path | None = None) -> Any:
    return problem.build(Streams(3), agents, base)


def test_all_arms_at_every_turn() -> None:
    world = built(coband.Problem.from_arrays(ARMS, REWARDS))
    assert world.fixed_arms
    assert world.arms(0, 1).tolist() == ARMS.tolist()
    assert world.pull(1, 1, 1) == (0.5, 0.25)
    assert world.describe() == {"rows": 4, "lowest": 0.25, "highest": 0.75}


def test_every_agent_may_have_a_task() -> None:
    world = built(coband.Problem.from_arrays(ARMS, [REWARDS, 1.0 - REWARDS]))
    assert world.fixed_arms
    assert world.dimension == 2
    assert [world.pull(agent, 1, 0) for agent in (0, 1)] == [(0.25, 0.5), (0.75, 0.0)]
    assert world.means(1, 1).tolist() == (1.0 - REWARDS).tolist()


def test_some_arms_are_drawn() -> None:
    rewards = np.arange(8.0).reshape(2, 4)
    world = built(coband.Problem.from_arrays(np.arange(4.0)[:, None], rewards, count=2))
    assert not world.fixed_arms
    for agent in (0, 1):
        for turn in range(1, 20):
            arms = world.arms(agent, turn)[:, 0]
            assert len(set(arms)) == 2
            assert world.means(agent, turn).tolist() == [rewards[agent, int(arm)] for arm in arms]


def test_logged_turns_come_in_an_order_of_each_agent() -> None:
    world = built(coband.Problem.from_arrays(TURNS, MEANS), agents=4)
    orders = []
    for agent in range(4):
        found = [world.arms(agent, turn).tolist() for turn in range(1, 7)]
        orders.append([TURNS.tolist().index(arms) for arms in found])
        assert [world.means(agent, turn + 7).tolist() in MEANS.tolist() for turn in range(3)] == [True] * 3
    assert all(sorted(order[:3]) == sorted(order[3:]) == [0, 1, 2] for order in orders)
    assert len(set(map(tuple, orders))) > 1


def test_logged_turns_of_each_agent_come_as_they_are() -> None:
    arms = np.arange(16.0).reshape(2, 2, 2, 2)
    rewards = np.arange(8.0).reshape(2, 2, 2)
    world = built(coband.Problem.from_arrays(arms, rewards))
    for agent in (0, 1):
        for turn in range(1, 6):
            assert world.arms(agent, turn).tolist() == arms[agent, (turn - 1) % 2].tolist()
            assert world.means(agent, turn).tolist() == rewards[agent, (turn - 1) % 2].tolist()


def test_noise_and_realised_regret() -> None:
    world = built(
        coband.Problem.from_arrays(ARMS, REWARDS, noise={"kind": "uniform", "half_width": 1}, regret="realised")
    )
    reward, regret = world.pull(0, 1, 0)
    assert reward != 0.25
    assert regret == pytest.approx(0.75 - reward)


def test_the_problem_is_a_copy() -> None:
    arms, rewards = np.ones((400, 2)), np.zeros(400)
    problem = coband.Problem.from_arrays(arms, rewards)
    arms[:], rewards[:] = 7.0, 7.0
    assert built(problem).arms(0, 1).max() == 1.0
    assert built(problem).pull(0, 1, 0) == (0.0, 0.0)


NAN = np.where(np.arange(8).reshape(4, 2) == 3, np.nan, 1.0)


@every(
    ("arms", "rewards", "options", "message"),
    [
        (NAN, REWARDS, {}, "arms[1, 1] is nan; arms must be finite numbers."),
        (ARMS, [1, 2, np.inf, 4], {}, "rewards[2] is inf; rewards must be finite numbers."),
        (ARMS, np.ma.masked_equal([1, 2, 3, 4], 2), {}, "rewards[1] is nan; rewards must be finite numbers."),
        (
            [1.0, 2.0],
            [1, 2],
            {},
            "arms has shape (2,), but must be (M, d), one row of d features for each of M arms (a single feature: "
            "arms[:, None]; no features: np.eye(2)), or (T, K, d) or (N, T, K, d) for logged turns of K arms.",
        ),
        (ARMS[:1], [1], {}, "arms has shape (1, 2), a single arm at every turn; at least 2 are needed to choose."),
        (ARMS[:0], [], {}, "arms has shape (0, 2), which holds no number; it must be (M, d)."),
        ([[1, 2], [3]], [1, 2], {}, "arms must be an array of numbers with rows of one length, not this list."),
        (
            [["1"], ["b"]],
            [1, 2],
            {},
            "arms must be an array of numbers with rows of one length, but arms[0, 0] is '1'.",
        ),
        (
            Frame({"heat": [1.0, 2.0], "shop": ["a", "b"]}),
            [1, 2],
            {},
            "arms must be an array of numbers with rows of one length, but its column 'shop' holds no numbers; leave "
            "it out, or turn it into columns of 0 and 1, as pandas.get_dummies does.",
        ),
        (ARMS, REWARDS + 1j, {}, "rewards must be an array of numbers with rows of one length, not this ndarray."),
        (
            ARMS,
            REWARDS[:3],
            {},
            "rewards has shape (3,), but arms of shape (4, 2) need (4,), or (N, 4) with a row for each of N agents.",
        ),
        (
            ARMS,
            np.ones((4, 3)),
            {},
            "rewards has shape (4, 3), but arms of shape (4, 2) need (4,), or (N, 4) with a row for each of N agents; "
            "give rewards.T.",
        ),
        (TURNS, MEANS.T, {}, "rewards has shape (2, 3), but arms of shape (3, 2, 2) need (3, 2)."),
        (ARMS, REWARDS, {"count": 5}, "count(=5) must be <= the 4 arms."),
        (
            TURNS,
            MEANS,
            {"count": 2},
            "count goes with arms of shape (M, d); a turn of arms of shape (3, 2, 2) offers all.",
        ),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(arms: Any, rewards: Any, options: Any, message: str) -> None:
    with pytest.raises(coband.ScenarioError) as error:
        coband.Problem.from_arrays(arms, rewards, **options)
    assert str(error.value) == f"Problem.from_arrays: {message}"


def test_features_are_brought_to_one_scale() -> None:
    arms = ARMS * [1e6, 1.0] + 3.0
    expected = (arms - arms.mean(axis=0)) / arms.std(axis=0)
    plain = coband.Problem.from_arrays(arms, REWARDS)
    fixed = coband.Problem.from_arrays(arms, REWARDS, scale="standardise")
    np.testing.assert_allclose(built(fixed).arms(0, 1), expected)
    np.testing.assert_array_equal(built(plain).arms(0, 1), arms)
    assert (built(fixed).warnings, built(plain).warnings[0][:9]) == ((), "feature 0")
    turns = coband.Problem.from_arrays(TURNS, MEANS, scale="normalise")
    np.testing.assert_allclose(np.linalg.norm(built(turns).arms(0, 1), axis=1), 1.0)


def test_options_are_those_of_scenarios() -> None:
    with pytest.raises(coband.ScenarioError, match=r"^Problem.from_arrays: noise.*: Input should be greater than"):
        coband.Problem.from_arrays(ARMS, REWARDS, noise=-1.0)
    with pytest.raises(coband.ScenarioError, match=r"^Problem.from_arrays: regret: Input should be 'expected' or"):
        coband.Problem.from_arrays(ARMS, REWARDS, regret="none")  # type: ignore[arg-type]


def test_agents_must_be_as_many_as_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = coband.Problem.from_arrays(ARMS, [REWARDS, REWARDS])
    message = "rewards of shape (2, 4) are those of 2 agents, but agents.count is 3."
    assert list(problem.validate_for(3)) == [(("rewards",), message)]
    assert list(problem.validate_for(2)) == []
    with pytest.raises(InstanceError) as error:
        built(problem, agents=3)
    assert str(error.value) == message


def test_a_function_is_called_with_all_arms() -> None:
    world = built(coband.Problem.from_function(lambda arms: arms[:, 0] - 2 * arms[:, 1], ARMS))
    assert world.means(0, 1).tolist() == [-2.0, 1.0, -1.0, -1.0]
    world = built(coband.Problem.from_function(lambda arms, agent: arms[:, agent], ARMS, agents=2))
    assert [world.means(agent, 1).tolist() for agent in (0, 1)] == [ARMS[:, 0].tolist(), ARMS[:, 1].tolist()]
    same = coband.Problem.from_arrays(TURNS, TURNS.sum(axis=2), noise=0.5)
    assert coband.Problem.from_function(lambda arms: arms.sum(axis=1), TURNS, noise=0.5) == same


class _Noisy:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, arms: Any) -> Any:
        self.calls += 1
        return np.full(len(arms), float(self.calls))


def _fails(arms: Any) -> Any:
    raise KeyError("colour")


@every(
    ("f", "arms", "options", "message"),
    [
        (
            lambda arm: float(np.sum(arm)),
            ARMS,
            {},
            "f gave shape () for arms of shape (4, 2), but must give (4,), a mean reward for each row; of a function g "
            "of a single arm make lambda arms: [g(arm) for arm in arms].",
        ),
        (
            lambda arm: arm[0] * arm[1],
            ARMS[:2],
            {},
            "f raised IndexError for an array of shape (1, 2), an arm per row: ",
        ),
        (_Noisy(), ARMS, {}, "f gave other values when it was called again: it must give mean rewards; noise= adds"),
        (_fails, ARMS, {}, "f raised KeyError for an array of shape (4, 2), an arm per row: 'colour'"),
        (lambda arm: arm.sum(axis=0), ARMS[:2], {}, "f gave shape (2,) for arms of shape (2, 2), but must give (2,)"),
        (
            lambda arms, agent: 1 / agent,
            ARMS,
            {"agents": 2},
            "f raised ZeroDivisionError for an array of shape (4, 2), an arm per row, and agent 0: ",
        ),
        (lambda arms: np.log(arms[:, 0] - 5 + 0j).real * np.nan, ARMS, {}, "rewards[0] is nan; rewards must be finite"),
        (3, ARMS, {}, "f must be a function of an array of arms, not this int."),
        (len, ARMS, {"agents": "3"}, "agents(='3') must be a whole number >= 1, and goes with arms of shape (M, d)."),
        (len, ARMS, {"agents": 0}, "agents(=0) must be a whole number >= 1, and goes with arms of shape (M, d)."),
        (len, TURNS[None], {}, "arms must be (M, d) or (T, K, d); from_arrays takes turns of each agent"),
        (lambda arms: arms[:, 0], {"kind": "ball", "dimension": 2, "count": 3}, {}, "<lambda> cannot be imported by"),
        (
            _fails,
            {"kind": "ball", "dimension": 2, "count": 3},
            {"agents": 2},
            "agents, count and scale go with an array",
        ),
    ],
)
def test_functions_that_cannot_be_used(f: Any, arms: Any, options: Any, message: str) -> None:
    with pytest.raises(coband.ScenarioError) as error:
        coband.Problem.from_function(f, arms, **options)
    assert str(error.value).startswith(f"Problem.from_function: {message}")
    assert "\n" not in str(error.value)


def test_functions_of_modules_go_with_fresh_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peaks_of_a_test.py").write_text("def peak(arms):\n    return -(arms**2).sum(axis=1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import peaks_of_a_test  # type: ignore[import-not-found]

    problem = coband.Problem.from_function(peaks_of_a_test.peak, {"kind": "ball", "dimension": 2, "count": 3})
    assert problem.model_dump()["reward"]["function"] == f"{tmp_path}/peaks_of_a_test.py:peak"
    world = built(problem)
    assert world.means(0, 1).tolist() == pytest.approx(peaks_of_a_test.peak(world.arms(0, 1)))
    assert importable_name(importable_name) == "coband.simulator.plugins.functions:importable_name"
    del sys.modules["peaks_of_a_test"]


def large(last: float = 1.0) -> Any:
    arms = np.linspace(0.0, 1.0, 900).reshape(300, 3)
    return coband.Problem.from_arrays(arms, np.r_[np.zeros(299), last])


def test_few_numbers_are_text_and_many_are_named_by_their_digest() -> None:
    small = coband.Problem.from_arrays(ARMS, REWARDS).model_dump(mode="json", exclude_unset=True)
    wanted = {"kind": "arrays", "arms": ARMS.tolist(), "rewards": REWARDS.tolist(), "noise": 0.0, "regret": "expected"}
    assert small == wanted
    assert set(large().model_dump(mode="json", exclude_unset=True)) == {"kind", "content", "noise", "regret"}
    assert large().content != large(2.0).content


def test_arrays_travel_with_the_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pickle.dumps(large())
    monkeypatch.setattr(array_problem, "_KNOWN", {})  # as in another process
    assert built(pickle.loads(packed)).means(0, 1)[-1] == 1.0


def test_arrays_lie_beside_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, content = large().attachment(None)
    assert name == file_of(large().content)
    assert large().attachment(None)[1]() == content()
    (tmp_path / name).write_bytes(content())
    text = large().model_dump(mode="json")
    monkeypatch.setattr(array_problem, "_KNOWN", {})
    problem = array_problem.ArraysProblem.model_validate(text)
    assert built(problem, base=tmp_path).means(0, 1)[-1] == 1.0
    assert problem.attachment(tmp_path)[1]() == content()  # type: ignore[index]
    (tmp_path / name).write_bytes(Arrays.of(ARMS, REWARDS).packed())
    with pytest.raises(DataError, match=r"arrays-\w{16}\.npz: it holds other arrays than those with the digest"):
        read_arrays(tmp_path, text["content"])
    (tmp_path / name).write_bytes(b"PK nonsense")
    with pytest.raises(DataError, match=r"npz: the arrays cannot be read: "):
        built(problem, base=tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="is not there: copy it from the directory of the run"):
        built(problem, base=tmp_path)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"arms": [[1], [2]]}, "arms and rewards are both needed"),
        ({"arms": [[1], [2]], "rewards": [1, 2], "content": "0" * 64}, "content takes the place of arms and rewards"),
        ({"arms": [[1], [2]], "rewards": [1]}, r"rewards has shape \(1,\)"),
        ({"content": "12"}, "String should match pattern"),
    ],
)
def test_sections_of_scenarios_are_checked(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        array_problem.ArraysProblem.model_validate({"kind": "arrays", **section})


def test_rewards_of_another_index_are_not_taken_by_position() -> None:
    import pandas

    arms = pandas.DataFrame({"x": [0.0, 1.0, 2.0]}, index=["a", "b", "c"])
    rewards = pandas.Series([1.0, 2.0, 3.0], index=["c", "b", "a"])
    with pytest.raises(ValueError, match=r"rewards has another index than arms; give rewards.loc\[arms.index\]"):
        Arrays.of(arms, rewards)
    assert Arrays.of(arms, rewards.loc[arms.index]).rewards.tolist() == [3.0, 2.0, 1.0]
