"""How much memory a run needs, as algorithms declare it and as the simulator's own accounts take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coband.simulator.core.formulas import FormulaError, Values, evaluate

if TYPE_CHECKING:
    from coband.simulator.core.nodes.graphs import Graph

NUMBER = 8
"""Bytes of a float64."""
QUANTITIES = {
    "N": "agents",
    "T": "pulls of all agents",
    "t": "pulls of an average agent",
    "d": "arm dimension",
    "K": "arms of a turn",
    "M": "arms of a fixed arm set, 0 where arms change",
}
"""What the formulas of :class:`Memory` may use, beside the parameters of the algorithm and its ``where``."""


@dataclass(frozen=True)
class RunSize:
    """The sizes of a run, as far as they are known before it.

    Attributes:
        config: the algorithm's parameters.
        agents: N.
        turns: T, pulls of all agents; None if only a duration limits them.
        dimension: d; None if data say it.
        arms: K; None if data say it.
        fixed: M, 0 where arms change; None if data say it.
        graph: of the agents, where it has been drawn.
        share: whether agents share what they would all compute alike.
    """

    config: Any
    agents: int
    turns: int | None = None
    dimension: int | None = None
    arms: int | None = None
    fixed: int | None = None
    graph: Graph | None = None
    share: bool = True

    @property
    def quantities(self) -> dict[str, int]:
        """The known ones of `QUANTITIES`."""
        each = None if self.turns is None else -(-self.turns // self.agents)
        every = {"N": self.agents, "T": self.turns, "t": each, "d": self.dimension, "K": self.arms, "M": self.fixed}
        return {name: value for name, value in every.items() if value is not None}


@dataclass(frozen=True)
class Memory:
    """One thing that an algorithm keeps and that may be large: at least so many float64 numbers, of all nodes together.

    Give a lower bound: a run that needs more than is free is refused.

    Attributes:
        what: in words, such as "the covariances of all agents".
        numbers: a formula of `QUANTITIES` and parameters (`coband.simulator.core.formulas`), or a function of the sizes
            that gives None where it does not know.
        change: what makes it smaller, such as "fewer agents (agents.count)".
        when: condition on the parameters under which it is kept; empty for always.
    """

    what: str
    numbers: str | Callable[[RunSize], float | None]
    change: str
    when: str = ""

    @property
    def words(self) -> str:
        """The formula, or what the function says of itself."""
        if isinstance(self.numbers, str):
            return self.numbers
        return (self.numbers.__doc__ or "computed from the sizes of the run").splitlines()[0].rstrip(".")

    def size(self, run: RunSize, values: Values) -> float | None:
        """Bytes; None where a quantity is not known before the run.

        Args:
            run: the sizes.
            values: of the quantities and parameters that formulas may use, as far as they are known.
        """
        try:
            if self.when and not evaluate(self.when, values):
                return 0.0
            found = self.numbers(run) if callable(self.numbers) else evaluate(self.numbers, values)
        except FormulaError:
            return None
        return None if found is None else NUMBER * float(found)
