"""Bounds of theorems: their formulas, the measured information gain, slopes, and assumptions that do not hold."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.agents.async_parameters import accuracy_ratio, confidence_width, sampling_rate
from coband.simulator.analysis.theory.gain import Pulls, pulls
from coband.simulator.analysis.theory.growth import Growth, _at, checkpoints, slope
from coband.simulator.analysis.theory.setting import facts
from coband.simulator.core.algorithm import Bound
from coband.simulator.core.formulas import evaluate, names_in
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.store.store import Series
from coband.simulator.maths.kernels.library import Gaussian

INSTALLED = Registry.installed().algorithms
KERNEL = {"kind": "gaussian", "gamma": 1.0}
STUDY: dict[str, Any] = {
    "name": "theory",
    "seed": 2,
    "replications": 3,
    "agents": {"count": 3},
    "schedule": {"kind": "one_at_a_time", "turns": 90},
    "problem": {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": 2, "count": 5},
        "reward": {"kind": "cosine"},
        "noise": 0.1,
    },
    "trace": "full",
    "algorithms": [
        {"algorithm": "async_kernel_ucb", "label": "Async", "kernel": KERNEL, "alpha": 0.5, "threshold": 0.2},
        {"algorithm": "n_kernel_ucb", "label": "Alone", "kernel": KERNEL, "alpha": 0.5},
    ],
}


def growths(run: coband.Run) -> dict[str, Growth]:
    with run._analysed() as analysis:
        return {one.bound.count: one for one in analysis.growths}


def test_the_gain_is_the_determinant_of_what_was_pulled() -> None:
    points = np.random.default_rng(1).normal(size=(30, 2))
    kernel = Gaussian(gamma=0.7)
    gain = Pulls(points).gain(kernel, 0.3)
    for t in (1, 7, 30):
        K = np.exp(-0.7 * ((points[:t, None] - points[None, :t]) ** 2).sum(axis=2))
        assert gain[t - 1] == pytest.approx(0.5 * np.linalg.slogdet(np.eye(t) + K / 0.3)[1], rel=1e-9)


def test_slopes_of_powers() -> None:
    places = checkpoints(4000)
    assert (places[0], places[-1], len(places)) == (1000, 4000, 16)
    assert slope(places, 3.0 * places**0.5) == pytest.approx(0.5)
    assert slope(places, np.full(16, 11.7)) == 0.0
    assert slope(checkpoints(1), np.ones(1)) == 0.0


def test_nothing_is_known_before_the_first_batch() -> None:
    """One batch of each of three agents: a quarter of the pulls is before the first stored point."""
    series = Series(0, np.array([100, 200, 300]), np.ones(3), np.array([3.0, 5.0, 6.0]), np.array([1, 2, 3]))
    assert _at(series, "regret", np.array([75.0, 100.0, 250.0, 300.0])).tolist() == [0.0, 3.0, 5.0, 6.0]


def test_theorem_4_5_of_paper_000() -> None:
    """The formulas against the theorem in plain arithmetic, with the constants that the algorithm itself uses."""
    N, T, d, gain, lam, S, R, delta, eps, D, L = 4, 500, 3, 7.5, 0.8, 1.5, 0.2, 0.1, 1 / 3, 0.3, 1.1
    beta = accuracy_ratio(eps)
    alpha = confidence_width(gain, agents=N, threshold=D, epsilon=eps, lam=lam, norm=S, noise=R, delta=delta)
    regret = 4 * N * gain * L * S
    regret += 4 * math.sqrt(2) * alpha * math.sqrt(T * beta * (1 + N * beta * (L**2 / lam + D)) * gain)
    size = 12 * beta * (1 + beta * D) * sampling_rate(eps, T, delta) * gain
    scalars = 2 * gain * (N + 4 * beta / D) * (3 * (size**2 + size) + d * size)
    algorithm = INSTALLED["async_kernel_ucb"]
    config = algorithm.config(lam=lam, B=S, R=R, delta=delta, epsilon=eps, threshold=D, q="theory")
    values = {**algorithm.parameters(config), "N": N, "T": T, "horizon": T, "d": d, "gain": gain, "kmax": L**2}
    first, second = algorithm.bounds
    assert evaluate(first.formula, first.quantities(values)) == pytest.approx(regret)
    assert evaluate(second.formula, second.quantities(values)) == pytest.approx(scalars)
    assert evaluate(first.scale, first.quantities(values)) == pytest.approx(D * beta * lam)


def test_algorithms_and_their_bounds_can_be_members_of_sets() -> None:
    bounds = [bound for algorithm in INSTALLED.values() for bound in algorithm.bounds]
    assert len({*INSTALLED.values()}) == len(INSTALLED)
    assert bounds
    assert all(bound in {bound} for bound in bounds)


@pytest.mark.parametrize("less_comm", [False, True])
def test_theorem_1_of_paper_002(less_comm: bool) -> None:
    """d sqrt(T N) + d_max N sqrt(T) of T pulls of each agent; with less communication the second is sqrt(N) larger."""
    bound = INSTALLED["fn_ucb"].bounds[0]

    def at(N: float, each: float) -> float:
        return float(evaluate(bound.formula, bound.quantities({"N": N, "T": N * each, "less_comm": less_comm})))

    for N, T in ((4.0, 100.0), (9.0, 400.0)):
        assert at(N, T) == pytest.approx(math.sqrt(T * N) + N * math.sqrt(T) * (math.sqrt(N) if less_comm else 1))


@pytest.mark.parametrize("name", [name for name, one in INSTALLED.items() if one.bounds])
def test_declared_bounds_can_be_evaluated(name: str) -> None:
    algorithm = INSTALLED[name]
    values: dict[str, Any] = {
        **algorithm.parameters(algorithm.config()),
        **{"N": 5, "d": 3, "T": 1000.0, "horizon": 1000, "gain": 6.0, "kmin": 1.0, "kmax": 1.0},
        **{"delays": False, "losses": False},
    }
    for bound in algorithm.bounds:
        known = bound.quantities(values)
        assert evaluate(bound.formula, known) > 0
        assert bound.count in Registry.installed().metrics
        assert re.match(r"[A-Z].* 20\d\d, ", bound.source)
        for one in bound.assumes:
            assert one.meaning
            if one.holds:
                assert evaluate(one.holds, values) in (True, False)
                assert set(names_in(one.holds)) <= values.keys()


def test_a_run_beside_its_theorem(tmp_path: Path) -> None:
    run = coband.run(STUDY, workers=1, out=tmp_path / "run")
    found = growths(run)
    assert set(found) == {"regret", "scalars"}
    regret = found["regret"]
    with run._opened() as stored:
        for series, job in zip(stored.series("Async"), stored.select("Async"), strict=True):
            known = pulls(job)
            assert isinstance(known, Pulls)
            assert known.points.shape == (90, 2)
            assert len(np.unique(known.points, axis=0)) > 10
            assert series.turns[-1] == 90
    assert regret.slope is not None
    assert regret.limit is not None
    assert 0.5 < regret.limit.mean < 2.0
    assert regret.bounded[-1] > regret.measured[-1]  # it has all its constants
    assert regret.verdict in ("slower than the bound", "faster than the bound", "undecided")
    assert regret.broken == ("q as in lemma 4.1", "alpha as in lemma 4.4")
    assert regret.unchecked == ()


def test_what_does_not_hold_is_said(tmp_path: Path) -> None:
    setting = {
        "network.latency": 0.1,
        "algorithms.Async.lam": 2,
        "algorithms.Async.transfer": "delta",
        "replications": 1,
    }
    run = coband.run(STUDY, set=setting, only="Async", workers=1, out=tmp_path / "run")
    found = growths(run)["scalars"]
    assert "messages and turns take no time" in found.broken
    assert "lambda <= k(x, x) (lemma 4.1)" in found.broken
    assert "whole dictionaries and statistics are sent" in found.broken
    assert found.verdict == "one replication: no statement about chance"


def test_without_a_full_trace_the_gain_is_not_known(tmp_path: Path) -> None:
    run = coband.run(STUDY, trace="protocol", replications=2, workers=1, out=tmp_path / "run")
    found = growths(run)["regret"]
    assert found.slope is not None
    assert found.limit is None
    assert "run with --trace full" in found.verdict
    assert "lambda <= k(x, x) (lemma 4.1)" in found.unchecked


def test_theorems_about_regret_are_about_a_parameter_that_stays(tmp_path: Path) -> None:
    problem = {**STUDY["problem"], "drift": {"kind": "walk", "step": 0.1}}
    drifting = coband.run({**STUDY, "problem": problem}, only="Async", replications=2, workers=1, out=tmp_path / "run")
    found = growths(drifting)
    assert "the hidden parameter stays as it is" in found["regret"].broken
    assert "the hidden parameter stays as it is" not in found["scalars"].broken


def test_python_and_the_report_show_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'coband[report]'")
    run = coband.run(STUDY, replications=2, workers=1, out=tmp_path / "run")
    page = run.report().read_text(encoding="utf-8")
    assert "What theorems promise" in page
    sentence = "Async, scalars: Li et al. 2023, theorem 4.5 assumes what does not hold here: q as in lemma 4.1."
    assert sentence in page
    titles = [axis.get_title(loc="left") for axis in run.plot.figure("theory").axes]
    assert titles == ["growth of regret, and of its bounds (dashed)", "growth of scalars, and of its bounds (dashed)"]
    alone = coband.run(STUDY, only="Alone", replications=2, workers=1, out=tmp_path / "alone")
    assert "What theorems promise" not in alone.report().read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "delays", "losses"),
    [
        ({}, False, False),
        ({"latency": {"kind": "constant", "value": 0.0}}, False, False),
        ({"latency": {"kind": "exponential", "rate": 1.0}}, True, False),
        ({"bandwidth": 10.0}, True, False),
        ({"loss": 0.1, "transport": "reliable"}, True, False),
        ({"loss": 0.1, "transport": "datagram"}, False, True),
        ({"links": [{"loss": 0.1}], "transport": "datagram"}, False, True),
        ({"links": [{"loss": 0.1}], "transport": "reliable"}, True, False),
        ({"links": [{"bandwidth": 9.0}]}, True, False),
        ({"partitions": [{}]}, False, True),
    ],
)
def test_settings(change: dict[str, Any], delays: bool, losses: bool) -> None:
    found = facts({"agents": {"count": 3}, "network": change, "problem": {"arms": {"dimension": 4}}})
    assert found == {"N": 3, "d": 4, "delays": delays, "losses": losses}


def test_a_plugin_with_a_wrong_bound_is_refused() -> None:
    from dataclasses import replace

    from coband.simulator.experiments.registry.registry import checked_algorithm
    from coband.simulator.plugins.entry_points import PluginError

    wrong = replace(INSTALLED["duets"], bounds=(Bound("regret", "sqrt(T", "x"),))
    with pytest.raises(PluginError, match="is no formula"):
        checked_algorithm("duets", wrong)
    with pytest.raises(PluginError, match=r"bounds hold coband\.Bound"):
        checked_algorithm("duets", replace(wrong, bounds=("T",)))  # type: ignore[arg-type]
