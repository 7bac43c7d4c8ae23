"""What coband gives today, kept in a file, so that a change of the code can be proved to change nothing else.

``python -m tests.yardstick keep`` writes the file, ``compare`` prints what differs from it by scenario and cause. It
has the quick variants of all scenarios but claims and suite, whole random scenarios, and the output of the commands
that are used most. Random scenarios are stored as documents: a feature that is dropped changes no other one of them.
"""

import argparse
import hashlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests import golden
from tests.data_files import DATA
from tests.experiments.runs.test_random_scenarios import BAD_INPUT, Document, allowed, drawn

FILE = Path(__file__).with_suffix(".json")
RANDOM = range(5000, 5200)
Facts = dict[str, Any]
"""What a job or a command gives, as JSON."""

SMALL = """\
name: small
seed: 3
replications: 3
agents:
  count: 8
  compute: {kind: shifted_exponential, shift: 0.2, rate: 2.0}
  stragglers: {fraction: 0.25, slowdown: 10}
schedule: {kind: rounds, turns: 40}
network:
  latency: {kind: lognormal, median: 0.05, sigma: 0.5}
  loss: 0.1
problem:
  kind: contextual
  arms: {kind: ball, dimension: 4, count: 10}
  reward: {kind: cosine}
  noise: 0.1
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, kernel: {kind: gaussian, gamma: 0.3}, alpha: 0.1, threshold: 1}
  - {algorithm: approx_dis_kernel_ucb, label: Sync, kernel: {kind: gaussian, gamma: 0.3}, alpha: 0.1, threshold: 1}
  - {algorithm: n_kernel_ucb, label: Alone, kernel: {kind: gaussian, gamma: 0.3}, alpha: 0.1}
expect:
  - {label: Async, count: uplink_scalars, at_most: 2000000}
  - {label: Async, count: regret, less_than: Alone}
"""
GRID = SMALL.partition("expect:")[0].replace("name: small", "name: grid") + (
    "grid:\n  network.loss: [0, 0.2]\n  algorithms.*.alpha: [0.1, 1]\n"
)
BAD = """\
name: bad
seed: x
agents: {cuont: 4, stragglers: {fraction: 2, slowdown: 10}}
schedule: {kind: round, turns: 40}
network: {latency: -1, topology: ring}
problem: {kind: contextual, arms: {kind: ball, dimension: 4, count: 10}, reward: {kind: cosin}}
algorithms:
  - {algorithm: async_kernel_uc, alpha: 0.1}
  - {algorithm: async_kernel_ucb, threshhold: 1}
"""
COMMANDS = (
    "--help",
    "run small.yaml",
    "run small.yaml --only Async --set network.loss=0 --json",
    "show runs/small-0001",
    "compare runs/small-0001",
    "trace stats runs/small-0001 --by kind",
    "trace show runs/small-0001 --label Async --event trigger",
    "trace why runs/small-0001 100 --label Async --replication 0",
    "check small.yaml",
    "check small.yaml --set algorithms.Async.threshold=0.1",
    "sweep grid.yaml",
    "compare runs/grid-0001",
    "validate small.yaml",
    "validate bad.yaml",
    "validate absent.yaml",
    "describe async_kernel_ucb",
    "describe topology",
    "describe small.yaml",
    "list algorithms",
    "list scenarios",
)
"""What is called one after the other in a directory with the three files above."""

TIMES = re.compile(
    r"\b\d+(\.\d+)? ?(s|ms|min|MiB|KiB|GiB)\b|\d{4}-\d\d-\d\d[ T][\d:.Z+-]+|\d+:\d\d(:\d\d)?"
    r"|(?<=  )\d+\.\d\d$",  # the column of seconds
    re.MULTILINE,
)
LOGGED = re.compile(r"^\w+: [\d,]+ of [\d,]+ jobs.*\n", re.MULTILINE)
"""What a slow machine writes more often than a fast one."""
PLACES = re.compile(r"^<string>:\d+:\d+: ")
NOT_COMPARED = ("wall_seconds", "cpu_seconds", "seed", "replication")
MOST_NAMED = 4


