"""The README stays short, and what it shows works."""

import re
from pathlib import Path

import pytest

import coband
from coband.simulator.cli.main import exit_status

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[0]


def test_it_is_read_in_four_minutes() -> None:
    assert len(TEXT.splitlines()) <= 110
    assert len(TEXT.split()) <= 900


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_its_links_lead_somewhere(name: str) -> None:
    places = re.findall(r"\]\((?!http)([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert places
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_its_algorithm_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = '"quickstart", workers=1, replications=1, set={"schedule.turns": 20}, algorithms'
    code = block("python").replace('"quickstart", algorithms', small)
    assert small in code
    names: dict[str, object] = {}
    exec(code, names)
    run = names["run"]
    assert isinstance(run, coband.Run)
    assert run.labels == ["Mine", "Mine epsilon=0.01", "fed_lin_ucb"]
    assert "Mine epsilon=0.01" in capsys.readouterr().out


def test_its_scenario_runs_and_keeps_what_it_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("devices.yaml").write_text(block("yaml"))
    assert exit_status(["validate", "devices.yaml"]) == 0
    assert exit_status(["check", "devices.yaml", "--workers", "1", "--quiet", "--out", "run"]) == 0
    assert exit_status(["trace", "waits", "run"]) == 0


def test_its_straggler_is_the_one_that_was_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = "run quickstart --only Approx-Dis --replication 4 --workers 1 --quiet --out run"
    assert exit_status(command.split()) == 0
    capsys.readouterr()
    assert exit_status("trace waits run --limit 1".split()) == 0
    shown = re.search(r"trace waits latest --limit 1\n(( {4}.*\n){2})", TEXT)
    assert shown is not None
    assert capsys.readouterr().out.split("\n")[:2] == [line[4:] for line in shown[1].splitlines()]
    assert exit_status("trace why run 598 --label Approx-Dis --replication 4".split()) == 0
    assert "31.6716 of them until event 521, send at agent 14." in capsys.readouterr().out
