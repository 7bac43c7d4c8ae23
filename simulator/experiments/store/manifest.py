"""What a run directory says about how its results came about."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from coband.simulator.experiments.runs import blas
from coband.simulator.experiments.runs.status import now

PACKAGES = ("coband", "numpy", "scipy", "simpy", "networkx", "pydantic", "joblib")


def manifest(scenario: str, seed: int, command: Sequence[str], jobs: int, workers: int) -> dict[str, Any]:
    """Everything but the results, for manifest.json; ``status`` and ``finished`` change when the run ends."""
    return {
        "scenario": scenario,
        "status": "running",
        "seed": seed,
        "jobs": jobs,
        "workers": workers,
        "command": list(command),
        "started": now(),
        "finished": None,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "blas": blas.libraries(),
        "platform": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_implementation(),
            "byteorder": sys.byteorder,
        },
    }


def version(package: str) -> str | None:
    """Version of an installed package; None when it runs from a source tree."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
