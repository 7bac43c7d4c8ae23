"""Parameters that several algorithms have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.core.config import Config
from simulator.maths.kernels import Gaussian, KernelSpec

AnyKernel = Annotated[KernelSpec, Field(discriminator="kind")]


class KernelBandit(Config):
    """Parameters of every upper-confidence-bound algorithm with a kernel."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel k(x, y)."""
    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by mu + alpha * sigma."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""
