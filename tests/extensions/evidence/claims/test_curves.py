"""Conditions on growth within a run, on curves per agent and of scalars, and on differences of differences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from coband.extensions.evidence.claims.claim import Panel
from coband.extensions.evidence.claims.condition import Finding
from coband.extensions.evidence.claims.samples import Sample, SampleError
from tests.extensions.evidence.claims.test_conditions import condition, finding, judged, noisy, verdict

RNG = np.random.default_rng(5)


def curves(exponent: float, factor: float = 1.0, agents: int = 1) -> list[Sample]:
    """Regret factor * turns^exponent with noise from one replication to another; twice as many scalars as turns."""
    found = []
    for _ in range(6):
        own = factor * (1 + 0.01 * RNG.normal())
        own_exponent = exponent + 0.01 * RNG.normal()
        found.append(Sample({}, [(t, t / agents, own * t**own_exponent, 2 * t) for t in range(1, 201)], agents))
    return found


def found_of(values: Mapping[str, Sequence[Sample]], **fields: Any) -> Finding:
    return finding(condition(**fields), lambda term: values[term.label])


@pytest.mark.parametrize(("at_most", "expected"), [(0.6, "holds"), (0.4, "fails")])
def test_growth_of_regret_within_a_run(at_most: float, expected: str) -> None:
    found = found_of({"A": curves(0.5)}, kind="growth", term="A", at_most=at_most)
    assert found.estimate == pytest.approx(0.5, abs=0.03)
    assert verdict(found) == expected
    assert found.text == f"regret: A grows with turns with an exponent at most {at_most:g} from 10 % of the turns on"


def test_growth_of_scalars_does_not_depend_on_units() -> None:
    for agents in (1, 10):
        values = {"A": curves(0.5, agents=agents)}
        for against in ("turns", "turns_per_agent", "times"):
            found = found_of(values, kind="growth", of="scalars", against=against, term="A", at_least=0.9, at_most=1.1)
            assert verdict(found) == "holds"
            assert found.estimate == pytest.approx(1.0, abs=0.05)


def test_a_curve_of_zeros_has_no_exponent() -> None:
    with pytest.raises(SampleError, match=r"regret is not positive everywhere, so its growth has no exponent\."):
        found_of({"A": curves(0.5, 0.0)}, kind="growth", term="A", at_most=1)


def test_average_regret_of_more_agents_is_compared_turn_by_turn() -> None:
    values = {"two": curves(1.0, 1.0, agents=2), "ten": curves(1.0, 1.5, agents=10)}
    fields = {"kind": "below", "first": "ten", "second": "two"}
    per_agent = {"of": "regret_per_agent", "against": "turns_per_agent"}
    assert verdict(found_of(values, **fields)) == "fails"  # ten agents have more regret after as many turns in all
    found = found_of(values, **fields, **per_agent)
    assert verdict(found) == "fails"  # after as many turns of each, 1.5 times as much
    assert verdict(found_of(values, **{**fields, "first": "two", "second": "ten"}, **per_agent)) == "holds"
    assert found.text == "regret per agent: ten is below two from 10 % to 100 % of the turns per agent"


def test_scalars_of_one_curve_below_another() -> None:
    rows = [(turn, turn, 1.0, 5 * turn) for turn in range(1, 201)]
    values = {"few": curves(0.5), "many": [Sample({}, rows)] * 6}
    assert verdict(found_of(values, kind="below", of="scalars", first="few", second="many")) == "holds"
    assert verdict(found_of(values, kind="below", of="scalars", first="many", second="few")) == "fails"


def test_places_per_agent_end_where_an_agent_ends() -> None:
    sample = Sample({}, [(10, 1.0, 4.0, 0), (20, 2.0, 6.0, 8)], agents=10)
    assert (sample.end("turns"), sample.end("turns_per_agent"), sample.end("times")) == (20, 2, 2)
    places = np.array([0.5, 1.0, 1.9, 2.0])
    assert sample.curve("turns_per_agent", places, "regret_per_agent").tolist() == [0.0, 0.4, 0.4, 0.6]
    assert sample.curve("turns_per_agent", places, "scalars").tolist() == [0.0, 0.0, 0.0, 8.0]


def steps(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"kind": "gaps", "of": "y", "ascending": [{"lower": low, "upper": high} for low, high in pairs]}


def test_differences_in_order() -> None:
    values = {"A": noisy(1), "B": noisy(2), "C": noisy(1), "D": noisy(4)}
    found = judged(steps(("A", "B"), ("C", "D")), **values)
    assert verdict(found) == "holds"
    assert found.estimate == pytest.approx(2.0, abs=0.3)
    assert found.text == "y: [B - A] < [D - C]"
    assert verdict(judged(steps(("C", "D"), ("A", "B")), **values)) == "fails"


def test_differences_are_of_the_replications_that_all_have() -> None:
    found = judged(steps(("A", "B"), ("C", "D")), A=[1.0, 1.0, 9.0], B=[2.0, 2.0, 0.0], C=[1.0, 1.0], D=[4.0, 4.2])
    assert found.count == 2
    assert found.estimate == pytest.approx(2.1)


def test_a_panel_draws_curves_that_there_are() -> None:
    study = {"scenario": "duets/h1"}
    panel = Panel.model_validate({"title": "p", "study": study, "labels": ["A", {"label": "B", "at": {"n": 1}}]})
    assert [str(term) for term in panel.labels] == ["A", "B (n = 1)"]
    with pytest.raises(ValueError, match=r"of\(=messages\) must be one of regret, regret_per_agent, scalars against"):
        Panel.model_validate({"title": "p", "study": study, "labels": ["A"], "of": "messages"})
