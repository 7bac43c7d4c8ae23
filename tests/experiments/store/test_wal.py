"""Damage of write-ahead logs that SQLite itself has written."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from coband.simulator.experiments.store import damage, wal
from tests.experiments.runs.fake_runs import ROOT


def test_the_frame_that_is_damaged_is_named(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    with closing(sqlite3.connect(tmp_path / "whole.sqlite")) as connection:
        connection.executescript("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; CREATE TABLE t (x)")
        for _ in range(3):
            connection.execute("INSERT INTO t VALUES (1)")
            connection.commit()
        content = (tmp_path / "whole.sqlite-wal").read_bytes()
    step, log = wal.FRAME + 1024, tmp_path / "run.sqlite-wal"
    frames = (len(content) - wal.HEADER) // step
    assert frames > 3
    log.write_bytes(content)
    assert wal.damage(file) is None
    found = []
    for place in (8, *(wal.HEADER + number * step + 100 for number in range(frames))):
        changed = bytearray(content)
        changed[place] ^= 1
        log.write_bytes(changed)
        found.append(wal.damage(file))
    whole = [f"frame {number} of its write-ahead log" for number in range(1, frames + 1)]
    assert found == ["the header of its write-ahead log", *whole]
    log.write_bytes(content[: wal.HEADER])
    assert wal.damage(file) is None


def test_up_to_which_size_everything_is_compared_at_once() -> None:
    page = (ROOT / "docs" / "store.md").read_text()
    (size,) = re.findall(r"above (\d+) MB its content is not compared", page)
    assert int(size) << 20 == damage.CHECKED_AT_ONCE
