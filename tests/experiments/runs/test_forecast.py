"""How long a study takes, before it begins and while it runs; and limits of time and disk."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import costs, driver, forecast, limits
from coband.simulator.experiments.runs.costs import Memories
from coband.simulator.experiments.runs.forecast import Forecast, estimate, span
from coband.simulator.experiments.runs.study import load_run
from coband.simulator.experiments.scenario.document import DURATIONS, SIZES, Limit, amount
from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.sweep.study import load_study

TEXT = """\
name: small
seed: 3
replications: 4
agents: {count: 5}
schedule: {kind: rounds, turns: 40}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 8}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: lin_ucb}
  - {algorithm: n_kernel_ucb, kernel: {kind: gaussian, gamma: 1.0}, alpha: 0.1}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(TEXT)
    return Path("small.yaml")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, 4.9, "less than 5 s"),
        (3.2, 8.4, "about 3 to 8 s"),
        (71, 290, "about 1.2 to 5 min"),
        (0.2, 400, "less than 7 min"),
        (5400, 36_000, "about 1.5 to 10 h"),
        (1e6, 1e8, "about 12 to 1,200 d"),
    ],
)
def test_a_range_of_time_in_words(low: float, high: float, words: str) -> None:
    assert span(low, high) == words


def test_every_algorithm_is_in_the_table() -> None:
    measured = costs.table()["seconds"]["algorithms"]
    assert set(Registry.installed().algorithms) - set(measured) <= UNMEASURED
    for _, slopes, spread in measured.values():
        assert slopes[0] >= 1
        assert min(slopes[2:]) >= 0  # more agents with as many pulls in all may cost less
        assert 0.2 <= spread < 2


@pytest.mark.parametrize("name", ["fixed_confidence_same", "fixed_budget_same"])
def test_jobs_that_end_by_a_rule_of_their_own_are_in_the_table(name: str) -> None:
    study = load_study(Path(f"cope_kb/{name}"))
    for variant in study.variants:
        known = costs.features(variant.scenario)
        assert known[0] is None
        found = costs.typical(variant.configured.algorithm.name, known, "seconds")
        assert found is not None
        assert 1e-4 < math.exp(found[0]) < 1.0
        assert costs.typical(variant.configured.algorithm.name, known, "bytes") is None


UNMEASURED = {
    "async_lin_ucb_am",
    "delb",
    "rclb",
    "fed_pe",
    "pls",
    "ind_uniform_fb",
    "discounted_lin_ucb",
    "discounted_dis_lin_ucb",
    "sw_lin_ucb",
    "lin_ts",
    "oful",
}
UNMEASURED |= {"kernel_ts", "igp_ucb", "gp_ucb", "fed_ucb", "fed_ucb_graph", "fts", "fts_de", "dp_fts", "dp_fts_de"}
"""Those that no quick scenario runs; they count as the mean of all, with twice the spread."""


def test_more_takes_longer_and_what_was_met_is_known(file: Path, tmp_path: Path) -> None:
    small, large = load_run(file), load_run(file, ["schedule.turns=4000"])
    first, second = estimate(small, 1), estimate(large, 1)
    assert first.seconds is not None
    assert second.seconds is not None
    assert second.seconds[0] > 10 * (first.seconds[0] - forecast.STARTS_IN)
    assert not first.notable
    variant, known = small.variants[1], Memories(tmp_path / "costs.json")
    entry = variant.configured
    assert entry.label == "n_kernel_ucb"
    known.note(variant.scenario, entry, 200, 33.0)
    known.keep()
    again = Memories(tmp_path / "costs.json")
    assert again.predict(variant.scenario, entry) == pytest.approx((math.log(33.0), costs.MET_BEFORE), abs=1e-3)
    other = large.variants[1]
    log, spread = again.predict(other.scenario, entry) or (0.0, 0.0)
    assert log == pytest.approx(math.log(33.0) + costs.growth("n_kernel_ucb") * math.log(100), abs=0.01)
    assert spread > costs.MET_BEFORE
    (tmp_path / "costs.json").write_text("{")
    assert Memories(tmp_path / "costs.json").predict(variant.scenario, entry) is not None


def test_the_time_left_follows_a_job_under_way(file: Path) -> None:
    """With share f of its pulls done a job has used f^b of its time."""
    found = Forecast(load_run(file, ["replications=1"]), 1)
    before = found.left({0: 1, 1: 1})
    assert before is not None
    found.begins("a", 1)
    found.advances("a", 50, 30.0)
    whole = 30.0 * 4 ** max(0.5, costs.growth("n_kernel_ucb"))
    assert found.under_way == 0.25
    left = found.left({0: 1, 1: 1})
    assert left == pytest.approx(whole - 30 + (found.expected(0) or 0.0))
    found.ends("a", {"wall_seconds": 80.0, "cpu_seconds": 80.0, "turns": 200})
    assert (found.under_way, found.expected(1)) == (0.0, 80.0)
    assert found.left({0: 1, 1: 2}) == pytest.approx(160.0 + (found.expected(0) or 0.0))


