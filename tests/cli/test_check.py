from pathlib import Path

import pytest

from coband.simulator.cli import check
from coband.simulator.experiments.runs.expectations import Comparison, compare
from tests.cli.fake_cli import Program
from tests.experiments.runs.fakes import FakeExpect, FakeScenario


def expecting(*expect: FakeExpect, **scenario: object) -> FakeScenario:
    return FakeScenario(expect=expect, **scenario)  # type: ignore[arg-type]


def test_counts_that_agree(coband: Program) -> None:
    coband.scenario = expecting(
        FakeExpect("Often", "scalars", equals=700),
        FakeExpect("Often", "rounds", equals=(100, 100)),
        FakeExpect("Seldom", "messages", at_least=1, at_most=400),
    )
    status, output, errors = coband("check", "x.yaml", "--workers", 1)
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0].split() == ["label", "count", "replication", "expected", "got"]
    assert lines[1].split() == ["Often", "scalars", "0", "700", "700", "ok"]
    assert "at least 1 and at most 400" in lines[5]
    assert lines[-1] == "6 of 6 counts are as expected"
    assert list(Path().iterdir()) == []


def test_a_count_that_differs_ends_with_status_1(coband: Program) -> None:
    coband.scenario = expecting(
        FakeExpect("Often", "rounds", equals=(100, 99)), FakeExpect("Often", "scalars", at_most=10)
    )
    status, output, _ = coband("check", "x.yaml", "--workers", 1)
    verdicts = [line.split()[-1] for line in output.splitlines()[1:-1]]
    assert (status, verdicts) == (1, ["ok", "differs", "differs", "differs"])
    assert output.endswith("1 of 4 counts are as expected\n")


def test_claims_about_two_labels_show_means_with_intervals(coband: Program) -> None:
    coband.scenario = expecting(
        FakeExpect("Seldom", "scalars", less_than="Often"), FakeExpect("Often", "scalars", less_than="Seldom")
    )
    status, output, _ = coband("check", "x.yaml", "--workers", 1)
    rows = [line.split() for line in output.splitlines()[1:-1]]
    assert (status, [row[-1] for row in rows]) == (1, ["ok", "differs"])
    assert rows[0][:6] == ["Seldom", "scalars", "all", "less", "than", "Often's:"]
    assert [row[-4:-1] for row in rows][1] == ["180", "<", "0.001"]


def test_only_the_chosen_labels_and_replications(coband: Program) -> None:
    coband.scenario = expecting(
        FakeExpect("Often", "rounds", equals=(7, 100)), FakeExpect("Seldom", "rounds", equals=7)
    )
    status, output, _ = coband("check", "x.yaml", "--only", "Often", "--replication", 1, "--out", "kept")
    assert status == 0
    assert output.endswith("1 of 1 counts are as expected\n")
    assert Path("kept/run.sqlite").exists()


@pytest.mark.parametrize(
    ("expect", "arguments", "message"),
    [
        ([], [], "x.yaml: the scenario has no expect: section"),
        ([FakeExpect("Often", "rounds", equals=1)], ["--only", "Seldom"], "expect: says nothing about Seldom"),
        ([FakeExpect("Often", "rounds", equals=(1, 2))], ["--replications", 3], "2 values do not reach replication 2"),
        (
            [FakeExpect("Often", "rounds", at_most=100, of="mean")],
            ["--replication", 1],
            "expect: Often: rounds: of: mean needs two replications or more",
        ),
        ([FakeExpect("Often", "round", equals=1)], [], "Often does not count 'round'; there is rounds"),
    ],
)
def test_bad_input(coband: Program, expect: list[FakeExpect], arguments: list[str], message: str) -> None:
    coband.scenario = expecting(*expect)
    status, output, errors = coband("check", "x.yaml", "--workers", 1, *arguments)
    assert (status, output) == (2, "")
    assert message in errors


def test_a_violation_is_no_success(coband: Program) -> None:
    coband.scenario = expecting(FakeExpect("Often", "rounds", equals=100), mischief=((1, "negative"),))
    status, output, errors = coband("check", "x.yaml", "--workers", 1)
    assert status == 1
    assert "broke an invariant" in errors
    assert output.endswith("1 of 1 counts are as expected; jobs that broke off and are not compared: 2\n")


def test_the_interval_of_a_mean(coband: Program) -> None:
    coband.scenario = expecting(
        FakeExpect("Often", "scalars", at_least=699, at_most=701, of="mean"),
        FakeExpect("Often", "rounds", at_most=99, of="mean"),
    )
    status, output, _ = coband("check", "x.yaml", "--workers", 1)
    assert status == 1
    rows = [line.split() for line in output.splitlines()]
    assert rows[1][:3] == ["Often", "scalars", "all"]
    assert (rows[1][-1], rows[2][-1]) == ("ok", "differs")
    assert "at least 699 and at most 701 on average" in output


def test_what_more_replications_would_tell(capsys: pytest.CaptureFixture[str]) -> None:
    check._show([Comparison("A", "regret", None, "at most 12 on average", 10.0, False, (5.0, 15.0), open=True)])
    told = "0 of 1 counts are as expected; 1 undecided, which more --replications would tell\n"
    assert capsys.readouterr().out.endswith(told)


def test_bounds_hold_for_all_of_an_interval() -> None:
    expect = FakeExpect("A", "regret", at_most=12.0, of="mean")
    scenario = FakeScenario(expect=(expect,))
    for regrets, holds in (((9.9, 10.0, 10.1), True), ((5.0, 10.0, 15.0), False)):
        records = [{"replication": number, "regret": regret} for number, regret in enumerate(regrets)]
        (found,) = compare(scenario, {"results": [{"label": "A", "replications": records}]})  # type: ignore[arg-type]
        assert (found.holds, found.got, found.replication) == (holds, 10.0, None)
        assert found.interval is not None
        assert found.word == ("ok" if holds else "undecided")


def test_after_an_early_stop_confidence_sequences_decide() -> None:
    """Differences of -2, -1, -2, -1: t = -5.2, whose 95 % interval excludes 0; the confidence sequence does not."""
    records = {
        "A": [{"replication": number, "regret": 10.0 - gap} for number, gap in enumerate((2, 1, 2, 1))],
        "B": [{"replication": number, "regret": 10.0} for number in range(4)],
    }
    report = {"results": [{"label": label, "replications": found} for label, found in records.items()]}
    items = (FakeExpect("A", "regret", less_than="B"), FakeExpect("A", "regret", at_most=9.5, of="mean"))
    found = {
        early: compare(FakeScenario(expect=items), report, early=early)  # type: ignore[arg-type]
        for early in (False, True)
    }
    assert [one.holds for one in found[False]] == [True, True]
    assert [one.holds for one in found[True]] == [False, False]
    assert found[False][0].e_value == found[True][0].e_value
    assert 1 < (found[True][0].e_value or 0) < 40
