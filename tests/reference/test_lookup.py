"""What words name, and that the terminal and the pages say it."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coband.simulator.cli.main import cli
from coband.simulator.core.populations import kinds as population_kinds
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.files import paths
from coband.simulator.reference.entries import index
from coband.simulator.reference.items import SOURCES, Items
from tests.every import every

DOCS = Path(__file__).parents[2] / "docs"
REGISTRY = Registry.installed()
INDEX = index(REGISTRY)


def describe(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["describe", *arguments])


def test_presets_say_where_each_number_is_from() -> None:
    """All sources of the file of presets, beside their numbers."""
    file = (Path(population_kinds.__file__).parent / "presets.yaml").read_text()
    named = {text.strip().strip('"') for text in re.findall(r"source: (.*)", file)}
    assert len(named) == 11
    assert {one["source"] for one in json.loads(describe("preset", "--json").output)["sources"]} == named
    said = describe("preset").output
    assert [text for text in named if f" {text}\n" not in said] == []
    assert re.search(r"phones, compute +0\.04, 0\.069, 0\.088, ", said)


def test_every_key_and_every_kind_has_a_description() -> None:
    undescribed = [
        f"{model}: {key}"
        for model in INDEX.paths
        for key, schema in INDEX.keys(model).items()
        if not schema.get("description", "").strip()
    ]
    kinds = [entry for entry in INDEX.entries.values() if entry.is_kind]
    without = [kind.name for kind in kinds if not INDEX.schemas[kind.models[0]].get("description")]
    assert (undescribed, without) == ([], [])


def test_descriptions_are_sentences_of_their_own() -> None:
    """A text that continues that of the key above it says nothing on a page of its own."""
    texts = [str(schema["description"]) for model in INDEX.paths for schema in INDEX.keys(model).values()]
    assert [text for text in texts if re.match(r"(and|or|but) ", text) or text.rstrip().endswith(",")] == []


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("schedule.think", "simulated time"),
        ("network.latency", "simulated time"),
        ("network.bandwidth", "scalars per unit of simulated time"),
        ("network.header_bits", "bits"),
        ("problem.gap", "units of the reward"),
        ("agents.compute.minimum", "that of the key whose value it is"),
    ],
)
def test_units(key: str, unit: str) -> None:
    assert Items(INDEX, REGISTRY).item(INDEX.entries[key])["unit"] == unit
    assert f"\n  unit: {unit}\n" in describe(key).output


def test_whatever_is_called_a_time_has_a_unit() -> None:
    timed = {
        entry.name
        for entry in INDEX.entries.values()
        for model in entry.models
        if not entry.is_kind and "imulated time" in INDEX.keys(model)[entry.word].get("description", "")
        if "unit" not in INDEX.keys(model)[entry.word]
    }
    assert timed == set()


def test_every_name_names_what_it_is_the_name_of() -> None:
    assert [name for name, entry in INDEX.entries.items() if entry not in INDEX.find(name)] == []


def test_names_that_are_looked_up_first_are_no_words_of_scenario_files() -> None:
    words = {*INDEX.entries, *(entry.word for entry in INDEX.entries.values())}
    assert words & {*REGISTRY.algorithms, *SOURCES, *paths()} == set()


@every(
    ("word", "title"),
    [
        ("network.topology", "network.topology (key)"),
        ("topology", "network.topology (key)"),
        ("schedule.turns", "schedule.turns (key)"),
        ("pareto", "pareto (kind)"),
        ("erdos_renyi", "erdos_renyi (kind)"),
        ("latency.minimum", "agents.compute.minimum (key)"),
        ("pareto.minimum", "agents.compute.minimum (key)"),
        ("erdos_renyi.p", "network.topology.p (key)"),
        ("kernel.gaussian", "kernel.gaussian (kernel)"),
        ("contextual", "contextual (problem)"),
        ("ties", "algorithms.ties (key)"),
        ("exchanges", "algorithms.server.exchanges (key)"),
        ("async_kernel_ucb.transfer", "algorithms.transfer (key)"),
        ("algorithms.duets", "duets (algorithm)"),
        ("metric.regret", "regret (metric)"),
    ],
)
def test_what_words_name(word: str, title: str) -> None:
    assert describe(word).output.splitlines()[0] == title


def test_a_key() -> None:
    assert describe("network.reorder").output == (
        "network.reorder (key)\n"
        "  free: a copy may overtake an earlier one on its link; fifo: it waits for it.\n"
        "  type: one of fifo, free\n  default: free\n"
    )


@every(
    "word",
    [
        *(
            "network.topology",
            "erdos_renyi",
            "agents.stragglers.slowdown",
            "shifted_exponential",
            "kernel.gaussian",
            "pure_exploration",
        ),
        "dis_lin_ucb",
    ],
)
def test_a_scenario_that_has_it_is_named(word: str) -> None:
    (item, *_) = [json.loads(describe(word, "--json").output)]
    text = paths()[item["scenario"]].read_text()
    assert f"\n  scenario: {item['scenario']}\n" in describe(word).output
    assert re.search(rf"\b{word.rpartition('.')[2]}\b", text)


def test_a_key_of_several_kinds_tells_them_apart() -> None:
    text = describe("schedule.turns").output
    assert "\n  one_at_a_time: a whole number >= 1 (required)\n      Interactions of all agents together.\n" in text
    assert "\n  rounds: a whole number >= 1 (required)\n      Turns of each agent.\n" in text


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("gaussian", ["noise.gaussian", "kernel.gaussian", "mechanism.gaussian"]),
        ("gamma", ["algorithms.gamma", "problem.kernel.gamma", "compute.gamma"]),
        ("table", ["problem.table", "features.table"]),
        ("turns", ["schedule.turns", "metric.turns"]),
    ],
)
def test_a_word_that_names_several_things_lists_them(word: str, names: list[str]) -> None:
    first, *lines = describe(word).output.splitlines()
    assert first == f"{word} names, and `coband describe` explains:"
    assert [line.split()[0] for line in lines] == names
    assert [item["name"] for item in json.loads(describe(word, "--json").output)] == names
    for name in names:
        assert "names, and" not in describe(name).output.splitlines()[0]


def test_a_section_is_explained_and_what_else_has_its_name_is_listed() -> None:
    text = describe("trace").output
    assert text.startswith("trace (key)\n")
    assert "\ntrace also names, and `coband describe` explains:\n  schedule.trace " in text


@pytest.mark.parametrize(
    ("word", "near"), [("topolgy", "topology"), ("schedule.turn", "schedule.turns"), ("paretto", "pareto")]
)
def test_an_unknown_word_suggests_names(word: str, near: str) -> None:
    failed = describe(word)
    assert failed.exception is not None
    text = str(failed.exception)
    assert text.startswith(f"nothing is called '{word}'; did you mean ")
    assert near in re.split(r" or |\? ", text.partition("did you mean ")[2])


def test_as_json() -> None:
    found = json.loads(describe("network.latency", "--json").output)
    assert found["type"].startswith("a number >= 0 or {kind: constant | uniform | ")
    assert found["unit"] == "simulated time"


def test_the_pages_say_what_the_terminal_says_of_everything() -> None:
    """On some thirty pages, for each page takes Sphinx as long as many sections."""
    texts = reference_pages().pages(REGISTRY)
    sections = [line.strip("# `") for text in texts.values() for line in text.splitlines() if line.startswith("## ")]
    assert sorted(sections) == sorted([*REGISTRY.algorithms, *INDEX.entries])
    listed = re.findall(r"\(reference/(\S+)\.md\)", (DOCS / "reference.md").read_text())
    assert sorted(listed) == sorted(texts)
    assert len(texts) < 35
    assert describe("preset").output in texts["kinds/agents"]


def reference_pages() -> Any:
    """The Sphinx extension, which no package has."""
    spec = spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_an_algorithm_has_messages_closed_forms_parameters_and_its_paper() -> None:
    text = describe("async_kernel_ucb").output
    assert [line.rstrip(":").partition(" (")[0] for line in text.splitlines()[1:] if line and line[0] != " "] == [
        "Parameters",
        "Messages",
        "Communication",
        "Where",
        "Rate",
        "Search",
        "Metrics",
        "Needs",
        "Is told in addition to arms and rewards",
        "Paper",
    ]
    assert "\n  liars: its server takes the sum " in text
    assert "\nPaper:\n  @" in text