def scenario_jobs(name: str) -> Iterator[tuple[str, Facts]]:
    """Each algorithm's first replication in a small quick scenario; of a grid its first and last variant."""
    from coband.simulator.analysis.counts.counting import ends
    from coband.simulator.experiments.sweep.study import load_study

    with TemporaryDirectory() as place:
        settings = [*golden.settings(name, Path(place)), *golden.SMALLER.get(name, ())]
        study = load_study(golden.PACKAGE / name, settings)
        for variant in ends(study):
            for entry in variant.scenario.algorithms:
                yield f"{name} {variant.label}", job_facts(replace(variant.scenario, algorithms=(entry,)))


def random_job(document: Document) -> Facts:
    """What a random scenario gives, or why it is refused."""
    from coband.simulator.experiments.scenario.loading import loads

    try:
        return job_facts(loads(json.dumps(document)))
    except BAD_INPUT as refusal:
        return {"refused": PLACES.sub("", str(refusal).splitlines()[0])}


def job_facts(scenario: Any) -> Facts:
    """Fingerprint, results, ledger and curves of the only algorithm of a scenario on the first replication."""
    from coband.simulator.core.records.trace import Row, keep
    from coband.simulator.experiments.runs.attempt import attempt
    from coband.simulator.experiments.runs.job import Job

    (entry,) = scenario.algorithms
    results: list[Any] = []
    rows: list[Row] = []
    scenario = replace(scenario, trace="protocol")
    job = Job(0, entry.label, entry.algorithm.name, 0, scenario.seed, scenario.trace)
    outcome = attempt(job, scenario, results.append, keep(rows))
    if outcome.record is None:
        return {"broke off": f"{outcome.status}: {str(outcome.error).splitlines()[-1]}"}
    (result,) = results
    record = {key: value for key, value in outcome.record.items() if key not in NOT_COMPARED and value is not None}
    ledger = {
        f"{kind} {direction}": [entry.sends, entry.messages, entry.scalars, entry.scalars_broadcast_once]
        for (kind, direction), entry in sorted(result.ledger.by_kind.items())
    }
    curves = (result.times, result.regret_series, result.scalars_series, result.turns_series, result.energy_series)
    return {
        "fingerprint": record.pop("fingerprint")[:16],
        "results": {key: plain(value) for key, value in record.items() if key not in ("agents", "warnings")},
        "agents": digest(repr([{key: plain(value) for key, value in row.items()} for row in result.by_agent])),
        "warnings": list(result.warnings),
        "ledger": ledger,
        "rounds": digest(repr(sorted(result.ledger.by_round.items()))),
        "fields": digest(repr(sorted(result.ledger.by_field().items()))),
        "curves": [digest(curve.tobytes()) for curve in curves],
        "ages": digest(repr([result.ages.pulls.tolist(), result.ages.times.tolist()])),
        "details": digest(repr([row.detail for row in rows])),
    }


def digest(content: str | bytes) -> str:
    """A short hash."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:12]


def plain(value: Any) -> Any:
    """A number as JSON has it."""
    value = value.item() if hasattr(value, "item") else value
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def outputs() -> Iterator[tuple[str, Facts]]:
    """What the commands print, and their exit status; times, which change, are left out."""
    with TemporaryDirectory() as place:
        for name, content in (("small.yaml", SMALL), ("grid.yaml", GRID), ("bad.yaml", BAD)):
            Path(place, name).write_text(content)
        environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "PYTHONPATH": str(golden.ROOT)}
        for command in COMMANDS:
            program = [sys.executable, "-m", "coband", *shlex.split(command)]
            ended = subprocess.run(program, cwd=place, env=environment, capture_output=True, text=True, check=False)
            printed = ended.stdout
            if "--json" in command:
                printed = json.dumps(timeless(json.loads(printed)), indent=1) + "\n"
            text = (printed + ended.stderr).replace(os.path.realpath(place), "PLACE")
            text = TIMES.sub("TIME", LOGGED.sub("", text))
            yield f"coband {command}", {"status": ended.returncode, "output": text.splitlines()}


def timeless(content: Any) -> Any:
    """JSON without what a clock has measured."""
    if isinstance(content, dict):
        return {key: timeless(value) for key, value in content.items() if key not in ("wall_seconds", "cpu_seconds")}
    return [timeless(one) for one in content] if isinstance(content, list) else content


def measured(documents: Mapping[str, Document]) -> dict[str, Facts]:
    """Everything, by two processes."""
    with ProcessPoolExecutor(2) as pool:
        names = [
            name for name in golden.scenarios() if (file := golden.data_file(name)) is None or (DATA / file).is_file()
        ]
        scenarios = pool.map(_listed, names)
        randoms = pool.map(random_job, documents.values(), chunksize=10)
        printed = dict(outputs())
        jobs = dict(pair for pairs in scenarios for pair in pairs)
        return {**jobs, **dict(zip(documents, randoms, strict=True)), **printed}


def _listed(name: str) -> list[tuple[str, Facts]]:
    return list(scenario_jobs(name))


def drawn_documents() -> dict[str, Document]:
    """The random scenarios that the generator gives today."""
    with ProcessPoolExecutor(2) as pool:
        return dict(zip((f"random {seed}" for seed in RANDOM), pool.map(_drawn, RANDOM, chunksize=10), strict=True))


def _drawn(seed: int) -> Document:
    return allowed(drawn(seed))


def without_gone(document: Document) -> Document:
    """A scenario without the keys that coband has no more."""
    from coband.simulator.experiments.scenario.gone import KEYS

    for key in KEYS:
        *outer, last = key.split(".")
        place: Any = document
        for name in outer:
            place = place.get(name, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place.pop(last, None)
    return document


def differences(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> Iterator[tuple[str, str, list[str]]]:
    """(name, cause, what differs) of each job and command that is not as it was."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            yield name, "new" if old is None else "gone", []
        elif old != new:
            yield name, *_difference(old, new)


