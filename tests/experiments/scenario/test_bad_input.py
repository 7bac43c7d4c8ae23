"""Broken scenarios, each with the exact message that its author gets."""

import re
from pathlib import Path

import pytest
from pydantic.json_schema import JsonSchemaValue

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario import explain
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.explain import Explainer, Wording
from coband.simulator.experiments.scenario.loading import load, loads
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.scenario_errors import ScenarioError
from tests.every import every
from tests.experiments.registry.plugins import REGISTRY, SCENARIO
from tests.experiments.scenario.cases import cases

TOP = (
    "schema_version, name, description, seed, replications, agents, server, schedule, network, messages, adversaries, "
    "problem, algorithms, expect, trace, checks, share, grid, zip, tuning, until"
)
DELAY = (
    "a number >= 0 or {kind: constant | uniform | exponential | shifted_exponential | gamma | lognormal | pareto | "
    "empirical | sampler, ...}"
)
LATENCY = DELAY.replace("sampler", "sampler | matrix")
DELAYS = "constant, uniform, exponential, shifted_exponential, gamma, lognormal, pareto, empirical, sampler"
LATENCIES = f"{DELAYS}, matrix"
NETWORK = (
    "topology, latency, bandwidth, server, loss, duplicate, reorder, links, partitions, outages, heals, local, "
    "transport, retransmission, recovery, scalar_bits, header_bits"
)
COUNTS = (
    "turns, regret, reward, messages, uplink_scalars, downlink_scalars, peer_scalars, scalars, "
    "scalars_broadcast_once, rounds, simulated_time, deliveries, transmissions, dictionary_size, stalled, "
    "regret_per_agent, energy, energy_turns, energy_up, energy_down, energy_idle, energy_charged, ran_out, "
    "outstanding, dishonest, honest_regret, honest_regret_per_agent, "
    "epsilon, clipped, "
    "uplink_scalars_per_agent, scalars_per_agent, closest_decision, mean_age, mean_age_time, bits, gram_bits, "
    "moment_bits, points_bits, "
    "rewards_bits, weights_bits, number_bits, index_bits, count_bits, flag_bits, wire_messages, wire_scalars, "
    "wire_bits, dropped, expired, naps, variation"
)
COUNT = "must be a whole number >= 1 and <= 1000000"

