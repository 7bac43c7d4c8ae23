"""How many replications are added."""

from __future__ import annotations

import pytest

from coband.simulator.experiments.runs.stopping import more
from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.sweep.tuning import choose


@pytest.mark.parametrize(
    ("rule", "values", "done", "added"),
    [
        ({"half_width": 100.0}, [1.0, 2.0, 3.0], 3, 0),
        ({"half_width": 0.001}, [1.0, 2.0, 3.0], 3, 3),  # at most doubled
        ({"half_width": 0.001, "max_replications": 4}, [1.0, 2.0, 3.0], 3, 1),
        ({"half_width": 0.001, "max_replications": 3}, [1.0, 2.0, 3.0], 3, 0),
        ({"half_width": 9.4}, [1.0, 2.0, 3.0], 3, 1),  # half-width 16.36 / sqrt(3) = 9.445: 3.03 are needed
        ({"relative": 0.5}, [5.0], 1, 1),
        ({"half_width": 1.0}, [], 3, 0),  # all have failed
    ],
)
def test_more(rule: dict[str, float], values: list[float], done: int, added: int) -> None:
    assert more(Until.model_validate(rule), values, done) == added


def test_a_candidate_with_a_failed_replication_is_none() -> None:
    from coband.simulator.experiments.scenario.document import Tuning

    found = {0: [{"regret": 1.0}], 1: [{"regret": 3.0}, {"regret": 2.0}], 2: [{"regret": 2.5}, {"regret": 2.5}]}
    assert choose(Tuning(replications=2), ("A",), found).variant == 1
    assert choose(Tuning(replications=3), ("A",), found).variant is None
