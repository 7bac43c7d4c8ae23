"""Energy: batteries by hand and against a plain loop, and what checks notice."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import runs
from coband.extensions.live.config import refusal
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.hosts.absence import Ahead, Powered
from coband.simulator.core.hosts.batteries import Batteries
from coband.simulator.core.hosts.energy import AtTimes, BaseRecharge, Battery, Charging, EnergyConfig
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError
from tests.every import every

NIGHTLY: dict[str, Any] = {"kind": "windows", "power": 1.0, "every": 20.0, "lasts": 6.0}
PHONE: dict[str, Any] = {
    "capacity": 10.0,
    "per_turn": 1.0,
    "per_bit_up": 1e-3,
    "per_bit_down": 5e-4,
    "idle": 0.05,
    "recharge": NIGHTLY,
}


def charged_at(battery: Battery, time: float) -> float:
    """When it holds enough to be used again, from a time on."""
    return battery.when(time, battery.at(time), battery.target, above=True)


def _down(run: runs.Run, agent: int) -> list[tuple[str, float]]:
    return [(tr.EVENTS[row.event], row.time - row.value) for row in run.events(tr.DOWN, tr.UP) if row.node == agent]


def test_a_battery_by_hand() -> None:
    config = EnergyConfig.model_validate(
        {"capacity": 10, "reserve": 0.2, "resume": 0.5, "idle": 0.5, "recharge": NIGHTLY}
    )
    battery = Battery(config, 0, 10.0, 0.8, 0.5)  # 8 J; connected from 10 to 16, from 30 to 36, ...
    assert battery.flat_at == pytest.approx(24.0)  # 3 J at 10, 6 at 16, of which 4 are gone
    assert battery.ready_at(24.5) == float("inf")  # empty at 28, 3 J at 36, empty at 42: it never holds 5
    battery.settle(10.0)
    assert battery.level == pytest.approx(3.0)
    battery.settle(16.0)
    assert battery.level == pytest.approx(6.0)
    assert (battery.charged, battery.idled) == (pytest.approx(6.0), pytest.approx(8.0))
    battery.settle(29.0)
    assert (battery.level, battery.idled) == (0.0, pytest.approx(14.0))  # an empty one has nothing to give


def test_periods_that_change_nothing_are_skipped_and_change_nothing() -> None:
    """Beside the same charger that does not say that it repeats; a billion periods take no time."""

    class Unsaid(AtTimes):
        @property
        def period(self) -> float:
            return math.inf

    rng, skipped = np.random.default_rng(7), 0
    for _ in range(200):
        idle, power = float(rng.choice([0.0, 0.05, 0.3, 2.0])), float(rng.uniform(0.1, 2.0))
        charger = {"power": power, "every": float(rng.uniform(2.0, 20.0)), "lasts": float(rng.uniform(0.1, 1.9))}
        both = []
        for kind in (AtTimes, Unsaid):
            config = EnergyConfig.model_validate({"capacity": 10, "idle": idle})
            config = config.model_copy(update={"recharge": kind(kind="windows", **charger)})
            both.append(Battery(config, 0, 10.0, 0.6, 0.3))
        time = 0.0
        for ahead in rng.exponential(200.0, 6):
            time += float(ahead)
            levels = [one.at(time + 3.0) for one in both]
            assert levels[0] == pytest.approx(levels[1])
            for one in both:
                one.settle(time)
                one.level -= 0.5
            said = [(one.level, one.charged, one.idled, one.flat_at, charged_at(one, time)) for one in both]
            assert said[0] == pytest.approx(said[1])
        skipped += both[0].charged > 0.0
        both[0].settle(1e9 * charger["every"])
    assert skipped == 200


def test_what_is_missing_late_in_a_long_run_is_charged_in_one_step_of_the_clock() -> None:
    recharge = {"kind": "windows", "power": 3.0, "every": 10.0, "lasts": 4.0, "spread": 0.0}
    battery = Battery(EnergyConfig.model_validate({"capacity": 5, "recharge": recharge}), 0, 5.0, 1.0, 0.0)
    battery.settle(2.0**31 * 10.0)
    battery.level = 0.25 * (1.0 - 3e-9)
    again = charged_at(battery, battery.time)
    assert battery.time < again < battery.time + 1e-5
    battery.settle(again)
    assert battery.level > battery.floor


def test_a_battery_that_runs_down_while_its_agent_is_away_is_charged_as_any_other() -> None:
    config = EnergyConfig.model_validate(
        {"capacity": 10, "level": 0.5, "reserve": 0.2, "resume": 0.3, "idle": 0.5, "recharge": NIGHTLY | {"spread": 0}}
    )
    energy = Batteries(config, 1, Streams(0), Clock())
    agent = Powered(energy, 0, [Ahead(0, iter([np.array([[15.0, 23.0]])]), lambda _: None)])
    assert agent.window == pytest.approx((15.0, 24.0))  # 8 J at 6, 2 at 18, 1 at 20, 2.5 at 23, and 3 at 24
    agent.drop()
    assert energy.ran_out == {0: pytest.approx(18.0)}


def test_chargers_that_nobody_knows_to_repeat_are_looked_at_far_ahead() -> None:
    class Cloudy(BaseRecharge):
        """Nothing for a long time."""

        def charging(self, agent: int, now: float, offset: float) -> Charging:
            yield from ((0.0, 10.0 * k) for k in range(1, 7) if 10.0 * k > now)
            yield 5.0, math.inf

    config = EnergyConfig.model_validate({"capacity": 100, "reserve": 0.2, "resume": 0.5})
    config = config.model_copy(update={"recharge": Cloudy()})
    assert charged_at(Battery(config, 0, 100.0, 0.1, 0.0), 0.0) == pytest.approx(68.0)


@pytest.mark.parametrize("seed", range(4))
def test_batteries_are_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    energy = PHONE | {"level": float(rng.uniform(0.3, 1)), "idle": float(rng.uniform(0, 0.1)), "resume": 0.3}
    energy |= {"per_turn": float(rng.uniform(1, 2)), "recharge": NIGHTLY | {"spread": 0.0}}
    schedule = {"kind": "rounds", "turns": 40, "interval": 1.3}
    run = runs.run("lin_ucb", {}, agents=1, agent={"energy": energy}, schedule=schedule)
    expected, turns = _plain_loop(energy, 40, 1.3)
    found = [time for _, time in _down(run, 0)]
    assert len(found) > 1
    np.testing.assert_allclose(found[: len(expected)], expected, atol=0.02)
    np.testing.assert_allclose([row.time for row in run.events(tr.TURN)], turns, atol=0.02)


def _plain_loop(energy: dict[str, Any], turns: int, interval: float) -> tuple[list[float], list[float]]:
    """Times of going down and coming up, and of turns, of one agent that sends nothing; in steps of 0.001."""
    level, up, due, taken, changes, starts = energy["level"] * 10.0, True, 0, 0, list[float](), list[float]()
    for step in range(1, 500_000):
        time = step / 1000
        change = ((1.0 if time % 20.0 < 6.0 else 0.0) - energy["idle"]) / 1000
        level = min(level + change, 10.0) if change > 0 else max(level + change, min(level, 0.0))
        while taken + due < turns and time >= (taken + due + 1) * interval:
            due += 1
        if not up and level >= 3.0:
            up = True
            changes.append(time)
        if up and level < 0.5:
            up = False
            changes.append(time)
        while up and due:
            due, taken, level = due - 1, taken + 1, level - energy["per_turn"]
            starts.append(time)
            if level < 0.5:
                up = False
                changes.append(time)
        if taken == turns:
            break
    return changes, starts


def test_energy_is_booked_by_purpose() -> None:
    energy = {"capacity": 1e6, "per_turn": 2.0, "per_bit_up": 0.5, "per_bit_down": 0.25, "idle": 0.125}
    network = {"scalar_bits": 32, "header_bits": 8}
    run = runs.run(
        "fed_lin_ucb", {"threshold": 0.0}, agents=2, agent={"energy": energy}, network=network,
        schedule={"kind": "rounds", "turns": 5},
    )  # fmt: skip
    totals, bits = run.result.totals, 10 * (12 * 32 + 8)  # of each direction: an exchange of d^2 + d per pull
    assert totals["messages"] == 20
    assert (totals["energy_turns"], totals["energy_up"], totals["energy_down"]) == (20.0, bits * 0.5, bits * 0.25)
    assert totals["energy_idle"] == pytest.approx(2 * 5 * 0.125)
    assert totals["energy"] == pytest.approx(20.0 + bits * 0.75 + 1.25)
    assert (totals["ran_out"], totals["energy_charged"]) == (0, 0.0)
    assert sum(one["energy"] or 0 for one in run.result.by_agent) == pytest.approx(totals["energy"])
    message, pulls = 12 * 32 + 8, np.arange(1, 11)
    answers = run.result.energy_series - pulls * (2.0 + 0.5 * message)  # some come later
    assert set((answers / (0.25 * message)).round(6)) <= {float(n) for n in range(11)}
    assert np.all((answers >= 0.0) & (answers <= 0.25 * message * pulls))
    assert run.result.energy_series[-1] <= totals["energy"] - totals["energy_idle"]
    assert not len(runs.run("lin_ucb", {}).result.energy_series)


@every("seed", range(2))
@every("members", [{}, {"leaves": {"kind": "times", "times": [[0, 9.0], [1, 14.0]]}}])
def test_batteries_stand_at_the_end_of_the_run(seed: int, members: dict[str, Any]) -> None:
    """Of agents that are asked later, by copies that nobody needs any more, idling is not counted after it."""
    agent = {
        "energy": {"capacity": 1000.0, "idle": 0.5, "per_bit_up": 1e-4},
        "availability": {"kind": "markov_on_off", "mean_up": 5.0, "mean_down": 20.0},
        **members,
    }
    parts: dict[str, Any] = {"network": {"loss": 0.5, "latency": 1.0}, "schedule": {"kind": "rounds", "turns": 10}}
    made = runs.run("fed_lin_ucb", {"threshold": 0.3}, agents=3, agent=agent, seed=seed, **parts)
    result, leaving = made.result, dict(members.get("leaves", {}).get("times", ()))
    lasted = [min(leaving.get(one, math.inf), result.simulated_time) for one in range(3)]
    assert result.totals["energy_idle"] == pytest.approx(0.5 * sum(lasted))
    for row, time in zip(result.by_agent, lasted, strict=True):
        assert row["battery"] == pytest.approx(1000.0 - row["energy"])  # type: ignore[operator]
        assert row["energy"] >= 0.5 * time  # type: ignore[operator]


def test_who_is_below_its_reserve_starts_no_turn_that_is_due() -> None:
    """From 35 J, 2 come in each turn of 10: 27, 19, 11; with a duration of 10 the fourth never starts."""
    recharge = {"kind": "rate", "power": 1.0}
    energy = {"capacity": 100, "level": 0.35, "reserve": 0.2, "resume": 0.5, "per_turn": 10, "recharge": recharge}
    schedule = {"kind": "rounds", "turns": 8, "duration": 10.0}
    result = runs.run("lin_ucb", {}, agents=1, agent={"compute": 2.0, "energy": energy}, schedule=schedule).result
    assert list(result.times) == [3.0, 5.0, 7.0]


@every("heals", [0.0, 10.0])
def test_who_is_flat_when_the_network_heals_goes_on(heals: float) -> None:
    energy = {"capacity": 6.0, "per_turn": 1.0, "recharge": {"kind": "rate", "power": 0.3}}
    parts: dict[str, Any] = {"network": {"heals": heals}, "schedule": {"kind": "rounds", "turns": 40}}
    result = runs.run("dis_lin_ucb", {"threshold": 0.3}, agent={"energy": energy}, **parts).result
    assert (result.turns, result.stalled) == (120, 0)


def test_who_comes_back_after_the_network_has_healed_need_not_have_a_charged_battery(tmp_path: Path) -> None:
    """The battery falls below its reserve at 19, when nobody goes down any more."""
    (tmp_path / "up.csv").write_text("agent,up,down\n0,30,\n")
    away = {"kind": "trace", "file": str(tmp_path / "up.csv")}
    agent = {"energy": {"capacity": 20.0, "idle": 1.0}, "availability": away}
    schedule = {"kind": "rounds", "turns": 5}
    result = runs.run("lin_ucb", {}, agents=2, agent=agent, schedule=schedule, network={"heals": 12.0}).result
    assert (result.turns, result.stalled, max(result.times)) == (10, 0, 30.0)


def test_who_ran_out_when_and_what_is_never_charged_stalls() -> None:
    energy = {"capacity": 10.0, "per_turn": 3.0, "reserve": 0.2}
    run = runs.run("lin_ucb", {}, agents=2, agent={"energy": energy}, schedule={"kind": "rounds", "turns": 5})
    assert (run.result.turns, run.result.stalled, run.result.totals["ran_out"]) == (6, 4, 2)  # 10, 7, 4, 1
    assert [one["ran_out"] for one in run.result.by_agent] == [3.0, 3.0]
    assert [one["battery"] for one in run.result.by_agent] == [1.0, 1.0]


@every("schedule", [{"kind": "rounds", "turns": 5}, {"kind": "renewal", "think": 0.5, "turns": 5}])
@every("compute", [0.0, 0.75])
def test_turns_that_nobody_can_take_any_more_are_counted(schedule: dict[str, Any], compute: float) -> None:
    """Where a turn takes time, an agent that idles runs out in the middle of one."""
    energy = {"capacity": 10.0, "per_turn": 3.0, "reserve": 0.2, "idle": 2.1 if compute else 0.0}
    run = runs.run("lin_ucb", {}, agents=2, agent={"energy": energy, "compute": compute}, schedule=schedule)
    assert (run.result.turns, run.result.stalled) == ((2, 8) if compute else (6, 4))
    assert run.result.never_taken == f"{run.result.stalled} turns were never taken: agents were down for good"
    leaves = {"leaves": {"kind": "times", "times": [[0, 1000.0], [1, 2000.0]]}}
    later = runs.run("lin_ucb", {}, agents=2, agent={"energy": energy, "compute": compute} | leaves, schedule=schedule)
    assert (later.result.turns, later.result.stalled) == (run.result.turns, run.result.stalled)


def test_agents_that_only_idle_have_no_events_and_run_out_all_the_same() -> None:
    energy = {"capacity": 10.0, "idle": 0.5}
    schedule = {"kind": "one_at_a_time", "turns": 18, "order": "weighted", "weights": [0.0, 1.0]}
    run = runs.run("lin_ucb", {}, agents=2, agent={"energy": energy}, schedule=schedule, checks="cheap")
    assert not run.events(tr.DOWN, tr.UP)
    assert [one["battery"] for one in run.result.by_agent] == pytest.approx([1.0, 1.0])
    batteries = Batteries(EnergyConfig.model_validate(energy), 2, Streams(0), Clock())
    batteries.at_end(2, 30.0)
    assert batteries.ran_out == pytest.approx({0: 19.0, 1: 19.0})
    assert batteries.totals(2)["energy"] == pytest.approx(20.0)  # an empty battery has nothing to give


@pytest.mark.parametrize("away", ["availability", "outages"])
def test_who_is_away_and_flat_is_back_when_neither(away: str, tmp_path: Path) -> None:
    (tmp_path / "up.csv").write_text("agent,up,down\n0,0,2.5\n0,6.5,\n")
    energy = {"capacity": 10.0, "per_turn": 4.0, "reserve": 0.31, "recharge": {"kind": "rate", "power": 1.0}}
    agent: dict[str, Any] = {"energy": energy}
    network: dict[str, Any] = {}
    if away == "availability":
        agent["availability"] = {"kind": "trace", "file": str(tmp_path / "up.csv")}
    else:
        network["outages"] = [{"start": 2.5, "end": 6.5, "nodes": [0]}]
    run = runs.run("lin_ucb", {}, agents=1, agent=agent, network=network, schedule={"kind": "rounds", "turns": 6})
    # 10 at 1 -> 6; 7 at 2 -> 3, below; 7.1, the reserve and a turn, at 6.1; away from 2.5 to 6.5
    assert _down(run, 0)[:2] == [("down", 2.0), ("up", 6.5)]
    assert [row.time for row in run.events(tr.TURN)][:3] == [1.0, 2.0, 6.5]


def test_a_battery_that_holds_another_charge_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario: dict[str, Any] = {"agent": {"energy": PHONE}, "schedule": {"kind": "rounds", "turns": 3}}
    monkeypatch.setattr(Battery, "_along", lambda *given: given[1])
    with pytest.raises(InvariantViolation, match=r"agent 0 holds .* J; what came and went makes it .* J"):
        runs.run("lin_ucb", {}, **scenario)


SCENARIO = """
name: phones
agents: {{count: 2, energy: {energy}}}
schedule: {{kind: rounds, turns: 3}}
problem: {{kind: contextual, arms: {{kind: ball, dimension: 2, count: 3}}, reward: {{kind: cosine}}}}
algorithms: [{{algorithm: lin_ucb}}]
"""


@pytest.mark.parametrize(
    ("energy", "says"),
    [
        ("{capacity: 5, reserve: 0.5, resume: 0.2}", "resume(=0.2) must be >= reserve(=0.5)"),
        ("{capacity: 5, recharge: {kind: windows, power: 1, every: 4, lasts: 4}}", "lasts(=4) must be < every(=4)"),
        ("{capacity: 5, per_turns: 2}", "per_turn"),
        ("{capacity: 5, recharge: {kind: window, power: 1}}", "windows"),
        ("{level: 0.5}", "agents.energy: capacity is missing"),
    ],
)  # fmt: skip
def test_mistakes_are_said_with_their_place(energy: str, says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        loads(SCENARIO.format(energy=energy))
    assert says in str(error.value)


def test_live_runs_refuse_batteries() -> None:
    scenario = loads(SCENARIO.format(energy="{capacity: 5}"))
    reason = refusal(SimpleNamespace(scenario=scenario))  # type: ignore[arg-type]
    assert reason is not None
    assert "agents.energy is for `coband run`" in reason
