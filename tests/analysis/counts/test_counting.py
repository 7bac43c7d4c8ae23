"""What is counted of a scenario, and of which variants of a grid."""

from pathlib import Path
from typing import Any

from coband.simulator.analysis.counts.counting import Change, changes, count, counts_of
from tests.analysis.traces.runs import STAR

HEAD = STAR.split("algorithms:")[0].replace("turns: 12", "turns: 4")
TWO = HEAD + (
    "algorithms:\n"
    "  - {algorithm: one_kernel_ucb, label: One, kernel: {kind: gaussian, gamma: 1.0}}\n"
    "  - {algorithm: n_kernel_ucb, label: Alone, kernel: {kind: gaussian, gamma: 1.0}}\n"
)
COUNTS = {"turns": 16, "rounds": 16, "messages": 64, "uplink_scalars": 64, "downlink_scalars": 192}
COUNTS |= {"peer_scalars": 0, "scalars_broadcast_once": 128}


def counted(folder: Path, text: str, *settings: str) -> dict[str, dict[str, int]]:
    file = folder / "scenario.yaml"
    file.write_text(text)
    return count(file, settings)


def test_a_scenario_is_counted_by_label(tmp_path: Path) -> None:
    found = counted(tmp_path, TWO)
    assert list(found) == ["One", "Alone"]
    assert found["One"] == COUNTS
    assert set(found["Alone"].values()) == {0, 16}


def test_of_a_grid_the_first_and_the_last_variant_of_each_algorithm_are_counted(tmp_path: Path) -> None:
    grid = "grid:\n  schedule.turns: [4, 5, 6]\n"
    found = counted(tmp_path, TWO + grid)
    expected = {"One [turns=4]": 16, "One [turns=6]": 24, "Alone [turns=4]": 16, "Alone [turns=6]": 24}
    assert {label: counts["turns"] for label, counts in found.items()} == expected
    expected = {"One [turns=4]": 64, "One [turns=6]": 96}
    assert {label: counts["uplink_scalars"] for label, counts in found.items() if "One" in label} == expected
    single = counted(tmp_path, TWO, "schedule.turns=6")
    assert {label: found[f"{label} [turns=6]"] for label in single} == single


def test_a_grid_of_one_point_is_a_grid(tmp_path: Path) -> None:
    found = counted(tmp_path, TWO + "grid:\n  schedule.turns: [6]\n")
    assert {label: counts["turns"] for label, counts in found.items()} == {"One": 24, "Alone": 24}


def test_both_variants_of_two_are_counted(tmp_path: Path) -> None:
    found = counted(tmp_path, TWO + "grid:\n  algorithms.One.alpha: [0.5, 1.0]\n")
    assert list(found) == ["One [alpha=0.5]", "One [alpha=1.0]", "Alone"]


def test_a_key_of_the_grid_that_is_set_counts_the_one_point_that_is_left(tmp_path: Path) -> None:
    found = counted(tmp_path, TWO + "grid:\n  schedule.turns: [4, 5]\n", "schedule.turns=5")
    assert {label: counts["turns"] for label, counts in found.items()} == {"One": 20, "Alone": 20}


def test_changes_are_listed_by_label_and_count() -> None:
    locked = {"Same": {"turns": 1}, "Other": {"turns": 1, "messages": 2}, "Gone": {"turns": 1}}
    found = {"Same": {"turns": 1}, "Other": {"turns": 1, "messages": 3, "rounds": 4}, "New": {"turns": 1}}
    assert changes(locked, found) == [
        Change("Other", "messages", 2, 3),
        Change("Other", "rounds", None, 4),
        Change("Gone", "", {"turns": 1}, None),
        Change("New", "", None, {"turns": 1}),
    ]


def test_a_count_that_a_result_does_not_have_is_left_out() -> None:
    record: Any = {"turns": 4, "rounds": None, "regret": 1.0}
    assert counts_of(record, ("turns", "rounds", "messages")) == {"turns": 4}
