"""Warnings after a run about numbers that say something is wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coband.simulator.cli.progress import warn_of_guarantees


def report_of(algorithm: str, label: str, replications: list[dict[str, int]]) -> Any:
    return SimpleNamespace(object={"results": [{"algorithm": algorithm, "label": label, "replications": replications}]})


def test_a_theorem_that_does_not_hold_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_guarantees(report_of("co_kernel_fc", "FC", [{"theorem_1_holds": 0}, {"theorem_1_holds": 1}]))
    said = capsys.readouterr().err
    assert said.count("warning: FC:") == 1
    assert "the conditions of Theorem 1 of paper 003 do not hold in 1 of 2 replications" in said


def test_a_small_dictionary_is_warned_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_guarantees(report_of("eager_kernel_ucb", "Eager", [{"dictionary_suffices": 0}] * 3))
    said = capsys.readouterr().err
    assert said.count("warning: Eager: the dictionary has less than 3 points for each task") == 1
    assert "in 3 of 3 replications" in said
    warn_of_guarantees(report_of("eager_kernel_ucb", "Eager", [{"dictionary_suffices": 1}, {}]))
    assert capsys.readouterr().err == ""
