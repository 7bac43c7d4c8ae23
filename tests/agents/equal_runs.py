"""``python -m tests.agents.equal_runs keep FILE``, later ``compare FILE`` or ``exact FILE``: whether protocols still do
what they did.

Many small runs of every algorithm that sends messages through a server or waits for answers: all variants, networks,
schedules and speeds. Where no message is given up, fingerprints must be equal. Elsewhere ``exact`` wants them equal,
too, as after a change that is to have no effect; ``compare`` prints by how much scalars, messages and rounds of each
variant differ, where that is more than a tenth, as after a change of what nodes do about lost messages.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from coband.extensions.conformance import kit
from coband.extensions.conformance.runs import algorithm, batches, run
from coband.simulator.core.records.invariants import InvariantViolation
from tests.agents.test_conformance import VARIANTS
from tests.agents.test_given_up import NETWORKS as GIVING_UP
from tests.agents.test_given_up import QUORUM
from tests.agents.test_quorum import SLOW

NAMES = (
    "fed_lin_ucb async_lin_ucb async_lin_ucb_am async_kernel_ucb fn_ucb dis_lin_ucb discounted_dis_lin_ucb "
    "fed_ucb dis_kernel_ucb approx_dis_kernel_ucb fed_glb_ucb duets bpe fed_pe delb rclb pls dp_fts_de "
    "co_kernel_fc co_kernel_fb one_kernel_ucb"
).split()
SPEEDS: dict[str, dict[str, Any]] = {**kit.AGENTS, "stragglers": SLOW}
CHURN: dict[str, Any] = {**kit.EXTRA["churn"], "handling": 0.1}
TOLERANCE = 0.1
"""Share by which the mean of scalars or rounds may differ where messages are given up."""


def variants(name: str) -> Iterator[dict[str, Any]]:
    """The parameters of an algorithm that are tried."""
    for variant in VARIANTS.get(name, [{}]):
        small = {"threshold": 0.4} if "threshold" in algorithm(name).config.model_fields else {}
        yield {**small, **variant}
        if "wait" in algorithm(name).config.model_fields:
            yield {**small, **variant, "wait": QUORUM}


def listed(name: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The runs of an algorithm: what is run, its parameters, further parts of the scenario."""
    schedules, speeds = cycle(kit.schedules_of(name).items()), cycle(SPEEDS.items())
    for config in variants(name):
        for network, links in kit.NETWORKS.items():
            for _ in range(2):
                (schedule, turns), (speed, agent) = next(schedules), next(speeds)
                parts = {"schedule": turns, "network": links, "agent": agent}
                yield f"{json.dumps(config)} {network} {schedule} {speed}", config, parts
        for seed in range(3):
            for network, links in GIVING_UP.items():
                schedule, turns = next(schedules)
                parts = {"schedule": turns, "network": links, "seed": seed, "agents": 4}
                yield f"{json.dumps(config)} giving up: {network} {schedule} {seed}", config, parts
        if not batches(name):
            parts = {"schedule": kit.SCHEDULES["rounds"], "network": kit.NETWORKS["faulty"], "agent": CHURN}
            yield f"{json.dumps(config)} faulty churn", config, parts


def found(name: str) -> dict[str, list[Any]]:
    """Fingerprint, scalars, messages, rounds and messages given up of each run of an algorithm."""
    results: dict[str, list[Any]] = {}
    for label, config, parts in listed(name):
        try:
            result = run(name, config, checks="cheap", **parts).result
        except (InvariantViolation, AssertionError) as error:
            results[label] = [f"{type(error).__name__}: {error}", 0, 0, 0, 1]
            continue
        ledger = result.ledger.totals()
        scalars = ledger["uplink_scalars"] + ledger["downlink_scalars"] + ledger.get("peer_scalars", 0)
        numbers = [scalars, ledger["messages"], result.rounds, result.audit.given_up]
        results[label] = [result.fingerprint, *map(float, numbers)]
    return results


def differences(before: dict[str, list[Any]], after: dict[str, list[Any]], exact: bool = False) -> Iterator[str]:
    """What has changed and must not; ``exact``: nothing may."""
    for label in sorted(before.keys() ^ after.keys()):
        yield f"{label}: only {'before' if label in before else 'after'}"
    given_up: dict[str, list[tuple[list[Any], list[Any]]]] = defaultdict(list)
    for label in sorted(before.keys() & after.keys()):
        old, new = before[label], after[label]
        if exact or old[4] == new[4] == 0:
            if old != new:
                yield f"{label}: {old} -> {new}"
        else:
            given_up[label.split(" giving up")[0] if " giving up" in label else "others"].append((old, new))
            if not old[0][:9].isalnum() or not new[0][:9].isalnum():
                yield f"{label}: {old[0]} -> {new[0]}"
    for label, pairs in given_up.items():
        for place, what in ((1, "scalars"), (2, "messages"), (3, "rounds")):
            old_sum, new_sum = (sum(pair[side][place] for pair in pairs) for side in (0, 1))
            if abs(new_sum - old_sum) > TOLERANCE * old_sum:
                yield f"{label}, {len(pairs)} runs with messages given up: {what} {old_sum:g} -> {new_sum:g}"


def main(task: str, file: str, *names: str) -> int:
    """Keep or compare."""
    path = Path(file)
    if task not in ("keep", "compare", "exact"):
        raise SystemExit(f"{task!r} is not a task; write keep, compare or exact")
    if task == "keep":
        path.write_text(json.dumps({name: found(name) for name in names or NAMES}, indent=0), encoding="utf-8")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    wrong = 0
    for name in names or NAMES:
        lines = list(differences(before[name], found(name), task == "exact"))
        wrong += len(lines)
        print(f"{name}: {len(before[name])} runs, {len(lines)} differences", *lines, sep="\n  ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
