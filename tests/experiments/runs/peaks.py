"""The peak memory of one run in a process of its own: ``python -m tests.experiments.runs.peaks SCENARIO``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def measured(scenario: dict[str, Any]) -> float:
    """Bytes that the run of a scenario's only entry adds to the peak of a process that has imported everything."""
    command = [sys.executable, "-m", "tests.experiments.runs.peaks", json.dumps(scenario)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def _main(text: str) -> None:
    from coband.simulator.experiments.runs.job import Job, attempt
    from coband.simulator.experiments.scenario.loading import loads

    def run(document: dict[str, Any]) -> int:
        scenario = loads(json.dumps(document))
        entry = scenario.algorithms[0]
        outcome = attempt(Job(0, entry.label, entry.algorithm.name, 0, 0, "off"), scenario, lambda result: None)
        assert outcome.status == "finished", outcome.error
        status = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

    document = json.loads(text)
    tiny = {"kind": "contextual", "arms": {"kind": "ball", "dimension": 2, "count": 3}, "reward": {"kind": "cosine"}}
    entry = {key: value for key, value in document["algorithms"][0].items() if key in ("algorithm", "kernel")}
    schedule = {**document["schedule"], "turns": 2}
    small = {**document, "schedule": schedule, "agents": {"count": 1}, "problem": tiny, "algorithms": [entry]}
    before = run(small)
    print(run(document) - before)


if __name__ == "__main__":
    _main(sys.argv[1])
