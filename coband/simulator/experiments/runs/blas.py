"""The linear algebra library underneath numpy: which one it is, and how many threads it uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
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
