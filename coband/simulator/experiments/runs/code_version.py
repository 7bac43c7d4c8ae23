"""Which code, libraries and hardware results depend on, to the last bit.

OpenBLAS has kernels for each kind of processor, numpy for each set of SIMD features, and the C library computes
exp and log with or without fused multiply-adds. Each adds up in another order, or rounds once where others round twice.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import threadpoolctl

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
}
"""Environment that libraries read when numpy is imported, so that a worker starts no threads that it must not use."""


@lru_cache(maxsize=1)
def _controller() -> Any:
    return threadpoolctl.ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread: runs of these sizes are faster so, and the same on machines with more cores."""
    with _controller().limit(limits=1):
        yield


def libraries() -> list[dict[str, str | None]]:
    """Name, version and processor architecture of each BLAS library in use."""
    keys = ("internal_api", "version", "architecture", "threading_layer")
    found = _controller().select(user_api="blas").info()
    return [{key: library.get(key) for key in keys} for library in found]


def kernels_of(*packages: str) -> tuple[str, ...]:
    """The BLAS that packages bring, such as ``openblas 0.3.31 Haswell``; other packages may have loaded one, too."""
    found = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    homes = {*packages, *(f"{package}.libs" for package in packages)}
    own = [library for library in found if homes & set(Path(library["filepath"]).parts)]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in own or found}))


ROOT = Path(__file__).resolve().parents[3]
CODE = ("simulator/core", "simulator/maths", "simulator/problems", "agents", "server")
"""The parts of the program that results depend on, with :data:`MODULES`."""
LEAVES = ("arms", "arrays", "metrics")
MODULES = ("runs/attempt", "runs/job", "runs/results", "store/recording")
LIBRARIES = ("numpy", "scipy", "networkx", "simpy")
CPUINFO = Path("/proc/cpuinfo")


def sha256(*parts: str | bytes) -> str:
    """Digest of some texts, each told apart from the next."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


def file_sha256(file: str | Path) -> str:
    """Digest of a file's content.

    Raises:
        OSError: it cannot be read.
    """
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_OF_WORKERS: list[tuple[str, ...]] = []


def jobs_run_on(found: tuple[str, ...]) -> None:
    """Say that jobs run in worker processes alone, whose BLAS is not that of this process."""
    _OF_WORKERS[:] = [found]
    kernels.cache_clear()
    code_version.cache_clear()


@lru_cache(maxsize=1)
def kernels() -> tuple[str, ...]:
    """The BLAS of numpy and scipy, such as ``openblas 0.3.30 Haswell``: other kernels give other last bits."""
    if _OF_WORKERS:
        return _OF_WORKERS[0]
    import numpy  # noqa: F401, loads its BLAS

    own = sorted(Path(str(metadata.distribution("scipy").locate_file("scipy.libs"))).glob("*openblas*"))
    for library in own:
        ctypes.CDLL(str(library))  # in a tenth of the time that scipy takes
    if not own:
        import scipy.linalg  # noqa: F401, loads its BLAS

    return kernels_of("numpy", "scipy")


@lru_cache(maxsize=1)
def numpy_simd() -> str:
    """The SIMD features beyond its baseline that numpy has code for and uses, such as ``X86_V3 AVX512_ICL``."""
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    known: dict[str, bool] = getattr(core, "__cpu_features__", {})
    return " ".join(name for name in getattr(core, "__cpu_dispatch__", ()) if known.get(name)) or "none"


@lru_cache(maxsize=1)
def c_library() -> str:
    """The C library, whether it may use fused multiply-adds, and what its tunables say about that."""
    words = [" ".join(platform.libc_ver()).strip() or platform.system()]
    try:
        words.append("with FMA" if " fma " in CPUINFO.read_text(encoding="ascii", errors="replace") else "without FMA")
    except OSError:
        words.append("of unknown features")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return " ".join([*words, *(tunable for tunable in tunables.split(":") if "hwcaps" in tunable)])


def arithmetic() -> tuple[str, ...]:
    """What numpy and the C library compute with."""
    return f"numpy with {numpy_simd()}", c_library()


@lru_cache(maxsize=1)
def code_version() -> str:
    """A digest of the code that results depend on, to the last bit, with the libraries and the processor below it."""
    parts: list[str | bytes] = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    return sha256(*parts, *kernels(), *arithmetic(), *_sources())[:16]


@lru_cache(maxsize=1)
def source_digest() -> str:
    """A digest of that code alone: equal where the same coband is installed, whatever is below it."""
    return sha256(*_sources())[:16]


def _sources() -> list[str | bytes]:
    """Name and content of every file of that code."""
    files = [ROOT / "simulator" / f"{name}.py" for name in LEAVES]
    files += [file for part in CODE for file in sorted((ROOT / part).rglob("*.py"))]
    files += [ROOT / "simulator" / "experiments" / f"{name}.py" for name in MODULES]
    return [part for file in files for part in (file.relative_to(ROOT).as_posix(), file.read_bytes())]


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
