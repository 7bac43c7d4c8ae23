"""Scenarios in which the examples of the reference are tried."""

import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from coband.simulator.experiments.scenario.files import LOADER, ScenarioText, paths
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.reference.entries import Entry
from coband.simulator.scenario_errors import ScenarioError

FILES = {
    "availability.csv": "agent,up,down\n0,0,5\n0,7,\n",
    "joins.csv": "agent,time\n0,5\n",
    "devices.csv": "seconds,id,other,twin,full,part\n"
    + "".join(f"{row}.5,a,{row}.25,a,0.{row},0.5\n" for row in range(10)),
    "windows.csv": "id,up,down\na,0,5\n",
    "timers.json": '{"7": {"trace_start": 0, "trace_end": 9, "ready_time": [[1, 3]]}}',
    "steps.json": '[{"ResNet Latency": 50.0, "Vit Latency": 80.0}]',
    "speeds.json": '[{"tcp_speed_results": [800.0]}]',
    "devices.pkl": pickle.dumps({7: {"computation": 9.5, "communication": 8.5}}, protocol=0).decode(),
    "behaviour.pkl": pickle.dumps({7: {"active": [1], "inactive": [3], "finish_time": 9}}, protocol=0).decode(),
    "packets.txt": "0\n3\n3\n9\n",
    "delays.txt": "0.1\n0.12\n0.4\n",
    "delay_matrix.txt": "0 1 2\n1 0 2\n2 2 0\n",
    "graph.txt": "a b\nb c\nc d\nd e\n",
    "turns.csv": "agent,time\n0,1\n1,2\n",
    "table.csv": "visit,site,age,reward\n1,a,3,0.5\n1,a,4,0.6\n2,b,3,0.5\n2,b,4,0.6\n",
    "delay.py": "def draw(rng):\n    return rng.random()\n",
    "reward.py": "def f(x):\n    return x[..., 0]\n",
}
BASES = (
    "quickstart",
    "coop_kernel_ucb/autonomous_systems_linear_quick",
    "cope_kb/fixed_budget_different",
    "async_kernel_ucb/magic_quick",
)
"""Shipped scenarios: with a server, on a graph, of pure exploration, and on data of classes."""


def variants(entry: Entry) -> list[Entry]:
    """A key of several kinds that stand at several places, once for each of the kinds."""
    return [replace(entry, models=(model,)) for model in entry.models] if len(entry.paths) > 1 else [entry]


@cache
def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(paths()[name].read_text(encoding="utf-8"), LOADER)
    found["algorithms"] = [found["algorithms"][0], found["algorithms"][-1]][: len(found["algorithms"])]
    return {key: value for key, value in found.items() if key not in ("expect", "grid", "zip", "tuning", "until")}


def complaint(snippet: str, folder: Path, name: str) -> str:
    """What is wrong with a shipped scenario whose sections are replaced by those of the snippet; empty if nothing."""
    sections = {line.partition(":")[0] for line in snippet.splitlines() if not line.startswith(" ")}
    rest = {key: value for key, value in document(name).items() if key not in sections}
    text = f"{yaml.safe_dump(rest, sort_keys=False)}\n{snippet}\n"
    try:
        load_study(ScenarioText(text, name, folder), ())
    except ScenarioError as error:
        return str(error)
    return ""
