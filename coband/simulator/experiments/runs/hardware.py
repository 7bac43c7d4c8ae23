"""What the last bits of results depend on beside the code: the processor, and what libraries make of it.

OpenBLAS has kernels for each kind of processor, numpy for each set of SIMD features, and the C library computes
exp and log with or without fused multiply-adds. Each adds up in another order, or rounds once where others round twice.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any

from coband.simulator.experiments.runs.code_version import CPUINFO, c_library, kernels_of, numpy_simd

Hardware = dict[str, str]
"""Name of a part, in words -> what it is."""
COMPARED = ("machine", "BLAS kernels", "numpy's SIMD features", "C library", "numpy", "scipy")
"""The parts that decide about last bits; the name of the processor is there to be read."""


@lru_cache(maxsize=1)
def hardware() -> Hardware:
    """What this process computes with."""
    return {
        "processor": _processor(),
        "machine": platform.machine(),
        "BLAS kernels": ", ".join(kernels_of("numpy")) or "unknown",
        "numpy's SIMD features": numpy_simd(),
        "C library": c_library(),
        **{name: metadata.version(name) for name in ("numpy", "scipy")},
    }


def differences(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> list[str]:
    """What two computers, of which each may be unknown, have different, a phrase for each part."""
    one, other = first or {}, second or {}
    both = [part for part in COMPARED if part in one and part in other]
    return [f"{part}: {one[part]} and {other[part]}" for part in both if one[part] != other[part]]


def explained(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None, whose: tuple[str, str]) -> str | None:
    """One sentence that says what two computers have different; None where nothing is known to be.

    Args:
        first: a `Hardware`, or nothing.
        second: another one.
        whose: how the two are called.
    """
    found = differences(first, second)
    if not found:
        return None
    one, other = whose
    return (
        f"{one} and {other} were computed by different hardware or libraries ({'; '.join(found)}), so their last bits "
        "differ, and with them close decisions; the differences below may come from nothing else"
    )


def _processor() -> str:
    """The name of the processor, for people."""
    try:
        lines = CPUINFO.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or os.name
