"""The language of formulas: what it computes, and that it does nothing else."""

from types import SimpleNamespace
from typing import Any

import pytest

from coband.simulator.core.formulas import FormulaError, evaluate, names_in

VALUES: dict[str, Any] = {"m": 3, "d": 4, "mode": "full", "server": SimpleNamespace(exchanges="serial"), "free": None}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("m*(d + 1) + m^2 + m", 27),
        ("-m + 2^3", 5),
        ("7 // 2 + 7 % 4", 6),
        ("d / 8", 0.5),
        ("floor(d / 3) + ceil(d / 3) + min(m, d) + max(m, d)", 10),
        ("m if mode == 'full' else d", 3),
        ("1 < m <= 3 and not mode != 'full'", True),
        ("free == None or m > 9", True),
        ("server.exchanges == 'serial'", True),
    ],
)
def test_formulas_are_evaluated(formula: str, value: float) -> None:
    assert evaluate(formula, VALUES) == value


def test_the_quantities_of_a_formula_are_known() -> None:
    assert names_in("min(b, a) + b if server.exchanges == 'x' else c") == ("b", "a", "server", "c")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("42 kangaroos", "'42 kangaroos' is not a formula: invalid syntax"),
        ("__import__('os')", "\"__import__('os')\" is not a formula: \"__import__('os')\" is not allowed in one"),
        ("[m][0]", "'[m][0]' is not a formula: '[m][0]' is not allowed in one"),
        ("m.__class__", "'m.__class__' is not a formula: 'm.__class__' is not allowed in one"),
        ("koalas + kangaroos", "'koalas + kangaroos' uses 'koalas'; there is d, free, m, mode, server"),
        ("kangaroos*2", "'kangaroos*2' uses 'kangaroos'; there is d, free, m, mode, server"),
        ("m / 0", "'m / 0' has no value: division by zero"),
        ("9^9^9", "'9^9^9' has no value: the power 387420489 is too large"),
        ("mode - 1", "'mode - 1' has no value: unsupported operand type(s) for -: 'str' and 'int'"),
    ],
)
def test_what_is_no_formula_is_refused(formula: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        evaluate(formula, VALUES)
    assert str(caught.value) == message
