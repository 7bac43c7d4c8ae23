"""Claims at equal values of a metric: by hand, from runs in plain loops, and the error rate in synthetic studies."""

import math
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import coband
from coband.extensions.evidence.claims import trials
from coband.extensions.evidence.claims.comparisons import Presupposed, Ratio
from coband.extensions.evidence.claims.outcome import Outcome, fails_of, holds_of, verdicts
from coband.extensions.evidence.claims.pages import in_words
from coband.extensions.evidence.claims.reading import read_claim
from coband.extensions.evidence.claims.reproduction import Reproduction
from coband.extensions.evidence.claims.results import OUTCOME
from coband.extensions.evidence.claims.samples import SampleError
from coband.extensions.evidence.claims.trials import Point
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.runs.executor import InProcess
from coband.simulator.scenario_errors import ScenarioError

FIRST: list[Point] = [(30.0, 20.0, {"D": 3}), (10.0, 100.0, {"D": 1}), (25.0, 60.0, {"D": 9}), (20.0, 50.0, {"D": 2})]
SECOND: list[Point] = [(12.0, 200.0, {"D": 1}), (28.0, 40.0, {"D": 2})]
SCENARIO = """\
name: levels
seed: 3
replications: 1
agents: {count: 3}
schedule: {kind: rounds, turns: 30}
problem:
  kind: contextual
  arms: {kind: ball, dimension: 2, count: 5}
  reward: {kind: cosine}
  noise: 0.3
algorithms:
  - {algorithm: async_kernel_ucb, label: A, alpha: 0.3, threshold: 1}
  - {algorithm: async_kernel_ucb, label: B, alpha: 0.4, threshold: 1}
"""
CLAIM = """\
title: at equal regret
where: nowhere
statement: Two algorithms that differ little send about as much at equal regret.
open:
  D: {set: [algorithms.A.threshold, algorithms.B.threshold], values: [0.1, 1, 9], why: not printed}
quantifier: at_equal
at_equal: {metric: regret, tolerance: 0.5, levels: 2}
tuning: {replications: 3}
studies: {scenario: levels.yaml}
replications: {first: 3, most: 3}
conditions:
  - {kind: ratio, of: scalars, first: A, second: B, at_most: 3}
"""


def test_by_hand() -> None:
    """(25, 60) is beaten by (20, 50). At 12, D = 1 has weight 0.8: 0.8 * 100 + 0.2 * 50 = 90 scalars; at 28, 26."""
    frontiers = {"A": trials.frontier(FIRST), "B": trials.frontier(SECOND)}
    assert [point[:2] for point in frontiers["A"]] == [(10.0, 100.0), (20.0, 50.0), (30.0, 20.0)]
    assert trials.common(frontiers, "regret", 3) == [12.0, 20.0, 28.0]
    assert trials.common(frontiers, "regret", 1) == [20.0]
    costs: dict[object, float] = {1: 100.0, 2: 50.0, 3: 20.0}
    blends = [trials.blend(frontiers["A"], level) for level in (12.0, 20.0, 28.0, 30.0)]
    assert [sum(weight * costs[one["D"]] for weight, one in blend) for blend in blends] == [90.0, 50.0, 26.0, 20.0]
    assert trials.blend(frontiers["B"], 20.0) == [(0.5, {"D": 1}), (0.5, {"D": 2})]


def test_frontiers_that_do_not_overlap_are_refused() -> None:
    frontiers = {"A": trials.frontier(FIRST), "B": [(31.0, 5.0, {"D": 1})]}
    with pytest.raises(SampleError, match=r"do not overlap.*equal regret \(A 10 to 30; B 31 to 31\)"):
        trials.common(frontiers, "regret", 3)


def reproduced(folder: Path, text: str) -> tuple[Outcome, str]:
    (folder / "levels.yaml").write_text(SCENARIO)
    (folder / "claim.yaml").write_text(text)
    claim = read_claim(folder / "claim.yaml")
    reproduction = Reproduction([claim], folder / "out", InProcess())
    reproduction.run()
    (outcome,) = reproduction.outcomes()
    again = Reproduction(
        [claim], folder / "again", InProcess(), earlier={claim.key: OUTCOME.validate_python(asdict(outcome))}
    )
    again.run()
    assert again.outcomes()[0].findings == outcome.findings
    return outcome, in_words(outcome, claim.claim, verdicts([outcome])[0])


@cache
@cache
def numbers(label: str, threshold: float, seed: int, replications: int) -> FloatArray:
    changes = {"seed": seed, "replications": replications, f"algorithms.{label}.threshold": threshold}
    table = coband.run(coband.Scenario.of(SCENARIO), set=changes, only=label, workers=1).results
    return np.array([table["regret"], table["scalars"]], dtype=float)


