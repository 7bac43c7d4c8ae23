"""A quick variant is a scaled-down copy of its full scenario: only sizes differ.

Sizes are the numbers of agents, turns, domain points and replications, the budgets and gaps of pure exploration, and
lengths that are stated in turns, which shrink with the number of turns. What a run records (``trace``) may differ too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.every import every

ROOT = Path(__file__).parents[2]
QUICK = sorted((ROOT / "coband" / "scenarios").rglob("*_quick.yaml"))
SIZES = set(
    (
        "replications agents.count grid.agents.count schedule.turns schedule.duration problem.domain.points "
        "problem.domain.dimension problem.arms.dimension problem.arms.count algorithms[DELB:DELB].C "
        "algorithms[PLS:PLS].C algorithms[RCLB:RCLB].C problem.gap tuning.replications until.max_replications "
        "until.relative"
    ).split()
)
IN_TURNS = {"alpha_ramp", "train_until", "window", "at", "gamma"}
"""Parameters of algorithms, and times of drift, that are numbers of turns; a discount reaches 1/(1 - gamma) of them."""
NAMES = {"name", "trace"}


def leaves(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """(key path, value) of everything in a document; algorithms go by their labels."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            name = item.get("count", item.get("label", item.get("algorithm", number)))
            yield from leaves(item, f"{path}[{item.get('label', '')}:{name}]")
    else:
        yield path, value


def read(file: Path) -> dict[str, Any]:
    return dict(leaves(yaml.safe_load(file.read_text(encoding="utf-8"))))


def in_turns(value: Any) -> list[float]:
    """The numbers of turns of a value: its own, those of a list, or how far a discount reaches."""
    if isinstance(value, list):
        return value
    return [1 / (1 - value) if 0 < value < 1 else value]


def is_scaled_down(path: str, full: Any, quick: Any, scale: float) -> bool:
    """Whether a value of the quick variant is the full one's in small."""
    leaf = path.rpartition(".")[2]
    if path in SIZES or path in NAMES:
        return True
    if leaf in IN_TURNS and not path.startswith("grid."):
        turns = [in_turns(one) for one in (full, quick)]
        return all(abs(small - large * scale) < 1.0 for large, small in zip(*turns, strict=True))
    if path.startswith("grid."):
        return quick is None or (isinstance(quick, list) and all(value in full for value in quick))
    return path.startswith("expect[") and leaf in ("at_most", "at_least", "equals") and quick is not None


@every("file", QUICK, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_only_sizes_differ(file: Path) -> None:
    full, quick = read(file.with_name(file.name.replace("_quick", ""))), read(file)
    scale = quick.get("schedule.turns", 1) / full.get("schedule.turns", 1)
    assert [
        f"{path}: {full.get(path)} -> {quick.get(path)}"
        for path in sorted(full.keys() | quick.keys())
        if full.get(path) != quick.get(path) and not is_scaled_down(path, full.get(path), quick.get(path), scale)
    ] == []


def test_a_quick_variant_is_smaller() -> None:
    for file in QUICK:
        full, quick = read(file.with_name(file.name.replace("_quick", ""))), read(file)
        assert quick["replications"] <= full["replications"], file


def test_another_parameter_is_found() -> None:
    assert not is_scaled_down("algorithms[Async:Async].threshold", 5, 1, 0.1)
    assert not is_scaled_down("algorithms[FN-UCB:FN-UCB].train_until", 2000, 8, 0.05)
    assert not is_scaled_down("grid.network.loss", [0, 0.1], [0.2], 0.1)
