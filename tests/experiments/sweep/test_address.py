"""What makes one job another one: the BLAS that numpy and scipy use, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from coband.simulator.experiments.runs import code_version

NUMPYS = "/site-packages/numpy.libs/libscipy_openblas64_-1.so"
FOREIGN = "/site-packages/solver.libs/libopenblas-2.so"


def controller(*libraries: tuple[str, str]) -> type:
    """Something that finds these (path, version)."""

    class Controller:
        def select(self, user_api: str) -> Controller:
            assert user_api == "blas"
            return self

        def info(self) -> list[dict[str, Any]]:
            known = {"internal_api": "openblas", "architecture": "Haswell"}
            return [{**known, "filepath": path, "version": version} for path, version in libraries]

    return Controller


@pytest.mark.parametrize(
    ("loaded", "found"),
    [
        ([(NUMPYS, "0.3.31"), (FOREIGN, "0.3.15")], ("openblas 0.3.31 Haswell",)),
        ([("/usr/lib/libopenblas.so", "0.3.21")], ("openblas 0.3.21 Haswell",)),
    ],
    ids=["another package's is left out", "the system's counts where numpy brings none"],
)
def test_kernels(loaded: list[tuple[str, str]], found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_version.threadpoolctl, "ThreadpoolController", controller(*loaded))
    assert code_version.kernels.__wrapped__() == found