EDITS = """
expect: => messages: {privacy: {mechanism: gaussian, sigma: 1, leak: allow}}⏎expect:
    18:21: messages.privacy: gaussian finds no sum of pulls with a declared bound in what async_kernel_ucb sends, so it
        would hide nothing; take laplace_local
expect: => messages: {encoding: {kinds: {Uplod: {gram: float64}}}}⏎expect:
    18:38: messages.encoding.kinds.Uplod: no algorithm here sends a message 'Uplod'; did you mean upload?
        messages: Vector
agents: => agnts:
    4:1: agnts: unknown key; did you mean agents? allowed: <TOP>
schedule: => shedule:
    7:1: shedule: unknown key; did you mean schedule? allowed: <TOP>
seed: => seeed:
    2:1: seeed: unknown key; did you mean seed? allowed: <TOP>
latency: => latncy:
    9:3: network.latncy: unknown key; did you mean latency? allowed: <NETWORK>
  count: 5 =>   COUNT: 5
    5:3: agents.COUNT: unknown key; did you mean count? allowed: count, compute, handling, speed, stragglers,
        reward_delay, availability, joins, leaves, energy, population
  count: 5 =>   share: false
    4:1: agents: count is missing: <COUNT>
    5:3: agents.share: unknown key; did you mean share at the top level? allowed: count, compute, handling, speed,
        stragglers, reward_delay, availability, joins, leaves, energy, population
  count: 5 =>   count: 5⏎  speed: 0
    6:10: agents.speed: must be > 0, as times are divided by it
  count: 5 =>   coutn: 5
    5:3: agents.coutn: unknown key; did you mean count? allowed: count, compute, handling, speed, stragglers,
        reward_delay, availability, joins, leaves, energy, population
alpha: 0.1 => alpa: 0.1
    16:87: algorithms[0].alpa: unknown key; did you mean alpha? allowed: algorithm, label, ties, kernel, alpha,
        transfer, steps, blocking, dims
gamma: 0.1 => gama: 0.1
    16:74: algorithms[0].kernel.gama: unknown key; did you mean gamma? allowed: gamma, length_scale, columns, kind
name: quick⏎ =>
    1:1: name is missing: must be text of at most 100 letters, digits, _, - and ., the first neither - nor .
schedule: {kind: one_at_a_time, turns: 1e3}⏎ =>
    1:1: schedule is missing: must be {kind: one_at_a_time | rounds | renewal | trace | phases, ...}
schedule: {kind: one_at_a_time, turns: 1e3}⏎ => schedule: {kind: phases}⏎
    16:17: algorithms[0].algorithm: async_kernel_ucb cannot run on schedule.kind phases; it runs on: one_at_a_time,
        rounds, renewal, trace
    17:17: algorithms[1].algorithm: async_kernel_ucb cannot run on schedule.kind phases; it runs on: one_at_a_time,
        rounds, renewal, trace
seed: 7 => seed: 7⏎seed: 8⏎seed: 9
    3:1: seed: the key is given twice; the first is on line 2, column 1
    4:1: seed: the key is given twice; the first is on line 2, column 1
rate: 2 => rate: 2, rate: 3
    6:41: agents.compute.rate: the key is given twice; the first is on line 6, column 32
seed: 7 => 1: x⏎[a, b]: c⏎~: d
    2:1: 1 is not allowed as a key: keys are text
    3:1: a list is not allowed as a key: keys are text
    4:1: ~ is not allowed as a key: keys are text
seed: 7 => seed: 7⏎until: {3: 4}⏎grid: {3: [1]}
    3:9: until: 3 is not allowed as a key: keys are text
    4:8: grid: 3 is not allowed as a key: keys are text
seed: 7 => <<: {seed: 7}
    2:1: merge keys (<<) are not supported; write the keys out, or use an alias
seed: 7 => seed: 7⏎server: {aggregate: median}
    3:21: server.aggregate: 'median' is not a known kind; did you mean coordinate_median or geometric_median? known:
        sum, clip, coordinate_median, trimmed_mean, geometric_median, reject_outliers
count: 5 => count: '5'
    5:10: agents.count: '5' is not allowed: <COUNT>; remove the quotes
count: 5 => count: five
    5:10: agents.count: 'five' is not allowed: <COUNT>
count: 5 => count: true
    5:10: agents.count: true is not allowed: <COUNT>
count: 5 => count: 1.5
    5:10: agents.count: 1.5 is not allowed: <COUNT>
count: 5 => count: 1_000
    5:10: agents.count: '1_000' is not allowed: <COUNT>
count: 5 => count: .inf
    5:10: agents.count: .inf is not allowed: <COUNT>
count: 5 => count:
    5:9: agents.count: an empty value is not allowed: <COUNT>
count: 5 => count: [5]
    5:10: agents.count: a list is not allowed: <COUNT>
count: 5 => count: {of: 5}
    5:10: agents.count: a mapping is not allowed: <COUNT>
name: quick => name: 10
    1:7: name: 10 is not allowed: must be text of at most 100 letters, digits, _, - and ., the first neither - nor .;
        put it in quotes
label: Bold => label: 3
    17:42: algorithms[1].label: 3 is not allowed: must be text of at least 1 and at most 60 characters or null; put it
        in quotes
alpha: 0.1 => blocking: yes
    16:97: algorithms[0].blocking: 'yes' is not allowed: must be true or false; write true
seed: 7 => trace: false
    2:8: trace: false is not allowed: must be one of off, protocol, full; write off
seed: 7 => share: off
    2:8: share: 'off' is not allowed: must be true or false; write false
alpha: 0.1 => blocking: 1
    16:97: algorithms[0].blocking: 1 is not allowed: must be true or false
alpha: 0.1 => dims: [1, x]
    16:97: algorithms[0].dims[1]: 'x' is not allowed: must be a whole number
alpha: 0.1 => dims: [1, 2, 3, 4]
    16:93: algorithms[0].dims: a list is not allowed: must be a list of at most 3 (each a whole number)
algorithms:⏎ => algorithms: []⏎agents2:⏎
    15:13: algorithms: an empty list is not allowed: must be a list of at least 1 (each {algorithm: async_kernel_ucb |
        local_ucb, ...})
    16:1: agents2: unknown key; did you mean agents? allowed: <TOP>
{algorithm: async_kernel_ucb, label: Bold, alpha: 4} => local_ucb
    17:5: algorithms[1]: 'local_ucb' is not allowed: must be {algorithm: async_kernel_ucb | local_ucb, ...}; write
        {algorithm: local_ucb, beta: ...}
{algorithm: async_kernel_ucb, label: Bold, alpha: 4} => [local_ucb]⏎  - {algorithm: locl_ucb, '': 4}
    17:5: algorithms[1]: a list is not allowed: must be {algorithm: async_kernel_ucb | local_ucb, ...}
    18:17: algorithms[2].algorithm: 'locl_ucb' is not a known algorithm; did you mean local_ucb? known:
        async_kernel_ucb, local_ucb
seed: 7 => '': 3
    2:1: the key '' has no name; allowed: <TOP>
count: 5 => count: -3
    5:10: agents.count: -3 is not allowed: <COUNT>
replications: 3 => replications: 0
    3:15: replications: 0 is not allowed: <COUNT>
turns: 1e3 => turns: 0.0
    7:40: schedule.turns: 0.0 is not allowed: must be a whole number >= 1
loss: 0.1 => loss: 1
    10:9: network.loss: 1 is not allowed: must be a number >= 0 and < 1 or {kind: gilbert_elliott, ...}
alpha: 0.1 => steps: 1e3
    16:94: algorithms[0].steps: 1e3 is not allowed: must be a whole number >= 1 and <= 100
alpha: 0.1 => alpha: .nan
    16:94: algorithms[0].alpha: .nan is not allowed: must be a finite number >= 0
alpha: 0.1 => alpha: 1e999
    16:94: algorithms[0].alpha: 1e999 is not allowed: must be a finite number >= 0
name: quick => name: a/b
    1:7: name: 'a/b' is not allowed: must be text of at most 100 letters, digits, _, - and ., the first neither - nor .
label: Bold => label: ''
    17:42: algorithms[1].label: '' is not allowed: must be text of at least 1 and at most 60 characters or null
label: Bold => label: "a\\nb"
    17:42: algorithms[1].label: 'a\\nb' is not allowed: a label is text on one line, without tabs
loss: 0.1 => transport: datagrm
    10:14: network.transport: 'datagrm' is not allowed: must be one of reliable, datagram; did you mean datagram?
seed: 7 => checks: no
    2:9: checks: 'no' is not allowed: must be one of cheap, full
count: uplink_scalars => count: uplink
    19:27: expect[0].count: 'uplink' is not allowed: must be one of <COUNTS>; did you mean uplink_scalars or
        uplink_scalars_per_agent?
5e-2 => fast
    9:12: network.latency: 'fast' is not allowed: must be <LATENCY>
5e-2 => '5e-2'
    9:12: network.latency: '5e-2' is not allowed: must be <LATENCY>; remove the quotes
5e-2 => -1
    9:12: network.latency: -1 is not allowed: must be <LATENCY>
5e-2 => {kind: exponentail, rate: 1}
    9:19: network.latency.kind: 'exponentail' is not a known kind; did you mean exponential? known: <LATENCIES>
5e-2 => {rate: 1}
    9:3: network.latency: kind is missing; known: <LATENCIES>
5e-2 => {kind: 3}
    9:19: network.latency.kind: 3 is not a known kind; known: <LATENCIES>
5e-2 => {kind: exponential, rat: 1}
    9:32: network.latency.rat: unknown key; did you mean rate? allowed: kind, rate
5e-2 => {kind: uniform, low: 3, high: 1}
    9:42: network.latency.high: high(=1.0) must be >= low(=3.0)
5e-2 => {kind: empirical, values: [1, x]}
    9:42: network.latency.values[1]: 'x' is not allowed: must be a number
loss: 0.1 => bandwidth: wide
    10:14: network.bandwidth: 'wide' is not allowed: must be a number > 0 or a mapping (scalars, bits, burst) or {kind:
        packets, ...} or null
loss: 0.1 => bandwidth: -3
    10:14: network.bandwidth: -3 is not allowed: must be a number > 0 or a mapping (scalars, bits, burst) or {kind:
        packets, ...} or null
loss: 0.1 => bandwidth: {bit: 3}
    10:15: network.bandwidth.bit: unknown key; did you mean bits? allowed: scalars, bits, burst
loss: 0.1 => links: [{agents: al}, {agents: [0, -1]}]
    10:20: network.links[0].agents: 'al' is not allowed: must be a list of at least 1 (each a whole number >= 0)
        or all; did you mean all?
    10:38: network.links[1].agents[1]: -1 is not allowed: must be a whole number >= 0
kind: contextual⏎  arms: {kind: ball, dimension: 4, count: 3}⏎  reward: {kind: cosine}
=> kind: clusters⏎  data: {name: magc, path: 3}⏎  clusters: many
    13:16: problem.data.name: 'magc' is not allowed: must be one of magic, mushroom; did you mean magic?
    13:28: problem.data.path: 3 is not allowed: must be text or null; put it in quotes
    14:13: problem.clusters: 'many' is not allowed: must be a whole number >= 1
{kind: cosine} => {kind: rkhs, kernel: {kind: product, factors: [{kind: linear, varianc: 3}, {kind: lin}]}}
    14:73: problem.reward.kernel.factors[0].varianc: unknown key; did you mean variance? allowed: variance, bias,
        columns, kind
    14:93: problem.reward.kernel.factors[1].kind: 'lin' is not a known kind; did you mean linear? known: gaussian,
        linear, matern, polynomial, product, sum
kind: contextual => kind: contextul
    12:9: problem.kind: 'contextul' is not a known kind; did you mean contextual? known: clusters, contextual
algorithm: async_kernel_ucb => algorithm: async_kernel
    16:17: algorithms[0].algorithm: 'async_kernel' is not a known algorithm; did you mean async_kernel_ucb? known:
        async_kernel_ucb, local_ucb
algorithm: async_kernel_ucb,  =>
    16:5: algorithms[0]: algorithm is missing; known: async_kernel_ucb, local_ucb
algorithm: async_kernel_ucb => algorithm: duets
    16:17: algorithms[0].algorithm: 'duets' is installed but could not be loaded: ModuleNotFoundError: No module named
        'torch'
label: Bold => label: Async
    17:42: algorithms[1].label: the label 'Async' is that of algorithms[0] already; give each entry its own label
label: Async, count => label: Asnc, count
    19:13: expect[0].label: 'Asnc' is not an entry of algorithms; did you mean Async? labels: Async, Bold
at_most: 2e7 => equals: [1, 2]
    19:51: expect[0].equals: has 2 entries: must have one per replication (replications is 3)
at_most: 2e7 => less_than: Blod
    19:54: expect[0].less_than: 'Blod' is not an entry of algorithms; did you mean Bold? labels: Async, Bold
at_most: 2e7 => less_than: Async
    19:54: expect[0].less_than: nothing is less than itself; name another entry
at_most: 2e7 => at_most: 2e7, less_than: Bold
    19:5: expect[0]: give either equals, or at_least, at_most or both, or less_than, or more_than
at_most: 2e7 => equals: 3, of: mean
    19:58: expect[0].of: mean goes with at_least, at_most or both
at_most: 2e7 => at_most: 3, of: all
    19:59: expect[0].of: 'all' is not allowed: must be one of each, mean
, at_most: 2e7 =>
    19:5: expect[0]: give either equals, or at_least, at_most or both, or less_than, or more_than
turns: 1e3 => turns: 10, order: weighted, weights: [1, 2]
    7:70: schedule.weights: has 2 entries: must have one per agent (agents.count is 5)
loss: 0.1 => links: [{agents: [1, 5]}]
    10:24: network.links[0].agents[1]: 5 is not an agent: must be < 5, the agents.count; agents are numbered from 0
loss: 0.1 => loss: 0.1⏎  transport: datagram
    17:17: algorithms[0].algorithm: async_kernel_ucb needs every message, but this network loses some; set
        network.transport: reliable, or remove the loss
    18:17: algorithms[1].algorithm: async_kernel_ucb needs every message, but this network loses some; set
        network.transport: reliable, or remove the loss
  loss: 0.1 =>   transport: datagram⏎adversaries: [{agents: [0], behaviour: {kind: silent}}]
    17:17: algorithms[0].algorithm: async_kernel_ucb needs every message, but silent agents send none, of which
        datagrams tell nobody; set network.transport: reliable, or another behaviour
    18:17: algorithms[1].algorithm: async_kernel_ucb needs every message, but silent agents send none, of which
        datagrams tell nobody; set network.transport: reliable, or another behaviour
{algorithm: async_kernel_ucb, label: Bold, alpha: 4} => {algorithm: local_ucb, beta: 1}
    17:17: algorithms[1].algorithm: local_ucb cannot run on problem.kind contextual; it runs on: clusters
loss: 0.1 => loss: {kind: gilbert_elliott, p: 0.1}
    10:3: network.loss: r is missing: must be a number > 0 and <= 1
loss: 0.1 => loss: {kind: gilbert_elliott, p: 0.1, r: 0}
    10:44: network.loss.r: 0 is not allowed: must be a number > 0 and <= 1
loss: 0.1 => loss: {kind: gilbert_elliott, p: 0.1, r: 0.5, k: 0, h: 0}
    10:3: network.loss: 1 never lets a reliable transport through; use loss < 1 or datagram
loss: 0.1 => loss: {kind: gilbert, p: 0.1, r: 0.5}
    10:16: network.loss.kind: 'gilbert' is not a known kind; did you mean gilbert_elliott? known: gilbert_elliott
loss: 0.1 => loss: often
    10:9: network.loss: 'often' is not allowed: must be a number >= 0 and < 1 or {kind: gilbert_elliott, ...}
loss: 0.1 => duplicate: 2
    10:14: network.duplicate: 2 is not allowed: must be a number >= 0 and <= 1
loss: 0.1 => reorder: never
    10:12: network.reorder: 'never' is not allowed: must be one of fifo, free
loss: 0.1 => bandwidth: {scalars: 3, bits: 4}
    10:3: network.bandwidth: give exactly one of scalars, bits
loss: 0.1 => bandwidth: {scalars: 3, burst: -1}
    10:34: network.bandwidth.burst: -1 is not allowed: must be a number >= 0
loss: 0.1 => outages: [{start: 1, end: 2, nodes: [5, server]}]
    10:40: network.outages[0].nodes[0]: 5 is not an agent: must be < 5, the agents.count; agents are numbered from 0
loss: 0.1 => outages: [{start: 2, end: 2, nodes: [0]}]
    10:29: network.outages[0].end: end(=2.0) must be > start(=2.0)
loss: 0.1 => outages: [{start: 1, end: 2, nodes: []}]
    10:39: network.outages[0].nodes: an empty list is not allowed: must be a list of at least 1 (each a whole number >=
        0 or server)
loss: 0.1 => outages: [{start: 1, end: 2, nodes: [sever]}]
    10:40: network.outages[0].nodes[0]: 'sever' is not allowed: must be a whole number >= 0 or server; did you mean
        server?
loss: 0.1 => partitions: [{start: 1, end: 2, groups: [[], []]}]⏎  links: [{agents: [], loss: 0.1}]
    10:35: network.partitions[0].groups: an agent must be in one of them
    11:20: network.links[0].agents: an empty list is not allowed: must be a list of at least 1 (each a whole number >=
        0) or all
loss: 0.1 => partitions: [{start: 1, end: 2, groups: [[0], [0, 1]]}]
    10:16: network.partitions[0]: an agent must not be in two groups
loss: 0.1 => transport: datagram⏎  duplicate: 0.1
    17:17: algorithms[0].algorithm: async_kernel_ucb needs every message once, but this network doubles some; set
        network.transport: reliable, or remove duplicate
    18:17: algorithms[1].algorithm: async_kernel_ucb needs every message once, but this network doubles some; set
        network.transport: reliable, or remove duplicate
loss: 0.1 => topology: {kind: ring}⏎  outages: [{start: 1, end: 2, nodes: [server]}]
    11:3: network.outages: a graph of agents has no server that could be down
loss: 0.1 => retransmission: {max_attempts: 0, backoff: 0.5, max_timeout: 0}
    10:34: network.retransmission.max_attempts: 0 is not allowed: must be a whole number >= 1
    10:46: network.retransmission.backoff: 0.5 is not allowed: must be a number >= 1
    10:64: network.retransmission.max_timeout: 0 is not allowed: must be a number > 0 or null
loss: 0.1 => recovery: {attempts: -1, backoff: 0.5, patience: 0}
    10:24: network.recovery.attempts: -1 is not allowed: must be a whole number >= 0
    10:37: network.recovery.backoff: 0.5 is not allowed: must be a number >= 1
    10:52: network.recovery.patience: 0 is not allowed: must be a number > 0 or null
latency: 5e-2 => latency: {kind: matrix, values: [[0, 1], [1, 0]]}
    9:12: network.latency: the matrix has 2 rows: must have 6, one per agent and one for the server
latency: 5e-2 => latency: {kind: matrix, values: [[0, 1], [1]]}
    9:3: network.latency: row 1 has 1 delays; a matrix of 2 rows needs as many
latency: 5e-2 => latency: {kind: matrix, values: [[0, -1], [1, 0]]}
    9:3: network.latency: row 0 has a delay that is not a finite number >= 0
latency: 5e-2 => latency: {kind: matrix}
    9:3: network.latency: give exactly one of values, file
schedule: {kind: one_at_a_time, turns: 1e3}⏎ => schedule: {kind: trace, file: /nowhere/turns.csv}⏎
    7:31: schedule.file: '/nowhere/turns.csv' does not exist; give a CSV file with the columns agent, time
latency: 5e-2 => latency: {kind: matrix, file: /nowhere/delays.txt}
    9:33: network.latency.file: '/nowhere/delays.txt' does not exist; give a text file with one row of delays per
        line
count: 5 => count: 5⏎  availability: {kind: sometimes}
    6:24: agents.availability.kind: 'sometimes' is not a known kind; known: always, markov_on_off, trace
count: 5 => count: 5⏎  availability: {kind: markov_on_off, mean_up: 0, mean_down: 1}
    6:48: agents.availability.mean_up: 0 is not allowed: must be a number > 0
schedule: {kind: one_at_a_time, turns: 1e3}⏎ => schedule: {kind: trace, file: "C:\\new\\turns.csv"}⏎
    7:31: 'C:\\new\\turns.csv' is not a file name; in double quotes \\ begins a special character: use single quotes
count: 5 => count: 5⏎  availability: {kind: trace, file: /nowhere/times.csv}
    6:37: agents.availability.file: '/nowhere/times.csv' does not exist; give a CSV file with the columns agent,
        up, down
count: 5 => count: 5⏎  stragglers: {fraction: 0.5, slowdown: 3, groups: 6}
    6:52: agents.stragglers.groups: stragglers.groups(=6) must be <= count(=5)
count: 5 => count: 5⏎  stragglers: {fraction: 0.5, slowdown: 3, episodes: {mean_slow: 1}}
    6:44: agents.stragglers.episodes: mean_fast is missing: must be a number > 0
name: quick => name: 'quick
    20:1: not valid YAML: found unexpected end of stream (while scanning a quoted scalar from line 1 on)
name: quick => name: quick: er
    1:12: not valid YAML: mapping values are not allowed here
  count: 5 => \tcount: 5
    5:1: not valid YAML: a tab cannot indent; use spaces
name: quick => name: quick\x07
    1:12: the character U+0007 is not allowed in YAML
name: quick => name: *quick
    1:7: name: the alias *quick needs an anchor &quick whose value ends before it
name: quick => name: &me [*me]
    1:12: name[0]: the alias *me needs an anchor &me whose value ends before it
name: quick => name: quick⏎---⏎name: slow
    2:1: a second document starts here; a scenario is one document
name: quick => name: !!python/name:os.system x
    1:7: name: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported; leave it out
seed: 7 => seed: !!int seven
    2:7: seed: the tag 'tag:yaml.org,2002:int' is not supported; leave it out
    2:7: seed: 'seven' is not allowed: must be a whole number >= 0 and < 9223372036854775808
"""
"""What is replaced in the good scenario by what, and the messages without "quick.yaml:"; <NAMES> stand above."""


