"""The hunt for the worst attack: what is tried, how few liars are enough, and a scenario that shows it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.analysis.hunt.attack import BEHAVIOURS, Attack, Attacks
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import BrokenOff
from tests.cli.fake_cli import Program

SCENARIO = """\
name: attacked
agents: {count: 5}
schedule: {kind: rounds, turns: 30}
problem:
  kind: contextual
  arms: {kind: ball, dimension: 3, count: 5}
  reward: {kind: rkhs, kernel: {kind: linear}}
  noise: 0.1
algorithms: [{algorithm: dis_lin_ucb, alpha: 0.3}]
"""


@pytest.fixture
def attacks() -> Attacks:
    return Attacks(loads(SCENARIO), range(2))


def test_every_behaviour_is_tried_and_lies_cost_more_than_the_truth(attacks: Attacks) -> None:
    tried = list(attacks.tried("dis_lin_ucb"))
    assert [one.behaviour for one in tried] == list(BEHAVIOURS)
    assert {one.liars for one in tried} == {2}
    assert max(one.cost for one in tried) > 10.0
    assert attacks.cost("dis_lin_ucb", {"kind": "scale", "factor": 1.0}, 2) == 1.0


def test_behaviours_that_change_nothing_are_left_out() -> None:
    """Agents of PLS send whole numbers of steps alone; who is silent is compared with who never is."""
    domain = "{kind: fixed_domain, domain: {kind: sphere, dimension: 3, points: 9}, reward: {kind: linear}}"
    lines = [line for line in SCENARIO.splitlines() if not line.startswith("  ") and "problem" not in line]
    text = "\n".join(lines).replace("dis_lin_ucb, alpha: 0.3", "pls, C: 0.01") + f"\nproblem: {domain}\n"
    attacks = Attacks(loads(text), range(1))
    tried = list(attacks.tried("pls"))
    assert [one.behaviour["kind"] for one in tried if not one.why] == ["silent"]
    assert all(one.why.startswith("left out: ") and math.isnan(one.cost) for one in tried if one.why)
    assert all(one.cost > 0.0 for one in tried if not one.why)


def test_one_liar_less_would_cost_less_than_is_asked(attacks: Attacks) -> None:
    behaviour = {"kind": "sign_flip", "scale": 3.0}
    first = Attack("dis_lin_ucb", behaviour, 4, attacks.cost("dis_lin_ucb", behaviour, 4))
    for least in (1.5, 20.0):
        found = attacks.shrunk(first, least)
        assert found.cost >= least
        assert found.liars == 1 or attacks.cost("dis_lin_ucb", behaviour, found.liars - 1) < least


def test_the_command_shows_the_worst_attack_and_writes_a_scenario(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("attacked.yaml").write_text(SCENARIO)
    program = Program(capsys)
    status, out, _ = program("hunt", "attacked.yaml", "--attack", "--seeds", "0:2", "--out", "found")
    assert status == 1
    lines = out.splitlines()
    assert len(lines) == len(BEHAVIOURS) + 2
    assert "of 5 are enough" in lines[-2]
    (file,) = Path("found").iterdir()
    assert loads(file.read_text()).adversaries
    status, out, _ = program("hunt", "attacked.yaml", "--attack", "--seeds", "0:2", "--cost", "1e9")
    assert status == 0
    assert out.splitlines()[-1] == "dis_lin_ucb: no attack multiplies the regret of honest agents by 1e+09"
    assert math.isfinite(float(lines[-2].rpartition("x ")[2]))
    hopeless = ("--set", "algorithms.dis_lin_ucb.lam=1e-40")
    status, out, _ = program("hunt", "attacked.yaml", "--attack", "--seeds", "0:1", *hopeless)
    assert "nothing is known of attacks, since all" in out.splitlines()[-1]
    status, _, errors = program("hunt", "attacked.yaml", "--cost", "3")
    assert status == 2
    assert (
        errors == "coband: --cost is what an attack must cost, and without --attack there is none; give --attack too.\n"
    )


def test_an_attack_is_kept_where_fewer_liars_are_refused(attacks: Attacks, monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(label: str, behaviour: dict[str, Any], liars: int) -> float:
        if liars < 3:
            raise BrokenOff("an infinite regret")
        return 7.0

    monkeypatch.setattr(attacks, "cost", cost)
    assert attacks.shrunk(Attack("dis_lin_ucb", {}, 4, 7.0), 1.5).liars == 3
