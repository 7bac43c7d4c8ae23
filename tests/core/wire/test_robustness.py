"""Every algorithm under every encoding, behaviour, mechanism and defence: it finishes, or refuses and says why."""

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest
from pydantic import TypeAdapter

from coband.extensions.conformance.runs import algorithm, batches, registry, run
from coband.simulator.core.nodes.node import NoBestArm, UnsupportedScenario
from coband.simulator.core.wire.defences import Defence
from coband.simulator.core.wire.rules import undefended
from tests.every import every
from tests.everyday import slow

EIGHT: dict[str, Any] = {"kind": "stochastic", "bits": 8}
ENCODINGS: dict[str, dict[str, Any]] = {
    "packed": {"counting": "packed"},
    "float16": {"encoding": {"default": "float16"}},
    "bfloat16": {"counting": "packed", "encoding": {"default": "bfloat16"}},
    "stochastic": {"encoding": {"default": {"kind": "stochastic", "bits": 2, "scale": "norm"}}},
    "sign": {"counting": "packed", "encoding": {"default": "sign"}},
    "top": {"encoding": {"default": {"kind": "top", "keep": 2}}},
    "delta": {"encoding": {"default": {"kind": "delta", "of": EIGHT}}},
    "feedback": {"counting": "packed", "encoding": {"default": {"kind": "error_feedback", "of": "sign"}}},
}
SMALL = {"threshold": 0.4, "max_rounds": 20, "steps": 5}
"""Parameters, where an algorithm has them; a gradient that is damaged never becomes small: rounds need an end."""
SMALL_NETWORK = {"fn_ucb": {"width": 4}}
"""Parameters of an algorithm; a matrix of a usual network has 58,000 entries to encode and to check."""
EVERYTHING = ("gram", "moment", "rewards", "weights", "number")
BEHAVIOURS: dict[str, dict[str, Any]] = {
    "sign_flip": {"behaviour": {"kind": "sign_flip", "scale": 3}},
    "sign_flip everywhere": {"behaviour": {"kind": "sign_flip", "scale": 3}, "fields": EVERYTHING},
    "scale": {"behaviour": {"kind": "scale", "factor": 1e6}, "fields": EVERYTHING},
    "noise": {"behaviour": {"kind": "noise", "sigma": 10}, "fields": EVERYTHING},
    "constant": {"behaviour": {"kind": "constant", "value": -5}, "fields": EVERYTHING},
    "random_arm_model": {"behaviour": {"kind": "random_arm_model"}},
    "inner_product": {"behaviour": {"kind": "inner_product", "scale": 2}},
    "alie": {"behaviour": {"kind": "alie"}},
    "stale": {"behaviour": {"kind": "stale", "age": 2}},
    "free_rider": {"behaviour": {"kind": "free_rider"}},
    "silent": {"behaviour": {"kind": "silent"}},
    "equivocate": {"behaviour": {"kind": "equivocate"}},
    "reward_poisoning": {"behaviour": {"kind": "reward_poisoning", "budget": 20.0}},
    "late": {"behaviour": {"kind": "sign_flip"}, "start": 10.0, "stop": 20.0},
}
SERVER_SIDE: dict[str, Any] = {"leak": "allow", "sigma": 1.0}
MECHANISMS: dict[str, dict[str, Any]] = {
    "gaussian": {"mechanism": "gaussian", "epsilon": 2.0, "leak": "allow"},
    "gaussian, all pulls": {"mechanism": "gaussian", "unit": "agent", **SERVER_SIDE},
    "tree": {"mechanism": "tree", **SERVER_SIDE},
    "tree, others": {"mechanism": "tree", "adversary": "others", **SERVER_SIDE},
    "laplace_local": {"mechanism": "laplace_local", "epsilon": 4.0, "leak": "allow"},
    "laplace_local, rewards": {"mechanism": "laplace_local", "clip": {"points": None}, "epsilon": 1.0, "leak": "allow"},
}
DEFENCES: dict[str, Any] = {
    "clip": "clip",
    "median": "coordinate_median",
    "trimmed": {"kind": "trimmed_mean", "f": 1},
    "geometric": "geometric_median",
    "reject": "reject_outliers",
}
TALKATIVE = [name for name, one in registry().algorithms.items() if one.messages]