def refusal(text: str, *overrides: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        loads(text, "quick.yaml", overrides, registry=REGISTRY)
    return str(caught.value)


def test_the_scenario_that_is_broken_below_is_good() -> None:
    assert loads(SCENARIO, registry=REGISTRY).name == "quick"


def _named(match: re.Match[str]) -> str:
    return str(globals()[match[1]])


@every("edit, messages", cases(re.sub("<([A-Z]+)>", _named, EDITS)))
def test_message(edit: str, messages: list[str]) -> None:
    old, _, new = edit.partition(" =>")
    assert old in SCENARIO
    found = refusal(SCENARIO.replace(old, new.removeprefix(" "), 1))
    assert found.splitlines() == [f"quick.yaml:{message}" for message in messages]


def test_a_syntax_error_does_not_hide_what_was_found_before_it() -> None:
    assert refusal("name: quick\nname: slow\nseed: [").splitlines() == [
        "quick.yaml:2:1: name: the key is given twice; the first is on line 1, column 1",
        "quick.yaml:3:8: not valid YAML: expected the node content, but found '<stream end>' (while parsing a flow "
        "node from line 3 on)",
    ]


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    text = SCENARIO
    for old, new in (("seed: 7", "sed: 7"), ("count: 5", "count: x"), ("loss: 0.1", "loss: 2"), ("Bold", "Async")):
        text = text.replace(old, new, 1)
    places = [message.split(": ")[0] for message in refusal(text).splitlines()]
    assert places == ["quick.yaml:2:1", "quick.yaml:5:10", "quick.yaml:10:9", "quick.yaml:17:42"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: the file is empty; a scenario is a mapping of keys (name, agents, ...)"),
        ("# nothing\n", "1:1: the file is empty; a scenario is a mapping of keys (name, agents, ...)"),
        ("- a", "1:1: a list is not a scenario; a scenario is a mapping of keys (name, agents, ...)"),
        ("quick", "1:1: 'quick' is not a scenario; a scenario is a mapping of keys (name, agents, ...)"),
    ],
)
def test_no_mapping(text: str, message: str) -> None:
    assert refusal(text) == f"quick.yaml:{message}"


