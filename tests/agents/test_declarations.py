"""What algorithms declare beside their parameters, and what records promise: changed on purpose alone.

Needs, sizes of messages, closed forms, metrics and rates are shown by ``coband describe`` and decide what is
refused. Records are instances of dataclasses: frozen ones are not changed by whoever is given them, those with slots
have no other attributes, those without ``eq`` are told apart by identity. ``python -m tests.agents.test_declarations``
writes the file anew.
"""

import dataclasses
import json
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import coband.agents
import coband.server
import coband.simulator.core
from coband.extensions.conformance import graphs, runs
from coband.extensions.conformance.communication import common, run_quantities
from coband.extensions.live.codec import Codec
from coband.simulator.core import algorithm as formulas
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.metrics import CORE
from coband.simulator.core.nodes.message import Message
from coband.simulator.experiments.registry.registry import Registry
from tests.every import every

FILE = Path(__file__).with_name("declarations.json")
PACKAGES = (coband.agents, coband.server, coband.simulator.core)
APART = ("name", "agent", "config", "summary")  # what other tests and pages are about


PROBLEM = {"kind": "network", "arms": graphs.POOL, "kernel": {"kind": "gaussian", "gamma": 1.0}}


def declared(algorithm: Algorithm) -> dict[str, Any]:
    """All that an algorithm declares, as far as it differs from the defaults."""
    found: dict[str, Any] = {key: value for key, value in _plain(algorithm).items() if key not in APART}
    found["noted"] = dict(algorithm.agent.noted)
    if algorithm.server is not None:
        module, name = algorithm.server.split(":")
        found["noted by the server"] = dict(getattr(import_module(module), name).noted)
    return found


def metrics() -> list[dict[str, Any]]:
    """The numbers that every result has, as far as they differ from the defaults."""
    return [_plain(metric) for metric in CORE]


def _plain(value: Any) -> Any:
    """What JSON can hold; functions and classes by name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if _said(value, field)
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(one) for one in value]
    return (
        value if isinstance(value, str | float | int | None) else getattr(value, "__qualname__", type(value).__name__)
    )


def _said(record: Any, field: dataclasses.Field[Any]) -> bool:
    """Whether a field has another value than its default."""
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return bool(getattr(record, field.name) != default)


def records() -> dict[str, str]:
    """Of each dataclass of nodes and core whether it is frozen, has slots, and is compared by value."""
    return {f"{one.__module__}.{one.__qualname__}": _promises(one) for one in _dataclasses()}


def _dataclasses() -> Iterator[type]:
    for package in PACKAGES:
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(info.name)
            for one in vars(module).values():
                if isinstance(one, type) and one.__module__ == info.name and "__dataclass_fields__" in vars(one):
                    yield one


def _promises(record: Any) -> str:
    given = record.__dataclass_params__
    words = {"frozen": given.frozen, "slots": "__slots__" in vars(record), "eq": given.eq, "order": given.order}
    return ", ".join(word for word, holds in words.items() if holds) or "nothing"


def pinned() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def algorithms() -> dict[str, Algorithm]:
    return dict(Registry.installed().algorithms)


@every("name", sorted(algorithms()))
def test_algorithms_declare_the_same_as_before(name: str) -> None:
    now = json.loads(json.dumps(declared(algorithms()[name])))
    assert now == pinned()["algorithms"].get(name), "python -m tests.agents.test_declarations writes the file"


def test_records_promise_the_same_as_before() -> None:
    assert records() == pinned()["records"], "python -m tests.agents.test_declarations writes the file"


def test_every_result_has_the_same_numbers_as_before() -> None:
    assert metrics() == pinned()["metrics"], "python -m tests.agents.test_declarations writes the file"


def test_algorithms_can_be_members_of_sets() -> None:
    entries = algorithms().values()
    assert len({*entries}) == len(entries)


def test_what_formulas_may_speak_of_is_explained() -> None:
    """In a star and in a graph: what is known of a run beside the numbers of its result."""
    star = runs.run("one_kernel_ucb", {}, problem=runs.FIXED_PROBLEM)
    graph = graphs.run("eager_kernel_ucb", {}, PROBLEM)
    assert set(common(star)) == set(formulas.COMMON_QUANTITIES)
    known = {key for run in (star, graph) for key in set(run_quantities(run, "rounds")) - set(run.result.totals)}
    assert known - {"turns", "rounds"} == set(formulas.RUN_QUANTITIES)
    assert all({**formulas.COMMON_QUANTITIES, **formulas.RUN_QUANTITIES}.values())


def test_nothing_is_pinned_that_is_gone() -> None:
    assert set(pinned()["algorithms"]) == set(algorithms())


@every("name", sorted(algorithms()))
def test_traces_tell_the_messages_of_an_algorithm_apart(name: str) -> None:
    kinds = [message.kind for message in {size.message for size in algorithms()[name].messages}]
    assert len(set(kinds)) == len(kinds)
    assert Message.kind not in kinds


@pytest.mark.parametrize(
    ("name", "kind", "config"),
    [
        ("approx_dis_kernel_ucb", "dictionary", {"threshold": 0.5}),
        ("async_kernel_ucb", "dictionary", {"threshold": 0.5}),
        ("duets", "inducing_set", {"p0": 10.0}),
        ("one_kernel_ucb", "lost_points", {}),
    ],
)
def test_messages_have_the_shapes_that_they_declare(name: str, kind: str, config: dict[str, Any]) -> None:
    """Another process reads them as they were sent, points of all sizes included."""
    schedule, lossy = {"kind": "rounds", "turns": 10}, {"max_attempts": 1, "timeout": 0.5}
    network = {"latency": 0.1, "loss": 0.3, "retransmission": lossy} if kind == "lost_points" else {}
    made = runs.run(name, config, agents=3, schedule=schedule, network=network)
    codec = Codec([type(message) for message in made.sent], 3)
    sizes = set()
    for message in made.sent:
        found: Any = codec.decode(codec.encode(message))
        assert found.scalars == message.scalars
        if message.kind == kind:
            sizes.add(found.points.shape)
    assert {size[1] for size in sizes} == {3}
    assert len({size[0] for size in sizes}) > 1


if __name__ == "__main__":
    everything = {name: declared(algorithm) for name, algorithm in sorted(algorithms().items())}
    text = json.dumps(
        {"algorithms": everything, "metrics": metrics(), "records": dict(sorted(records().items()))},
        indent=1,
        ensure_ascii=False,
    )
    FILE.write_text(f"{text}\n", encoding="utf-8")
