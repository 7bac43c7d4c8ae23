"""How far upper confidence bounds of cooperating agents lie above their estimates: f_hat + beta sigma.

sigma is that of Dubey and Pentland 2020 ("Kernel Methods for Cooperative Multi-Agent Contextual Bandits"), eq. 9, not
divided by sqrt(lam). All rules take in everything that the agent has learnt, whoever pulled it.
"""

from __future__ import annotations

import math

from coband.agents.cooperation import Cooperative, NaiveCoop, WithTasks
from coband.agents.kernel_ucb import igp_beta
from coband.agents.knowledge import OnTasks
from coband.simulator.maths.kernels.library import Linear


def width_of(config: Cooperative, knowledge: OnTasks, agents: int) -> float:
    """sqrt(lam) beta at a turn of an agent, one of ``agents``: the factor before sigma / sqrt(lam).

    constant: beta = eta / sqrt(lam). lemma_1: beta_(v,t) of Lemma 1. igp_ucb: beta_t of IGP-UCB. paper: the naive
    cooperation of section 5, IGP-UCB with a kernel, and with the linear one LinUCB, whose factor eta is constant.
    """
    rule = config.width if isinstance(config, WithTasks | NaiveCoop) else "constant"
    if rule == "paper":
        rule = "constant" if isinstance(config.kernel, Linear) else "igp_ucb"
    if rule == "constant":
        return config.eta
    log_det = knowledge.posterior.log_det
    if rule == "igp_ucb":
        beta = igp_beta(config.norm, config.sub_gaussian, config.delta, 0.5 * log_det, config.lam)
    else:
        determinant = log_det + knowledge.observations * max(0.0, math.log(config.lam))
        beta = lemma_1(config.norm, config.sub_gaussian, config.delta, agents, determinant, config.lam)
    return math.sqrt(config.lam) * beta


def lemma_1(norm: float, sub_gaussian: float, delta: float, agents: int, log_det: float, lam: float) -> float:
    """beta_(v,t) = B + R sqrt(ln(det(lam I + K_(v,t)) / delta^2) + 2 ln V), Lemma 1 of Dubey and Pentland 2020.

    The lemma prints sigma^2 before it, where sigma is meant (eq. 21). It is proved for lam = 1 + eta; with lam < 1 R is
    divided by sqrt(lam) and the determinant is that of I + K / lam (see `coband.agents.kernel_ucb.igp_beta`).

    Args:
        norm: B, a bound on the norm of F.
        sub_gaussian: R of the noise.
        delta: all bounds of all agents hold with probability 1 - delta.
        agents: V.
        log_det: ln det(lam I + K_(v,t)), with lam < 1 ln det(I + K_(v,t) / lam).
        lam: the ridge parameter.
    """
    return norm + sub_gaussian * math.sqrt((log_det - 2.0 * math.log(delta) + 2.0 * math.log(agents)) / min(1.0, lam))
