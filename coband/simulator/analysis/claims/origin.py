"""Where results come from: versions, commit, date, machine."""

from __future__ import annotations

import platform
from pathlib import Path

from coband.simulator.experiments.runs import blas
from coband.simulator.experiments.runs.hardware import hardware
from coband.simulator.experiments.runs.status import now
from coband.simulator.experiments.store.manifest import PACKAGES, git_state, version


def origin(seed: int | None = None) -> dict[str, object]:
    """What a results file says about the machine and the program that made an outcome.

    Args:
        seed: that of all studies, if it is not their own.
    """
    return {
        **({} if seed is None else {"seed": seed}),
        "date": now()[:10],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "git": git_state(Path(__file__).parent),
        "blas": blas.libraries(),
        "machine": platform.machine(),
        "hardware": hardware(),
    }
