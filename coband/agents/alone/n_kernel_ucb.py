"""NKernelUCB: every agent runs kernel UCB alone, without communication (baseline of Li et al. 2023, section 5).
As printed: `tests/oracles/n_kernel_ucb.py`. Next: `agent.py`.
"""

from __future__ import annotations

from coband.agents.alone.agent import Alone
from coband.agents.common.parameters import KernelBandit, domain_of
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import SILENT, Algorithm, Needs
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.posteriors.choose import exact
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior


class NKernelUCB(Alone):
    """Exact kernel ridge regression on the agent's own data."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.posterior: Posterior = exact(context.config.kernel, context.config.lam, domain_of(context))

    def scores(self, arms: ArmSet) -> FloatArray:
        """mu + alpha * sigma (Li et al. 2023, equations 1 and 3)."""
        return self.posterior.scores(arms, self.context.config.alpha)

    def learn(self, pull: Observations) -> None:
        self.posterior.update(pull)


ALGORITHM = Algorithm(
    name="n_kernel_ucb",
    agent=NKernelUCB,
    server=None,
    config=KernelBandit,
    summary="Every agent alone with an exact kernel posterior; no communication.",
    reference="Li et al. 2023, section 5 (NKernelUCB); Valko et al. 2013",
    needs=Needs(topologies=("star", "graph"), reliable=False),
    counts=SILENT,
    cites=("li2023asynchronous", "valko2013finite"),
)
