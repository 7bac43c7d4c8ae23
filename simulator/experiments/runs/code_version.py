"""Which code and which libraries results depend on, to the last bit."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import threadpoolctl

ROOT = Path(__file__).resolve().parents[3]
CODE = ("simulator/core", "simulator/maths", "simulator/problems", "agents", "server")
"""The parts of the program that results depend on, with :data:`MODULES`."""
LEAVES = ("arms", "arrays", "metrics")
MODULES = ("runs/job", "runs/results", "store/recording")
LIBRARIES = ("numpy", "scipy", "networkx", "simpy")
HOMES = {"numpy", "numpy.libs", "scipy", "scipy.libs"}
"""Folders in which numpy and scipy bring their BLAS; other packages may have loaded one of their own."""


def sha256(*parts: str | bytes) -> str:
    """Digest of some texts, each told apart from the next."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


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
    import scipy.linalg  # noqa: F401, loads its BLAS

    found = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    own = [library for library in found if HOMES & set(Path(library["filepath"]).parts)]
    keys = ("internal_api", "version", "architecture")
    return tuple(sorted({" ".join(str(library.get(key)) for key in keys) for library in own or found}))


@lru_cache(maxsize=1)
def code_version() -> str:
    """A digest of the code that results depend on, to the last bit, with the libraries below it."""
    files = [ROOT / "simulator" / f"{name}.py" for name in LEAVES]
    files += [file for part in CODE for file in sorted((ROOT / part).rglob("*.py"))]
    files += [ROOT / "simulator" / "experiments" / f"{name}.py" for name in MODULES]
    parts: list[str | bytes] = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    parts += kernels()
    for file in files:
        parts += [file.relative_to(ROOT).as_posix(), file.read_bytes()]
    return sha256(*parts)[:16]