def check(
    name: str, encoding: str, behaviour: str | None, mechanism: str | None = None, defence: str | None = None
) -> str:
    """How a run with all checks ends; a refusal says what it refuses."""
    lies = None if behaviour is None else BEHAVIOURS[behaviour]
    messages = ENCODINGS[encoding] | ({} if mechanism is None else {"privacy": MECHANISMS[mechanism]})
    graph = "star" not in algorithm(name).needs.topologies
    if graph and "delta" in str(messages):
        return "refused where the scenario is validated"
    parts: dict[str, Any] = {"network": {"topology": {"kind": "ring"}}} if graph else {}
    if not batches(name):
        parts["schedule"] = {"kind": "one_at_a_time", "turns": 30}
    if defence is not None:
        taken = TypeAdapter(Defence).validate_python(DEFENCES[defence])
        if why := undefended(algorithm(name), taken, graph):
            return f"refused where the scenario is validated: {why}"
        parts["server"] = {"aggregate": taken}
    adversaries = [] if lies is None else [{"agents": {"fraction": 0.2}, **lies}]
    known = algorithm(name).config.model_fields
    small = {key: value for key, value in SMALL.items() if key in known} | SMALL_NETWORK.get(name, {})
    try:
        result = run(name, small, agents=5, messages=messages, adversaries=adversaries, **parts).result
    except (UnsupportedScenario, NoBestArm) as refusal:
        return f"refused: {refusal}"
    numbers = [value for value in result.totals.values() if value is not None]
    assert all(math.isfinite(value) for value in (result.regret, *numbers))
    poisoned = lies is not None and lies["behaviour"]["kind"] == "reward_poisoning"
    assert ("honest_regret" in result.totals) == (lies is not None and not poisoned)
    assert ("epsilon" in result.totals) == (mechanism is not None or algorithm(name).private is not None)
    return "finished"


def pairs(lists: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows in which every two values of two lists meet, few of them: each takes what meets most that has not met."""
    left = {(a, x, b, y) for a, b in combinations(range(len(lists)), 2) for x in lists[a] for y in lists[b]}
    rows = []
    while left:
        a, x, b, y = min(left, key=str)
        row: dict[int, Any] = {a: x, b: y}
        for place in range(len(lists)):
            if place not in row:
                met = [sum(_meeting(place, one, *other) in left for other in row.items()) for one in lists[place]]
                row[place] = lists[place][max(range(len(met)), key=met.__getitem__)]
        rows.append(tuple(row[place] for place in range(len(lists))))
        left -= {(i, row[i], j, row[j]) for i, j in combinations(range(len(lists)), 2)}
    return rows


def _meeting(place: int, value: Any, other: int, its: Any) -> tuple[int, Any, int, Any]:
    return (place, value, other, its) if place < other else (other, its, place, value)


LISTS = [TALKATIVE, list(ENCODINGS), [None, *BEHAVIOURS], [None, *MECHANISMS], [None, *DEFENCES]]
PAIRS = pairs(LISTS)


def test_every_two_meet_in_few_runs() -> None:
    met = {(i, row[i], j, row[j]) for row in PAIRS for i, j in combinations(range(len(LISTS)), 2)}
    sizes = [len(one) for one in LISTS]
    assert len(met) == sum(a * b for a, b in combinations(sizes, 2))
    assert len(PAIRS) < 2 * sizes[0] * sizes[2]


@every("row", [slow((row,)) if place % 5 else row for place, row in enumerate(PAIRS)])
def test_every_two_of_all_lists(row: tuple[Any, ...]) -> None:
    """Every algorithm meets every encoding, behaviour, mechanism and defence, and these meet each other."""
    assert check(*row)


@pytest.mark.slow
@pytest.mark.parametrize("name", TALKATIVE)
def test_all_of_every_algorithm(name: str) -> None:
    for encoding, behaviour, mechanism in product(ENCODINGS, (None, *BEHAVIOURS), (None, *MECHANISMS)):
        assert check(name, encoding, behaviour, mechanism)
