"""Scenario files are read by PyYAML's parser in C where that makes no difference to the one in Python."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from coband.simulator.experiments.scenario import yaml_nodes
from coband.simulator.scenario_errors import ScenarioError

SCENARIOS = Path(__file__).parents[3] / "coband"
TEXTS = [file.read_text() for file in sorted(SCENARIOS.rglob("*.yaml"))]
EVERYWHERE = re.compile("")
TOKENS = [*": \n-{}[],'\"#!|>\t?%@`~\r\\é", "&a", "*a", "<<: ", "--- ", "...", "\u2028", "\ud800", "\0", "!!str ", ": "]


def _read(text: str) -> Any:
    """The tree with its marks and mistakes, or the error."""
    try:
        node, problems = yaml_nodes.read(text, "f")
    except ScenarioError as error:
        return str(error)
    return node, [(one.message, one.line, one.column) for one in problems]


def _mutated(rng: random.Random) -> str:
    """A scenario with one to three places that are damaged."""
    text = rng.choice(TEXTS)[: rng.randrange(50, 900)]
    for _ in range(rng.randint(1, 3)):
        place, length = rng.randrange(len(text) + 1), rng.randrange(6)
        text = text[:place] + rng.choice(["", rng.choice(TOKENS)]) + text[place + length * rng.randrange(2) :]
    return text


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML is here without its parser in C")
def test_both_parsers_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    texts = [*TEXTS[::5], *(_mutated(rng) for _ in range(1500))]
    found = [_read(text) for text in texts]
    monkeypatch.setattr(yaml_nodes, "UNCLEAR", EVERYWHERE)
    differing = [text for text, one in zip(texts, found, strict=True) if _read(text) != one]
    assert differing == []


def test_most_scenarios_are_read_by_the_parser_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "_Events", None)
    read = 0
    for text in TEXTS:
        try:
            yaml_nodes.read(text, "f")
        except TypeError:  # the parser in Python was needed
            continue
        read += 1
    assert read > 0.8 * len(TEXTS)


def test_pairs_of_surrogates_are_one_character() -> None:
    escaped, written = (json.dumps(["\N{GRINNING FACE}"], ensure_ascii=ascii) for ascii in (True, False))
    assert yaml_nodes.read(escaped, "file")[0] == yaml_nodes.read(written, "file")[0]
    assert yaml_nodes.read(r'["\ud83d\ude00"]', "file")[1] == []
    assert str(yaml_nodes.read(r'["\ud83d"]', "file")[1][0]) == "file:1:2: [0]: half a surrogate pair is not text"