def test_deep_nesting_is_refused_without_reading_it_all() -> None:
    assert refusal("name: " + "[" * 200_000) == (
        "quick.yaml:1:70: name[0][0]: nested deeper than 64 levels; no scenario needs that"
    )


def test_depth_counts_what_aliases_stand_for() -> None:
    deep = "[" * 40 + "]" * 40
    assert refusal(f"a: &a {deep}\nb: {'[' * 40}*a{']' * 40}") == (
        "quick.yaml:2:44: b[0][0]: nested deeper than 64 levels; no scenario needs that"
    )


def test_aliases_that_multiply_are_bounded() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert refusal("\n".join(lines)).endswith("more than 100000 values, aliases expanded; no scenario needs that many")


def test_long_values_are_shown_in_short() -> None:
    message = refusal(SCENARIO.replace("count: 5", "count: " + "x" * 1000))
    assert f"'{'x' * 60}...' is not allowed" in message


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    message = refusal(SCENARIO.replace("count: 5", r'count: "\e[31m\n"'))
    assert r"'\x1b[31m\n' is not allowed" in message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "agents.cout=3",
            "agents.cout: unknown key; did you mean count? allowed: count, compute, handling, speed, stragglers, "
            "reward_delay, availability, joins, leaves, energy, population",
        ),
        ("agents.count=-3", f"agents.count: -3 is not allowed: {COUNT}"),
        ("agents.count", "must be key.path=value, such as agents.count=20"),
        ("=3", "must be key.path=value, such as agents.count=20"),
        ("agents..count=3", "must be key.path=value, such as agents.count=20"),
        ("agents.count.x=3", "agents.count: is '5', which has no key 'x'; set it as a whole"),
        ("algorithms.7.alpha=3", "algorithms: has no entry 7; it has 2, counted from 0"),
        (
            "algorithms.Asyn.alpha=3",
            "algorithms: has no entry 'Asyn'; did you mean Async? give a label, a number from 0, or *",
        ),
        (
            "algorithms.async_kernel_ucb.alpha=3",
            "algorithms: 'async_kernel_ucb' is the algorithm of entries 0, 1; give a number or *",
        ),
        ("algorithms.Bold.alpha=x", "algorithms[1].alpha: 'x' is not allowed: must be a number >= 0"),
        ("agents.stragglers.fraction=0.1", "agents.stragglers: slowdown is missing: must be a number > 0"),
        (
            "agents.count=[",
            "not valid YAML: expected the node content, but found '<stream end>' (while parsing a flow node from line "
            "1 on)",
        ),
        ("agents={count: 3, count: 4}", "agents: the key is given twice"),
    ],
)
def test_override(override: str, message: str) -> None:
    assert refusal(SCENARIO, override) == f"--set {override}: {message}"


