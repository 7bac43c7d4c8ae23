"""What the authors' public code of FN-UCB and of RAGE takes on this machine, where somebody has it.

``COBAND_FN_UCB_CODE``: a checkout of github.com/daizhongxiang/Federated-Neural-Bandits; ``COBAND_TORCH``: a Python that
has torch and backpack-for-pytorch. ``COBAND_RAGE_CODE``: a checkout of
github.com/fiezt/Transductive-Linear-Bandit-Code. One thread, as coband has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.start import children

CHANGES = ((r"for t in range\(max_iter\)", "for t in range({turns})"), (r"(?m)^run_list = .*$", "run_list = [0]"))
"""The program has its parameters in its text: turns, and runs."""
RAGE_RUNS = """\
import itertools, sys
import numpy as np
from RAGE import RAGE
pairs = np.array([[float(i in pair) for i in range(4)] for pair in itertools.combinations(range(4), 2)])
for seed in range(int(sys.argv[1])):
    RAGE(pairs, np.array([[0.1], [0.2], [0.3], [0.4]]), 10, 0.005).algorithm(seed)
"""
"""The instance of Du et al. 2023 at gap 0.1, with one agent, as the scenario of ``benchmarks.whole``."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def fn_ucb_cosine(turns: int) -> float | None:
    """CPU seconds of a whole process with two agents on the cosine function; None where the code is not at hand.

    Raises:
        ValueError: the program is not the one that is expected.
    """
    code, python = os.environ.get("COBAND_FN_UCB_CODE"), os.environ.get("COBAND_TORCH")
    if not code or not python:
        return None
    text = (Path(code) / "run_fn_ucb.py").read_text(encoding="utf-8")
    for pattern, replacement in CHANGES:
        text, count = re.subn(pattern, replacement.format(turns=turns), text)
        if count != 1:
            raise ValueError(f"{code}/run_fn_ucb.py has {count} places like {pattern!r}, not one")
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        place = Path(folder) / "code"
        shutil.copytree(code, place, ignore=shutil.ignore_patterns(".git"))
        (place / "run_fn_ucb.py").write_text(text, encoding="utf-8")
        return _seconds([python, "run_fn_ucb.py"], place)


def rage(runs: int) -> float | None:
    """CPU seconds of a whole process with so many runs; None where the code is not at hand."""
    code = os.environ.get("COBAND_RAGE_CODE")
    return None if not code else _seconds([sys.executable, "-c", RAGE_RUNS, str(runs)], Path(code))


def _seconds(command: Sequence[str], folder: Path) -> float:
    """CPU seconds of a process that runs in a folder."""
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    before = children()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return children() - before
