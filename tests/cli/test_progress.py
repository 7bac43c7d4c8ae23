"""Warnings after a run about numbers that say something is wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from coband.simulator.terminal.progress import warnings


def report_of(algorithm: str, label: str, replications: list[dict[str, int]]) -> Any:
    return SimpleNamespace(
        remarks=[],
        stalled=(),
        object={"results": [{"algorithm": algorithm, "label": label, "replications": replications}]},
    )


def test_a_theorem_that_does_not_hold_is_named() -> None:
    (said,) = warnings(report_of("co_kernel_fc", "FC", [{"theorem_1_holds": 0}, {"theorem_1_holds": 1}]))
    assert said.startswith("FC: ")
    assert "the conditions of Theorem 1 of Du et al. 2023 do not hold in 1 of 2 replications" in said


def test_a_small_dictionary_is_warned_of_once() -> None:
    (said,) = warnings(report_of("eager_kernel_ucb", "Eager", [{"dictionary_suffices": 0}] * 3))
    assert said.startswith("Eager: the dictionary has less than 3 points for each task")
    assert "in 3 of 3 replications" in said
    assert not list(warnings(report_of("eager_kernel_ucb", "Eager", [{"dictionary_suffices": 1}, {}])))
