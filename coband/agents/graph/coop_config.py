"""Parameters that the algorithms of Dubey and Pentland 2020 ("Kernel Methods for Cooperative Multi-Agent Contextual
Bandits") have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from coband.agents.common.parameters import AnyKernel
from coband.simulator.arrays import IntArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.maths.graphs.covers import CoverMethod, half_diameter
from coband.simulator.maths.kernels.base import KernelSpec
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.kernels.registry import KERNELS


def _word_is_kind(value: Any) -> Any:
    """``mmd`` for ``{kind: mmd}``, and so on."""
    return {"kind": value} if isinstance(value, str) and value in ("mmd", "exact", "nystrom") else value


class Mmd(Config):
    """K_z is estimated from the arms seen of two agents: exp(-MMD^p / (2 sigma^2)), equations 11 and 12."""

    kind: Literal["mmd"]
    sigma: float = Field(default=1.0, gt=0)
    """Width sigma_z."""
    mmd_power: Literal[1, 2] = 1
    """p: 1 as in equation 11; 2: the Gaussian kernel of the mean embeddings."""
    refresh: int = Field(default=25, ge=1)
    """Trials between two estimates; one is made at once when somebody is heard for the first time."""
    kernel: AnyKernel | None = None
    """The kernel of the mean embeddings; null for the kernel of the arms."""


class Exact(Config):
    """The posterior of equation 9 itself, with a growing factor; with few fixed arms from their counts."""

    kind: Literal["exact"]


class Nystrom(Config):
    """Statistics over a dictionary of points that an agent knows, those that tell most about its own task."""

    kind: Literal["nystrom"]
    size: int = Field(default=512, ge=1)
    """Points in the dictionary at most; with less than 3 for each task a run ends with a warning."""


NetworkKernel = Annotated[KernelSpec | Mmd, KERNELS.field(mmd=Mmd)]
Hops = Annotated[int, Field(ge=1)] | Literal["half_diameter", "diameter"]
Posterior = Annotated[Exact | Nystrom, Field(discriminator="kind")]


class Cooperative(Config):
    """Parameters of all algorithms on a graph."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel K_x of arms."""
    eta: float = Field(default=1.0, ge=0)
    """Exploration with ``width: constant``: arms are chosen by f_hat + (eta / sqrt(lam)) sigma."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""
    norm: float = Field(default=1.0, ge=0)
    """B: bound on the norm of F in the RKHS of K, for widths that are not constant."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """R: the noise is R-sub-Gaussian, for widths that are not constant."""
    delta: float = Field(default=0.05, gt=0, le=1)
    """The confidence bounds hold with probability 1 - delta, for widths that are not constant."""
    hops: Hops = 1
    """gamma: messages go so many links far; half_diameter: half the graph's diameter, rounded down, at least 1;
    diameter: to everybody to whom there is a path."""
    delay: Literal["d_minus_1", "d"] = "d_minus_1"
    """When agents d links away use a pull of trial t: d_minus_1: from trial t + d on ("after d - 1 trials", section 1);
    d: from trial t + d + 1 on (section 3.1, where m_(t-d) is received after the pull of trial t)."""
    posterior: Annotated[
        Posterior, BeforeValidator(_word_is_kind, json_schema_input_type=Literal["exact", "nystrom"] | Posterior)
    ] = Exact(kind="exact")
    """exact, or {kind: nystrom, size: m}; linear kernels of at most 256 features are exact whatever it says."""


class WithTasks(Cooperative):
    """Parameters of algorithms that tell tasks apart."""

    network_kernel: Annotated[
        NetworkKernel | None,
        BeforeValidator(_word_is_kind, json_schema_input_type=Literal["mmd"] | NetworkKernel | None),
    ] = None
    """The kernel K_z of network contexts; mmd: estimated; null: K_z = 1, all agents have the same task."""
    composition: Literal["product", "sum"] = "product"
    """How K_z and K_x make K."""
    width: Literal["constant", "lemma_1"] = "constant"
    """Factor before sigma: constant, as in Algorithms 1 to 3, or beta_(v,t) of Lemma 1, which the analysis is about."""


class NaiveCoop(Cooperative):
    """Parameters of naive cooperation."""

    width: Literal["paper", "constant", "igp_ucb", "lemma_1"] = "paper"
    """Factor before sigma: paper: that of IGP-UCB with a kernel, and with the linear one that of LinUCB, eta."""


def hops_of(hops: Hops, distances: IntArray) -> int:
    """gamma on a graph with given distances of agents (V, V), -1 where there is no path; at least 1."""
    if hops == "diameter":
        return max(1, int(distances.max()))
    return half_diameter(distances) if hops == "half_diameter" else hops


class WithCliques(WithTasks):
    """Parameters of the algorithm that learns within cliques."""

    cover: CoverMethod = "dsatur"
    """How the clique cover of G_gamma is found: by which colouring of its complement."""


def network_kernel(config: Cooperative) -> KernelSpec | Mmd | None:
    """K_z: a kernel of contexts, how to estimate it, or None for 1."""
    return config.network_kernel if isinstance(config, WithTasks) else None
