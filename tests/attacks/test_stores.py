"""Damaged stores: no command ends with a traceback, and none hangs."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import coband
from coband.simulator.cli.main import exit_status
from tests.attacks import stores

QUICK = ("show", "why", "waits", "verify")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.finished(tmp_path_factory.mktemp("attacks") / "finished")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.killed(tmp_path_factory.mktemp("attacks") / "killed")


def sql(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


READING = "show,compare,report,plot,trace waits,trace show,trace stats,trace verify"
"""Commands that show what is in a store."""


def refused(run: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Why the commands that read runs end with exit status 2 and print nothing."""
    found = set()
    for name in READING.split(","):
        assert exit_status([*name.split(), str(run)]) == 2, name
        printed = capsys.readouterr()
        assert printed.out == ""
        found.add(printed.err)
    with pytest.raises(coband.RunError):
        coband.load(run)
    return found


def test_a_store_of_an_earlier_version_is_refused_by_whatever_reads_runs(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    sql(run / "run.sqlite", "PRAGMA user_version = 1")
    said = f"coband: {run}/run.sqlite was made by an earlier version of coband; run its scenario.yaml again.\n"
    assert refused(run, capsys) == {said}


def test_a_store_cut_off_is_refused_by_whatever_reads_runs(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (finished / "run.sqlite").read_bytes()
    for size in (3 * stores.PAGE, len(content) - 5 * stores.PAGE - 7, 5000):
        run = shutil.copytree(finished, tmp_path / str(size))
        (run / "run.sqlite").write_bytes(content[:size])
        (said,) = refused(run, capsys)
        assert said.startswith(f"coband: {run}/run.sqlite is damaged (")
        assert said.endswith(f"; `coband run {run}/scenario.yaml` does all of it again.\n")


def test_verify_compares_results_and_store(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = shutil.copytree(finished, tmp_path / "other")
    sql(other / "run.sqlite", "UPDATE jobs SET result = json_set(result, '$.regret', 1.5)")
    assert exit_status(["trace", "verify", str(other)]) == 1
    assert "results.json has another result of Sync" in capsys.readouterr().out
    run = shutil.copytree(finished, tmp_path / "run")
    file = run / "results.json"
    whole = json.loads(file.read_text())
    assert exit_status(["trace", "verify", str(run)]) == 0
    for key in ("mean", "ci95"):
        found = json.loads(file.read_text())
        found["results"][2][key]["regret"] = [0.5, 1.5]
        file.write_text(json.dumps(found))
        assert exit_status(["trace", "verify", str(run)]) == 1
        assert f"results.json has another {key} of Dis\n" in capsys.readouterr().out
    whole["results"][4]["replications"] = []
    for text, said in (
        (json.dumps(whole), "has 0 results of Alone, and the store 1"),
        ("{", "results.json is damaged"),
    ):
        file.write_text(text)
        assert exit_status(["trace", "verify", str(run)]) == 1
        assert said in capsys.readouterr().out


def test_verify_lets_a_realised_regret_fall(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    settings = "--set problem.regret=realised --set agents.count=3 --set schedule.turns=20 --only Async"
    assert exit_status(["run", "quickstart", *settings.split(), "--out", out]) == 0
    assert exit_status(["trace", "verify", out]) == 0


def test_verify_counts_what_a_defence_keeps_from_an_agent(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "{name: s, agents: {count: 6}, schedule: {kind: rounds, turns: 3}, server: {aggregate: reject_outliers},"
        " problem: {kind: arrays, arms: [[0.9, -0.3], [0.5, 0.7], [-0.9, 0.3]], rewards: [0.2, 0.6, 0.1]},"
        " algorithms: [{algorithm: eager_kernel_ucb}], network: {topology: complete, local: {mode: hop_by_hop}}}"
    )
    assert exit_status(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "run"), "--trace", "full"]) == 0
    assert exit_status(["trace", "verify", str(tmp_path / "run")]) == 0


def test_a_run_under_way_is_shown(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(["show", str(killed)]) == 0
    assert "3 of 10 jobs have finished" in capsys.readouterr().err
    assert exit_status(["trace", "verify", str(killed)]) == 0
    assert "consistent as far as it goes" in capsys.readouterr().out


def test_a_missing_table_is_found(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(finished / "run.sqlite")) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        names = [name for (name,) in connection.execute(query)]
    assert len(names) == 17
    for name in names:
        file = tmp_path / f"{name}.sqlite"
        file.write_bytes((finished / "run.sqlite").read_bytes())
        sql(file, f"DROP TABLE {name}")
        statuses = {exit_status([*command.split(), str(file)]) for command in ("trace verify", "show", "compare")}
        assert statuses <= {0, 1, 2}, name
        assert (name in ("jobs", "meta", "series")) == (statuses == {2}), name
        assert "Traceback" not in capsys.readouterr().err


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


def test_views_without_an_end_hang_nothing(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    columns = "x AS job, 'a' AS label, 0 AS replication, x AS seq, 'send' AS event, 'server' AS node, x AS value"
    sql(run / "run.sqlite", "DROP VIEW trace", f"CREATE VIEW trace AS {ENDLESS} SELECT {columns} FROM n")
    for command in (["show", "--node", "server"], ["stats"], ["export", "--format", "perfetto"]):
        assert exit_status(["trace", command[0], str(run), *command[1:]]) == 0
        shown = capsys.readouterr().out
        assert exit_status(["trace", command[0], str(finished), *command[1:]]) == 0
        assert capsys.readouterr().out == shown
    assert exit_status(["trace", "query", str(run), "SELECT max(seq) FROM trace", "--seconds", "0.2"]) == 2
    assert "broken off after 0.2 seconds" in capsys.readouterr().err


def test_a_view_for_a_table_is_refused(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("jobs", "events", "names"):
        file = tmp_path / f"{name}.sqlite"
        file.write_bytes((finished / "run.sqlite").read_bytes())
        sql(file, f"DROP TABLE {name}", f"CREATE VIEW {name} AS {ENDLESS} SELECT * FROM n")
        for command in ("trace show", "trace verify", "compare", "show"):
            assert exit_status([*command.split(), str(file)]) == 2
            assert f"has a view '{name}', and a store of coband has none but `trace`" in capsys.readouterr().err
        assert stores.called(["trace", "query", str(file), "SELECT 1"])[0] == 2


def test_a_cause_that_is_not_earlier_ends_no_command_in_a_loop(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.sqlite"
    file.write_bytes((finished / "run.sqlite").read_bytes())
    sql(file, "UPDATE events SET cause = seq")
    assert exit_status(["trace", "why", str(file), "20", "--all", *stores.CHOICE]) == 2
    assert "event 20 has the cause 20, which is not earlier" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"entries": 3}', '{"entries": {"a": {"x": 1}}}', "\0"])
def test_a_damaged_status(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "status.json").write_text(text)
    assert exit_status(["sweep", "--status", str(tmp_path)]) == 2
    assert "status.json is damaged" in capsys.readouterr().err


def test_random_damage(finished: Path, tmp_path: Path) -> None:
    findings = list(stores.attacks(finished, tmp_path, range(1000, 1008), ("show", "why", "waits", "verify")))
    assert len(findings) >= 6
    assert all(set(one.statuses.values()) <= {0, 1, 2} for one in findings), findings


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["finished", "killed"])
def test_much_random_damage(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    findings = list(stores.attacks(request.getfixturevalue(kind), tmp_path, range(2000, 2060)))
    assert len(findings) > 30
    assert all(set(one.statuses.values()) <= {0, 1, 2} for one in findings), findings
