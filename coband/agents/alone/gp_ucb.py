"""GP-UCB over a fixed domain, every agent alone (Srinivas et al. 2010): N-KernelUCB of Pavlovic et al. 2024, section 5.
As printed: `tests/oracles/gp_ucb.py`. Next: `n_kernel_ucb.py`.

Mean and deviation are eq. 3 and eq. 4 of Pavlovic et al. 2024; its deviation is not divided by lambda, so that ``beta``
here is ``alpha`` of ``n_kernel_ucb`` divided by sqrt(lam). ``beta: theory`` is that of IGP-UCB
(`coband.agents.alone.kernel_ucb.igp_beta`), with the information gain of the agent's own points for the largest gain
gamma that any points could have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coband.agents.alone.kernel_ucb import igp_beta
from coband.agents.alone.n_kernel_ucb import ALGORITHM as ALONE
from coband.agents.alone.n_kernel_ucb import NKernelUCB
from coband.agents.common.parameters import AnyKernel
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Needs
from coband.simulator.core.config import REWARD, Config
from coband.simulator.maths.kernels.library import Gaussian


class GpUcbConfig(Config):
    """Parameters of GP-UCB."""

    kernel: AnyKernel = Gaussian(length_scale=1.0)
    """The kernel k(x, y)."""
    beta: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """Exploration: points are chosen by mu + beta * sigma; theory: that of IGP-UCB."""
    lam: float = Field(default=0.2, gt=0)
    """Ridge parameter lambda."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability of failure, for ``beta: theory``."""
    B: float = Field(default=1.0, ge=0)
    """Bound on the norm of f in the kernel's Hilbert space, for ``beta: theory``."""
    R: Annotated[float, REWARD] = Field(default=0.2, ge=0)
    """The noise is R-sub-Gaussian, for ``beta: theory``."""


class GpUcb(NKernelUCB):
    """Exact Gaussian process on the agent's own data."""

    def scores(self, arms: ArmSet) -> FloatArray:
        """mu + beta * sigma."""
        config: GpUcbConfig = self.context.config
        beta = config.beta
        if beta == "theory":
            beta = igp_beta(config.B, config.R, config.delta, 0.5 * self.posterior.log_det, config.lam)
        mean, variance = self.posterior.predict(arms)
        return mean + beta * np.sqrt(config.lam * variance)


ALGORITHM = replace(
    ALONE,
    name="gp_ucb",
    agent=GpUcb,
    config=GpUcbConfig,
    summary="Every agent alone with a Gaussian process over the whole domain; no communication.",
    reference="Srinivas et al. 2010; Chowdhury and Gopalan 2017; N-KernelUCB of Pavlovic et al. 2024, section 5",
    needs=Needs(reliable=False),
    cites=("srinivas2010gaussian", "chowdhury2017kernelized"),
)
