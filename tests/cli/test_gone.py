"""What coband had once is answered by one sentence that says what serves instead."""

import pytest
import yaml

from coband.simulator.experiments.scenario import gone
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError

SCENARIO = """
name: small
agents: {count: 2}
schedule: {kind: rounds, turns: 2}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms: [{algorithm: async_kernel_ucb}]
"""

OTHER_ALGORITHMS = {"algorithms.posterior.memory": {"algorithm": "eager_kernel_ucb", "posterior": {"kind": "exact"}}}
"""Keys of parameters that the algorithm above never had."""


def test_a_key_or_a_kind_that_is_gone_says_what_serves_instead() -> None:
    for entry, instead in gone.KEYS.items():
        key, _, value = entry.partition(": ")
        document = place = yaml.safe_load(SCENARIO)
        document["algorithms"] = [OTHER_ALGORITHMS.get(key, *document["algorithms"])]
        *outer, last = key.split(".")
        for name in outer:
            place = place[name][0] if name == "algorithms" else place.setdefault(name, {})
        place[last] = value or 1
        with pytest.raises(ScenarioError) as refused:
            loads(yaml.safe_dump(document))
        message = f"{value or 'this key'} is gone: {instead}"
        said = [problem for problem in refused.value.problems if problem.message == message]
        assert [problem.key.replace("[0]", "") for problem in said] == [key]
