"""The LAPACK routines: those of SciPy, loaded by themselves."""

from importlib.util import find_spec
from typing import Any

import pytest
import scipy.linalg.blas
import scipy.linalg.lapack

from coband.simulator.maths.linalg import matrices


@pytest.mark.parametrize("name", matrices.__all__)
def test_routines_are_those_of_scipy(name: str) -> None:
    theirs = getattr(scipy.linalg.lapack, name, None) or getattr(scipy.linalg.blas, name)
    assert getattr(matrices, name) is theirs


def test_what_scipy_does_not_have_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert matrices._compiled("_no_such_module") is None

    def without_linalg(name: str) -> Any:
        return None if name == "scipy.linalg" else find_spec(name)

    monkeypatch.setattr(matrices, "find_spec", without_linalg)
    assert matrices._compiled("_flapack") is None
