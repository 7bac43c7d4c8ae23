"""Whole runs of the papers' scenarios by the command line, beside what their authors' public code took.

Where the public code is at hand (``public_code``), it is measured in the same run. Otherwise the seconds of such code
were measured once, on another machine; ratios within one run are then those of the cases ``fn_trained`` and ``rage``,
against the oracles.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks import public_code
from benchmarks.measuring import Figure, Figures
from benchmarks.start import processes

RAGE = """\
name: rage
replications: {replications}
agents: {{count: 1}}
schedule: {{kind: phases}}
problem: {{kind: pure_exploration, features: {{kind: table}}, gap: 0.1, noise: 1.0}}
algorithms: [{{algorithm: ind_rage, constants: public_code, elimination: width, delta: 0.005}}]
trace: off
"""
COSINE_SECONDS, MAGIC_SECONDS, RAGE_SECONDS = 35.6, 52.3, 0.071
"""Of the public code, measured once, elsewhere: FN-UCB with N=2 and T=500, and RAGE at gap 0.1."""


def federated(scenario: str, elsewhere: float, here: float | None, *settings: str) -> Figure:
    """One replication of FN-UCB with two agents and 500 turns."""
    words = [word for setting in ("schedule.turns=500", "agents.count=2", *settings) for word in ("--set", setting)]
    given = ["run", scenario, "--only", "FN-UCB", "--replications", "1", *words, "--out", "{folder}/out{number}"]
    return compared(processes(given, repeats=2), elsewhere, 20.0, here)


def cosine(precision: str) -> Figure:
    """FN-UCB on the cosine function, beside the public code where that can be run."""
    here = public_code.fn_ucb_cosine(500)
    return federated("fn_ucb/cosine_2", COSINE_SECONDS, here, f"algorithms.FN-UCB.precision={precision}")


def magic() -> Figure:
    """FN-UCB on MAGIC, whose file is searched where the tests search it."""
    file = Path(os.environ.get("COBAND_TEST_DATA", "")) / "magic" / "magic04.data"
    if not file.is_file():
        return Figure("no COBAND_TEST_DATA", f"{MAGIC_SECONDS / 20:.2g} s", False)
    return federated("fn_ucb/magic", MAGIC_SECONDS, None, f"problem.data.path={file}")


def compared(found: float, elsewhere: float, target: float, here: float | None = None) -> Figure:
    """CPU seconds beside those of a reference, measured here and now, or if that is None once, elsewhere."""
    reference, where = (elsewhere, "") if here is None else (here, f" of {here:.3g} s here")
    ratio = reference / found
    return Figure(f"{found:.3g} s, {ratio:.1f}x{where}", f"{reference / target:.2g} s, {target:g}x", ratio >= target)


def rage(replications: int) -> float:
    """CPU seconds of a run with so many replications in one process."""
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        file = Path(folder) / "rage.yaml"
        file.write_text(RAGE.format(replications=replications), encoding="utf-8")
        return processes(["run", str(file), "--workers", "1", "--out", "{folder}/out{number}"], repeats=3)


def rage_run() -> Figure:
    """One replication, beside a whole process of the public code where that can be run."""
    return compared(rage(1), RAGE_SECONDS, 8.0, public_code.rage(1))


def rage_each(replications: int, public: int) -> Figure:
    """What one more replication takes by the command line; ``public``: as many of the public code, if it is at hand."""
    each = (rage(1 + replications) - rage(1)) / replications
    once, more = public_code.rage(1), public_code.rage(1 + public)
    here = None if once is None or more is None else (more - once) / public
    return compared(each, RAGE_SECONDS, 8.0, here)


FIGURES: Figures = {
    "rage_run": (
        rage_run,
        "coband run, RAGE at gap 0.1, CPU; public code: COBAND_RAGE_CODE, or once, elsewhere, in-process: 71 ms",
    ),
    "rage_each": (lambda: rage_each(200, 20), "the same, for each further replication of the run"),
    "fn_cosine": (
        lambda: cosine("float64"),
        "coband run, FN-UCB, cosine, N=2, T=500, CPU; public code: COBAND_FN_UCB_CODE, or once, elsewhere: 35.6 s",
    ),
    "fn_cosine_float32": (lambda: cosine("float32"), "the same with precision: float32, which the public code has"),
    "fn_magic": (magic, "coband run, FN-UCB, MAGIC, N=2, T=500, CPU; public code, measured once, elsewhere: 52.3 s"),
}
