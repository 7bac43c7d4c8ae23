"""The benchmarks cover every row of the performance targets, and their cases run."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from benchmarks import __main__ as program
from benchmarks import authors, bandits, exploration, instructions, known_points, measuring, neural
from benchmarks.authors import async_lin_ucb, distributed_bandits, fed_pe, k_armed
from benchmarks.measuring import Measured
from tests.house import performance_rows as rows

ROOT = Path(__file__).parents[2]
EVERYTHING = {**instructions.CASES, **program.CASES, **program.FIGURES}


@pytest.mark.parametrize("table", [rows.STRUCTURES, rows.NEXT], ids=["structures", "next"])
def test_every_row_has_a_case_with_a_target(table: dict[str, tuple[str, ...]]) -> None:
    assert not {name for names in table.values() for name in names} - EVERYTHING.keys()
    barred = {**program.FIGURES, **instructions.CASES}
    for row, names in table.items():
        targets = [name in barred or re.search(r"target\b.*\S", program.CASES[name][1]) for name in names]
        assert any(targets), row


def test_the_tables_have_all_their_rows() -> None:
    assert (len(rows.STRUCTURES), len(rows.NEXT)) == (12, 8)


def test_each_name_is_given_once() -> None:
    assert len({**program.CASES, **program.FIGURES}) == len(program.CASES) + len(program.FIGURES)


def test_modules_stay_short() -> None:
    lines = {
        file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / "benchmarks").rglob("*.py")
    }
    assert len(lines) > 10
    assert not {name: count for name, count in lines.items() if count > 300}


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No garbage is collected before a call, among all that the suite has in memory: its time does not matter."""
    monkeypatch.setattr(measuring, "gc", Mock())


@pytest.mark.usefixtures("untimed")
def test_both_forms_decide_alike_on_small_instances() -> None:
    found = [known_points.domain(30, 40), exploration.rage(1), neural.trained(3)]
    assert [measured.same for measured in found] == [True] * 3


@pytest.mark.usefixtures("untimed")
def test_both_forms_break_ties_alike() -> None:
    loops = [bandits.asynchronous(8, 60, 0.1, 1.0, 1.0), bandits.against("dis_lin_ucb", bandits.LINEAR, 8, 60)]
    logs = [bandits.against(name, bandits.ONE_LOG, 100, 40, 1) for name in ("one_kernel_ucb", "dis_kernel_ucb")]
    assert [measured.same for measured in loops + logs] == [True] * 4


def test_the_exit_status_says_whether_decisions_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "domain"])
    monkeypatch.setattr(program.history, "read", list)
    for same, status in ((True, 0), (False, 1)):
        monkeypatch.setitem(program.CASES, "domain", (lambda same=same: Measured(2.0, 1.0, same, ""), "a case"))
        assert program.main() == status


def test_ratios_that_have_fallen_are_recorded_only_on_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, recorded = [{"date": "2026-01-01", "version": "1", "ratios": {"domain": 10.0}}], list[dict[str, float]]()
    monkeypatch.setattr(program.history, "read", lambda: file)
    monkeypatch.setattr(program.history, "record", lambda ratios, version, counts: recorded.append(ratios))
    monkeypatch.setattr(program.history, "PAGE", tmp_path / "speed.md")
    for same, words, status, said in (
        (True, [], 1, "nothing was recorded, for domain has fallen; measure again, or give --accept-fallen"),
        (False, ["--accept-fallen"], 1, "nothing was recorded, for domain decided otherwise\n"),
        (True, ["--accept-fallen"], 0, "HAS FALLEN"),
    ):
        monkeypatch.setattr("sys.argv", ["benchmarks", "domain", "--record", *words])
        monkeypatch.setitem(program.CASES, "domain", (lambda same=same: Measured(2.0, 1.0, same, ""), "a case"))
        assert (program.main(), len(recorded)) == (status, 1 - status)
        assert said in capsys.readouterr().out


def test_equivalence_takes_both_tests() -> None:
    """Means that differ by less than 5 % with little spread are equivalent; too far, or too few worlds, and not."""
    theirs = np.linspace(90.0, 110.0, 20)
    spread = np.resize([-1.0, 1.0], 20)
    cases = {2.0: True, -2.0: True, 4.9: False, 6.0: False, -6.0: False}
    for shift, expected in cases.items():
        assert (authors.equivalence(theirs + shift + spread, theirs) < 0.05) == expected, shift
    assert authors.equivalence(theirs, theirs) == 0.0
    assert authors.equivalence(2 * np.ones(3), np.ones(3)) == 1.0
    assert authors.equivalence([100.0, 103.0], [101.0, 100.0]) > 0.05
    differences = (theirs + 2.0 + spread) - theirs
    one_sided = [
        ttest_1samp(differences, side * 5.0, alternative=way).pvalue for side, way in ((-1, "greater"), (1, "less"))
    ]
    assert authors.equivalence(theirs + 2.0 + spread, theirs) == pytest.approx(max(one_sided))


@pytest.mark.parametrize(
    ("module", "variable", "repository", "file"),
    [
        (async_lin_ucb, "COBAND_ASYNC_LIN_UCB_CODE", "cyrilli/Async-LinUCB", "lib/AsyncLinUCB.py"),
        (distributed_bandits, "COBAND_DISTRIBUTED_BANDITS_CODE", "sudeepsalgia/distributed_bandits", "codes/pls.py"),
        (fed_pe, "COBAND_FED_PE_CODE", "Ruiquan5514/Federated-Linear-Contextual-Bandits", "Functions.py"),
        (k_armed, "COBAND_DD_UCB_CODE", "damaru2/decentralized-bandits", "bandit algorithms executions.py"),
    ],
)
def test_without_a_checkout_the_comparison_is_skipped(
    module: Any,
    variable: str,
    repository: str,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place, status, text in (
        (None, 0, f"skipped: {variable} must name a checkout of github.com/{repository}"),
        (str(tmp_path), 2, f"{variable}={tmp_path}: there is no {file}"),
    ):
        if place is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, place)
        with pytest.raises(SystemExit) as ended:
            module.main(1)
        assert ended.value.code == status
        assert capsys.readouterr().out == f"{text}\n"
