"""Communication counts of every quick scenario: counts locks, rewritten on purpose by ``make golden``.

Scenarios that take long are counted at their own sizes by ``make slow``, and at the sizes in ``SMALLER``. Every day
only as many are counted as it takes to meet each algorithm, problem, network and wire feature of all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from coband.simulator.analysis.counts.counting import Counts, LockFile, count
from tests.data_files import DATA
from tests.problems.files import write_yelp

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "coband"
FILE = ROOT / "tests" / "golden_counts.json"
SMALL_FILE = ROOT / "tests" / "golden_counts_small.json"
DATA_FILES = {
    "magic": "magic/magic04.data",
    "mushroom": "mushroom/agaricus-lepiota.data",
    "shuttle": "shuttle/shuttle.trn",
    "facebook": "ego-facebook/facebook_combined.txt",
    "twitch": "musae-twitch/musae_ENGB_edges.csv",
    "autonomous_systems": "as-733/as20000102.txt",
    "movielens": "ml-latest-small/ratings.csv",
    "phones": "flhetbench/cached_timers.json",
}
FLASH = {
    "availability_file": "cached_timers.json",
    "latency_file": "training_latency.json",
    "speed_file": "device_speeds.json",
}
SMALLER = {
    "scenarios/quickstart.yaml": ("agents.count=10", "schedule.turns=12"),
    "scenarios/adversity/liars_graph_quick.yaml": ("schedule.turns=8",),
    "scenarios/federated/dp_fts_de_quick.yaml": ("agents.count=8", "schedule.turns=14", "problem.domain.points=50"),
    "scenarios/faults/partition_quick.yaml": (
        "agents.count=12",
        "schedule.turns=12",
        "network.partitions.0.start=4",
        "network.partitions.0.end=8",
    ),
    "scenarios/fleet/phones_quick.yaml": ("agents.count=20",),
    "scenarios/gossip/push_gossip_quick.yaml": ("agents.count=10", "schedule.turns=15"),
    "scenarios/stragglers/async_vs_sync_quick.yaml": ("schedule.turns=12",),
    "scenarios/sweeps/coop_agents_quick.yaml": ("schedule.turns=8",),
    "scenarios/sweeps/coop_hops_quick.yaml": ("agents.count=15", "schedule.turns=10"),
    "scenarios/sweeps/loss_rates_quick.yaml": ("agents.count=10", "schedule.turns=12"),
    "scenarios/sweeps/straggler_slowdown_quick.yaml": ("schedule.turns=10",),
    "scenarios/sweeps/synthetic_best_quick.yaml": ("schedule.turns=60",),
    **{
        f"scenarios/linear/{name}_quick.yaml": (f"schedule.turns={turns}", *others)
        for name, turns, *others in (
            ("async_lin_ucb", 250),
            ("async_lin_ucb_am", 250),
            ("delb", 250, "algorithms.DELB.C=0.1"),
            ("discounted_dis_lin_ucb", 150),
            ("fed_pe", 250),
            ("fed_ucb", 30),
            ("fed_ucb_graph", 60),
            ("pls", 250),
            ("rclb", 100),
        )
    },
    **{
        f"scenarios/async_kernel_ucb/{name}_quick.yaml": ("schedule.turns=80",)
        for name in ("magic", "movielens", "mushroom", "synthetic_f1", "synthetic_f2", "yelp")
    },
    **dict.fromkeys(
        ("scenarios/fn_ucb/agents_quick.yaml", "scenarios/sweeps/fn_ucb_threshold_quick.yaml"),
        ("schedule.turns=20", "algorithms.*.alpha_ramp=8", "algorithms.*.train_until=10"),
    ),
    **{
        f"scenarios/fn_ucb/{name}_quick.yaml": (
            "schedule.turns=40",
            "algorithms.*.alpha_ramp=8",
            "algorithms.*.train_until=20",
        )
        for name in "ablations communication cosine_2 magic magic_diagonal shuttle_diagonal square_2".split()
    },
    **{
        f"scenarios/coop_kernel_ucb/{name}_quick.yaml": ("agents.count=10", "schedule.turns=6")
        for name in (
            "autonomous_systems autonomous_systems_linear erdos_renyi_linear erdos_renyi_rbf facebook "
            "facebook_linear fixed_arms twitch twitch_linear"
        ).split()
    },
}
"""Scenarios that take long, with what makes them smaller."""

WORLD = ("agents", "schedule", "network", "problem", "messages", "server", "adversaries")
"""The parts of a scenario around its algorithms."""


def scenarios() -> list[str]:
    """All quick scenarios, relative to the package."""
    quick = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("scenarios/**/*_quick.yaml"))
    return ["scenarios/quickstart.yaml", *quick]


def features(name: str) -> set[str]:
    """What a scenario has: its algorithms, and the keys and kinds of what is around them, of a grid in all points."""
    text = (PACKAGE / name).read_text(encoding="utf-8")
    document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # in C where it is there
    found = {f"algorithm {entry['algorithm']}" for entry in document["algorithms"]}
    axes = [
        (key, value)
        for key, values in document.get("grid", {}).items()
        for value in (values.values() if isinstance(values, dict) else values)
    ]
    for key, value in [*document.items(), *axes]:
        if key.partition(".")[0] in WORLD:
            found |= set(_said(key.rpartition(".")[2], value))
    return found


def _said(key: str, value: Any) -> Iterator[str]:
    """Each key below this one, and with it what it says if that is a word, as kinds and names are."""
    if isinstance(value, dict):
        for inner, content in value.items():
            yield from _said(key if inner == "kind" else inner, content)
    elif isinstance(value, list):
        for content in value:
            yield from _said(key, content)
    yield f"{key} {value}" if isinstance(value, str) and not key.endswith("file") else key


def covering(having: Mapping[str, set[str]]) -> list[str]:
    """Some of the names, which together have all that any has: each adds the most to those before."""
    chosen, left = [], set().union(*having.values())
    while left:
        best = max(sorted(having), key=lambda name: len(having[name] & left))
        chosen.append(best)
        left -= having[best]
    return sorted(chosen)


def data_file(name: str) -> str | None:
    """The data file that a quick scenario needs, relative to the data directory."""
    return next((file for data, file in DATA_FILES.items() if f"/{data}_" in name), None)


def lock(file: Path = FILE) -> LockFile:
    """A file of counts; its scenarios are named from the package."""
    return LockFile(file, base=PACKAGE)


def counts(name: str, smaller: Sequence[str] = ()) -> Counts:
    """By label: turns, rounds and communication counts of the first replication, with settings that make it smaller."""
    with TemporaryDirectory() as place:
        return count(PACKAGE / name, [*settings(name, Path(place)), *smaller])


def settings(name: str, place: Path) -> list[str]:
    """What says where the data file is; Yelp's, which may not be passed on, is written to ``place`` in its format."""
    if "/yelp_" in name:
        return [f"problem.data.path={write_yelp(place)}"]
    file = data_file(name)
    if file is not None and "/phones_" in name:
        return [f"agents.population.{key}={(DATA / file).parent / one}" for key, one in FLASH.items()]
    key = "network.topology.file" if "coop_kernel_ucb" in name else "problem.data.path"
    return [f"{key}={DATA / file}"] if file else []


def main() -> None:
    """Write the files anew; scenarios whose data are not here keep what they have."""
    for kept, sizes in ((lock(), dict.fromkeys(scenarios(), ())), (lock(SMALL_FILE), SMALLER)):
        for name, smaller in sizes.items():
            file = data_file(name)
            if file is None or (DATA / file).is_file():
                kept.counts[name] = counts(name, smaller)
        kept.write()


if __name__ == "__main__":
    main()