def test_from_the_runs_themselves(tmp_path: Path) -> None:
    """Levels and weights from the seeds of tuning, rows from the claim's own seed."""
    outcome, _ = reproduced(tmp_path, CLAIM)
    curves = {}
    for label in "AB":
        means = [(*numbers(label, d, 777_001, 3).mean(axis=1), d) for d in (0.1, 1, 9)]
        curves[label] = sorted(p for p in means if not any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in means))
    bounds = max(c[0][0] for c in curves.values()), min(c[-1][0] for c in curves.values())
    assert bounds[0] < bounds[1]
    for level, part in zip(bounds, outcome.parts().values(), strict=True):
        rows = []
        for label in "AB":
            places = [point[0] for point in curves[label]]
            shares = [np.interp(level, places, np.eye(len(places))[number]) for number in range(len(places))]
            rows.append(sum(w * numbers(label, p[2], 3, 3) for w, p in zip(shares, curves[label], strict=True)))
        scalars, regrets = (np.array([row[number] for row in rows]).T for number in (1, 0))
        assert np.array(part[0].rows) == pytest.approx(scalars, rel=1e-5)
        assert np.array(part[1].rows) == pytest.approx(regrets, rel=1e-5)
        assert [one.given for one in part] == [False, True]


def test_a_claim_without_overlap_says_so_and_others_go_on(tmp_path: Path) -> None:
    text = CLAIM.replace("[algorithms.A.threshold, algorithms.B.threshold]", "[algorithms.A.threshold]")
    (tmp_path / "out").mkdir()
    outcome, _ = reproduced(tmp_path, text.replace("values: [0.1, 1, 9]", "values: [1.0e-9, 1.0e-8]"))
    assert verdicts([outcome]) == ["not run"]
    assert "the frontiers do not overlap" in outcome.reason


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("quantifier: at_equal", "quantifier: any", "quantifier: at_equal needs at_equal"),
        (
            "kind: ratio, of: scalars, first: A, second: B, at_most: 3",
            "kind: value, of: scalars, term: A, at_most: 3",
            "kinds",
        ),
    ],
)
def test_what_it_is_about(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "levels.yaml").write_text(SCENARIO)
    (tmp_path / "claim.yaml").write_text(CLAIM.replace(old, new))
    with pytest.raises(ScenarioError, match=message):
        read_claim(tmp_path / "claim.yaml")


def studied(rng: np.random.Generator, ratio: float) -> tuple[bool, bool]:
    """Whether a synthetic study at the border finds a wrong verdict at some look: on the blends, on the frontiers.

    Cost is inverse to regret, A's is a multiple of B's; settings, noise and worlds differ, four replications tune.
    """
    settings = {"A": np.array([60.0, 80, 110, 150]), "B": np.array([70.0, 90, 120])}
    scale = {"A": ratio, "B": 1.0}
    means = {label: np.array([s, 1e4 * scale[label] / s]) for label, s in settings.items()}

    def drawn(label: str, worlds: FloatArray) -> FloatArray:
        own = rng.normal(1, 0.05, (2, len(settings[label]), len(worlds)))
        return means[label][..., None] * worlds * own

    worlds = rng.lognormal(0, 0.1, 44)
    data = {label: drawn(label, worlds) for label in settings}
    tuning = {label: one[..., :4].mean(axis=-1) for label, one in data.items()}
    fronts = {
        label: trials.frontier([(*one[:, i], {"D": i}) for i in range(one.shape[1])]) for label, one in tuning.items()
    }
    (level,) = trials.common(fronts, "regret", 1)
    blends = {label: trials.blend(front, level) for label, front in fronts.items()}
    rows = {label: sum(w * data[label][:, one["D"], 4:] for w, one in parts) for label, parts in blends.items()}  # type: ignore[call-overload]
    truth = {label: sum(w * means[label][:, one["D"]] for w, one in parts) for label, parts in blends.items()}  # type: ignore[call-overload]
    cost = Ratio(kind="ratio", of="scalars", first="A", second="B", at_most=0.5)
    equal = Presupposed(kind="equal", of="regret", first="A", second="B", margin=0.05)
    (regret_a, cost_a), (regret_b, cost_b) = truth["A"], truth["B"]
    holds = cost_a <= 0.5 * cost_b and abs(regret_a - regret_b) <= 0.05 * regret_b
    fails = cost_a > 0.5 * cost_b and abs(regret_a - regret_b) <= 0.05 * regret_b
    wrong = off = False
    for n in range(5, 41, 5):
        part = [one.judge([[rows["A"][k, r], rows["B"][k, r]] for r in range(n)]) for one, k in ((cost, 1), (equal, 0))]
        found = holds_of(part) >= math.log(20), fails_of(part) >= math.log(20)
        wrong |= (found[0] and not holds) or (found[1] and not fails)
        off |= (found[0] and ratio > 0.5) or (found[1] and ratio <= 0.5)
    return wrong, off


@pytest.mark.parametrize("ratio", [0.5, 0.55])
def test_error_rate_in_synthetic_studies(ratio: float) -> None:
    """At most 5 % of verdicts on the blends are wrong, and with costs 10 % from the border on the frontiers too."""
    found = np.array([studied(np.random.default_rng(number), ratio) for number in range(200)])
    wrong, off = found.mean(axis=0)
    assert wrong <= 0.05, wrong
    assert ratio == 0.5 or off <= 0.05, off
