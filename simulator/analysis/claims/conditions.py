"""Conditions of claims: each becomes inequalities on means or shares over replications, which tests decide."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coband.simulator.analysis.claims.comparisons import Difference, Equal, Gaps, Order, Ratio, Share, Value
from coband.simulator.analysis.claims.condition import AnyTerm, Find, Finding, Term
from coband.simulator.analysis.claims.curves import Below, Growth, Slope

__all__ = ["AnyTerm", "Condition", "Find", "Finding", "Term"]

Condition = Annotated[
    Difference | Ratio | Equal | Order | Gaps | Value | Slope | Growth | Share | Below, Field(discriminator="kind")
]
