"""One's own data: tables of arms and rewards."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from coband.simulator.cli.main import cli
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.problems.datasets import DataError
from coband.simulator.problems.table import TableProblem
from coband.simulator.problems.tables import read_table

ARMS = "x1,x2,clicks\n0,1,0.25\n1,0,0.5\n1,1,0.75\n0.5,0.5,0.125\n"
VISITS = "visit,who,x1,x2,clicks\nb,1,0,1,0\na,0,1,0,1\nb,1,1,1,1\na,0,0,0,0.5\na,0,0,2,0\nc,0,3,3,1\n"
FEATURES = ("x1", "x2")


def world(tmp_path: Path, text: str, agents: int = 2, **more: Any) -> Any:
    (tmp_path / "data.csv").write_text(text)
    problem = TableProblem(kind="table", path=Path("data.csv"), features=FEATURES, reward="clicks", **more)
    return problem.build(Streams(3), agents, tmp_path)


def test_all_rows_are_the_arms_of_every_turn(tmp_path: Path) -> None:
    found = world(tmp_path, ARMS)
    assert found.fixed_arms
    assert found.arms(0, 1).tolist() == [[0, 1], [1, 0], [1, 1], [0.5, 0.5]]
    assert found.pull(1, 1, 1) == (0.5, 0.25)
    assert found.describe() == {"rows": 4, "lowest": 0.125, "highest": 0.75}


def test_some_rows_are_drawn_for_each_turn(tmp_path: Path) -> None:
    found, again = world(tmp_path, ARMS, count=3), world(tmp_path, ARMS, count=3)
    rewards = {(0, 1): 0.25, (1, 0): 0.5, (1, 1): 0.75, (0.5, 0.5): 0.125}
    seen = set()
    for turn in range(1, 60):
        arms = [tuple(arm) for arm in found.arms(0, turn).tolist()]
        assert len(set(arms)) == 3
        assert np.array_equal(again.arms(0, turn), found.arms(0, turn))
        assert found.means(0, turn).tolist() == [rewards[arm] for arm in arms]
        best = max(rewards[arm] for arm in arms)
        assert found.pull(0, turn, 2) == (rewards[arms[2]], best - rewards[arms[2]])
        seen |= set(arms)
    assert seen == set(rewards)
    assert not np.array_equal(found.arms(1, 1), again.arms(0, 59))


def test_every_agent_goes_through_the_groups_in_its_own_order(tmp_path: Path) -> None:
    found = world(tmp_path, VISITS, agents=5, group="visit")
    orders = [tuple(len(found.arms(agent, turn)) for turn in range(1, 10)) for agent in range(5)]
    assert all(sorted(order[k : k + 3]) == [1, 2, 3] for order in orders for k in (0, 3, 6))
    assert len(set(orders)) > 1
    a = next(turn for turn in range(1, 4) if orders[0][turn - 1] == 3)
    fresh = world(tmp_path, VISITS, agents=5, group="visit")
    assert fresh.arms(0, a).tolist() == [[1, 0], [0, 0], [0, 2]]
    assert fresh.means(0, a).tolist() == [1, 0.5, 0]


def test_agents_may_have_turns_of_their_own(tmp_path: Path) -> None:
    found = world(tmp_path, VISITS, group="visit", agent="who")
    expected = [[[1, 0], [0, 0], [0, 2]], [[3, 3]], [[1, 0], [0, 0], [0, 2]]]
    assert [found.arms(0, turn).tolist() for turn in (1, 2, 3)] == expected
    assert found.arms(1, 1).tolist() == found.arms(1, 2).tolist() == [[0, 1], [1, 1]]


def test_noise_and_realised_regret(tmp_path: Path) -> None:
    found = world(tmp_path, ARMS, noise=0.5, regret="realised", count=4)
    reward, regret = found.pull(0, 1, 0)
    assert regret == pytest.approx(0.75 - reward)
    assert reward not in (0.25, 0.5, 0.75, 0.125)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("x1,x2,clicks\n", {}, "data.csv: the table has no rows."),
        ("", {}, "data.csv:1: there is no column 'x1'. The columns are none."),
        (
            "x1,y,clicks\n1,2,3\n",
            {},
            "data.csv:1: there is no column 'x2'; did you mean x1? The columns are x1, y, clicks.",
        ),
        ("x1,x2,clicks,x1\n1,2,3,4\n", {}, "data.csv:1: two columns are called 'x1'; rename one of them."),
        (
            "x1,x2,clicks\n1,red,3\n",
            {},
            "data.csv:2: column 'x2': 'red' is not a finite number. Texts become columns of 0 and",
        ),
        (
            "x1;x2;clicks\n1;0,5;3\n",
            {},
            "data.csv:2: column 'x2': '0,5' is not a finite number. Decimal commas are read with problem.decimal: ",
        ),
        (
            "x1;x2;clicks\n1;0.5;3\n",
            {"decimal": "comma"},
            "data.csv:2: column 'x2': '0.5' is not a finite number. With problem.decimal",
        ),
        (
            "x1,x2,clicks\n1,2,3\n1,,3\n",
            {},
            "data.csv:3: column 'x2': '' is not a finite number. With problem.missing: drop such rows are left out",
        ),
        (
            "x1,x2,clicks\n1,2,NA\n1,,3\n",
            {"missing": "mean"},
            "data.csv:2: column 'clicks': 'NA' is not a finite number. With problem.missing: drop such rows are left",
        ),
        ("x1,x2,clicks\n1,2,\n,2,3\n", {"missing": "drop"}, "data.csv: every row lacks a value."),
        (
            "x1,x2,clicks,visit\n1,2,3,NA\n1,2,3,\n",
            {"group": "visit"},
            "data.csv:3: column 'visit': '' is missing. With problem.missing: drop such rows are left out.",
        ),
        ("x1,x2,clicks\n1,2,3\n1,two,3\n", {}, "data.csv:3: column 'x2': 'two' is not a finite number."),
        ("x1,x2,clicks\n1,2,nan\n", {}, "data.csv:2: column 'clicks': 'nan' is not a finite number."),
        ("x1,x2,clicks\n1,2,3\n\n1,2\n", {}, "data.csv:4: the header names 3 columns, but the row has 2."),
        (ARMS, {"count": 5}, "data.csv: problem.count(=5) must be <= the 4 rows."),
        (ARMS, {"group": "turn"}, "data.csv:1: there is no column 'turn'"),
        (VISITS, {"group": "visit", "agent": "id"}, "data.csv:1: there is no column 'id'"),
        (
            VISITS.replace("b,1,1,1,1", "b,phone,1,1,1"),
            {"group": "visit", "agent": "who"},
            "data.csv:4: column 'who': 'phone' is not a finite number. Agents are numbers from 0; make",
        ),
        (VISITS, {"group": "visit", "agent": "who", "agents": 3}, "data.csv: the table has no turns of agent 2"),
        (VISITS, {"group": "visit", "agent": "who", "agents": 1}, "data.csv: row 1: the arms of a turn need one agent"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as error:
        world(tmp_path, text, **more)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


def test_missing_values_texts_and_decimal_commas(tmp_path: Path) -> None:
    text = "x1;x2;clicks;visit\n1;red;0,5;a\nNA;blue;1;a\n3;;0;b\n4;red;;b\n"
    mean = world(tmp_path, text.replace("4;red;;", "4;red;1,5;"), decimal="comma", one_hot=("x2",), missing="mean")
    filled = (1 + 3 + 4) / 3
    assert mean.arms(0, 1).tolist() == [[1, 0, 1], [filled, 1, 0], [3, 1 / 3, 2 / 3], [4, 0, 1]]
    assert mean.means(0, 1).tolist() == [0.5, 1, 0, 1.5]
    dropped = world(tmp_path, text, decimal="comma", one_hot=("x2",), missing="drop", group="visit")
    turns = sorted((dropped.arms(0, turn).tolist(), dropped.means(0, turn).tolist()) for turn in (1, 2))
    assert turns == [([[1, 0, 1]], [0.5]), ([[1, 0, 1]], [0.5])]
    with pytest.raises(ValueError, match="one_hot names 'x3', which is none of the features x1, x2"):
        world(tmp_path, ARMS, one_hot=("x3",))


def test_a_compressed_table(tmp_path: Path) -> None:
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(ARMS.encode()))
    assert read_table(tmp_path / "data.csv.gz", ("clicks",))[0].tolist() == [[0.25], [0.5], [0.75], [0.125]]
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(ARMS.encode())[:-12])
    with pytest.raises(DataError, match=r"cut.csv.gz: the file cannot be read: .*end-of-stream"):
        read_table(tmp_path / "cut.csv.gz", ("clicks",))


def test_a_column_in_an_unlucky_unit_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(SCENARIO)
    large = "\n".join(line.replace(",0,", ",25000,", 1) for line in VISITS.split("\n"))
    (tmp_path / "clicks.csv").write_text(large)
    said = "feature 0, counted from 0, reaches 2.5e+04, so distances and linear models hardly see smaller ones"
    for command in ("validate", "run"):
        options = ["--out", str(tmp_path / "run"), "--workers", "1"] if command == "run" else []
        result = CliRunner().invoke(cli, [command, str(tmp_path / "study.yaml"), *options])
        assert (result.exit_code, result.stderr.count("warning: ")) == (0, 1)
        assert f"warning: {said}" in result.stderr
    assert world(tmp_path, ARMS, scale="standardise").warnings == ()
    assert world(tmp_path, ARMS.replace("0.25", "1e6")).warnings[0].startswith("rewards reach 1e+06")


def test_separators_and_byte_order_marks(tmp_path: Path) -> None:
    for number, text in enumerate(["a;b\n1;2\n", "a\tb\n1\t2\n", "\ufeffa,b\n1,2\n", 'b,a\r\n"2", 1\r\n']):
        file = tmp_path / f"{number}.csv"
        file.write_text(text, newline="")
        assert read_table(file, ("a", "b"))[0].tolist() == [[1, 2]]


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"x1": [0, 1], "x2": [1.5, 0.5], "clicks": [1.0, 0.0], "visit": ["b", "a"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    values, labels = read_table(tmp_path / "data.parquet", ("clicks", "x1", "x2"), "visit")
    assert values.tolist() == [[1, 0, 1.5], [0, 1, 0.5]]
    assert labels.tolist() == [0, 1]
    with pytest.raises(DataError, match="there is no column 'x3'; did you mean x"):
        read_table(tmp_path / "data.parquet", ("x3",))
    with pytest.raises(DataError, match="row 1: column 'visit': 'b' is not a finite number"):
        read_table(tmp_path / "data.parquet", ("visit",))


def test_a_table_that_has_changed_is_read_again(tmp_path: Path) -> None:
    assert world(tmp_path, ARMS).pull(0, 1, 1)[0] == 0.5
    assert world(tmp_path, ARMS.replace("1,0,0.5", "1,0,0.0625")).pull(0, 1, 1)[0] == 0.0625


SCENARIO = """
name: own_data
agents: {count: 2}
schedule: {kind: rounds, turns: 10}
problem: {kind: table, path: clicks.csv, features: [x1, x2], reward: clicks, group: visit}
algorithms:
  - {algorithm: lin_ucb}
  - {algorithm: async_kernel_ucb, kernel: {kind: gaussian, gamma: 1.0}}
"""


def test_a_scenario_reads_the_table_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.yaml").write_text(SCENARIO)
    (tmp_path / "clicks.csv").write_text(VISITS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    result = CliRunner().invoke(cli, ["run", str(tmp_path / "study.yaml"), "--out", "run", "--workers", "1"])
    assert result.exit_code == 0, result.output
    again = CliRunner().invoke(cli, ["run", "run/scenario.yaml", "--out", "again", "--workers", "1", "--json"])
    assert again.exit_code == 0, again.output
    (tmp_path / "clicks.csv").write_text(VISITS + "d,0,1,x,1\n")
    result = CliRunner().invoke(cli, ["validate", str(tmp_path / "study.yaml")])
    assert result.exit_code == 2
    assert "clicks.csv:8: column 'x2': 'x' is not a finite number." in result.output
