"""The real data files, where a machine has them."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("COBAND_TEST_DATA") or Path(__file__).parents[1] / "../shared/data").resolve()


def data_file(name: str) -> Path:
    """A file below the data directory; the calling test is skipped where there is none."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path} is not here; set COBAND_TEST_DATA to a directory that holds {name}")
    return path