def test_mistakes_of_file_and_overrides_come_together() -> None:
    lines = refusal(SCENARIO.replace("seed: 7", "seed: -7"), "agents.count=0", "a..b=1").splitlines()
    assert [line.split(": ")[0] for line in lines] == ["quick.yaml:2:7", "--set a..b=1", "--set agents.count=0"]


def test_missing_file_names_a_similar_one(tmp_path: Path) -> None:
    (tmp_path / "quick.yaml").touch()
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path / "quik.yaml", registry=REGISTRY)
    assert str(caught.value) == f"{tmp_path}/quik.yaml: there is no such file; did you mean {tmp_path}/quick.yaml?"


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, registry=REGISTRY)
    expected = f"{tmp_path}: is a directory without a run.sqlite; give a scenario file, or the directory of a run"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: quick\nx: \xff\n", ":2:4: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"#" * 1_000_001, ": the file is larger than 1000000 bytes, which no scenario needs"),
    ],
)
def test_unreadable_content(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load(file, registry=REGISTRY)
    assert str(caught.value) == f"{file}{message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed: 7", "topology: ring", "2:1: topology: unknown key; did you mean network.topology? allowed: "),
        ("  count: 5\n", "  count: 5\n  topology: ring\n", "6:3: agents.topology: unknown key; did you mean network"),
        ("  loss: 0.1\n", "  los: 0.1\n", "10:3: network.los: unknown key; did you mean loss? allowed: "),
    ],
)
def test_a_key_at_a_wrong_place_is_told_its_place(old: str, new: str, message: str) -> None:
    assert refusal(SCENARIO.replace(old, new, 1)).startswith(f"quick.yaml:{message}")


