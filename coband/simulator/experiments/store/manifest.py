"""What a run directory says about how its results came about."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any

from coband.simulator.core.metrics import CORE
from coband.simulator.experiments.runs import code_version
from coband.simulator.experiments.runs.status import now
from coband.simulator.metrics import Metric

SECONDS = 5.0
"""After this time git is not waited for."""

PACKAGES = ("coband", "numpy", "scipy", "simpy", "networkx", "pydantic", "joblib")


def git_state(directory: Path) -> dict[str, Any] | None:
    """``commit``, and whether files that git knows are ``dirty``; None outside a repository or without git."""
    command = ["git", "-C", str(directory), "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        state = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    commit = re.search(r"^# branch\.oid ([0-9a-f]+)$", state, re.MULTILINE)
    if commit is None:
        return None
    return {"commit": commit[1], "dirty": any(not line.startswith("#") for line in state.splitlines())}


Manifest = dict[str, Any]
"""What manifest.json says: the keys of `manifest`; of a sweep ``points`` and ``variants``, of a search ``objectives``
and ``budget``, also ``code``, ``cluster``, ``not_installed`` and ``live``."""


def manifest(
    scenario: str, seed: int, command: Sequence[str], jobs: int, workers: int, metrics: Iterable[Metric] = ()
) -> Manifest:
    """Everything but the results, for manifest.json; ``status`` and ``finished`` change when the run ends.

    ``process`` is this one, which drives the run.

    Args:
        metrics: what results can have; coband's own are left out, as every coband knows them.
    """
    return {
        "scenario": scenario,
        "status": "running",
        "seed": seed,
        "jobs": jobs,
        "workers": workers,
        "command": list(command),
        "started": now(),
        "process": os.getpid(),
        "host": socket.gethostname(),
        "finished": None,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "git": git_state(Path.cwd()),
        "blas": code_version.libraries(),
        "hardware": code_version.hardware(),
        "platform": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_implementation(),
            "byteorder": sys.byteorder,
        },
        "metrics": [
            {field.name: getattr(metric, field.name) for field in fields(Metric)}
            for metric in metrics
            if metric not in CORE
        ],
    }


def declared(manifest: Manifest) -> tuple[Metric, ...]:
    """The metrics that a manifest holds, and coband's own."""
    return (*CORE, *(Metric(**fields) for fields in manifest.get("metrics", ())))


def version(package: str) -> str | None:
    """Version of an installed package; None when it runs from a source tree."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
