"""What nodes report becomes numbers of the result, as the metrics of their algorithm say."""

from dataclasses import replace
from typing import Any

import pytest

from coband.simulator.metrics import Aggregate, Metric
from tests.core import toys


class Reporting(toys.ToyAgent):
    """Reports numbers about all agents together, and some about itself alone."""

    def report(self) -> dict[str, float | int]:
        return {"said": 2 * self.context.index, "counted": 1}

    def report_own(self) -> dict[str, float | int | None]:
        index = self.context.index
        return {"own": index + 2, "some": index if index != 1 else None, "private": index, "undeclared": 5}


def metric(name: str, aggregate: Aggregate | None) -> Metric:
    return Metric(name, "units", name, aggregate=aggregate)


def reported(*metrics: Metric) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The totals that nodes report, and what is known of each of three agents alone."""
    plan = {"agents": {"count": 3}, "schedule": {"kind": "rounds", "turns": 1}, "network": {}}
    reporting = replace(toys.TOY, agent=Reporting, metrics=metrics)
    result, _, _ = toys.run_on_toys(reporting, toys.ToyConfig(), plan, 0)
    names = {"said", "counted", "own", "some", "private", "undeclared"}
    return {key: value for key, value in result.totals.items() if key in names}, list(result.by_agent)


@pytest.mark.parametrize(
    ("aggregate", "said", "own", "some"),
    [("sum", 6, 9, 2), ("mean", 2.0, 3.0, 1.0), ("max", 4, 4, 2), ("min", 0, 2, 0)],
)
def test_what_agents_report_is_combined_as_its_metric_says(aggregate: Any, said: Any, own: Any, some: Any) -> None:
    """Of what agents say of themselves alone too; whoever has no number of a name does not count for it."""
    combined = [metric(name, aggregate) for name in ("said", "own", "some")]
    totals, agents = reported(*combined, metric("private", None))
    assert totals == {"said": said, "counted": 3, "own": own, "some": some}
    assert [agent["private"] for agent in agents] == [0, 1, 2]
    assert [agent["some"] for agent in agents] == [0, None, 2]


def test_a_run_without_a_turn_has_no_regret_and_takes_no_time() -> None:
    plan = {"agents": {"count": 3}, "schedule": {"kind": "rounds", "turns": 1, "duration": 0.5}, "network": {}}
    result, _, _ = toys.run(plan)
    assert (result.turns, result.regret, result.reward, result.simulated_time) == (0, 0.0, 0.0, 0.0)
    assert result.totals["regret_per_agent"] == 0.0


def test_what_nobody_declares_is_added_up_unless_it_is_of_each_agent_alone() -> None:
    totals, agents = reported()
    assert totals == {"said": 6, "counted": 3}
    assert [agent["own"] for agent in agents] == [2, 3, 4]