def _difference(old: Facts, new: Facts) -> tuple[str, list[str]]:
    for key in ("refused", "broke off"):
        if key in new or key in old:
            return f"{key}: {new.get(key, 'not any more')}", []
    if "output" in old:
        lines = [f"- {line}" for line in old["output"] if line not in new["output"]]
        lines += [f"+ {line}" for line in new["output"] if line not in old["output"]]
        status = [f"status {old['status']} -> {new['status']}"] if old["status"] != new["status"] else []
        return "output", status + lines
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    details = []
    for key in changed:
        if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
            one, other = old[key], new[key]
            details += [
                f"{key}.{name}: {one.get(name)} -> {other.get(name)}"
                for name in {**one, **other}
                if one.get(name) != other.get(name)
            ]
        else:
            details.append(f"{key}: {old.get(key)} -> {new.get(key)}")
    return ", ".join(changed), details


def report(found: Iterable[tuple[str, str, list[str]]], verbose: bool) -> Iterator[str]:
    """Lines that say what differs: those with the same cause together."""
    causes: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for name, cause, details in found:
        causes[cause].append((name, details))
    for cause, cases in sorted(causes.items(), key=lambda item: -len(item[1])):
        names = ", ".join(name for name, _ in cases[:MOST_NAMED]) + (", ..." if len(cases) > MOST_NAMED else "")
        yield f"{len(cases)} x {cause}" if verbose or cause == "output" else f"{len(cases)} x {cause}: {names}"
        for name, details in cases if verbose or cause == "output" else ():
            yield f"    {name}"
            yield from (f"        {line}" for line in (details if verbose else details[:12]))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.yardstick", description=__doc__)
    parser.add_argument("what", choices=("keep", "compare"))
    parser.add_argument("--verbose", action="store_true", help="name everything that differs")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    start = time.monotonic()
    kept = json.loads(given.file.read_text()) if given.file.exists() else {"documents": drawn_documents(), "facts": {}}
    if given.what == "keep":
        kept["documents"] = {name: allowed(without_gone(document)) for name, document in kept["documents"].items()}
    facts = json.loads(json.dumps(measured(kept["documents"])))
    found = list(differences(kept["facts"], facts))
    print(*report(found, given.verbose), sep="\n")
    print(f"{len(facts) - len(found)} of {len(facts)} are the same; {time.monotonic() - start:.0f} s")
    if given.what == "keep":
        lines = []
        for part, content in (("documents", kept["documents"]), ("facts", facts)):
            rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
            lines.append(f'"{part}": {{\n{rows}\n}}')
        given.file.write_text("{" + ",\n".join(lines) + "}\n")
    return 1 if found and given.what == "compare" else 0


if __name__ == "__main__":
    sys.exit(main())
