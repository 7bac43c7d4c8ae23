"""Kernel UCB, IGP-UCB and kernel Thompson sampling, every agent alone (Dai et al. 2023 and Dubey and Pentland 2020,
section 5; Valko et al. 2013; Chowdhury and Gopalan 2017).
As printed: `tests/oracles/single_agent.py`. Next: `n_kernel_ucb.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from coband.agents.alone.agent import EXPLORATION
from coband.agents.alone.n_kernel_ucb import ALGORITHM as ALONE
from coband.agents.alone.n_kernel_ucb import NKernelUCB
from coband.agents.common.parameters import AnyKernel
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.maths.kernels.library import Gaussian


class IgpConfig(Config):
    """Parameters of IGP-UCB."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel k(x, y)."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda (Chowdhury and Gopalan: 1 + 2/T)."""
    norm: float = Field(default=1.0, ge=0)
    """B: a bound on the norm of f in the kernel's RKHS."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """R: the noise is R-sub-Gaussian."""
    delta: float = Field(default=0.05, gt=0, le=1)
    """The confidence bound holds with probability 1 - delta."""


def igp_beta(norm: float, sub_gaussian: float, delta: float, gain: float, lam: float) -> float:
    """beta = B + R sqrt(2 (gain + 1 + ln 1/delta)) (Chowdhury and Gopalan 2017, theorem 2); R / sqrt(lam) if lam < 1.

    The theorem is about lam = 1 + 2/T. With less, noise weighs 1 / sqrt(lam) in mu - f where sigma^2 is
    k(x, x) - k(x)^T (K + lam I)^(-1) k(x), as in every self-normalised bound (Abbasi-Yadkori et al. 2011, theorem 2).
    """
    return norm + sub_gaussian * math.sqrt(2.0 * (gain + 1.0 + math.log(1.0 / delta)) / min(1.0, lam))


class IgpUCB(NKernelUCB):
    """IGP-UCB: beta_t = B + R sqrt(2 (gamma_(t-1) + 1 + ln 1/delta)).

    gamma_(t-1), the largest information that t - 1 points can give, is replaced by that of the agent's own points,
    1/2 log det(I + K/lambda), as is usual.
    """

    def scores(self, arms: ArmSet) -> FloatArray:
        """mu + beta_t sigma; sigma^2 = k(x, x) - k(x)^T (K + lambda I)^(-1) k(x)."""
        config: IgpConfig = self.context.config
        beta = igp_beta(config.norm, config.sub_gaussian, config.delta, 0.5 * self.posterior.log_det, config.lam)
        mean, variance = self.posterior.predict(arms)
        scores: FloatArray = mean + beta * np.sqrt(config.lam * variance)
        return scores


class KernelTsConfig(Config):
    """Parameters of kernel Thompson sampling."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel k(x, y)."""
    nu: float = Field(default=1.0, ge=0)
    """Exploration: the score of an arm is drawn from N(mu, nu^2 sigma^2), each arm by itself."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""


class KernelTS(NKernelUCB):
    """Thompson sampling arm by arm."""

    def scores(self, arms: ArmSet) -> FloatArray:
        """A draw from N(mu, nu^2 sigma^2) for each arm."""
        mean, variance = self.posterior.predict(arms)
        draws = self.context.rng.standard_normal(len(mean))
        scores: FloatArray = mean + self.context.config.nu * np.sqrt(variance) * draws
        return scores


ALGORITHM = replace(
    ALONE,
    name="kernel_ucb",
    summary="Kernel UCB with a constant alpha, every agent alone.",
    reference="Valko et al. 2013; baseline of Dubey and Pentland 2020, section 5",
    cites=("valko2013finite",),
)
"""What Li et al. 2023 calls NKernelUCB."""
IGP = replace(
    ALONE,
    name="igp_ucb",
    agent=IgpUCB,
    config=IgpConfig,
    summary="IGP-UCB, every agent alone: kernel UCB whose confidence follows the information gained.",
    reference="Chowdhury and Gopalan 2017; baseline of Dubey and Pentland 2020, section 5",
    cites=("chowdhury2017kernelized",),
)
THOMPSON = replace(
    ALONE,
    name="kernel_ts",
    agent=KernelTS,
    config=KernelTsConfig,
    summary="Kernel Thompson sampling, every agent alone.",
    reference="Chowdhury and Gopalan 2017; baseline of Dai et al. 2023",
    cites=("chowdhury2017kernelized",),
    search=EXPLORATION,
)
