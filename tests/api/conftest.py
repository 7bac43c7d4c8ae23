"""One small run for all tests of the Python interface that only read it."""

from typing import Any

import pytest

import coband

KERNEL = {"kind": "gaussian", "gamma": 1.0}
STUDY: dict[str, Any] = {
    "name": "study",
    "seed": 7,
    "replications": 2,
    "agents": {"count": 3},
    "schedule": {"kind": "rounds", "turns": 6},
    "network": {"latency": {"kind": "exponential", "rate": 4}},
    "problem": {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": 2, "count": 4},
        "reward": {"kind": "cosine"},
        "noise": 0.1,
    },
    "trace": "protocol",
    "algorithms": [
        {"algorithm": "async_kernel_ucb", "label": "Async", "kernel": KERNEL, "alpha": 0.1, "threshold": 0.5},
        {"algorithm": "n_kernel_ucb", "label": "Alone", "kernel": KERNEL, "alpha": 0.1},
    ],
}


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> coband.Run:
    return coband.run(STUDY, workers=1, out=tmp_path_factory.mktemp("api") / "study")
