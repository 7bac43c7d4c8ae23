"""The conformance kit: what every algorithm must keep, whoever wrote it; and ``coband hunt``, which looks for faults.

Register an algorithm under the entry-point group ``coband.algorithms`` and let pytest run::

    from coband.extensions.conformance import Case, cases

    @pytest.mark.parametrize("case", cases("my_algorithm", {}, {"threshold": 0.0}), ids=str)
    def test_it_conforms(case: Case) -> None:
        case.check()

A case that would say nothing about the algorithm raises ``Vacuous``, which pytest counts as skipped.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coband.extending import Command, Extension

if TYPE_CHECKING:
    from coband.extensions.conformance.demands import NonConformance, Vacuous
    from coband.extensions.conformance.kit import Case, cases
    from coband.extensions.conformance.runs import Run, run

__all__ = ["Case", "NonConformance", "Run", "Vacuous", "cases", "run"]
HOME_OF = {
    "Case": "kit",
    "NonConformance": "demands",
    "Run": "runs",
    "Vacuous": "demands",
    "cases": "kit",
    "run": "runs",
}
HUNT = "Search for faults that make the algorithms of a scenario fail."
EXTENSION = Extension("conformance", {"hunt": Command("coband.extensions.conformance.command:hunt", HUNT)})


def __getattr__(name: str) -> Any:
    """Import a name at its first use, so that declaring the extension imports nothing."""
    if name not in HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOME_OF[name]}"), name)
