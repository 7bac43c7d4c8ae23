"""``coband counts``, and ``coband check`` of a lock file."""

import json
from pathlib import Path

import pytest

from coband.simulator.analysis.counts import counting
from coband.simulator.analysis.counts.counting import Counts
from coband.simulator.cli.main import main
from tests.analysis.counts.test_counting import COUNTS
from tests.analysis.traces import runs

ONE = runs.STAR.replace("turns: 12", "turns: 4").split("  - {algorithm: async")[0] + (
    "  - {algorithm: one_kernel_ucb, label: One, kernel: {kind: gaussian, gamma: 1.0}, alpha: 0.5}\n"
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    for name in ("a", "b"):
        Path(f"studies/{name}.yaml").write_text(ONE)


def coband(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main([*words])
    captured = capsys.readouterr()
    return exit_.value.code, captured.out, captured.err


def test_lock_check_update(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = coband(capsys, "counts", "studies/a.yaml", "studies/b.yaml")
    assert (status, output) == (0, "studies/a.yaml: 7 counts\nstudies/b.yaml: 7 counts\n")
    locked = json.loads(Path("counts.lock.json").read_text())
    assert locked["studies/a.yaml"] == locked["studies/b.yaml"] == {"One": COUNTS}
    assert coband(capsys, "check", "counts.lock.json")[:2] == (
        0,
        "studies/a.yaml: as locked\nstudies/b.yaml: as locked\n",
    )

    Path("studies/b.yaml").write_text(ONE.replace("turns: 4", "turns: 5"))
    status, output, errors = coband(capsys, "check", "counts.lock.json")
    lines = [line.split() for line in output.splitlines()]
    assert status == 1
    assert lines[:2] == [["studies/a.yaml:", "as", "locked"], ["studies/b.yaml:", "differs"]]
    assert ["One", "uplink_scalars", "64", "80", "+25.00%"] in lines
    assert errors == (
        "1 of 2 scenarios differ. If that is meant: coband counts --update --file counts.lock.json studies/b.yaml\n"
    )
    assert json.loads(Path("counts.lock.json").read_text()) == locked
    assert coband(capsys, "counts", "--update", "studies/a.yaml")[0] == 0

    assert coband(capsys, "counts", "--update", "studies/b.yaml")[0] == 0
    assert json.loads(Path("counts.lock.json").read_text())["studies/a.yaml"] == locked["studies/a.yaml"]
    assert coband(capsys, "check", "counts.lock.json")[0] == 0


def test_labels_that_come_and_go(capsys: pytest.CaptureFixture[str]) -> None:
    coband(capsys, "counts", "studies/a.yaml")
    Path("studies/a.yaml").write_text(ONE.replace("label: One", "label: Uno"))
    status, output, _ = coband(capsys, "check", "counts.lock.json")
    assert status == 1
    expected = [["One", "a", "label", "gone"], ["Uno", "-", "a", "new", "label"]]
    assert [line.split() for line in output.splitlines()[2:]] == expected


def test_a_file_elsewhere_names_scenarios_from_where_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert coband(capsys, "counts", "studies/a.yaml", "--file", "studies/lock.json")[0] == 0
    assert list(json.loads(Path("studies/lock.json").read_text())) == ["a.yaml", "$hardware"]
    monkeypatch.chdir("studies")
    assert coband(capsys, "check", "lock.json")[:2] == (0, "a.yaml: as locked\n")


def test_a_scenario_that_comes_with_coband_keeps_its_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ["--set", "schedule.turns=5", "--set", "agents.count=2"]
    assert coband(capsys, "counts", "quickstart", *small)[:2] == (0, "quickstart: 37 counts\n")
    monkeypatch.chdir("studies")
    checked = coband(capsys, "check", "../counts.lock.json", *small)
    assert checked[:2] == (0, "quickstart: as locked\n")


def test_counts_that_another_command_adds_meanwhile_stay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_: object) -> Counts:
        monkeypatch.setattr(counting, "count", count)
        assert coband(capsys, "counts", "studies/b.yaml")[0] == 0
        return {}

    count = counting.count
    monkeypatch.setattr(counting, "count", meanwhile)
    assert coband(capsys, "counts", "studies/a.yaml")[0] == 0
    assert list(json.loads(Path("counts.lock.json").read_text())) == ["studies/b.yaml", "studies/a.yaml", "$hardware"]


def test_settings_reach_every_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    coband(capsys, "counts", "studies/a.yaml", "--set", "schedule.turns=2")
    assert json.loads(Path("counts.lock.json").read_text())["studies/a.yaml"]["One"]["turns"] == 8
    Path("studies/a.yaml").rename("studies/a b.yaml")
    counted = Path("counts.lock.json").read_text().replace("a.yaml", "a b.yaml")
    Path("counts.lock.json").write_text(counted)
    _, _, errors = coband(capsys, "check", "counts.lock.json", "--set", "schedule.turns=3")
    command = "coband counts --update --file counts.lock.json --set schedule.turns=3 'studies/a b.yaml'"
    assert errors == f"1 of 1 scenarios differ. If that is meant: {command}\n"


@pytest.mark.parametrize(
    ("words", "content", "message"),
    [
        (["check", "counts.lock.json"], None, "there is no counts.lock.json; `coband counts FILE...` makes it."),
        (["counts", "--update"], None, "there is no counts.lock.json"),
        (
            ["counts", "--update", "studies/b.yaml"],
            '{"studies/a.yaml": {}}',
            "has no counts of studies/b.yaml; it has studies/a",
        ),
        (["counts", "studies/a.yaml"], '{"studies/a.yaml": {}}', "has counts of studies/a.yaml already; add --update"),
        (["check", "counts.lock.json"], "counts: 3", "counts.lock.json is not JSON"),
        (["check", "counts.lock.json"], "[1, 2]", "counts.lock.json is not a counts lock"),
        (["check", "counts.lock.json"], '{"studies/a.yaml": {"One": 3}}', "counts.lock.json is not a counts lock"),
        (
            ["check", "counts.lock.json"],
            '{"studies/a.yaml": {"One": {"turns": "x"}}}',
            "counts.lock.json is not a counts lock",
        ),
        (
            ["check", "counts.lock.json"],
            '{"studies/a.yaml": {}, "$hardware": {"studies/a.yaml": 5}}',
            "counts.lock.json is not a counts lock",
        ),
        (
            ["check", "counts.lock.json"],
            "{}",
            "counts.lock.json has no counts, so nothing would be checked; `coband counts FILE...`",
        ),
        (
            ["check", "counts.lock.json"],
            '{"studies/c.yaml": {}}',
            "has counts of studies/c.yaml, and there is no such file. Bring",
        ),
        (["counts"], None, "give the FILE of a scenario, or --update."),
        (["counts", "nowhere.yaml"], None, "nowhere.yaml: there is no such file"),
        (["counts", "studies/a.yaml", "--set", "schedule.turns=x"], None, "schedule.turns"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], words: list[str], content: str | None, message: str) -> None:
    if content is not None:
        Path("counts.lock.json").write_text(content)
    status, output, errors = coband(capsys, *words)
    assert (status, output) == (2, "")
    assert message in errors
    assert (Path("counts.lock.json").read_text() if content is not None else None) == content


def test_what_breaks_off_is_no_lock(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from coband.agents.kernel import one_kernel_ucb

    def broken(*_: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(one_kernel_ucb.OneKernelUCB, "choose", broken)
    status, _, errors = coband(capsys, "counts", "studies/a.yaml")
    assert status == 2
    assert "One broke off (ZeroDivisionError: a bug), so there is nothing to count" in errors
    assert not Path("counts.lock.json").exists()
