import errno
import json
import re
from pathlib import Path

import pytest

from coband.simulator.analysis.comparison.tables import ReportTable
from coband.simulator.cli.compare import _show_differences
from coband.simulator.experiments.store.files import OutputError, keep_file
from tests.cli.fake_cli import Program
from tests.experiments.runs.fake_runs import perform


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "run"
    perform(out, replications=3)
    return out


def test_compare(coband: Program, run: Path) -> None:
    status, output, _ = coband("compare", run)
    lines = [line.split("  ") for line in output.splitlines()]
    assert status == 0
    assert lines[0][0] == "measure"
    assert ["scalars sent", "Seldom sends the fewest scalars."] in [
        [cell.strip() for cell in line if cell.strip()] for line in lines
    ]
    assert "Often − Seldom" in output
    assert re.findall(r"^.*: Diff", coband("compare", run, "--measure", "scalars")[1], re.M) == ["scalars sent: Diff"]
    at = json.loads(coband("compare", run, "--at", 7, "--json")[1])["at_times"]
    assert [(one["time"], one["label"], one["turns"]) for one in at] == [(7, "Often", 35), (7, "Seldom", 35)]
    status, output, _ = coband("compare", run, "--json", "--against", "Often")
    found = json.loads(output)
    assert status == 0
    assert found["labels"] == {"Often": "fake", "Seldom": "fake"}
    messages = next(one for one in found["differences"] if one["measure"] == "messages")
    assert (messages["first"], messages["second"], messages["paired"], messages["n"]) == ("Seldom", "Often", True, 3)
    # Often: 5 agents, 40 turns, every 2nd an upload and 5 copies of a mean; Seldom: every 3rd.
    assert messages["mean"] == 5 * 13 * 6 - 5 * 20 * 6
    assert messages["ci95_t"] == [messages["mean"]] * 2
    assert {one["measure"]: one["lowest"] for one in found["rankings"]}["messages"] == ["Seldom"]


def test_what_all_differences_have_in_common_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    header = ("difference", "mean", "relative", "95 % t interval", "95 % bootstrap interval", "n", "verdict")
    names = (("A − B", "1"), ("A − C", "2"))
    rows = tuple((name, "3", "+1 %", t, "needs 8 pairs", "2 pairs", "B lower") for name, t in names)
    _show_differences("regret", ReportTable("Differences.", header, rows, 1))
    _, title, common, head, *shown = capsys.readouterr().out.splitlines()
    expected = ("regret: Differences.", "in all rows: 95 % bootstrap interval: needs 8 pairs; n: 2 pairs")
    assert (title, common) == expected
    assert head.split("  ") == ["difference", "verdict", "mean", "relative", "95 % t interval"]
    assert [line.split()[-1] for line in shown] == ["1", "2"]


