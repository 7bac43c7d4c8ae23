"""Plugins of every kind, from outside of the package: a distribution in a folder, runs in other processes."""

import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import pytest

from coband import BaseGraph, Graph
from coband.simulator.core.network.topologies import Ring
from coband.simulator.experiments.registry.registry import OPEN_LISTS
from coband.simulator.plugins import kinds
from coband.simulator.plugins.kinds import LISTS, Kinds
from tests.experiments.registry.open_lists_plugin import ENTRY_POINTS

ROOT = Path(__file__).parents[3]
PLUGIN = Path(__file__).with_name("open_lists_plugin.py")
STAR = """\
name: star
seed: 5
replications: 2
checks: full
trace: full
agents:
  count: 4
  compute: {kind: triangle, width: 0.1}
  availability: {kind: nights}
  stragglers: {kind: growing}
  population: {kind: two_classes}
schedule: {kind: bursts, sizes: [2]}
network:
  latency: {kind: on_a_line, delays: [1, 2]}
  bandwidth: {kind: dear_start}
  loss: {kind: every_nth}
  partitions: [{kind: odd_even}, {start: 20, end: 21, groups: [[0]]}]
  outages: [{kind: one_at_random}, {kind: one_at_random, start: 11}]
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: total}, noise: {kind: coin}}
algorithms:
  - {algorithm: async_kernel_ucb, kernel: {kind: product, factors: [{kind: laplace}, {kind: linear}]}, threshold: 0.1}
  - {algorithm: first_arm, skipped: 1}
messages:
  encoding: {kinds: {upload: {rewards: {kind: halves}}}}
  privacy: {mechanism: {kind: flat_noise}, sigma: 0.1, leak: allow}
adversaries: [{agents: [1], behaviour: {kind: mirror}}]
expect:
  - {label: first_arm, count: worst_agent, at_least: 0.001}
"""
ADRIFT = """\
name: adrift
agents: {count: 3, energy: {capacity: 9, per_turn: 2, recharge: {kind: daylight}}}
schedule: {kind: rounds, turns: 9}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}, drift: {kind: flip}}
algorithms: [{algorithm: first_arm}, {algorithm: lin_ucb}]
expect:
  - {label: first_arm, count: ran_out, equals: 3}
  - {label: lin_ucb, count: variation, at_least: 0.1}
"""
GRAPH = """\
name: graph
agents: {count: 5}
schedule: {kind: rounds, turns: 3}
network: {topology: wheel}
problem: {kind: ladder, steps: 3}
algorithms: [{algorithm: coop_kernel_ucb}, {algorithm: first_arm}]
expect: [{label: first_arm, count: turns, equals: 15}]
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / PLUGIN.name).write_text(PLUGIN.read_text(encoding="utf-8"), encoding="utf-8")
    metadata = folder / "open_lists_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: open-lists-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "star.yaml").write_text(STAR)
    (folder / "graph.yaml").write_text(GRAPH)
    (folder / "adrift.yaml").write_text(ADRIFT)
    return folder


def coband(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    command = [sys.executable, "-P", "-W", "error", "-m", "coband", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_distribution_has_one_of_each_list() -> None:
    points = ConfigParser()
    points.read_string(ENTRY_POINTS)
    assert points.sections() == [one.group for one in OPEN_LISTS]
    assert {*LISTS} == {one.name for one in OPEN_LISTS} | {"functions"}  # which come from Python alone


@cache
def checked(folder: Path, name: str) -> None:
    """Run a scenario, once for all tests, into a directory of its name."""
    ended = coband(folder, "check", f"{name}.yaml", "--workers", "2" if name == "star" else "1", "--out", name)
    assert ended.returncode == 0, ended.stderr + ended.stdout


@pytest.mark.parametrize("name", ["star", "graph", "adrift"])
def test_they_run(elsewhere: Path, name: str) -> None:
    checked(elsewhere, name)
    stored = json.loads((elsewhere / name / "results.json").read_text())
    assert all(one["worst_agent"] > 0 for entry in stored["results"] for one in entry["replications"])
    again = coband(elsewhere, "run", f"{name}/scenario.yaml", "--workers", "1", "--out", f"{name}-again")
    assert again.returncode == 0, again.stderr
    repeated = json.loads((elsewhere / f"{name}-again" / "results.json").read_text())
    assert _fingerprints(repeated) == _fingerprints(stored)


def _fingerprints(results: dict[str, Any]) -> list[str]:
    return [one["fingerprint"] for entry in results["results"] for one in entry["replications"]]


def test_describe_knows_them(elsewhere: Path) -> None:
    """Each is found by its name, in one process, as commands look it up."""
    names = re.findall(r"^(\w+) = ", ENTRY_POINTS, re.MULTILINE)
    code = "from coband.simulator.experiments.registry.registry import Registry; import json, sys; "
    code += "from coband.simulator.reference.items import look_up; known = Registry.installed(); "
    code += "print(json.dumps({name: look_up(name, known)[0]['summary'] for name in sys.argv[1:]}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(elsewhere), str(ROOT)))}
    found = subprocess.run(
        [sys.executable, "-P", "-c", code, *names], env=environment, capture_output=True, text=True, check=True
    )
    described = json.loads(found.stdout)
    assert described["wheel"] == "A ring of agents around agent 0."
    assert (list(described), all(described.values())) == (names, True)


def test_the_list_has_them(elsewhere: Path) -> None:
    listed = json.loads(coband(elsewhere, "list", "--json").stdout)
    points = ConfigParser()
    points.read_string(ENTRY_POINTS)
    for group in points.sections():
        (name,) = points[group]
        assert name in [item["name"] for item in listed[group.removeprefix("coband.")]]


MISTAKES = {
    "network.topology=whel": "'whel' is not allowed: must be one of star, grid, ring, line, complete, wheel or",
    "network.latency={kind: on_a_lin}": "did you mean on_a_line? known: constant, uniform,",
    "network.loss={kind: ever_nth}": "did you mean every_nth? known: gilbert_elliott, every_nth",
    "network.bandwidth={kind: dear}": "did you mean dear_start? known: packets, dear_start",
    "network.outages=[{kind: one}]": "is not a known kind; did you mean one_at_random? known: one_at_random",
    "network.partitions=[{kind: odd_even, until: x}]": "network.partitions[0].until: 'x' is not allowed",
    "agents.stragglers={kind: growin}": "did you mean growing? known: growing",
    "agents.availability={kind: night}": "did you mean nights? known: always, markov_on_off, trace, nights",
    "schedule={kind: bursts, sizes: [a]}": "schedule.sizes[0]: 'a' is not allowed: must be a whole number",
    "problem.kind=lader": "did you mean ladder? known: ",
    "algorithms.0.kernel.factors.0.kind=laplac": "did you mean laplace? known: gaussian,",
}
"""Setting -> what is said of it."""


def test_mistakes_name_them(elsewhere: Path) -> None:
    settings = [word for setting in MISTAKES for word in ("--set", setting)]
    refused = coband(elsewhere, "validate", "star.yaml", *settings)
    assert refused.returncode == 2
    assert [message for message in MISTAKES.values() if message not in refused.stderr] == [], refused.stderr


class OtherRing(BaseGraph):
    kind: Literal["ring"]

    def draw(self, agents: int, rng: Any) -> Graph:
        return Graph(())


def test_a_plugin_with_the_name_of_a_kind_of_coband_s_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("ring", f"{__name__}:OtherRing", "coband.topologies")
    monkeypatch.setattr(kinds, "installed", lambda group: [point])
    found: Kinds[Any] = Kinds.of("topologies_of_a_test", BaseGraph, (Ring,))
    monkeypatch.delitem(LISTS, "topologies_of_a_test")
    (said,) = found.warnings
    assert said.startswith("coband.topologies_of_a_test: 'ring' of an unknown package (")
    assert said.endswith(") is ignored: coband has a kind of that name")
    assert dict(found) == {"ring": Ring}
