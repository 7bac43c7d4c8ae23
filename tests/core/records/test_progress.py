"""What follows a run: it is told of every 64th pull, however turns are taken."""

import pytest

from coband.extensions.conformance.runs import plan_of
from coband.simulator.core.engine import Engine
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records.ledger import Ledger
from coband.simulator.core.records.progress import Progress
from tests.core.toys import TOY, ToyConfig, ToyWorld

SILENT = 10**6
"""Reports come after so many pulls: never, so that the pulls of one moment can be entered together."""


@pytest.mark.parametrize("cohorts", [True, False])
@pytest.mark.parametrize(("agents", "turns"), [(3, 22), (10, 20), (64, 2), (70, 4), (150, 1)])
def test_who_follows_a_run_is_told_of_every_64th_pull(agents: int, turns: int, cohorts: bool) -> None:
    plan = plan_of(
        {"agents": {"count": agents}, "schedule": {"kind": "rounds", "turns": turns}, "network": {}, "cohorts": cohorts}
    )
    told: list[int] = []
    Engine(plan, TOY, ToyConfig(every=SILENT), ToyWorld(), Streams(0), on_pull=told.append).run()
    assert told == list(range(64, agents * turns + 1, 64))


@pytest.mark.parametrize(("agents", "told"), [(63, []), (64, [64]), (127, [64])])
def test_pulls_of_one_moment_are_told_of_up_to_the_last_one(agents: int, told: list[int]) -> None:
    heard: list[int] = []
    progress = Progress(Ledger(agents), None, heard.append, full=False)
    progress.pulled_together(list(range(agents)), 1.0, [(0.0, 0.0)] * agents, [0] * agents)
    assert heard == told


def test_a_batch_counts_all_its_pulls() -> None:
    heard: list[int] = []
    progress = Progress(Ledger(1), None, heard.append, full=False)
    for turn in range(64):
        progress.pulled(0, float(turn), 0.0, 0.0, turn, pulls=100)
    progress.pulled_together([0] * 64, 64.0, [(0.0, 0.0)] * 64, [0] * 64)
    assert heard == [6400, 6464]
