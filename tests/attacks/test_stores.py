"""Damaged stores: no command ends with a traceback, none hangs, and verify finds all damage."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import coband
from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.store import damage, seal, store, wal
from tests.analysis.traces.runs import STAR, perform
from tests.attacks import stores
from tests.attacks.test_surroundings import SCENARIO

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


def sql(file: Path, *statements: str) -> None:
    """Change a store."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_finished_store_is_sealed_and_whole(finished: Path, killed: Path) -> None:
    assert seal.check(finished / "run.sqlite") == "whole"
    assert seal.check(killed / "run.sqlite") == "open"
    with closing(sqlite3.connect(finished / "run.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_every_single_changed_byte_is_found(finished: Path, tmp_path: Path) -> None:
    size, draw = (finished / "run.sqlite").stat().st_size, random.Random(3)
    marked = range(seal.PAGE_SIZE - seal.RESERVED, seal.PAGE_SIZE, 4)
    offsets = {*range(32), *range(90, 108), *marked, size - 1, *(draw.randrange(size) for _ in range(40))}
    for offset in offsets:
        file = copied(finished, tmp_path / "run.sqlite", offset)
        assert seal.check(file) == "damaged", offset
        with pytest.raises(store.DamagedStoreError, match="the store is damaged"):
            store.open_run(file)


def test_the_message_names_whole_jobs(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "the store is damaged (its content does not match its seal)" in message
    jobs = [f"{label}, replication 0" for label in ("Async", "Sync", "Dis", "Alone")]
    assert f"these jobs are whole: {'; '.join(jobs)}; `coband run" in message
    (tmp_path / "status.json").touch()
    assert "--resume --out" in str(damage.damaged(tmp_path / "run.sqlite", "x"))


def test_a_store_cut_off_or_grown_is_damaged(finished: Path, tmp_path: Path) -> None:
    content, file = (finished / "run.sqlite").read_bytes(), tmp_path / "run.sqlite"
    for other in (content[: 3 * seal.PAGE_SIZE], content[:-1], content + bytes(seal.PAGE_SIZE), content + b"x"):
        file.write_bytes(other)
        assert seal.check(file) == "damaged"
    file.write_bytes(content[:5000])
    assert seal.check(file) == "damaged"


def test_a_driver_killed_before_it_sealed_has_lost_nothing(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, file = bytearray((finished / "run.sqlite").read_bytes()), tmp_path / "run.sqlite"
    content[seal.PAGE_SIZE - seal.RESERVED : seal.PAGE_SIZE] = bytes(seal.RESERVED)
    file.write_bytes(content)
    assert seal.check(file) == "open"
    assert exit_status(["show", str(file)]) == 0
    assert exit_status(["trace", "verify", str(file)]) == 1
    assert "has no seal, although its run has ended" in capsys.readouterr().out
    sql(file, "UPDATE jobs SET result = json_set(result, '$.regret', 1) WHERE job = 2")
    assert seal.check(file) == "open"
    assert exit_status(["show", str(file)]) == 2
    assert "it has lost its seal, and the rows of job 2 are others" in capsys.readouterr().err
    file.write_bytes(content)
    seal.seal(file)
    assert file.read_bytes() == (finished / "run.sqlite").read_bytes()


NUMBERS = ("show", "compare", "report", "plot", "cite", *(f"trace {one}" for one in ("hash", "show", "stats", "diff")))
"""Commands that show what is in a store."""


def refused(run: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Why the commands that show numbers end with exit status 2 and print nothing."""
    found = set()
    for name in NUMBERS:
        assert exit_status([*name.split(), *[str(run)] * (1 + name.endswith("diff"))]) == 2, name
        printed = capsys.readouterr()
        assert printed.out == ""
        found.add(printed.err.partition(". So its")[0].removeprefix("coband: "))
    with pytest.raises(coband.RunError, match="its numbers are not shown; `coband trace verify"):
        coband.load(run)
    return found


def test_numbers_that_sql_has_changed_are_not_shown(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    sql(run / "run.sqlite", "UPDATE jobs SET result = json_set(result, '$.regret', 1.5) WHERE job = 1")
    assert refused(run, capsys) == {f"{run}/run.sqlite was changed after its run had ended"}
    assert exit_status(["show", str(run / "run.sqlite")]) == 2


def test_numbers_of_another_run_are_not_shown(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    other = perform(STAR, tmp_path / "other", "schedule.turns=11", "expect=[]", "trace=full")
    shutil.copy(other / "run.sqlite", run)
    (reason,) = refused(run, capsys)
    assert f"{run}/run.sqlite is not the store of the run that manifest.json beside it is about" in reason
    assert exit_status(["trace", "verify", str(run)]) == 1
    assert "results.json is not what the run wrote when it ended" in capsys.readouterr().out


def test_a_log_beside_a_sealed_store_is_a_change(
    finished: Path, killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(finished / "run.sqlite", tmp_path)
    shutil.copy(killed / "run.sqlite-wal", tmp_path)
    for command in ("show", "trace verify"):
        assert exit_status([*command.split(), str(tmp_path / "run.sqlite")]) == (1 if "verify" in command else 2)
        printed = capsys.readouterr()
        assert "run.sqlite was changed after its run had ended" in printed.out + printed.err


def test_a_run_under_way_is_shown(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(["show", str(killed)]) == 0
    assert "3 of 10 jobs have finished" in capsys.readouterr().err


def test_verify_misses_no_file(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("manifest.json", "results.json", "scenario.yaml")):
        run = shutil.copytree(finished, tmp_path / str(number))
        (run / name).unlink()
        assert exit_status(["trace", "verify", str(run)]) == 1
        assert f"{run / name} is missing\n" in capsys.readouterr().out
        for content in (b"", b"\xff\xfe", b"{}"):
            (run / name).write_bytes(content)
            assert exit_status(["trace", "verify", str(run)]) == 1, (name, content)
            assert name in capsys.readouterr().out


def test_a_missing_table_is_found(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(finished / "run.sqlite")) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        names = [name for (name,) in connection.execute(query)]
    assert len(names) == 17
    for name in names:
        file = tmp_path / f"{name}.sqlite"
        file.write_bytes((finished / "run.sqlite").read_bytes())
        sql(file, f"DROP TABLE {name}")
        assert exit_status(["trace", "verify", str(file)]) in (1, 2), name
        assert exit_status(["show", str(file)]) == 2, name
        assert "Traceback" not in capsys.readouterr().err


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


def test_views_without_an_end_hang_nothing(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    columns = "x AS job, 'a' AS label, 0 AS replication, x AS seq, 'send' AS event, 'server' AS node, x AS value"
    sql(run / "run.sqlite", "DROP VIEW trace", f"CREATE VIEW trace AS {ENDLESS} SELECT {columns} FROM n")
    seal.seal(run / "run.sqlite")
    for command in (["show", "--node", "server"], ["stats"], ["export", "--format", "csv"]):
        assert exit_status(["trace", command[0], str(run), *command[1:]]) == 0
        shown = capsys.readouterr().out
        assert exit_status(["trace", command[0], str(finished), *command[1:]]) == 0
        assert capsys.readouterr().out == shown
    assert exit_status(["trace", "query", str(run), "SELECT max(seq) FROM trace", "--seconds", "0.2"]) == 2
    assert "broken off after 0.2 seconds" in capsys.readouterr().err


def test_a_view_in_the_place_of_a_table_is_refused(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("jobs", "events", "names"):
        file = tmp_path / f"{name}.sqlite"
        file.write_bytes((finished / "run.sqlite").read_bytes())
        sql(file, f"DROP TABLE {name}", f"CREATE VIEW {name} AS {ENDLESS} SELECT * FROM n")
        seal.seal(file)
        for command in ("trace show", "trace verify", "compare", "show"):
            assert exit_status([*command.split(), str(file)]) == 2
            assert f"has a view '{name}', and a store of coband has none but `trace`" in capsys.readouterr().err
        assert stores._called(["trace", "query", str(file), "SELECT 1"])[0] == 2


def test_a_changed_results_file_of_a_sweep_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCENARIO + "grid:\n  agents.count: [2, 3]\n")
    assert exit_status(["sweep", "s.yaml", "--out", "out", "--workers", "1"]) == 0
    assert exit_status(["show", "out"]) == 0
    results = tmp_path / "out" / "results.json"
    results.write_text(results.read_text().replace('"turns": 40', '"turns": 41'))
    capsys.readouterr()
    assert exit_status(["show", "out"]) == 2
    assert "out/results.json was changed after its sweep had ended" in capsys.readouterr().err


def test_a_change_by_sql_is_no_damage_and_verify_says_what_it_is(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.sqlite"
    file.write_bytes((finished / "run.sqlite").read_bytes())
    sql(file, "UPDATE series SET regret = 0 WHERE job = 1")
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
    sql(file, "UPDATE events SET cause = seq")
    seal.seal(file)
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
