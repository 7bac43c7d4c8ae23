"""What an extension declares is found, and what cannot be used is left out with a reason."""

import math
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from coband.extending import Command, Extension
from coband.simulator.analysis.report import catalogue
from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.registry import registry
from coband.simulator.plugins import entry_points
from coband.simulator.plugins.kinds import LISTS, Kinds


def offer(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    monkeypatch.setattr(entry_points, "offered", lambda: [*points])
    monkeypatch.setattr(entry_points, "_extensions", entry_points._extensions.__wrapped__)


def test_kinds_of_an_extension_are_members_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Extension("mine", kinds={"toys": {"circle": "math:pi"}})
    monkeypatch.setattr(math, "EXTENSION", mine, raising=False)
    offer(monkeypatch, EntryPoint("mine", "math:EXTENSION", entry_points.GROUP))
    monkeypatch.setattr("coband.simulator.plugins.kinds.LISTS", {**LISTS})
    toys: Kinds[float] = Kinds("toys", lambda _, found: float(str(found)), lambda _: False)
    assert dict(toys) == {"circle": math.pi}


def test_what_is_not_an_extension_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"{name}:pi", entry_points.GROUP) for name in ("math", "nowhere_to_be_found")]
    offer(monkeypatch, *points)
    assert entry_points.extensions() == {}
    assert entry_points.absent() == {
        "math": "an object of type Extension is expected, not an object of type float",
        "nowhere_to_be_found": "No module named 'nowhere_to_be_found'",
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"commands": {"a": "x"}}, "commands must be name -> Command"),
        ({"commands": {3: Command("json:dumps", "h")}}, "the name of a command, and all that is said of it"),
        ({"commands": {"a": Command("json:dumps", 3)}}, "the name of a command, and all that is said of it"),  # type: ignore[arg-type]
        ({"panels": ["a"]}, "panels must be name -> 'module:attribute'"),
        ({"kinds": "x"}, "kinds must be list -> name -> 'module:attribute'"),
        ({"kinds": {"kernels": "x"}}, "kinds must be list -> name -> 'module:attribute'"),
    ],
)
def test_a_declaration_of_a_wrong_form_is_left_out(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(math, "EXTENSION", Extension("mine", **wrong), raising=False)
    offer(monkeypatch, EntryPoint("mine", "math:EXTENSION", entry_points.GROUP))
    assert entry_points.extensions() == {}
    assert entry_points.absent()["mine"].startswith(said)


def test_a_list_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Extension("mine", kinds={"kernel": {"circle": "math:pi"}})
    monkeypatch.setattr(registry, "extensions", lambda: {"mine": mine})
    (said,) = [text for text in registry._installed.__wrapped__(0).warnings if "coband.kernel," in text]
    assert said == "mine adds to coband.kernel, which is not a list of coband's; did you mean coband.kernels?"


def test_of_two_commands_of_one_name_the_first_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {name: Extension(name, {"go": Command(f"{name}:go", name)}) for name in ("first", "second")}
    monkeypatch.setattr(entry_points, "_extensions", lambda: (found, {}))
    assert entry_points.commands()["go"].help == "first"


def test_a_command_that_does_not_work_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {"missing": "math:nothing", "nowhere": "nowhere_to_be_found:go", "number": "math:pi"}
    mine = Extension("mine", {name: Command(where, name) for name, where in wrong.items()}, {"own": "math:pi"})
    monkeypatch.setattr(entry_points, "_extensions", lambda: ({"mine": mine}, {"other": "it is broken"}))
    for name, where in wrong.items():
        assert exit_status([name]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"coband: the command {name!r} of an extension does not work: {where}: ")
        assert said.count("\n") == 1
    assert exit_status(["rnu"]) == 2
    assert "did you mean run? Or it may be of an extension that cannot be imported: other" in capsys.readouterr().err
    assert catalogue.broken() == {"own": "math:pi: an object of type Panel is expected, not an object of type float"}
    assert "regret" in catalogue.panels()
    assert exit_status(["plot", "own"]) == 2
    assert "the panel 'own' of an extension does not work: math:pi" in capsys.readouterr().err
