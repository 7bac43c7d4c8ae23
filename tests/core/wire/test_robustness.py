"""Every algorithm under every encoding and every behaviour: it finishes, or refuses and says why."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

from coband.simulator.conformance.runs import algorithm, registry, run
from coband.simulator.core.nodes.node import NoBestArm, UnsupportedScenario

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
    "late": {"behaviour": {"kind": "sign_flip"}, "start": 20.0, "stop": 40.0},
}
TALKATIVE = [name for name, one in registry().algorithms.items() if one.messages]


def check(name: str, messages: dict[str, Any], lies: dict[str, Any] | None) -> str:
    """How a run with all checks ends; a refusal says what it refuses."""
    graph = "star" not in algorithm(name).needs.topologies
    if graph and "delta" in str(messages):
        return "refused where the scenario is validated"
    parts: dict[str, Any] = {"network": {"topology": {"kind": "ring"}}} if graph else {}
    adversaries = [] if lies is None else [{"agents": {"fraction": 0.2}, **lies}]
    small = {"threshold": 0.4} if "threshold" in algorithm(name).config.model_fields else {}
    try:
        result = run(name, small, agents=5, messages=messages, adversaries=adversaries, **parts).result
    except (UnsupportedScenario, NoBestArm) as refusal:
        return f"refused: {refusal}"
    numbers = [value for value in result.totals.values() if value is not None]
    assert all(math.isfinite(value) for value in (result.regret, *numbers))
    poisoned = lies is not None and lies["behaviour"]["kind"] == "reward_poisoning"
    assert ("honest_regret" in result.totals) == (lies is not None and not poisoned)
    return "finished"


def few(name: str) -> list[tuple[str, str | None]]:
    """Some pairs for each algorithm, others for each."""
    place, encodings, behaviours = TALKATIVE.index(name), list(ENCODINGS), list(BEHAVIOURS)
    return [
        (encodings[place % len(encodings)], None),
        (encodings[(place + 3) % len(encodings)], behaviours[(5 * place) % len(behaviours)]),
        ("packed", behaviours[(5 * place + 7) % len(behaviours)]),
    ]


@pytest.mark.parametrize("name", TALKATIVE)
def test_some_pairs_of_every_algorithm(name: str) -> None:
    for encoding, behaviour in few(name):
        assert check(name, ENCODINGS[encoding], None if behaviour is None else BEHAVIOURS[behaviour])


@pytest.mark.slow
@pytest.mark.parametrize("name", TALKATIVE)
def test_all_pairs_of_every_algorithm(name: str) -> None:
    for encoding, behaviour in product(ENCODINGS, (None, *BEHAVIOURS)):
        assert check(name, ENCODINGS[encoding], None if behaviour is None else BEHAVIOURS[behaviour])
