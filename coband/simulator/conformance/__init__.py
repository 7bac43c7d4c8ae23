"""The conformance kit: what every algorithm must keep, whoever wrote it.

Register an algorithm under the entry-point group ``coband.algorithms`` and let pytest run::

    from coband.simulator.conformance import Case, cases

    @pytest.mark.parametrize("case", cases("my_algorithm", {}, {"threshold": 0.0}), ids=str)
    def test_it_conforms(case: Case) -> None:
        case.check()

A case that would say nothing about the algorithm raises ``Vacuous``, which pytest counts as skipped.
"""

from __future__ import annotations

from coband.simulator.conformance.demands import NonConformance, Vacuous
from coband.simulator.conformance.kit import Case, cases
from coband.simulator.conformance.runs import Run, run

__all__ = ["Case", "NonConformance", "Run", "Vacuous", "cases", "run"]