def test_report(coband: Program, run: Path) -> None:
    assert coband("report", run)[:2] == (0, f"{run / 'report.html'}\n")
    text = (run / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert coband("report", run / "run.sqlite")[0] == 0, "the same run gives the same bytes, which may be written again"
    assert (run / "report.html").read_text(encoding="utf-8") == text


def test_what_differs_is_replaced_on_demand_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "report.html"
    keep_file(file, b"mine", force=False)
    keep_file(file, b"mine", force=False)
    with pytest.raises(OutputError, match=r"\.html is there already and differs\. Choose another place with --out"):
        keep_file(file, b"yours", force=False)
    assert file.read_bytes() == b"mine"
    keep_file(file, b"yours", force=True)
    assert file.read_bytes() == b"yours"
    with pytest.raises(OutputError, match=r"cannot be written: .*Choose another place with --out\."):
        keep_file(file / "below" / "x.html", b"", force=False)


def test_files_of_runs_and_other_kinds_of_files_are_refused(coband: Program, run: Path) -> None:
    with pytest.raises(OutputError, match=r"results\.json is a file of a run, which nothing replaces"):
        keep_file(run / "results.json", b"mine", force=True)
    status, _, errors = coband("report", run, "--out", run / "report.pdf")
    assert status == 2
    assert "a report is HTML; end its name with .html. `coband plot` draws its figures." in errors


def test_what_there_is_no_room_for_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, link, write = tmp_path / "report.html", tmp_path / "link.html", Path.write_bytes
    file.write_bytes(b"mine")
    link.symlink_to(file)
    keep_file(link, b"ours", force=True)
    assert link.is_symlink()
    assert file.read_bytes() == b"ours"

    def half(path: Path, content: bytes) -> int:
        write(path, content[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    for target in (file, link, tmp_path / "other.html"):
        with pytest.raises(OutputError, match=r"cannot be written: No space left on device\. Choose another place"):
            keep_file(target, b"yours", force=True)
    assert file.read_bytes() == b"ours"
    assert {one.name for one in tmp_path.iterdir()} == {"report.html", "link.html"}


def test_plot(coband: Program, run: Path, tmp_path: Path) -> None:
    kinds = ("--format", "png", "--format", "svg", "--format", "pdf", "--format", "csv")
    status, output, _ = coband("plot", run, "communication", *kinds, "--out", tmp_path / "one")
    files = [Path(line) for line in output.splitlines()]
    expected = (0, [f"communication.{kind}" for kind in ("png", "svg", "pdf", "csv")])
    assert (status, [file.name for file in files]) == expected
    heads = [file.read_bytes()[:5] for file in files]
    assert heads == [b"\x89PNG\r", b"<?xml", b"%PDF-", b"measu"]
    coband("plot", run, "communication", "--out", tmp_path / "two")
    assert (tmp_path / "two" / "communication.pdf").read_bytes() == files[2].read_bytes(), (
        "the same run gives the same bytes"
    )
    alone = tmp_path / "alone.svg"
    assert coband("plot", run, "communication", "--out", alone)[:2] == (0, f"{alone}\n")
    assert alone.read_bytes() == files[1].read_bytes()
    sizes = []
    for dpi in (50, 100):
        coband("plot", run, "communication", "--format", "png", "--dpi", dpi, "--out", tmp_path / str(dpi))
        head = (tmp_path / str(dpi) / "communication.png").read_bytes()[16:20]
        sizes.append(int.from_bytes(head, "big"))
    assert sizes == pytest.approx([330, 660], abs=1)  # old matplotlibs round down


def inches(file: Path) -> tuple[float, float]:
    content = file.read_bytes()
    if file.suffix == ".png":
        return int.from_bytes(content[16:20], "big") / 100, int.from_bytes(content[20:24], "big") / 100
    pattern = rb"MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]" if file.suffix == ".pdf" else rb'viewBox="0 0 ([\d.]+) ([\d.]+)"'
    found = re.search(pattern, content)
    return float(found[1]) / 72, float(found[2]) / 72


def test_plot_in_the_size_of_a_column(coband: Program, run: Path, tmp_path: Path) -> None:
    size = ["--where", "x=turns", "--width", "3.3", "--height", "2.2", "--dpi", "100"]
    for ending in ("pdf", "svg", "png"):
        file = tmp_path / f"panel.{ending}"
        assert coband("plot", run, "regret", *size, "--out", file)[:2] == (0, f"{file}\n")
        assert inches(file) == pytest.approx((3.3, 2.2), abs=0.005)
        before = file.read_bytes()
        assert coband("plot", run, "regret", *size, "--out", file)[0] == 0, "the same bytes again"
        assert file.read_bytes() == before
    two = coband("plot", run, "regret", "results", "--format", "svg", "--out", tmp_path / "d")
    assert [Path(line).name for line in two[1].splitlines()] == ["regret.svg", "results.svg"]
    assert "Seldom" in (tmp_path / "d" / "results.svg").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["regrets"], "regrets is neither a run nor a panel; panels are results, sensitivity, heat, regret,"),
        (["regret", "--out", "x.gif"], "x.gif: a drawing is pdf, svg, png, csv, by the ending of its file."),
        (
            ["regret", "results", "--out", "x.pdf"],
            "is one file for 2 panels: regret, results. Name one, or a directory.",
        ),
        (
            ["regret", "--where", "environment=a"],
            "there is no column 'environment'; the columns are x, label, at, mean",
        ),
        (
            ["regret", "--where", "x=time", "--width", "0.6", "--height", "0.7"],
            "0.6 x 0.7 inches has no room for 'regret'",
        ),
        (["--out", "x.pdf"], "is one file for 6 panels: results, regret, trade_off, communication, differences, "),
        (["times"], "these runs have nothing to draw for times. It shows: "),
    ],
)
def test_bad_panels(coband: Program, run: Path, options: list[str], message: str) -> None:
    status, _, errors = coband("plot", run, *options)
    assert status == 2
    assert message in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "nowhere"], "nowhere is not a run"),
        (["compare", "RUN", "RUN"], "is given 2 times; give each run once"),
        (["report", "RUN", "--against", "Ofen"], "there is no label 'Ofen' to compare with; there is Often, Seldom."),
    ],
)
def test_bad_input(coband: Program, run: Path, arguments: list[str], message: str) -> None:
    status, _, errors = coband(*(word.replace("RUN", str(run)) for word in arguments))
    assert status == 2
    assert message in errors


def test_nothing_finished(coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "broken", replications=1, mischief=((0, "error"),), labels=("Often",))
    status, _, errors = coband("report", tmp_path / "broken")
    assert status == 2
    assert "no job has finished, so there is nothing to report" in errors
