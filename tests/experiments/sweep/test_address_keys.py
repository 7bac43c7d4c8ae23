"""Every key of a scenario is part of the address of its jobs, or there is a reason."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.files import LOADER, ScenarioText
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.reference.entries import Entry, Index, index
from coband.simulator.scenario_errors import ScenarioError
from tests.reference.examples import BASES, FILES, document, variants

NO_PART = {
    "schema_version": "it has one value",
    "name": "of the run's folder",
    "description": "a text for people",
    "replications": "how many jobs there are; the number of each is part of its own address",
    "trace": "results are the same with it",
    "expect": "compared with finished results",
    "grid": "which points there are; each has an address of its own",
    "zip": "which points there are; each has an address of its own",
    "tuning": "which points are chosen from finished results",
    "until": "when enough replications are finished",
    "algorithms.label": "a name of a row; results are the same",
}
"""Keys that say nothing about the result of a job; what is below them does not either."""
COLUMNS = ("compute", "speed", "uplink", "downlink", "latency", "round_trip")
OTHERS: dict[str, Any] = {
    "adversaries.behaviour": {"kind": "free_rider"},
    "messages.counting": "paper",
    "messages.encoding.default": "float16",
    "messages.privacy.leak": "allow",
    "messages.privacy.mechanism": "gaussian",
    "messages.privacy.clip": {"points": 2.0},
    "messages.encoding.default.of": "float32",
    "agents": {"count": 3},
    "agents.availability": {"kind": "markov_on_off", "mean_up": 5.0, "mean_down": 1.0},
    "agents.population.columns": {"compute": "other"},
    **dict.fromkeys((f"agents.population.columns.{key}" for key in COLUMNS), "other"),
    "agents.population.columns.availability": "twin",
    "agents.population.columns.battery": "part",
    "agents.population.columns.capacity": "other",
    "agents.population.name": "cars",
    "agents.population.units": {"compute": "hours"},
    "algorithms": [{"algorithm": "lin_ucb"}],
    "algorithms.posterior": {"kind": "nystrom", "size": 8},
    "algorithms.server": {"exchanges": "serial"},
    "algorithms.ties": "random",
    "algorithms.wait": {"quorum": 0.5, "timeout": 3.0},
    "algorithms.xi": 1e-3,
    "checks": "full",
    "network": {"latency": 0.123},
    "network.local": {"mode": "direct"},
    "network.recovery": {"attempts": 7},
    "network.retransmission": {"timeout": 7.0},
    "network.server": {"uplink": 9.0},
    "problem.special": {"low": 0.2, "high": 0.8},
    "problem.content": "bcde" + "0" * 60,
    "problem.contexts": {"kind": "ball", "dimension": 3},
    "problem.contexts.hops": 2,
    "problem.data": {"name": "magic"},
    "problem.data.name": "magic",
    "problem.features": {"kind": "table", "size": 6},
    "problem.one_hot": [],
    "problem.reward": {"kind": "square"},
    "problem.regret": "realised",
    "schedule.order": "round_robin",
    "seed": 8,
    "share": False,
}
"""Another value of keys where a near one would be wrong."""
WITHOUT = {"schedule.order": "weights"}
"""What goes away with the value of a key."""


def addresses(found: dict[str, Any], folder: Path) -> frozenset[str] | None:
    try:
        study = load_study(ScenarioText(yaml.dump(found, Dumper=yaml.CSafeDumper, sort_keys=False), "x", folder))
    except ScenarioError:
        return None
    return frozenset(variant.digest for variant in study.variants)


def places(found: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """The mapping, and the key in it, at a path; of lists the first item."""
    found = found[0] if isinstance(found, list) else found
    if isinstance(found, dict) and path[0] in found:
        if len(path) == 1:
            yield found, path[0]
        else:
            yield from places(found[path[0]], path[1:])


def others(value: Any) -> Iterator[Any]:
    """Values near to one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value + 0.1, value * 1.5, value / 2, value - 1)
    elif isinstance(value, str):
        yield from (value.replace(name, f"other_{name}") for name in FILES if name in value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in others(inner))
    elif isinstance(value, list):
        yield from (value[:-1], [*value, value[-1]])
        for other in others(value[0]) if value else ():
            yield [other, *value[1:]]


def changes(entry: Entry, example: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The example with another value of the key, or without it."""
    for path in entry.paths:
        for number, (mapping, key) in enumerate(places(example, path)):
            for value in [*([OTHERS[entry.name]] if entry.name in OTHERS else []), *others(mapping[key])]:
                changed = deepcopy(example)
                place, name = list(places(changed, path))[number]
                place[name] = value
                place.pop(WITHOUT.get(entry.name), None)
                yield changed
            changed = deepcopy(example)
            place, name = list(places(changed, path))[number]
            del place[name]
            yield changed


def fate(entry: Entry, known: Index, folder: Path) -> str:
    """What becomes of the address when a key changes: ``another``, ``the same``, or nothing could be tried."""
    example = yaml.load(known.snippet(entry), LOADER)
    for base in BASES:
        whole = {**{key: value for key, value in document(base).items() if key not in example}, **example}
        before = addresses(whole, folder)
        if before is None:
            continue
        found = False
        for after in (addresses(changed, folder) for changed in changes(entry, whole)):
            if after not in (None, before):
                return "another"
            found = found or after is not None
        if found:
            return "the same"
    return "not tried"


def test_every_key_is_part_of_the_address_or_there_is_a_reason(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / f"other_{name}").write_text(f"{text}\n", encoding="utf-8")
    known = index(Registry.installed())
    found = {}
    for entry in known.entries.values():
        if not entry.is_kind and not any(entry.name == key or entry.name.startswith(f"{key}.") for key in NO_PART):
            for one in variants(entry):
                found[entry.name, one.models] = fate(one, known, tmp_path)
    assert [(*names, what) for names, what in found.items() if what != "another"] == []
