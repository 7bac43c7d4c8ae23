"""round_ucb1 conforms, also after lost messages and with agents that are cut off."""

from __future__ import annotations

import pytest

from coband.extensions.conformance import Case, cases


@pytest.mark.parametrize("case", cases("round_ucb1", {}, {"period": 1}), ids=str)
def test_it_conforms(case: Case) -> None:
    case.check()
