"""Every example of the reference is a part of a scenario that validates."""

import re
from pathlib import Path

import pytest

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.entries import index, written
from tests.reference.examples import BASES, FILES, complaint, variants

PARTS = 8
ALGORITHMS = Registry.installed().algorithms
INDEX = index(Registry.installed())
GRAPHS = {entry.word for entry in INDEX.entries.values() if entry.is_kind and entry.paths[0] == ("network", "topology")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("examples")
    for name, text in FILES.items():
        (found / name).write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_every_example_validates(part: int, folder: Path) -> None:
    entries = [one for entry in INDEX.entries.values() for one in variants(entry)]
    wrong = {}
    for entry in entries[part::PARTS]:
        snippet = INDEX.snippet(entry)
        complaints = {}
        for name in _in_order(snippet):
            text = complaint(snippet, folder, name)
            if not text:
                break
            complaints[name] = text
        else:
            wrong[entry.name] = (snippet, complaints)
    assert wrong == {}


def _in_order(snippet: str) -> list[str]:
    """The scenarios in which an example is tried, the likeliest first: explaining mistakes takes a while."""
    kinds = {*re.findall(r"(?:kind|algorithm): (\w+)", snippet)}
    batches = {name for name, found in ALGORITHMS.items() if found.needs.schedules == ("phases",)}
    graphs = {name for name, found in ALGORITHMS.items() if "star" not in found.needs.topologies}
    first = {BASES[1]: graphs | GRAPHS, BASES[2]: batches | {"phases", "pure_exploration"}}
    return sorted(BASES, key=lambda base: not kinds & first.get(base, set()))


def test_values_that_are_chosen_are_of_keys_that_exist() -> None:
    models = {f"{model}.{key}" for entry in INDEX.entries.values() for model in entry.models for key in [entry.word]}
    assert {*written()["values"], *written()["sections"], *written()["snippets"]} <= {*INDEX.entries} | models


def test_an_example_shows_the_keys_above_and_beside() -> None:
    assert INDEX.snippet(INDEX.entries["schedule.weights"]) == (
        "schedule: {kind: one_at_a_time, turns: 1000, order: weighted, weights: [3, 1, 1]}\nagents: {count: 3}"
    )
    assert INDEX.snippet(INDEX.entries["algorithms.wait.timeout"]).startswith(
        "algorithms:\n- algorithm: approx_dis_kernel_ucb\n  wait: {quorum: "
    )
