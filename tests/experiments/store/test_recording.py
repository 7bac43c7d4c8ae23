"""What a job has recorded comes into the run's store whole, whenever an interrupt comes."""

import sqlite3
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest

from coband.simulator.experiments.store import recording, schema


def part_of_a_job(folder: Path) -> Path:
    file = folder / "part.sqlite"
    connection = schema.connect(str(file), collected=False)
    schema.insert(connection, "series", [(0, 1, 0.5, 2.0, 3)])
    connection.close()
    return file


def copied(store: sqlite3.Connection, file: Path) -> None:
    with recording.attached(store, file):
        recording.copy_tables(store, ["series"], 0, 7)


def half_done(store: sqlite3.Connection) -> None:
    with recording.attached(store, None):
        store.execute("DELETE FROM series")
        raise ZeroDivisionError


class Interrupt:
    """A trace function that raises KeyboardInterrupt at the n-th line of the module that copies."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Self | None:
        if frame.f_code.co_filename != recording.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def test_after_an_interrupt_at_any_line_the_job_can_be_taken(tmp_path: Path) -> None:
    file = part_of_a_job(tmp_path)
    interrupted = 0
    for line in range(1, 200):
        store = schema.connect(str(tmp_path / f"run-{line}.sqlite"), collected=True)
        before = sys.gettrace()
        sys.settrace(Interrupt(line))
        try:
            copied(store, file)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        went_through = interrupted < line
        copied(store, file)
        assert store.execute("SELECT job, turn, regret FROM series").fetchall() == [(7, 1, 2.0)]
        assert not store.in_transaction
        store.close()
        if went_through:
            break
    assert 10 < interrupted < 199


def test_a_file_that_is_attached_still_is_let_go(tmp_path: Path) -> None:
    """An interrupt came between attaching it and whatever followed."""
    file = part_of_a_job(tmp_path)
    store = schema.connect(str(tmp_path / "run.sqlite"), collected=True)
    store.execute("ATTACH ? AS part", (str(file),))
    copied(store, file)
    assert [name for _, name, _ in store.execute("PRAGMA database_list")] == ["main"]
    with pytest.raises(ZeroDivisionError):
        half_done(store)
    assert store.execute("SELECT count(*) FROM series").fetchone() == (1,)
    store.close()
