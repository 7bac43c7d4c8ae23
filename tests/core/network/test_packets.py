"""Recorded links: the same as a loop over packets, also on real recordings, and what is not a recording."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coband.simulator.core.network.bandwidth import Packets
from tests.data_files import data_file
from tests.oracles.packets import departures

TIMES = st.lists(st.integers(0, 40), min_size=1, max_size=30).filter(any).map(sorted)
MESSAGES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9000)), min_size=1, max_size=20)


def _packets(file: Path, times: list[int]) -> Packets:
    file.write_text("\n".join(map(str, times)) + "\n")
    return Packets(kind="packets", file=str(file), time_unit="milliseconds")


@given(times=TIMES, messages=MESSAGES)
def test_messages_leave_as_in_a_loop_over_packets(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], messages: list[tuple[int, int]]
) -> None:
    packets = _packets(tmp_path_factory.mktemp("packets") / "times", times)
    messages = sorted(messages, key=lambda message: message[0])
    expected = departures(times, [(float(arrival), size) for arrival, size in messages])
    leave = packets.stage().leave
    assert [leave(float(arrival), 1, 8 * size) for arrival, size in messages] == expected


@pytest.mark.parametrize("name", ["ATT-LTE-driving-2016.up", "ATT-LTE-driving-2016.down", "Verizon-LTE-short.down"])
def test_real_recordings(name: str) -> None:
    """In seconds; over the end of the recording; a byte more takes one packet more."""
    rng = np.random.default_rng(3)
    file = data_file(f"mahimahi/{name}")
    times = list(map(int, file.read_text().split()))
    arrivals = np.sort(rng.integers(0, 3 * times[-1], 200)).astype(float)
    messages = [(arrival, int(size)) for arrival, size in zip(arrivals, rng.integers(1, 60_000, 200), strict=True)]
    stage = Packets(kind="packets", file=str(file)).stage()
    found = [stage.leave(arrival / 1e3, 1, 8 * size) for arrival, size in messages]
    assert found == [time / 1e3 for time in departures(times, messages)]


def test_what_is_no_recording(tmp_path: Path) -> None:
    """Each message says which line is wrong or what is expected."""
    wrong = {
        "1\n2.5\n": ":2: the file must hold one whole number of milliseconds per line",
        "": "must hold times >= 0 in milliseconds, and end with one > 0",
        "0\n0\n": "must hold times >= 0 in milliseconds, and end with one > 0",
        "1\n5\n3\n": ":3: the time 3 is before that of the line above",
        "1\nfast\n": ":2: .*must hold",
    }
    for number, (text, message) in enumerate(wrong.items()):
        file = tmp_path / f"{number}"
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            Packets(kind="packets", file=str(file))
    with pytest.raises(ValueError, match="does not exist; give a text file with one time in milliseconds per line"):
        Packets(kind="packets", file=str(tmp_path / "none"))
