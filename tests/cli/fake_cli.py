"""The program with a fake scenario behind every file name."""

from typing import Any

import pytest

from coband.simulator.cli.main import main
from coband.simulator.experiments.runs.study import Study
from tests.experiments.runs.fakes import FakeScenario, study


class Program:
    """Runs ``coband`` in this process.

    Attributes:
        scenario: what every scenario file holds.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.scenario = FakeScenario()
        self._capsys = capsys

    def load(self, path: object, overrides: tuple[str, ...], only: tuple[str, ...], numbers: tuple[int, ...]) -> Study:
        scenario: Any = self.scenario.overridden(overrides)
        return study(scenario, only, numbers)

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return exit_.value.code, captured.out, captured.err
