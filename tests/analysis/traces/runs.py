"""Small real runs, stored as users' runs are."""

from pathlib import Path

from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.reporting import Commands
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store import directory

STAR = """\
name: star
seed: 3
agents: {count: 4, compute: {kind: exponential, rate: 2.0}, stragglers: {fraction: 0.25, slowdown: 4}}
schedule: {kind: rounds, turns: 12}
network: {latency: {kind: exponential, rate: 4.0}}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, kernel: &k {kind: gaussian, gamma: 1.0}, alpha: 0.5, threshold: 0.5}
  - {algorithm: approx_dis_kernel_ucb, label: Sync, kernel: *k, alpha: 0.5, threshold: 0.5}
  - {algorithm: dis_kernel_ucb, label: Dis, kernel: *k, alpha: 0.5, threshold: 1.0}
  - {algorithm: one_kernel_ucb, label: One, kernel: *k, alpha: 0.5}
  - {algorithm: n_kernel_ucb, label: Alone, kernel: *k, alpha: 0.5}
expect:
  - {label: One, count: messages, equals: 192}
"""
LINEAR = """\
name: linear
seed: 3
agents: {count: 3, compute: {kind: exponential, rate: 2.0}}
schedule: {kind: rounds, turns: 12}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: linear}, noise: 0.1}
algorithms:
  - {algorithm: fed_lin_ucb, label: Fed}
"""
GRAPH = """\
name: graph
seed: 3
agents: {count: 6}
schedule: {kind: rounds, turns: 6}
network: {topology: line}
problem:
  kind: network
  kernel: {kind: gaussian, gamma: 1.0}
  contexts: {kind: ball, dimension: 2}
  arms: {kind: ball, dimension: 3, count: 5}
algorithms:
  - {algorithm: coop_kernel_ucb, label: Coop, hops: 3}
"""
DOMAIN = """\
name: domain
seed: 3
agents: {count: 4}
schedule: {kind: rounds, turns: 60}
problem: {kind: fixed_domain, domain: {kind: ball, dimension: 2, points: 60}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: duets, label: Duets}
"""
TASKS = """\
name: tasks
seed: 3
agents: {count: 3}
schedule: {kind: phases}
problem: {kind: pure_exploration, features: {kind: table, tasks: similar, size: 3, ones: 1}, gap: 0.8}
algorithms:
  - {algorithm: co_kernel_fc, label: Together}
"""


def perform(text: str, out: Path, *settings: str, only: tuple[str, ...] = ()) -> Path:
    study = study_of(loads(text, overrides=settings), only)
    command = ["coband", "run", "x.yaml"]
    report = drive(study, directory.create("x", out), commands=Commands(command, command))
    assert not report.failures, report.failures
    return out
