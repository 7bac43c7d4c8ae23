"""Files of others: nothing in them is executed, and nothing in them deceives a reader."""

import json
import re
import time
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.store.recording import compressed, unpacked
from tests.analysis.traces.runs import STAR, perform

PACKAGE = Path(__file__).parents[2] / "coband"
HOSTILE = '<script>alert(1)</script>\u202e"&\x9b'
UNPICKLING = re.compile(
    r"\bpickle\b|\bjoblib\.load\b|\bnp\.load\((?!.*allow_pickle=False)|allow_pickle=True|\bshelve\b|\bmarshal\b|\bdill\b"
)


def test_only_scenarios_on_their_way_to_workers_are_pickled() -> None:
    """And FedScale's files, which an unpickler reads that knows dicts, lists, numbers and texts alone."""
    found = {
        file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if UNPICKLING.search(file.read_text())
    }
    assert found == {"simulator/plugins/functions.py", "simulator/core/populations/kinds.py"}


@pytest.mark.parametrize(
    "content",
    [
        {"record": {}, "tables": {"jobs": [[1]]}},
        {"record": {}, "tables": {"series SELECT 1; --": [[1]]}},
        {"record": [], "tables": {}},
        {"record": {}, "tables": 3},
        [],
        None,
    ],
)
def test_a_done_file_of_another_kind_is_refused(content: object) -> None:
    with pytest.raises(ValueError, match="not a done-file"):
        unpacked(compressed(json.dumps(content).encode()))


def test_a_hostile_label_is_text_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = perform(STAR, tmp_path / "run", f"algorithms.One.label={json.dumps(HOSTILE)}", "expect=[]")
    assert exit_status(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert not re.search("[\u202e\x9b]", page)
    assert "\\u202e" in page.partition('id="diagram"')[2].partition("</select>")[0]
    capsys.readouterr()
    for command in (["trace", "show"], ["compare"], ["trace", "stats"]):
        assert exit_status([*command, str(run)]) == 0
        shown = capsys.readouterr()
        assert "\\u202e" in shown.out
        assert not re.search("[\u202e\x9b]", shown.out + shown.err)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ATTACH 'x' AS y", "only reading is allowed"),
        ("PRAGMA writable_schema = ON", "only reading is allowed"),
        ("SELECT load_extension('x')", "only reading is allowed"),
        ("VACUUM INTO 'x.sqlite'", "only reading is allowed"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r", "broken off after"),
        ("SELECT '" + "a" * 99 + "' LIKE '" + "%a" * 60 + "b'", "pattern too complex"),
        ("SELECT length(zeroblob(100000000))", "too big"),
    ],
)
def test_a_query_reads_and_ends(
    sql: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, begun = perform(STAR, tmp_path / "run", only=("Alone",)), time.monotonic()
    assert exit_status(["trace", "query", str(run), sql, "--seconds", "0.3"]) == 2
    assert message in capsys.readouterr().err
    assert time.monotonic() - begun < 20
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