@pytest.mark.parametrize(
    ("own", "near"), [*((word, word) for word in ("perod", "periods", "pariod", "peeriod")), ("prod", "drift.period")]
)
def test_a_slip_of_the_pen_is_taken_for_one_before_keys_elsewhere_are_named(own: str, near: str) -> None:
    period = {"properties": {"period": {"type": "integer"}}}
    schema = {"properties": {"drift": period, "agent": {"properties": {own: {"type": "integer"}}}}}
    root, _ = read("agent: {period: 3}", "mine.yaml")
    problem = Explainer(root, Wording(schema), {}).unknown_key(("agent", "period"))
    assert str(problem) == f"mine.yaml:1:9: agent.period: unknown key; did you mean {near}? allowed: {own}"


def test_a_mistake_makes_the_schema_of_its_section_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the whole document takes longer than all else that a mistake needs."""
    made = list[str | None]()

    def noted(registry: Registry, section: str | None = None) -> JsonSchemaValue:
        made.append(section)
        return json_schema(registry, section)

    monkeypatch.setattr(explain, "json_schema", noted)
    refusal(SCENARIO.replace("  loss: 0.1\n", "  los: 0.1\n", 1).replace("seed: 7", "sed: 7", 1))
    assert set(made) == {"network"}


def test_pairs_say_what_each_of_the_two_must_be() -> None:
    text = SCENARIO.replace("  count: 5\n", "  count: 5\n  joins: {kind: times, times: [[1, -2], [1], 3]}\n", 1)
    pair = "must be a list of 2 (a whole number >= 0, a number >= 0)"
    assert [line.partition(": agents.joins.")[2] for line in refusal(text).splitlines()] == [
        "times[0][1]: -2 is not allowed: must be a number >= 0",
        f"times[1]: a list is not allowed: {pair}",
        f"times[2]: 3 is not allowed: {pair}",
    ]