@pytest.mark.parametrize(
    ("key", "given", "problem"),
    [
        ("wall_time", "30", "30 is not allowed: write a positive number with a unit, s, min, h or d"),
        ("wall_time", "0s", "0s is not allowed: write a positive number with a unit, s, min, h or d"),
        ("wall_time", "2GB", "2GB is not allowed: write a positive number with a unit, s, min, h or d"),
        ("disk", "2G", "2G is not allowed: write a positive number with a unit, kB, MB, GB, TB, KiB, MiB, GiB or TiB"),
    ],
)
def test_a_limit_needs_a_unit(file: Path, key: str, given: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as error:
        load_run(file, [f"limit.{key}={given}"])
    assert problem in str(error.value).replace("'", "")


def test_limits_have_units(file: Path) -> None:
    assert (amount("1.5 h", DURATIONS), amount("2GB", SIZES), amount("1KiB", SIZES)) == (5400, 2e9, 1024)
    limit = load_run(file, ["limit.wall_time=30min"]).limit
    assert limit == Limit(wall_time="30min")
    assert (limit.seconds, limit.bytes) == (1800, math.inf)


def test_a_run_ends_at_its_limit_and_keeps_what_is_finished(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", str(file), "--workers", "1", "--replications", "3000", "--out", "out"]
    assert exit_status([*words, "--set", "limit={wall_time: 4s}"]) == 75
    said = capsys.readouterr().err
    assert "stopped (limit.wall_time, 4s, is reached)" in said
    found = json.loads(Path("out/results.json").read_text())
    assert json.loads(Path("out/manifest.json").read_text())["status"] == "stopped"
    done = sum(len(entry["replications"]) for entry in found["results"])
    assert done > 0
    assert f"{done:,} finished jobs are kept in out, {6000 - done:,} are missing" in said
    assert "limit:" in Path("out/scenario.yaml").read_text()


def test_a_sweep_goes_on_after_its_limit(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("grid.yaml").write_text(TEXT + "grid: {problem.noise: [0.1, 0.2]}\n")
    words = ["sweep", "grid.yaml", "--workers", "1", "--out", "out"]
    monkeypatch.setattr("sys.argv", ["coband", *words])
    assert exit_status([*words, "--set", "limit.disk=1kB", "--set", "schedule.turns=4000"]) == 75
    assert "to go on: coband sweep grid.yaml --workers 1 --resume --out out" in capsys.readouterr().err
    assert exit_status([*words, "--resume"]) == 0
    assert len(json.loads(Path("out/results.json").read_text())["results"]) == 4


PHONES = """\
name: phones
agents: {count: 30, population: {kind: preset, name: phones}}
schedule: {kind: rounds, turns: 20, interval: 600}
network: {retransmission: {timeout: 30, max_timeout: 240}}
problem: {kind: contextual, arms: {kind: sphere, dimension: 3, count: 4}, reward: {kind: linear, theta: sphere}}
algorithms:
  - {algorithm: async_lin_ucb, label: Async, alpha: 0.3, gamma_u: 5, gamma_d: 5}
"""


def test_messages_to_nodes_that_are_away_are_foretold_and_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The range of disk holds a run whose repetitions are nearly all of its trace, and a run far beyond it says so."""
    monkeypatch.chdir(tmp_path)
    Path("phones.yaml").write_text(PHONES)

    def disk(*settings: str) -> tuple[float, float]:
        return estimate(load_run(Path("phones.yaml"), settings), 1).disk

    short = "network.retransmission.max_attempts=20"
    least, most = disk(short)
    assert exit_status(["run", "phones.yaml", "--workers", "1", "--set", short, "--out", "short"]) == 0
    assert 3 * least < Path("short/run.sqlite").stat().st_size < 2 * most
    assert disk()[1] > 10 * most, "1,000 attempts"
    assert disk("agents.population=null") == (least, least)
    assert disk("trace=off") == (forecast.UNTRACED, forecast.UNTRACED)
    steady = ["agents.population=null", "agents.availability={kind: markov_on_off, mean_up: 1e5, mean_down: 1e5}"]
    assert disk(*steady)[1] > 10 * least
    joining = ["agents.population=null", "agents.leaves={kind: poisson, rate: 0.001}"]
    assert len(set(disk(*joining))) == 1, "what is meant for those who left is given up at once"
    assert "or up to about" in str(estimate(load_run(Path("phones.yaml")), 1))
    unknown = ["agents.population=null", "schedule={kind: renewal, think: {kind: constant, value: 9}, duration: 99}"]
    assert "at least 59 KiB of disk" in str(estimate(load_run(Path("phones.yaml"), unknown), 1))

    capsys.readouterr()
    monkeypatch.setattr(limits, "LITTLE_DISK", 4e5)
    monkeypatch.setattr(driver, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(limits, "WEIGH_SECONDS", 0.0)
    monkeypatch.setattr(limits, "FAR", 0.01)
    words = ["run", "phones.yaml", "--workers", "1", "--out", "long", "--set", "limit.disk=600kB"]
    assert exit_status([*words, "--set", "schedule.turns=2"]) == 75, "also where so few pulls tell nothing"
    said = capsys.readouterr().err
    assert said.count("warning: long has ") == 1
    assert "were foretold, and the disk has room for" in said

    monkeypatch.setattr(driver, "LOOK_SECONDS", 0.05)
    words = ["run", "phones.yaml", "--workers", "1", "--out", "timed", "--set", "limit.wall_time=0.5s"]
    assert exit_status([*words, "--trace", "off"]) == 75, "also where no trace is kept"
