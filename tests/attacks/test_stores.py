"""Damaged stores: no command ends with a traceback, none hangs, and verify finds all damage."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.store import damage, seal, store, wal
from tests.attacks import stores

QUICK = ("show", "why", "hash", "verify")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.finished(tmp_path_factory.mktemp("attacks") / "finished")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.killed(tmp_path_factory.mktemp("attacks") / "killed")


def copied(run: Path, place: Path, offset: int, size: int = 1) -> Path:
    """A copy of a run's store alone with some bits flipped."""
    content = bytearray((run / "run.sqlite").read_bytes())
    for index in range(offset, offset + size):
        content[index] ^= 0x55
    place.write_bytes(content)
    return place


def test_a_finished_store_is_sealed_and_whole(finished: Path, killed: Path) -> None:
    assert seal.check(finished / "run.sqlite") == seal.SealCheck("whole")
    assert seal.check(killed / "run.sqlite").state == "open"
    with closing(sqlite3.connect(finished / "run.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_every_single_changed_byte_is_found(finished: Path, tmp_path: Path) -> None:
    size, draw = (finished / "run.sqlite").stat().st_size, random.Random(3)
    offsets = {*range(32), *range(90, 108), seal.PAGE_SIZE - 1, size - 1, *(draw.randrange(size) for _ in range(40))}
    for offset in offsets:
        file = copied(finished, tmp_path / "run.sqlite", offset)
        assert seal.check(file).state == "damaged", offset
        with pytest.raises(store.DamagedStoreError, match=rf"pages? {offset // seal.PAGE_SIZE + 1} of"):
            store.open_run(file)


def test_the_message_names_pages_and_whole_jobs(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(finished / "run.sqlite")) as connection:
        query = "SELECT detail FROM events GROUP BY detail HAVING count(*) = 1 AND max(job) = 3 AND detail IS NOT NULL"
        (value,) = connection.execute(query).fetchone()
    content = bytearray((finished / "run.sqlite").read_bytes())
    place = content.index(value.encode())
    content[place] ^= 1
    (tmp_path / "run.sqlite").write_bytes(content)
    (tmp_path / "scenario.yaml").touch()
    assert exit_status(["trace", "why", str(tmp_path), "3", "--label", "One"]) == 2
    message = capsys.readouterr().err
    assert f"the store is damaged at page {place // seal.PAGE_SIZE + 1} of " in message
    jobs = [f"{label}, replication 0" for label in ("Async", "Sync", "Dis", "Alone")]
    assert f"these jobs are whole: {'; '.join(jobs)}; `coband run" in message
    (tmp_path / "status.json").touch()
    assert "--resume --out" in str(damage.damaged(tmp_path / "run.sqlite", "x"))


def test_a_store_cut_off_or_grown_is_damaged(finished: Path, tmp_path: Path) -> None:
    content, file = (finished / "run.sqlite").read_bytes(), tmp_path / "run.sqlite"
    for other in (content[: 3 * seal.PAGE_SIZE], content[:-1], content + bytes(seal.PAGE_SIZE), content + b"x"):
        file.write_bytes(other)
        assert seal.check(file).state == "damaged"
    file.write_bytes(content[:5000])
    assert seal.check(file) == seal.SealCheck("damaged", "its end")


def test_a_driver_killed_while_it_sealed_has_damaged_nothing(finished: Path, tmp_path: Path) -> None:
    content, file = bytearray((finished / "run.sqlite").read_bytes()), tmp_path / "run.sqlite"
    for number in (1, 2, 3):
        content[number * seal.PAGE_SIZE - seal.RESERVED : number * seal.PAGE_SIZE] = bytes(seal.RESERVED)
        file.write_bytes(content)
        assert seal.check(file).state == "open"
    seal.seal(file)
    assert file.read_bytes() == (finished / "run.sqlite").read_bytes()


def test_a_change_by_sql_is_no_damage_but_verify_says_so(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.sqlite"
    file.write_bytes((finished / "run.sqlite").read_bytes())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE series SET regret = 0 WHERE job = 1")
    assert exit_status(["trace", "hash", str(file)]) == 0
    assert exit_status(["trace", "verify", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "run.sqlite was changed after its run had ended" in shown
    assert "Sync, replication 0: its rows are not what they were when it ended" in shown


def test_a_log_of_a_killed_run(killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, copy = (killed / "run.sqlite-wal").read_bytes(), tmp_path / "run.sqlite"
    copy.write_bytes((killed / "run.sqlite").read_bytes())
    assert wal.damage(killed / "run.sqlite") is None
    for offset, place in ((40, "frame 1"), (20, "the header"), (wal.HEADER + 2 * 16408 + 5000, "frame 3")):
        changed = bytearray(log)
        changed[offset] ^= 1
        copy.with_name("run.sqlite-wal").write_bytes(changed)
        assert str(wal.damage(copy)).startswith(place)
    copy.with_name("run.sqlite-wal").write_bytes(log[:-9000])  # a process killed while it wrote
    assert wal.damage(copy) is None
    assert exit_status(["trace", "verify", str(killed)]) == 0
    assert "consistent as far as it goes" in capsys.readouterr().out


def test_lost_results_of_a_killed_run_are_found(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_bytes((killed / "results.json").read_bytes())
    log = (killed / "run.sqlite-wal").read_bytes()
    (tmp_path / "run.sqlite").write_bytes((killed / "run.sqlite").read_bytes())
    (tmp_path / "run.sqlite-wal").write_bytes(log[: len(log) // 2])
    assert exit_status(["trace", "verify", str(tmp_path)]) == 1
    assert "results.json has another result of" in capsys.readouterr().out


def test_a_cause_that_is_not_earlier_ends_no_command_in_a_loop(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.sqlite"
    file.write_bytes((finished / "run.sqlite").read_bytes())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE events SET cause = seq")
    assert exit_status(["trace", "why", str(file), "20", "--all", *stores.CHOICE]) == 2
    assert "event 20 has the cause 20, which is not earlier" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"entries": 3}', '{"entries": {"a": {"x": 1}}}', "\0"])
def test_a_damaged_status(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "status.json").write_text(text)
    assert exit_status(["sweep", "--status", str(tmp_path)]) == 2
    assert "status.json is damaged" in capsys.readouterr().err


def test_random_damage(finished: Path, tmp_path: Path) -> None:
    findings = list(stores.attacks(finished, tmp_path, range(1000, 1006), QUICK))
    assert len(findings) >= 4
    assert [(one.damage, one.wrong, one.shown) for one in findings if one.wrong] == []
    assert all(set(one.statuses.values()) == {2} for one in findings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["finished", "killed"])
def test_much_random_damage(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    findings = list(stores.attacks(request.getfixturevalue(kind), tmp_path, range(2000, 2040)))
    assert len(findings) > 20
    assert [(one.damage, one.wrong, one.shown) for one in findings if one.wrong] == []
