"""Kernel bandits of one agent: KernelUCB (Valko et al. 2013), Thompson sampling (Chowdhury and Gopalan 2017)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agents.alone import Alone, single
from agents.parameters import AnyKernel, KernelBandit
from simulator.core.config import Config
from simulator.core.node import FloatArray, Setting
from simulator.maths.exact import ExactPosterior
from simulator.maths.kernels import Gaussian


class KernelTsConfig(Config):
    """Parameters of kernel Thompson sampling."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel k(x, y)."""
    nu: float = Field(default=1.0, ge=0)
    """Exploration: the score of an arm is drawn from N(mu, nu^2 sigma^2), each arm by itself."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""


class KernelUCB(Alone):
    """Exact kernel ridge regression on the agent's own data (paper 000, equation 1)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.posterior = ExactPosterior(setting.config.kernel, setting.config.lam)

    def scores(self, X: FloatArray) -> FloatArray:
        """mu + alpha sigma."""
        mean, variance = self.posterior.moments(X)
        return self.optimistic(mean, np.sqrt(variance))

    def optimistic(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """What is maximised."""
        scores: FloatArray = mean + self.setting.config.alpha * deviation
        return scores

    def learn(self, arm: int, x: FloatArray, reward: float) -> None:
        """Add the pull."""
        self.posterior.append(x[None], np.array([reward]))


class KernelTS(KernelUCB):
    """Thompson sampling arm by arm."""

    def optimistic(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """A draw from N(mu, nu^2 sigma^2) per arm."""
        scores: FloatArray = mean + self.setting.config.nu * deviation * self.setting.rng.standard_normal(len(mean))
        return scores


KERNEL_UCB = single("kernel_ucb", KernelUCB, KernelBandit, "Kernel UCB with an exact posterior, every agent alone.",
                    "Valko et al. 2013; baseline of papers 002 and 004")  # fmt: skip
KERNEL_TS = single("kernel_ts", KernelTS, KernelTsConfig, "Kernel Thompson sampling, every agent alone.",
                   "Chowdhury and Gopalan 2017; baseline of paper 002")  # fmt: skip
