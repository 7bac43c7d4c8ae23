"""What nodes note is explained where they note it, so that `coband trace show` can say what a number means.

Whatever a trace is asked about models and eliminations is answered from these notes: each stands there once.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coband.extensions.conformance.runs import FIXED_PROBLEM, Run, algorithm, registry, run
from coband.simulator.analysis.traces.causes import meanings
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.registry.registry import Registry

PACKAGE = Path(__file__).parents[2] / "coband"
MODELS = {"model", "missing_points"}  # kinds of messages that an agent makes its next model from
SMALL: dict[str, dict[str, Any]] = {"fn_ucb": {"width": 4, "steps": 2}, "fed_glb_ucb": {"max_rounds": 3}}


def notes(file: Path) -> Iterator[tuple[str, str]]:
    """(class, event) of every note that has a number."""
    for item in ast.parse(file.read_text(encoding="utf-8")).body:
        for call in ast.walk(item) if isinstance(item, ast.ClassDef) else ():
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "note"
                and any(word.arg == "value" for word in call.keywords)
                and isinstance(call.args[0], ast.Constant)
            ):
                assert isinstance(item, ast.ClassDef)
                yield item.name, str(call.args[0].value)


def explained(file: Path) -> Iterator[tuple[str, str]]:
    """(class, event) of every explanation."""
    for item in ast.parse(file.read_text(encoding="utf-8")).body:
        for line in item.body if isinstance(item, ast.ClassDef) else ():
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "noted":
                assert isinstance(item, ast.ClassDef)
                yield from ((item.name, event) for event in ast.literal_eval(ast.unparse(line.value or ast.Dict())))


FILES = sorted(file for folder in ("agents", "server") for file in (PACKAGE / folder).rglob("*.py"))


def test_every_number_that_is_noted_is_explained() -> None:
    noted = {found for file in FILES for found in notes(file)}
    assert len(noted) > 10
    assert noted == {found for file in FILES for found in explained(file)}


@pytest.mark.parametrize(
    ("algorithm", "events"),
    [
        ("async_kernel_ucb", {"trigger", "apply"}),
        ("duets", {"trigger", "apply", "eliminate"}),
        ("co_kernel_fc", {"eliminate", "stop"}),
        ("approx_dis_kernel_ucb", {"trigger", "apply"}),
        ("n_kernel_ucb", set()),
        ("of another package", set()),
    ],
)
def test_explanations_are_inherited(algorithm: str, events: set[str]) -> None:
    assert set(meanings(algorithm)) == events


def test_explanations_of_every_algorithm_can_be_read() -> None:
    for name in Registry.installed().algorithms:
        assert all(text and text == text.strip() for text in meanings(name).values())


def talks(name: str, **plan: Any) -> Run:
    """A run in which every pull of two agents leads to a model."""
    config = {**SMALL.get(name, {}), **algorithm(name).always}
    return run(name, config, agents=2, schedule={"kind": "rounds", "turns": 6}, **plan)


def with_models() -> list[str]:
    return sorted(
        name
        for name, entry in registry().algorithms.items()
        if any(size.message.kind in MODELS for size in entry.messages)
    )


@pytest.mark.parametrize("name", with_models())
def test_every_model_that_an_agent_is_sent_is_noted_with_its_version_and_round(name: str) -> None:
    result = talks(name, network={"latency": 0.1})
    told = [row for row in result.events(tr.DELIVER) if result.names[row.kind] in MODELS]
    noted = {row.cause: (row.node, row.version, row.round) for row in result.events(tr.MODEL)}
    assert noted == {row.seq: (row.node, row.version, row.round) for row in told}
    assert {row.node for row in told} == {0, 1}
    assert min(row.version for row in told) == 1


@pytest.mark.parametrize("name", [*with_models(), "bpe", "duets"])
def test_the_server_notes_every_version_that_it_makes(name: str) -> None:
    result = talks(name)
    assert [row.version for row in result.events(tr.APPLY)] == list(range(1, result.result.rounds + 1))
    assert result.result.rounds > 0


@pytest.mark.parametrize("name", ["bpe", "duets"])
def test_server_and_agents_note_how_many_points_each_elimination_leaves(name: str) -> None:
    result = run(name, {"beta": 0.3}, agents=2, problem=FIXED_PROBLEM, schedule={"kind": "rounds", "turns": 30})
    left = [(row.version, float(row.detail or 0)) for row in result.events(tr.APPLY)]
    for agent in range(2):
        noted = [row for row in result.events(tr.CODES["eliminate"]) if row.node == agent]
        assert [(row.version, float(row.detail or 0)) for row in noted] == left
    server: Any = result.engine.server
    assert left[-1][1] == len(server.active) < 40


@pytest.mark.parametrize("name", ["bpe", "duets"])
def test_agents_note_how_many_points_are_left_whenever_they_tell_their_rewards(name: str) -> None:
    result = run(name, {"beta": 0.3}, agents=2, problem=FIXED_PROBLEM, schedule={"kind": "rounds", "turns": 30})
    left = [float(row.detail or 0) for row in result.events(tr.APPLY)]
    assert len(left) > 1
    for agent in range(2):
        noted = [(row.round, float(row.detail or 0)) for row in result.events(tr.TRIGGER) if row.node == agent]
        assert noted == list(enumerate([40.0, *left[:-1]], start=1))


@pytest.mark.parametrize("name", ["ind_uniform_fb", "ind_rage", "co_kernel_fc"])
def test_every_agent_notes_the_arm_that_it_declares_the_best(name: str) -> None:
    result = run(name, {}, agents=2)
    noted = {row.node: (row.round, float(row.detail or 0)) for row in result.events(tr.CODES["stop"])}
    rounds = [max(1, int(agent["phases"])) for agent in result.result.by_agent]
    answers = [agent["answer"] for agent in result.result.by_agent]
    assert noted == {agent: (rounds[agent], answers[agent]) for agent in range(2)}
