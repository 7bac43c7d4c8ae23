"""Files that scenarios name are read again once they have changed, in one process too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.core.clock.schedule import Recorded as Turns
from coband.simulator.core.hosts.availability import Recorded
from coband.simulator.core.hosts.stays import MovesAtTimes
from coband.simulator.core.network.bandwidth import Packets
from coband.simulator.core.network.links import Matrix
from coband.simulator.core.populations.populations import Columns, FilePopulation
from coband.simulator.core.randomness.distributions import Empirical

FILES: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "empirical": ("1\n", "25\n", lambda file: Empirical(file=file).mean),
    "matrix": ("0 1\n1 0\n", "0 2\n1 0\n", lambda file: Matrix(kind="matrix", file=file).largest_mean),
    "packets": ("5\n", "6\n", lambda file: Packets(kind="packets", file=file).opportunities[0].tolist()),
    "turns": (
        "agent,time\n0,1\n",
        "agent,time\n0,1\n0,2\n",
        lambda file: Turns(kind="trace", file=file).total_turns(1),
    ),
    "times": (
        "agent,up,down\n0,1,2\n",
        "agent,up,down\n0,1,3\n",
        lambda file: Recorded(kind="trace", file=file).leaves(0),
    ),
    "moves": ("agent,time\n0,1\n", "agent,time\n2,1\n", lambda file: MovesAtTimes(kind="times", file=file).agents),
    "population": (
        "x\n1\n2\n",
        "x\n1\n200\n",
        lambda file: FilePopulation(kind="file", file=file, columns=Columns(speed="x")).table().numbers["speed"].max(),
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_has_changed_is_read_anew(kind: str, tmp_path: Path) -> None:
    before, after, read = FILES[kind]
    file = tmp_path / "values.csv"
    file.write_text(before)
    first = read(str(file))
    assert read(str(file)) == first
    file.write_text(after)
    assert read(str(file)) != first
